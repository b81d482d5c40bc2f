//! The form of a scenario file, once one of its cases has been made of it ([`crate::cases`]). Every member is described in `README.md`, from
//! the writer's side.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cases::Stores;
use crate::dialect::Dialect;

/// One case of a scenario file: the file, with one of its variants and the members of one mode merged over it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What is shown, in a sentence.
    pub title: String,
    /// The same at more length, for the reader.
    #[serde(default)]
    #[expect(dead_code, reason = "for whoever reads the file")]
    shows: String,
    /// In which modes it runs.
    #[serde(default = "both")]
    #[expect(dead_code, reason = "looked at by `cases`, before the file is a scenario")]
    modes: Vec<Mode>,
    /// With which stores and counters.
    #[serde(default)]
    #[expect(dead_code, reason = "looked at by `cases`, before the file is a scenario")]
    stores: Vec<Stores>,
    /// In which dialects the model speaks.
    #[serde(default)]
    #[expect(dead_code, reason = "looked at by `cases`, before the file is a scenario")]
    dialects: Vec<Dialect>,
    /// Why it cannot hold yet.
    #[serde(default)]
    #[expect(dead_code, reason = "looked at by `cases`, before the file is a scenario")]
    pending: Option<String>,
    /// Merged over the default configuration.
    #[serde(default)]
    pub config: Value,
    /// In place of the default configuration, as text.
    pub config_text: Option<String>,
    /// Further files next to the configuration, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The environment of the gateway and of the commands.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What the model answers, in order.
    #[serde(default)]
    pub upstream: Vec<Reply>,
    /// What the tool servers answer, by path.
    #[serde(default)]
    pub tools: BTreeMap<String, Several<Reply>>,
    /// The model refuses what a strict provider refuses.
    #[serde(default = "yes")]
    pub strict: bool,
    /// What callers ask, one after another.
    #[serde(default)]
    pub requests: Vec<Ask>,
    /// What is run on the command line.
    #[serde(default)]
    pub commands: Vec<Run>,
    /// What must have been seen in the end.
    #[serde(default)]
    pub expect: Expect,
}

/// How a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The caller asks for a plain answer.
    Plain,
    /// The caller asks for a stream.
    Streamed,
}

impl Mode {
    /// The word in a test's name, and of the member that is merged in this mode.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Streamed => "streamed",
        }
    }
}

/// One thing or a list of them.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Several<T> {
    /// A list.
    List(Vec<T>),
    /// One.
    One(Box<T>),
}

impl<T: Clone> Several<T> {
    /// As a list.
    pub fn to_vec(&self) -> Vec<T> {
        match self {
            Self::List(all) => all.clone(),
            Self::One(one) => vec![T::clone(one)],
        }
    }
}

/// One scripted reply. Of `content`/`calls`, `json`, `text`, `sse` and `raw` it has one kind.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// The HTTP status; 200.
    pub status: Option<u16>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// The text of a message.
    pub content: Option<String>,
    /// The tool calls of a message.
    pub calls: Vec<Call>,
    /// Its finish reason; by default what fits; `null` as a word for none.
    pub finish: Option<String>,
    /// `[prompt, completion]`, or the object as it is sent, or `none`.
    pub usage: Option<Value>,
    /// What the model thought before: text that its API shows, signed where it signs.
    pub reasoning: Option<String>,
    /// The same at more length: each `{text, signature}` or `{redacted}`.
    pub thoughts: Vec<Value>,
    /// The sentence of an error, in the form that the model's API gives it.
    pub error: Option<String>,
    /// Members merged into the message (or the first delta); in OpenAI's form alone.
    pub message: Map<String, Value>,
    /// Members merged into the completion (or each chunk).
    pub extra: Map<String, Value>,
    /// How many characters of content a chunk carries; 8.
    pub pieces: Option<usize>,
    /// A JSON body.
    pub json: Option<Value>,
    /// A body as text, with its content type in `headers`.
    pub text: Option<String>,
    /// An event stream, byte by byte.
    pub sse: Option<Several<Piece>>,
    /// A whole HTTP response, byte by byte; the connection is closed after it.
    pub raw: Option<Several<Piece>>,
    /// Nothing is sent until the caller has received this.
    pub until_caller_saw: Option<String>,
    /// Milliseconds before the first byte.
    pub pause: Option<u64>,
    /// Nothing is sent until so many requests wait side by side.
    pub together: Option<usize>,
    /// No answer at all; the connection stays open until the other end closes it.
    pub hang: bool,
    /// How the reply breaks off at its end.
    pub cut: Option<Cut>,
    /// What the request's body must hold; if not, the reply is a 400.
    pub must: Option<Value>,
    /// It is no fault if nobody asks for it.
    pub optional: bool,
    /// So many replies alike.
    pub times: Option<usize>,
}

/// The replies, those that stand for several one by one.
pub(crate) fn each(replies: &[Reply]) -> Vec<Reply> {
    let times = |reply: &Reply| vec![Reply { times: None, ..reply.clone() }; reply.times.unwrap_or(1)];
    replies.iter().flat_map(times).collect()
}

/// A tool call in a scripted message.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// By default `c1`, `c2`, … within the reply.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// An object is sent as its text, a string as it is, `null` as null; absent, the member is absent.
    #[serde(default, deserialize_with = "present")]
    pub arguments: Option<Value>,
    /// As it is, whatever its type: for upstreams that send an object.
    pub arguments_as_is: Option<Value>,
    /// What must come back with the call, where an API signs calls.
    pub signature: Option<String>,
    /// So many calls alike; `#` in their arguments is the number of each.
    pub times: Option<usize>,
}

/// A piece of a body.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Piece {
    /// Text; `‖` flushes.
    Text(String),
    /// Something else than text.
    Other(Act),
}

/// What happens between two pieces of text.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// An event: a chunk whose one choice has this delta.
    Delta(Value),
    /// An event: a chunk whose one choice has an empty delta and this finish reason.
    Finish(Value),
    /// An event with this data.
    Data(Value),
    /// The event `data: [DONE]`, or what stands for it.
    Done(bool),
    /// An error with this sentence.
    Error(String),
    /// Bytes in hexadecimal.
    Hex(String),
    /// Milliseconds.
    Pause(u64),
    /// Wait for the caller.
    UntilCallerSaw(String),
    /// Break off here.
    Cut(Cut),
}

/// How a body breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// The connection is reset.
    Reset,
    /// The connection is closed inside the body.
    Fin,
    /// The body ends here as bodies do.
    End,
    /// The connection stays open, and nothing more is sent.
    Silence,
}

/// What a caller asks.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ask {
    /// Default POST; with `get` a GET.
    pub method: Option<String>,
    /// Default `/v1/chat/completions`.
    pub path: Option<String>,
    /// A path that is read with GET.
    pub get: Option<String>,
    /// On the admin listener.
    pub admin: bool,
    /// The bearer; by default the default key's secret; `none` for no header.
    pub key: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// What the user says: short for a body with this one message.
    pub says: Option<String>,
    /// Merged over `{"model": "m", "messages": [{"role": "user", "content": "Hello"}]}`.
    pub body: Map<String, Value>,
    /// The body as text; when streamed, `"stream": true` is put after its first brace.
    pub text: Option<String>,
    /// The whole request, byte by byte.
    pub raw: Option<Several<Piece>>,
    /// So many requests alike.
    pub times: Option<usize>,
    /// They are sent side by side, not one after another.
    pub at_once: bool,
    /// No request: something is done to the gateway.
    pub gateway: Option<Change>,
    /// With `gateway`: merged over the configuration before.
    pub config: Value,
    /// No request: a command line.
    pub command: Option<Run>,
    /// What this caller gets.
    pub expect: Option<Got>,
}

impl Ask {
    /// Whether it is a request of a caller.
    pub const fn is_request(&self) -> bool {
        self.gateway.is_none() && self.command.is_none()
    }
}

/// What is done to the gateway between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is ended by SIGTERM, which it must obey with exit code 0, and started again.
    Restart,
    /// It is killed, and started again.
    Kill,
    /// It reads its configuration again.
    Reload,
}

/// A command line.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// After the program's name. `{{config}}` is the configuration file.
    pub args: Vec<String>,
    /// The exit code.
    #[serde(default)]
    pub exit: i32,
    /// Texts that stand in its output, in this order.
    #[serde(default)]
    pub prints: Vec<String>,
    /// Texts that do not.
    #[serde(default)]
    pub prints_not: Vec<String>,
    /// Its standard output as JSON.
    pub json: Option<Value>,
}

/// What must have been seen in the end.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// By the model, request by request.
    pub upstream: Option<Vec<Seen>>,
    /// By the tool server, request by request.
    pub tools: Option<Vec<Seen>>,
    /// The most requests that the tool server had in hand at once.
    pub tools_side_by_side: Option<usize>,
    /// By the caller of the last request.
    pub caller: Option<Got>,
    /// In the trace of the last request.
    pub trace: Option<Value>,
    /// In the metrics: a series and its value (0: none, or absent).
    pub metrics: BTreeMap<String, Value>,
    /// What the key of the last request may still spend: `GET /toolgate/spend`.
    pub spend: Option<Value>,
    /// The rows of the ledger, each matched.
    pub ledger: Option<Vec<Value>>,
    /// Texts that stand in the gateway's log.
    pub log: Vec<String>,
    /// Texts that stand neither in the log nor in anything that the caller got.
    pub nowhere: Vec<String>,
}

/// A request that a scripted server saw.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seen {
    /// Its method.
    pub method: Option<String>,
    /// Path and query as they were sent.
    pub path: Option<Value>,
    /// Headers; `~`: absent.
    pub headers: BTreeMap<String, Value>,
    /// The body, matched; of a request in another dialect, the body in OpenAI's words.
    pub body: Option<Value>,
    /// The body as it was sent, matched.
    pub sent: Option<Value>,
    /// Members that the body does not have.
    pub lacks: Vec<String>,
    /// The whole list of messages, each matched.
    pub messages: Option<Vec<Value>>,
    /// The names of the tools that are offered, in order.
    pub offers: Option<Vec<String>>,
    /// Texts in the body as it was sent.
    pub text: Vec<String>,
    /// Texts not in it.
    pub text_not: Vec<String>,
}

/// What a caller got.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Got {
    /// Default 200.
    pub status: Option<Value>,
    /// Of several requests alike: how many got which status.
    pub statuses: BTreeMap<String, Value>,
    /// Headers; `~`: absent.
    pub headers: BTreeMap<String, Value>,
    /// The answer, plain or streamed: `content`, `finish_reason`, `usage`, `model`, `message`, `completion`.
    pub answer: Option<Value>,
    /// The JSON body, matched.
    pub body: Option<Value>,
    /// It breaks off, as what is no stream of events must where it cannot go on.
    pub broken: bool,
    /// The error: of the body, or of the stream's last event.
    pub error: Option<Value>,
    /// `status`, `reason`, `rounds`, `tool_calls`, `cost_usd`: the headers of a plain answer, the trace of a streamed one.
    pub summary: Option<Value>,
    /// At least so many comments in the stream.
    pub comments: Option<usize>,
    /// Texts in the body as it was sent.
    pub text: Vec<String>,
    /// Texts not in it.
    pub text_not: Vec<String>,
}

pub(crate) fn both() -> Vec<Mode> {
    vec![Mode::Plain, Mode::Streamed]
}

const fn yes() -> bool {
    true
}

/// A member that is there is `Some`, `null` included.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}
