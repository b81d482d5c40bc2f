//! A stream as its caller hears it, and what must hold for every stream, whatever it says.

use serde_json::{Map, Value, json};

/// An event stream, read to its end.
#[derive(Debug, Default)]
pub struct Stream {
    /// Its data, in order, without `[DONE]`.
    pub events: Vec<Value>,
    /// How many comments it had.
    pub comments: usize,
    /// How many `[DONE]`.
    pub done: usize,
    /// The error of an error event.
    pub error: Option<Value>,
    /// What no stream may be.
    pub faults: Vec<String>,
}

impl Stream {
    /// Reads a stream.
    pub fn parse(body: &[u8]) -> Self {
        let mut stream = Self::default();
        let Ok(text) = std::str::from_utf8(body) else {
            return Self { faults: vec!["the stream is not UTF-8".to_owned()], ..stream };
        };
        if text.contains('\u{fffd}') {
            stream.faults.push("the stream holds U+FFFD".to_owned());
        }
        for line in text.lines() {
            stream.line(line);
        }
        stream.error = stream.events.iter().find_map(|event| event.get("error")).cloned();
        stream.judge();
        stream
    }

    fn line(&mut self, line: &str) {
        if line.starts_with(':') {
            self.comments += 1;
        } else if let Some(data) = line.strip_prefix("data:").map(str::trim) {
            match (data, serde_json::from_str::<Value>(data)) {
                ("[DONE]", _) => self.done += 1,
                (_, Ok(event @ Value::Object(_))) if self.done == 0 => self.events.push(event),
                (_, Ok(Value::Object(_))) => self.faults.push(format!("data after [DONE]: {data}")),
                _ => self.faults.push(format!("data that is no JSON object: {line:?}")),
            }
        } else if !line.is_empty() {
            self.faults.push(format!("a line that is neither data nor comment: {line:?}"));
        }
    }

    /// Of each answer one role and one finish reason, one usage at the very end, one `[DONE]`; or one error and none of these endings.
    fn judge(&mut self) {
        let failed = self.error.is_some();
        let errors = self.events.iter().filter(|event| event.get("error").is_some()).count();
        let expected = usize::from(!failed);
        self.complain(errors > 1, format!("{errors} errors"));
        self.complain(self.done != expected, format!("{} [DONE], expected {expected}", self.done));
        for index in self.indices() {
            let of_it = || self.choices().filter(|choice| choice["index"].as_u64() == Some(index));
            let finishes = of_it().filter(|choice| choice["finish_reason"].is_string()).count();
            let roles = of_it().filter(|choice| choice["delta"]["role"].is_string()).count();
            self.complain(finishes != expected, format!("{finishes} finish reasons, expected {expected}"));
            self.complain(roles > 1 || (!failed && roles == 0), format!("{roles} roles, expected 1"));
        }
        let usages: Vec<usize> = (0..self.events.len()).filter(|at| self.events[*at]["usage"].is_object()).collect();
        self.complain(usages.len() > 1, format!("{} usage chunks", usages.len()));
        let last = self.events.len().saturating_sub(1);
        let misplaced = usages.first().is_some_and(|at| *at != last || self.events[*at]["choices"] != json!([]));
        self.complain(misplaced, "a usage chunk that is not last, or not without choices".to_owned());
        let empty = self.events.iter().filter(|event| event["choices"] == json!([]) && !event["usage"].is_object()).count();
        self.complain(empty > 0, "a chunk without choices that carries no usage".to_owned());
        for name in ["id", "model", "object"] {
            let mut values: Vec<_> =
                self.events.iter().filter(|event| event.get("choices").is_some()).map(|event| event[name].to_string()).collect();
            values.dedup();
            self.complain(values.len() > 1, format!("chunks with different {name}: {values:?}"));
        }
    }

    fn complain(&mut self, wrong: bool, what: String) {
        if wrong {
            self.faults.push(what);
        }
    }

    /// The answers that it holds: one, but where the caller asked for several.
    fn indices(&self) -> Vec<u64> {
        let mut indices: Vec<u64> = self.choices().filter_map(|choice| choice["index"].as_u64()).collect();
        indices.push(0);
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    fn choices(&self) -> impl Iterator<Item = &Value> {
        self.events.iter().filter_map(|event| event["choices"].get(0))
    }

    fn deltas(&self) -> impl Iterator<Item = &Value> {
        self.choices().map(|choice| &choice["delta"])
    }

    fn finish_reasons(&self) -> Vec<String> {
        self.choices().filter_map(|choice| choice["finish_reason"].as_str()).map(str::to_owned).collect()
    }

    /// The completion that the stream adds up to, in the form of [`answer`].
    pub fn answer(&self) -> Value {
        let mut message = Map::new();
        let mut calls: Vec<Value> = Vec::new();
        for delta in self.deltas() {
            for (name, value) in delta.as_object().into_iter().flatten() {
                match (name.as_str(), value) {
                    ("tool_calls", Value::Array(parts)) => parts.iter().for_each(|part| add_call(&mut calls, part)),
                    (_, Value::Null) => {}
                    (_, Value::String(text)) if name != "role" => {
                        let sofar = message.get(name).and_then(Value::as_str).unwrap_or_default();
                        message.insert(name.clone(), json!(format!("{sofar}{text}")));
                    }
                    _ => drop(message.insert(name.clone(), value.clone())),
                }
            }
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), json!(calls));
        }
        let usage = self.events.iter().rev().find_map(|event| event.get("usage").filter(|usage| usage.is_object()));
        let first = self.events.iter().find(|event| event.get("choices").is_some()).cloned().unwrap_or_default();
        json!({
            "content": message.get("content"),
            "finish_reason": self.finish_reasons().last(),
            "usage": usage,
            "model": first.get("model"),
            "message": message,
            "completion": first,
        })
    }
}

fn add_call(calls: &mut Vec<Value>, part: &Value) {
    let at = part["index"].as_u64().map_or(0, |at| usize::try_from(at).unwrap_or(0));
    while calls.len() <= at {
        calls.push(json!({"function": {"arguments": ""}}));
    }
    let call = &mut calls[at];
    for name in ["id", "type"] {
        if part[name].is_string() {
            call[name] = part[name].clone();
        }
    }
    if part["function"]["name"].is_string() {
        call["function"]["name"] = part["function"]["name"].clone();
    }
    let more = part["function"]["arguments"].as_str().unwrap_or_default();
    call["function"]["arguments"] = json!(format!("{}{more}", call["function"]["arguments"].as_str().unwrap_or_default()));
}

/// A plain completion in the form that [`Stream::answer`] has too.
pub fn answer(completion: &Value) -> Value {
    let choice = &completion["choices"][0];
    json!({
        "content": choice["message"]["content"],
        "finish_reason": choice["finish_reason"],
        "usage": completion.get("usage"),
        "model": completion["model"],
        "message": choice["message"],
        "completion": completion,
    })
}
