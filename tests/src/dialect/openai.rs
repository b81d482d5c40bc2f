//! Chat completions.

use serde_json::{Map, Value, json};

use super::extend;
use crate::scenario::{Call, Reply};

pub(super) fn whole(reply: &Reply) -> Value {
    let mut message = Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), json!(reply.content))]);
    if !reply.calls.is_empty() {
        let calls = reply.each_call().iter().enumerate().map(|(at, call)| call_of(at, call)).collect();
        message.insert("tool_calls".to_owned(), calls);
    }
    message.extend(reply.reasoning_members());
    message.extend(reply.message.clone());
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reply.finish_reason()});
    let mut completion = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": 1_700_000_000, "model": "upstream-m", "choices": [choice],
    });
    if let Some(usage) = reply.usage_object() {
        completion["usage"] = usage;
    }
    completion
}

/// A call as a message holds it.
pub(crate) fn call_of(at: usize, call: &Call) -> Value {
    let mut function = json!({"name": call.name});
    match (&call.arguments_as_is, &call.arguments) {
        (Some(value), _) => function["arguments"] = value.clone(),
        (None, Some(object @ Value::Object(_))) => function["arguments"] = json!(object.to_string()),
        (None, Some(other)) => function["arguments"] = other.clone(),
        (None, None) => {}
    }
    json!({"id": call.id_at(at), "type": "function", "function": function})
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

pub struct Teller {
    extra: Map<String, Value>,
    usage: Option<Value>,
}

impl Teller {
    pub(super) fn new(reply: &Reply, with_usage: bool) -> Self {
        Self { extra: reply.extra.clone(), usage: reply.usage_object().filter(|_| with_usage) }
    }

    pub(super) fn delta(&self, delta: &Value) -> String {
        match delta.get("thought") {
            Some(thought) => match thought.get("text") {
                Some(text) => self.event(&json!({"reasoning_content": text}), &Value::Null),
                None => String::new(),
            },
            None => self.event(delta, &Value::Null),
        }
    }

    pub(super) fn finish(&self, reason: &Value) -> String {
        self.event(&json!({}), reason)
    }

    pub(super) fn done(&self) -> String {
        let usage = self.usage.as_ref().map(|usage| {
            let mut last = chunk(json!([]));
            last["usage"] = usage.clone();
            format!("data: {last}\n\n")
        });
        usage.unwrap_or_default() + "data: [DONE]\n\n"
    }

    fn event(&self, delta: &Value, finish: &Value) -> String {
        let mut object = chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]));
        extend(&mut object, &self.extra);
        format!("data: {object}\n\n")
    }
}

fn chunk(choices: Value) -> Value {
    json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "upstream-m", "choices": choices,
    })
}
