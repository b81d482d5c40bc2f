//! A scripted reply as bytes on the wire: a message becomes a JSON completion or a stream, as the request asks; what is scripted byte by byte
//! stays as it is.

use serde_json::{Value, json};

use crate::dialect::{self, Dialect, Teller};
use crate::scenario::{Act, Call, Cut, Piece, Reply};

/// What is done on the connection, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes, in one packet of their own.
    Send(Vec<u8>),
    /// Milliseconds of nothing.
    Pause(u64),
    /// Wait until the caller has received this text.
    UntilCallerSaw(String),
    /// Break off; nothing follows.
    Cut(Cut),
}

/// A reply, ready to be sent.
pub struct Rendered {
    /// The steps, head included.
    pub steps: Vec<Step>,
    /// Whether the connection can carry another request.
    pub reusable: bool,
}

/// Renders a reply to a request to this path, with this body.
pub fn render(reply: &Reply, target: &str, request: &[u8]) -> Rendered {
    let dialect = Dialect::of(target);
    if let Some(raw) = &reply.raw {
        return Rendered { steps: pieces(&raw.to_vec(), &mut dialect.teller(reply, false), |bytes| bytes), reusable: false };
    }
    let request: Value = serde_json::from_slice(request).unwrap_or_default();
    if let Some(sse) = &reply.sse {
        return streamed(reply, dialect, pieces(&sse.to_vec(), &mut dialect.teller(reply, false), chunk));
    }
    if let Some(message) = &reply.error {
        let status = reply.status.unwrap_or(500);
        return whole(reply, status, "application/json", dialect.error(status, message).to_string().into_bytes());
    }
    let status = reply.status.unwrap_or(200);
    if !reply.is_message() {
        let (kind, body) = match (&reply.json, &reply.text) {
            (Some(json), _) => ("application/json", json.to_string()),
            (_, Some(text)) => ("text/plain", text.clone()),
            _ => ("application/json", json!({"ok": true}).to_string()),
        };
        return whole(reply, status, kind, body.into_bytes());
    }
    if dialect.is_streamed(target, &request) {
        let teller = dialect.teller(reply, request["stream_options"]["include_usage"] == true);
        let events = events(reply, dialect, teller);
        return streamed(reply, dialect, events.into_iter().map(|event| Step::Send(chunk(event.into_bytes()))).collect());
    }
    whole(reply, status, "application/json", dialect.whole(reply).to_string().into_bytes())
}

impl Reply {
    /// Whether the model says something in it, in no matter which dialect.
    pub(crate) fn is_message(&self) -> bool {
        let says = self.content.is_some() || self.reasoning.is_some() || !self.thoughts.is_empty();
        says || !self.calls.is_empty() || !self.message.is_empty() || self.finish.is_some()
    }

    /// The calls one by one.
    pub(crate) fn each_call(&self) -> Vec<Call> {
        let numbered = |call: &Call, number: usize| {
            let mut call = call.clone();
            let text = |value: Value| serde_json::from_str(&value.to_string().replace('#', &number.to_string())).unwrap_or(value);
            call.arguments = call.arguments.map(text);
            call
        };
        self.calls
            .iter()
            .flat_map(|call| match call.times {
                Some(times) => (1..=times).map(|number| numbered(call, number)).collect(),
                None => vec![call.clone()],
            })
            .collect()
    }

    /// In OpenAI's words.
    pub(crate) fn finish_reason(&self) -> Value {
        match self.finish.as_deref() {
            Some("null") => Value::Null,
            Some(reason) => json!(reason),
            None => json!(if self.calls.is_empty() { "stop" } else { "tool_calls" }),
        }
    }

    /// In OpenAI's form.
    pub(crate) fn usage_object(&self) -> Option<Value> {
        match &self.usage {
            None => Some(usage(10, 5)),
            Some(Value::String(word)) if word == "none" => None,
            Some(Value::Array(pair)) => Some(usage(pair[0].as_u64().unwrap_or(0), pair[1].as_u64().unwrap_or(0))),
            Some(object) => Some(object.clone()),
        }
    }
}

impl Call {
    /// Its id: the number `at` in its reply stands for one that is not written.
    pub(crate) fn id_at(&self, at: usize) -> String {
        self.id.clone().unwrap_or_else(|| format!("c{}", at + 1))
    }

    /// Its arguments as text; `None` where there are none.
    pub(crate) fn arguments_text(&self) -> Option<String> {
        match self.arguments_as_is.as_ref().or(self.arguments.as_ref())? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

fn usage(prompt: u64, completion: u64) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

fn whole(reply: &Reply, status: u16, kind: &str, body: Vec<u8>) -> Rendered {
    let mut head = head(reply, status, kind);
    if status == 204 {
        return Rendered { steps: vec![Step::Send((head + "\r\n").into_bytes())], reusable: true };
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    let mut bytes = head.into_bytes();
    let Some(cut) = reply.cut.filter(|cut| *cut != Cut::End) else {
        bytes.extend(body);
        return Rendered { steps: vec![Step::Send(bytes)], reusable: true };
    };
    bytes.extend(&body[..body.len() / 2]);
    Rendered { steps: vec![Step::Send(bytes), Step::Pause(20), Step::Cut(cut)], reusable: false }
}

fn streamed(reply: &Reply, dialect: Dialect, body: Vec<Step>) -> Rendered {
    let head = head(reply, reply.status.unwrap_or(200), dialect.stream_type()) + "transfer-encoding: chunked\r\n\r\n";
    let mut steps = vec![Step::Send(head.into_bytes())];
    steps.extend(body);
    match reply.cut {
        Some(cut) if cut != Cut::End => steps.extend([Step::Pause(20), Step::Cut(cut)]),
        _ if matches!(steps.last(), Some(Step::Cut(_))) => {}
        _ => steps.push(Step::Send(b"0\r\n\r\n".to_vec())),
    }
    let reusable = !steps.iter().any(|step| matches!(step, Step::Cut(cut) if *cut != Cut::End));
    for step in &mut steps {
        if *step == Step::Cut(Cut::End) {
            *step = Step::Send(b"0\r\n\r\n".to_vec());
        }
    }
    Rendered { steps, reusable }
}

fn head(reply: &Reply, status: u16, kind: &str) -> String {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
    if !reply.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
        head += &format!("content-type: {kind}\r\n");
    }
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head
}

fn chunk(bytes: Vec<u8>) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend(bytes);
    framed.extend(b"\r\n");
    framed
}

/// The scripted pieces as steps: text up to a `‖` is a packet of its own, and so are bytes in hexadecimal, and what is said in a dialect.
pub fn pieces(pieces: &[Piece], teller: &mut Teller, frame: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<Step> {
    let mut steps = Vec::new();
    for piece in pieces {
        let said = match piece {
            Piece::Text(text) => {
                let packets = text.split('‖').filter(|packet| !packet.is_empty());
                steps.extend(packets.map(|packet| Step::Send(frame(packet.as_bytes().to_vec()))));
                continue;
            }
            Piece::Other(Act::Delta(delta)) => teller.delta(delta).into_bytes(),
            Piece::Other(Act::Finish(reason)) => teller.finish(reason).into_bytes(),
            Piece::Other(Act::Done(_)) => teller.done().into_bytes(),
            Piece::Other(Act::Error(message)) => teller.error(500, message).into_bytes(),
            Piece::Other(Act::Data(data)) => format!("data: {data}\n\n").into_bytes(),
            Piece::Other(Act::Hex(digits)) => unhex(digits),
            Piece::Other(Act::Pause(millis)) => {
                steps.push(Step::Pause(*millis));
                continue;
            }
            Piece::Other(Act::UntilCallerSaw(text)) => {
                steps.push(Step::UntilCallerSaw(text.clone()));
                continue;
            }
            Piece::Other(Act::Cut(cut)) => {
                steps.extend([Step::Pause(20), Step::Cut(*cut)]);
                continue;
            }
        };
        if !said.is_empty() {
            steps.push(Step::Send(frame(said)));
        }
    }
    steps
}

fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|digit| !digit.is_whitespace()).collect();
    let pair = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("two hexadecimal digits");
    digits.chunks(2).map(pair).collect()
}

fn events(reply: &Reply, dialect: Dialect, mut teller: Teller) -> Vec<String> {
    let mut first = json!({"role": "assistant", "content": if reply.calls.is_empty() { json!("") } else { Value::Null }});
    if let Value::Object(first) = &mut first {
        first.extend(reply.message.clone());
    }
    let mut deltas = vec![first];
    deltas.extend(reply.thoughts().into_iter().map(|thought| json!({"thought": thought})));
    let content: Vec<char> = reply.content.iter().flat_map(|content| content.chars()).collect();
    deltas.extend(content.chunks(reply.pieces.unwrap_or(8)).map(|piece| json!({"content": piece.iter().collect::<String>()})));
    for (at, call) in reply.each_call().iter().enumerate() {
        deltas.extend(call_deltas(dialect, at, call));
    }
    let mut events: Vec<String> = deltas.iter().map(|delta| teller.delta(delta)).collect();
    events.push(teller.finish(&reply.finish_reason()));
    events.push(teller.done());
    events.retain(|event| !event.is_empty());
    // Usage is an event of its own.
    events.into_iter().flat_map(|event| event.split_inclusive("\n\n").map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// A call as models stream it: id, name and no arguments, then the arguments in two halves. One whose arguments are no text comes whole.
fn call_deltas(dialect: Dialect, at: usize, call: &Call) -> Vec<Value> {
    let mut whole = dialect::call_of(at, call);
    whole["index"] = json!(at);
    if let Some(signature) = call.signature.as_ref().filter(|_| dialect == Dialect::Gemini) {
        whole["signature"] = json!(signature);
    }
    let Some(arguments) = whole["function"]["arguments"].as_str().map(str::to_owned) else {
        return vec![json!({"tool_calls": [whole]})];
    };
    whole["function"]["arguments"] = json!("");
    let middle = (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at)).unwrap_or(0);
    let half = |text: &str| json!({"tool_calls": [{"index": at, "function": {"arguments": text}}]});
    vec![json!({"tool_calls": [whole]}), half(&arguments[..middle]), half(&arguments[middle..])]
}
