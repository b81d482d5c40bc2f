//! Mistral: OpenAI's form, but ids of nine letters or digits, calls whole and together with the end, counters unasked, thoughts inside the
//! content.

use serde_json::{Map, Value, json};

use super::{Gathered, extend, openai};
use crate::config::sha256;
use crate::scenario::Reply;

pub(super) fn id(scripted: &str) -> String {
    sha256(scripted)[..9].to_owned()
}

pub(super) fn whole(reply: &Reply) -> Value {
    let mut completion = openai::whole(&Reply { reasoning: None, thoughts: Vec::new(), ..reply.clone() });
    let message = &mut completion["choices"][0]["message"];
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        call["id"] = json!(id(call["id"].as_str().unwrap_or_default()));
    }
    let mut parts: Vec<Value> = reply.thoughts().iter().filter_map(thinking).collect();
    if !parts.is_empty() {
        parts.extend(reply.content.iter().map(|text| json!({"type": "text", "text": text})));
        message["content"] = json!(parts);
    } else if message["content"].is_null() {
        message["content"] = json!("");
    }
    completion
}

fn thinking(thought: &Value) -> Option<Value> {
    let text = thought.get("text")?;
    Some(json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]}))
}

/// A request that is not well formed is answered in another form than one that cannot be served.
pub(super) fn error(status: u16, message: &str) -> Value {
    if status == 422 {
        let detail = json!([{"type": "value_error", "loc": ["body"], "msg": message, "input": null}]);
        return json!({
            "object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "param": null, "code": null,
        });
    }
    let kind = if status == 429 { "rate_limited" } else { "invalid_request_error" };
    json!({"object": "error", "message": message, "type": kind, "param": null, "code": "3230"})
}

pub struct Teller {
    usage: Option<Value>,
    extra: Map<String, Value>,
    calls: Gathered,
}

impl Teller {
    pub(super) fn new(reply: &Reply) -> Self {
        Self { usage: reply.usage_object(), extra: reply.extra.clone(), calls: Gathered::default() }
    }

    pub(super) fn delta(&mut self, delta: &Value) -> String {
        self.calls.add(delta);
        let reasoning = || delta.get("reasoning_content").and_then(|text| thinking(&json!({"text": text})));
        let thought = thinking(&delta["thought"]).or_else(reasoning);
        let mut said = thought.map(|part| self.say(json!({"content": [part]}), &Value::Null, false)).unwrap_or_default();
        let has_calls = delta.get("tool_calls").is_some();
        if let Some(content) = delta.get("content").filter(|content| content.is_string() && !has_calls) {
            let mut piece = json!({"content": content});
            if let Some(role) = delta.get("role") {
                piece["role"] = role.clone();
            }
            said += &self.say(piece, &Value::Null, false);
        } else if let Some(role) = delta.get("role") {
            said += &self.say(json!({"role": role, "content": ""}), &Value::Null, false);
        }
        said
    }

    pub(super) fn finish(&mut self, reason: &Value) -> String {
        let calls: Vec<Value> = self
            .calls
            .take()
            .into_iter()
            .enumerate()
            .map(|(at, (first, arguments))| whole_call(at, &first, &arguments))
            .collect();
        let mut delta = json!({"content": ""});
        if !calls.is_empty() {
            delta["tool_calls"] = json!(calls);
        }
        self.say(delta, reason, true)
    }

    fn say(&self, delta: Value, finish: &Value, is_last: bool) -> String {
        let mut object = json!({
            "id": "cmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "upstream-m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        if let Some(usage) = self.usage.as_ref().filter(|_| is_last) {
            object["usage"] = usage.clone();
        }
        extend(&mut object, &self.extra);
        format!("data: {object}\n\n")
    }
}

fn whole_call(at: usize, first: &Value, arguments: &str) -> Value {
    let id = id(first["id"].as_str().unwrap_or_default());
    json!({"id": id, "function": {"name": first["function"]["name"], "arguments": arguments}, "index": at})
}
