//! A scripted reply as bytes on the wire: a message becomes a JSON completion or a stream, as the request asks; what is scripted byte by byte
//! stays as it is.

use serde_json::{Map, Value, json};

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

/// Renders a reply to a request with this body.
pub fn render(reply: &Reply, request: &[u8]) -> Rendered {
    if let Some(raw) = &reply.raw {
        return Rendered { steps: pieces(&raw.to_vec(), |bytes| bytes), reusable: false };
    }
    let request: Value = serde_json::from_slice(request).unwrap_or_default();
    if let Some(sse) = &reply.sse {
        return streamed(reply, pieces(&sse.to_vec(), chunk));
    }
    if !reply.is_message() {
        let (kind, body) = match (&reply.json, &reply.text) {
            (Some(json), _) => ("application/json", json.to_string()),
            (_, Some(text)) => ("text/plain", text.clone()),
            _ => ("application/json", json!({"ok": true}).to_string()),
        };
        return whole(reply, kind, body.into_bytes());
    }
    if request["stream"] == true {
        let events = events(reply, request["stream_options"]["include_usage"] == true);
        return streamed(reply, events.into_iter().map(|event| Step::Send(chunk(event.into_bytes()))).collect());
    }
    whole(reply, "application/json", completion(reply).to_string().into_bytes())
}

impl Reply {
    fn is_message(&self) -> bool {
        self.content.is_some() || !self.calls.is_empty() || !self.message.is_empty() || self.finish.is_some()
    }

    /// The calls one by one.
    fn each_call(&self) -> Vec<Call> {
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

    fn finish_reason(&self) -> Value {
        match self.finish.as_deref() {
            Some("null") => Value::Null,
            Some(reason) => json!(reason),
            None => json!(if self.calls.is_empty() { "stop" } else { "tool_calls" }),
        }
    }

    fn usage_object(&self) -> Option<Value> {
        match &self.usage {
            None => Some(usage(10, 5)),
            Some(Value::String(word)) if word == "none" => None,
            Some(Value::Array(pair)) => Some(usage(pair[0].as_u64().unwrap_or(0), pair[1].as_u64().unwrap_or(0))),
            Some(object) => Some(object.clone()),
        }
    }
}

fn usage(prompt: u64, completion: u64) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

fn whole(reply: &Reply, kind: &str, body: Vec<u8>) -> Rendered {
    let status = reply.status.unwrap_or(200);
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

fn streamed(reply: &Reply, body: Vec<Step>) -> Rendered {
    let head = head(reply, reply.status.unwrap_or(200), "text/event-stream") + "transfer-encoding: chunked\r\n\r\n";
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

/// The scripted pieces as steps: text up to a `‖` is a packet of its own, and so are bytes in hexadecimal.
pub fn pieces(pieces: &[Piece], frame: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<Step> {
    let mut steps = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                let packets = text.split('‖').filter(|packet| !packet.is_empty());
                steps.extend(packets.map(|packet| Step::Send(frame(packet.as_bytes().to_vec()))));
            }
            Piece::Other(Act::Delta(delta)) => {
                steps.push(Step::Send(frame(event(&Reply::default(), delta, &Value::Null).into_bytes())))
            }
            Piece::Other(Act::Finish(reason)) => {
                steps.push(Step::Send(frame(event(&Reply::default(), &json!({}), reason).into_bytes())));
            }
            Piece::Other(Act::Data(data)) => steps.push(Step::Send(frame(format!("data: {data}\n\n").into_bytes()))),
            Piece::Other(Act::Done(_)) => steps.push(Step::Send(frame(b"data: [DONE]\n\n".to_vec()))),
            Piece::Other(Act::Hex(digits)) => steps.push(Step::Send(frame(unhex(digits)))),
            Piece::Other(Act::Pause(millis)) => steps.push(Step::Pause(*millis)),
            Piece::Other(Act::UntilCallerSaw(text)) => steps.push(Step::UntilCallerSaw(text.clone())),
            Piece::Other(Act::Cut(cut)) => steps.extend([Step::Pause(20), Step::Cut(*cut)]),
        }
    }
    steps
}

fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|digit| !digit.is_whitespace()).collect();
    let pair = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("two hexadecimal digits");
    digits.chunks(2).map(pair).collect()
}

fn completion(reply: &Reply) -> Value {
    let mut message = Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), json!(reply.content))]);
    if !reply.calls.is_empty() {
        message
            .insert("tool_calls".to_owned(), reply.each_call().iter().enumerate().map(|(at, call)| call_of(at, call)).collect());
    }
    message.extend(reply.message.clone());
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reply.finish_reason()});
    let mut completion = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": 1_700_000_000, "model": "upstream-m", "choices": [choice],
    });
    if let Some(usage) = reply.usage_object() {
        completion["usage"] = usage;
    }
    extend(&mut completion, &reply.extra);
    completion
}

fn call_of(at: usize, call: &Call) -> Value {
    let id = call.id.clone().unwrap_or_else(|| format!("c{}", at + 1));
    let mut function = json!({"name": call.name});
    match (&call.arguments_as_is, &call.arguments) {
        (Some(value), _) => function["arguments"] = value.clone(),
        (None, Some(object @ Value::Object(_))) => function["arguments"] = json!(object.to_string()),
        (None, Some(other)) => function["arguments"] = other.clone(),
        (None, None) => {}
    }
    json!({"id": id, "type": "function", "function": function})
}

fn events(reply: &Reply, with_usage: bool) -> Vec<String> {
    let mut first = json!({"role": "assistant", "content": if reply.calls.is_empty() { json!("") } else { Value::Null }});
    extend(&mut first, &reply.message);
    let mut deltas = vec![first];
    let content: Vec<char> = reply.content.iter().flat_map(|content| content.chars()).collect();
    deltas.extend(content.chunks(reply.pieces.unwrap_or(8)).map(|piece| json!({"content": piece.iter().collect::<String>()})));
    for (at, call) in reply.each_call().iter().enumerate() {
        deltas.extend(call_deltas(at, call));
    }
    let mut events: Vec<String> = deltas.into_iter().map(|delta| event(reply, &delta, &Value::Null)).collect();
    events.push(event(reply, &json!({}), &reply.finish_reason()));
    if let Some(usage) = reply.usage_object().filter(|_| with_usage) {
        let mut last = chunk_object(json!([]));
        last["usage"] = usage;
        events.push(format!("data: {last}\n\n"));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// A call as models stream it: id, name and no arguments, then the arguments in two halves. One whose arguments are no text comes whole.
fn call_deltas(at: usize, call: &Call) -> Vec<Value> {
    let mut whole = call_of(at, call);
    whole["index"] = json!(at);
    let Some(arguments) = whole["function"]["arguments"].as_str().map(str::to_owned) else {
        return vec![json!({"tool_calls": [whole]})];
    };
    whole["function"]["arguments"] = json!("");
    let middle = (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at)).unwrap_or(0);
    let half = |text: &str| json!({"tool_calls": [{"index": at, "function": {"arguments": text}}]});
    vec![json!({"tool_calls": [whole]}), half(&arguments[..middle]), half(&arguments[middle..])]
}

fn event(reply: &Reply, delta: &Value, finish: &Value) -> String {
    let mut object = chunk_object(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]));
    extend(&mut object, &reply.extra);
    format!("data: {object}\n\n")
}

fn chunk_object(choices: Value) -> Value {
    json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "upstream-m", "choices": choices,
    })
}

fn extend(object: &mut Value, over: &Map<String, Value>) {
    if let Value::Object(object) = object {
        object.extend(over.clone());
    }
}
