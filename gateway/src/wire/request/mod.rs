//! A caller's chat completion: read once, and sent on as it came, with the gateway's own parts spliced in.

mod mending;
mod reading;

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value};

use self::reading::{Known, Transcript, slice, transcript};
use super::history::History;
use super::object::{self, Edit, spells};

/// A chat completion as a caller sent it. Its transcript and whatever else is not interpreted are slices of the body that came.
#[derive(Debug)]
pub struct Request {
    /// What the caller calls the model.
    pub model: String,
    /// Whether it wants a stream.
    pub stream: bool,
    /// Whether the stream shall end with a usage chunk.
    pub include_usage: bool,
    /// Whether it brings tools of its own.
    pub own_tools: bool,
    /// Whether it insists on a tool.
    pub tool_choice: ToolChoice,
    /// `n`: how many answers at once; above 1 no loop can follow them.
    pub answers: u64,
    output_limit: Option<u64>,
    /// The `functions` of old.
    pub legacy_functions: bool,
    members: Vec<(Bytes, Bytes)>,
    transcript: Transcript,
}

/// What the caller wants done about tools in the first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// Nothing, or `auto`, or `none`: a request without tools is fine.
    Free,
    /// `required`, or a certain function: there must be tools.
    Required,
}

/// What is wrong with a body, and where.
#[derive(Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// Not JSON: why.
    Json(String),
    /// JSON, but no object.
    NotAnObject,
    /// A member is missing or of the wrong type: which, and what it must be.
    Member(&'static str, &'static str),
}

impl Request {
    /// Reads a body.
    ///
    /// # Errors
    /// [`BadRequest`], which names the member.
    pub fn parse(body: &Bytes) -> Result<Self, BadRequest> {
        let members = reading::members(body)?;
        let known = Known::find(&members)?;
        let messages = known.messages.ok_or(BadRequest::Member("messages", "is required: a list of messages"))?;
        let options = known.stream_options()?;
        Ok(Self {
            model: known.model()?,
            stream: known.stream()?,
            include_usage: options.include_usage,
            own_tools: known.has_items("tools", known.tools)?,
            tool_choice: known.tool_choice(),
            answers: known.answers()?,
            output_limit: known.output_limit(),
            legacy_functions: [known.functions, known.function_call].into_iter().flatten().any(|raw| raw != "null"),
            transcript: transcript(body, messages)?,
            members: members.into_iter().map(|(key, value)| (slice(body, key), slice(body, value))).collect(),
        })
    }

    /// How long an answer may be, in tokens: as the caller says or, where it does not even name a limit, as the operator's `params` do.
    pub fn output_limit(&self, params: &Map<String, Value>) -> Option<u64> {
        if self.names_output_limit() {
            return self.output_limit;
        }
        OUTPUT_LIMITS.iter().filter_map(|name| params.get(*name)?.as_u64()).max()
    }

    /// The names of the caller's own tools, each once. Those of other kinds than functions may have none.
    pub fn own_names(&self) -> BTreeSet<String> {
        self.own_list().map_or_else(BTreeSet::new, |list| reading::names(list))
    }

    /// Whether some of the caller's own tools are no functions, but take and are called with plain text.
    pub fn brings_custom_tools(&self) -> bool {
        self.own_list().is_some_and(|list| reading::has_custom(list))
    }

    /// The caller's own list of tools, as it came.
    fn own_list(&self) -> Option<&Bytes> {
        self.members.iter().find(|(key, _)| self.own_tools && spells(key, "tools")).map(|(_, list)| list)
    }

    /// The transcript as the caller sent it: the inside of its list of messages, in slices of whole messages.
    pub fn transcript(&self) -> &[Bytes] {
        &self.transcript.segments
    }

    /// The same message by message; `None`: nothing in it has to do with tools.
    pub fn history(&self) -> Option<&History> {
        self.transcript.history.as_ref()
    }

    /// How many bytes there are around the messages, as the caller sent it.
    pub fn around(&self) -> usize {
        let others = self.members.iter().filter(|(key, _)| !matches!(Place::of(key), Place::Messages));
        others.map(|(key, value)| key.len() + value.len() + 2).sum()
    }

    /// The request for one round: the caller's own with the model's name, the system text, the offered tools, and `messages` (the inside of the
    /// list) in place of its transcript. Their bytes are not copied.
    pub fn compose(&self, splice: &Splice<'_>, round: Round, messages: &[Bytes]) -> Vec<Bytes> {
        let mut parts = Vec::with_capacity(5 + messages.len());
        let mut text = BytesMut::with_capacity(512);
        text.put_u8(b'{');
        for (key, value) in &self.members {
            self.put_member(&mut text, &mut parts, (key, value), splice, round, messages);
        }
        self.put_defaults(&mut text, splice, round);
        if let Some(limit) = splice.output_limit {
            put(&mut text, object::quoted(limit.member).as_bytes(), limit.tokens.to_string().as_bytes());
        }
        if self.stream && !self.has("stream_options") {
            put(&mut text, b"\"stream_options\"", br#"{"include_usage":true}"#);
        }
        if round == Round::Closing && splice.closes_with_tools && self.has_tools(splice) {
            put(&mut text, b"\"tool_choice\"", b"\"none\"");
        }
        if self.puts_tools(splice, round) {
            put(&mut text, b"\"tools\"", b"");
            self.put_tools(&mut text, &mut parts, splice);
        }
        text.put_u8(b'}');
        parts.push(text.freeze());
        parts
    }

    fn put_member(
        &self,
        text: &mut BytesMut,
        parts: &mut Vec<Bytes>,
        (key, value): (&Bytes, &Bytes),
        splice: &Splice<'_>,
        round: Round,
        messages: &[Bytes],
    ) {
        match Place::of(key) {
            Place::Model if splice.upstream_model != self.model => {
                put(text, key, object::quoted(splice.upstream_model).as_bytes())
            }
            Place::Messages => {
                put(text, key, b"[");
                if let Some(system) = splice.system {
                    text.extend_from_slice(system);
                    text.put_u8(b',');
                }
                parts.push(text.split().freeze());
                parts.extend(messages.iter().cloned());
                text.put_u8(b']');
            }
            Place::StreamOptions if self.stream => put(text, key, with_usage(value).as_bytes()),
            Place::StreamOptions => {}
            Place::Tools if !self.own_tools || round == Round::Closing || self.puts_tools(splice, round) => {}
            Place::ToolChoice if self.choice_is_over(splice, round) => put(text, key, b"\"auto\""),
            Place::ToolChoice if !self.keeps_choice(splice, round) => {}
            Place::Parallel if !self.keeps_parallel(splice, round) => {}
            // Only a limit that nobody set is lowered; a member that says `null` sets none.
            Place::OutputLimit if splice.output_limit.is_some() => {}
            _ => put(text, key, value),
        }
    }

    /// The caller's tools as they came, the gateway's after them.
    fn put_tools(&self, text: &mut BytesMut, parts: &mut Vec<Bytes>, splice: &Splice<'_>) {
        let own = self.own_list().map(|list| list.slice(..list.len() - 1));
        parts.push(text.split().freeze());
        match own {
            Some(own) if splice.tools.is_empty() => parts.extend([own, Bytes::from_static(b"]")]),
            Some(own) => parts.extend([own, Bytes::from_static(b","), splice.tools.slice(1..)]),
            None => parts.push(splice.tools.clone()),
        }
    }

    /// Whether tools are put in; the caller's alone stay where they are.
    fn puts_tools(&self, splice: &Splice<'_>, round: Round) -> bool {
        match round {
            Round::First | Round::Later => !splice.tools.is_empty(),
            Round::Closing => splice.closes_with_tools && self.has_tools(splice),
        }
    }

    fn has_tools(&self, splice: &Splice<'_>) -> bool {
        self.own_tools || !splice.tools.is_empty()
    }

    /// A caller's `tool_choice` holds for the first round only: kept longer, `required` would never let the model answer.
    fn keeps_choice(&self, splice: &Splice<'_>, round: Round) -> bool {
        self.has_tools(splice) && round == Round::First
    }

    fn choice_is_over(&self, splice: &Splice<'_>, round: Round) -> bool {
        self.has_tools(splice) && round == Round::Later
    }

    fn keeps_parallel(&self, splice: &Splice<'_>, round: Round) -> bool {
        self.has_tools(splice) && round != Round::Closing
    }

    fn put_defaults(&self, text: &mut BytesMut, splice: &Splice<'_>, round: Round) {
        for (name, value) in splice.params {
            let belongs = match name.as_str() {
                "parallel_tool_calls" => self.keeps_parallel(splice, round),
                // A limit under the other name would be a second one.
                name if OUTPUT_LIMITS.contains(&name) => !self.names_output_limit(),
                _ => true,
            };
            if belongs && !self.has(name) {
                put(text, object::quoted(name).as_bytes(), value.to_string().as_bytes());
            }
        }
    }

    fn names_output_limit(&self) -> bool {
        OUTPUT_LIMITS.iter().any(|name| self.has(name))
    }

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(key, _)| spells(key, name))
    }
}

/// The names that the API has, and had, for the limit of an answer.
const OUTPUT_LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// Which call of a run a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Round {
    /// The caller's `tool_choice` holds.
    First,
    /// Tools are offered, the model decides.
    Later,
    /// No tools at all: the answer, now.
    Closing,
}

/// What the gateway puts into a caller's request.
pub struct Splice<'s> {
    /// What the provider calls the model.
    pub upstream_model: &'s str,
    /// A whole system message that goes first.
    pub system: Option<&'s [u8]>,
    /// Members that are used where the caller is silent.
    pub params: &'s serde_json::Map<String, serde_json::Value>,
    /// The JSON list of the offered tools; empty: none are offered.
    pub tools: Bytes,
    /// How long the answer may be, where neither the caller nor the model's `params` say so.
    pub output_limit: Option<OutputLimit>,
    /// Whether the closing call keeps the tools, and forbids them.
    pub closes_with_tools: bool,
}

/// How long an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// The member that the provider has for it.
    pub member: &'static str,
    /// In tokens.
    pub tokens: u64,
}

/// The members of a request that are interpreted, by their raw key.
enum Place {
    Model,
    Messages,
    StreamOptions,
    Tools,
    ToolChoice,
    Parallel,
    OutputLimit,
    Other,
}

impl Place {
    fn of(key: &[u8]) -> Self {
        match &key[1..key.len() - 1] {
            b"model" => Self::Model,
            b"messages" => Self::Messages,
            b"stream_options" => Self::StreamOptions,
            b"tools" => Self::Tools,
            b"tool_choice" => Self::ToolChoice,
            b"parallel_tool_calls" => Self::Parallel,
            b"max_tokens" | b"max_completion_tokens" => Self::OutputLimit,
            _ => Self::Other,
        }
    }
}

/// The caller's `stream_options`, with usage asked for: what a stream used is always wanted.
fn with_usage(options: &[u8]) -> String {
    object::edited(options, &[Edit::Set("include_usage", "true")]).unwrap_or_else(|_| r#"{"include_usage":true}"#.to_owned())
}

fn put(text: &mut BytesMut, key: &[u8], value: &[u8]) {
    // Only the brace that opens the object has no comma after it.
    if text.last() != Some(&b'{') || text.len() > 1 {
        text.put_u8(b',');
    }
    text.extend_from_slice(key);
    text.put_u8(b':');
    text.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(body: &str) -> Result<Request, BadRequest> {
        Request::parse(&Bytes::copy_from_slice(body.as_bytes()))
    }

    fn composed(body: &str, tools: &str, round: Round, added: &[&str]) -> String {
        let params = Map::from_iter([("temperature".to_owned(), json!(0.2))]);
        let splice = Splice {
            upstream_model: "up",
            system: Some(br#"{"role":"system","content":"S"}"#),
            params: &params,
            tools: Bytes::copy_from_slice(tools.as_bytes()),
            output_limit: None,
            closes_with_tools: false,
        };
        let request = parse(body).unwrap();
        let mut messages = request.transcript().to_vec();
        messages.extend(added.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())));
        let whole: Vec<u8> = request.compose(&splice, round, &messages).iter().flat_map(|part| part.to_vec()).collect();
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn what_is_not_interpreted_goes_on_digit_for_digit() {
        let body =
            r#"{ "model":"m", "temperature":1.10, "x":{"big":12345678901234567890,"e":1e400}, "messages":[ {"role":"user"} ] }"#;
        let expected = concat!(
            r#"{"model":"up","temperature":1.10,"x":{"big":12345678901234567890,"e":1e400},"#,
            r#""messages":[{"role":"system","content":"S"},{"role":"user"}]}"#
        );
        assert_eq!(composed(body, "", Round::First, &[]), expected);
    }

    #[test]
    fn tools_choice_and_messages_are_spliced_by_round() {
        let body =
            r#"{"messages":[{"role":"user"}],"tools":[],"tool_choice":"required","parallel_tool_calls":false,"model":"m"}"#;
        let head = r#"{"messages":[{"role":"system","content":"S"},{"role":"user"}"#;
        let table = [
            ("", Round::First, r#"],"model":"up","temperature":0.2}"#),
            (
                "[1]",
                Round::First,
                r#"],"tool_choice":"required","parallel_tool_calls":false,"model":"up","temperature":0.2,"tools":[1]}"#,
            ),
            (
                "[1]",
                Round::Later,
                r#"],"tool_choice":"auto","parallel_tool_calls":false,"model":"up","temperature":0.2,"tools":[1]}"#,
            ),
            ("[1]", Round::Closing, r#"],"model":"up","temperature":0.2}"#),
        ];
        for (tools, round, tail) in table {
            assert_eq!(composed(body, tools, round, &[]), format!("{head}{tail}"), "{tools} {round:?}");
            assert_eq!(composed(body, tools, round, &[",{\"a\":1}"]), format!("{head},{{\"a\":1}}{tail}"), "{tools} {round:?}");
        }
    }

    #[test]
    fn the_limit_of_an_answer_is_the_callers_or_else_the_operators_and_only_one_goes_on() {
        let params = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let table = [
            ("", r#"{"max_tokens":4000}"#, Some(4000), r#""max_tokens":4000"#),
            (r#","max_tokens":9"#, r#"{"max_tokens":4000}"#, Some(9), r#""max_tokens":9"#),
            (r#","max_completion_tokens":1"#, r#"{"max_tokens":4000}"#, Some(1), r#""max_completion_tokens":1"#),
            (r#","max_tokens":null"#, r#"{"max_tokens":5}"#, None, r#""max_tokens":null"#),
            (r#","max_tokens":3,"max_completion_tokens":7"#, "{}", Some(7), r#""max_tokens":3,"max_completion_tokens":7"#),
            (r#","max_tokens":0"#, "{}", None, r#""max_tokens":0"#),
            (r#","max_tokens":1,"max_completion_tokens":-1"#, "{}", None, r#""max_tokens":1,"max_completion_tokens":-1"#),
            (r#","max_tokens":1,"max_completion_tokens":"9""#, "{}", None, r#""max_tokens":1,"max_completion_tokens":"9""#),
            ("", "{}", None, ""),
        ];
        for (members, params_text, limit, sent) in table {
            let request = parse(&format!(r#"{{"messages":[1],"model":"m"{members}}}"#)).unwrap();
            let params = params(params_text);
            assert_eq!(request.output_limit(&params), limit, "{members} {params_text}");
            let splice = Splice {
                upstream_model: "m",
                system: None,
                params: &params,
                tools: Bytes::new(),
                output_limit: None,
                closes_with_tools: false,
            };
            let body = String::from_utf8(request.compose(&splice, Round::First, request.transcript()).concat()).unwrap();
            let rest = body.strip_prefix(r#"{"messages":[1],"model":"m""#).unwrap();
            assert_eq!(rest, if sent.is_empty() { "}".to_owned() } else { format!(",{sent}}}") }, "{members}");
        }
    }

    #[test]
    fn a_stream_always_asks_for_its_usage() {
        for options in ["", r#","stream_options":null"#, r#","stream_options":{"include_usage":false,"x":1}"#] {
            let body = format!(r#"{{"model":"m","messages":[{{}}],"stream":true{options}}}"#);
            let sent: Value = serde_json::from_str(&composed(&body, "", Round::First, &[])).unwrap();
            assert_eq!(sent["stream_options"]["include_usage"], json!(true), "{options}");
        }
    }

    #[test]
    fn empty_arguments_of_a_history_go_on_as_an_empty_object() {
        for arguments in [r#","arguments":"""#, r#","arguments":"  ""#, r#","arguments":null"#, r#","arguments":{ }"#, ""] {
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"t"{arguments}}}}}]}},{{"role":"tool"}}]}}"#
            );
            let text = composed(&body, "", Round::First, &[]);
            let sent: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let seen = sent["messages"][1]["tool_calls"][0]["function"]["arguments"]
                .as_str()
                .unwrap_or_else(|| panic!("{text}"))
                .replace(' ', "");
            assert_eq!(seen, "{}", "{arguments}");
        }
    }

    #[test]
    fn a_bad_body_is_named() {
        let table = [
            (r#"{"messages":[{}]}"#, "model"),
            (r#"{"model":1,"messages":[{}]}"#, "model"),
            (r#"{"model":"m"}"#, "messages"),
            (r#"{"model":"m","messages":{}}"#, "messages"),
            (r#"{"model":"m","messages":[ ]}"#, "messages"),
            (r#"{"model":"m","messages":[{}],"stream":"yes"}"#, "stream"),
            (r#"{"model":"m","messages":[{}],"stream_options":1}"#, "stream_options"),
            (r#"{"model":"m","messages":[{}],"tools":{}}"#, "tools"),
            (r#"{"model":"m","messages":[{}],"n":"100"}"#, "n"),
            (r#"{"model":"m","messages":[{}],"n":0}"#, "n"),
            (r#"{"model":"m","model":"x","messages":[{}]}"#, "model"),
            (r#"{"model":"m","\u006dodel":"x","messages":[{}]}"#, "model"),
        ];
        for (body, member) in table {
            let Err(BadRequest::Member(seen, _)) = parse(body) else { panic!("{body}") };
            assert_eq!(seen, member, "{body}");
        }
        for body in ["", "{", "{\"model\":\"m\"} x", "\u{feff}{}"] {
            assert!(matches!(parse(body), Err(BadRequest::Json(_))), "{body}");
        }
        for body in ["[]", "\"x\"", "1", "null"] {
            assert!(matches!(parse(body), Err(BadRequest::NotAnObject)), "{body}");
        }
    }
}
