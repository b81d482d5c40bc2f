//! Google's `generateContent`: candidates of parts; calls come whole and without ids, counters with every piece, and the stream just ends.

use serde_json::{Map, Value, json};

use super::{Counted, Gathered, extend, object_of};
use crate::scenario::Reply;

pub(super) fn whole(reply: &Reply) -> Value {
    let mut parts: Vec<Value> = reply.thoughts().iter().filter_map(thought_part).collect();
    parts.extend(reply.content.iter().filter(|text| !text.is_empty()).map(|text| json!({"text": text})));
    parts.extend(reply.each_call().iter().map(|call| {
        let arguments = call.arguments_text().unwrap_or_default();
        call_part(&call.name, &arguments, call.signature.as_deref())
    }));
    let mut whole = piece(&json!(parts), &finish_reason(&reply.finish_reason()));
    if let Some(counted) = Counted::of(reply) {
        whole["usageMetadata"] = usage(counted, true);
    }
    whole
}

fn thought_part(thought: &Value) -> Option<Value> {
    thought.get("text").map(|text| json!({"text": text, "thought": true}))
}

/// Without arguments, `args` is an empty object; arguments that are no object cannot be said.
fn call_part(name: &str, arguments: &str, signature: Option<&str>) -> Value {
    let mut part = json!({"functionCall": {"name": name, "args": object_of(arguments)}});
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

fn piece(parts: &Value, finish: &Value) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if !finish.is_null() {
        candidate["finishReason"] = finish.clone();
    }
    if parts.as_array().is_some_and(Vec::is_empty) {
        candidate["content"] = json!({"role": "model"});
    }
    json!({"candidates": [candidate], "modelVersion": "upstream-m", "responseId": "resp-scripted"})
}

fn finish_reason(finish: &Value) -> Value {
    match finish.as_str() {
        Some("stop" | "tool_calls") => json!("STOP"),
        Some("length") => json!("MAX_TOKENS"),
        Some("content_filter") => json!("SAFETY"),
        _ => finish.clone(),
    }
}

/// The cache is inside the prompt here; thoughts are beside the candidates.
fn usage(counted: Counted, is_last: bool) -> Value {
    let Counted { prompt, cached, completion, reasoning, .. } = counted;
    let mut usage = json!({"promptTokenCount": prompt, "totalTokenCount": prompt});
    if cached > 0 {
        usage["cachedContentTokenCount"] = json!(cached);
    }
    if is_last {
        usage["candidatesTokenCount"] = json!(completion - reasoning);
        usage["totalTokenCount"] = json!(prompt + completion);
        if reasoning > 0 {
            usage["thoughtsTokenCount"] = json!(reasoning);
        }
    }
    usage
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let word = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..500 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": word}})
}

pub struct Teller {
    counted: Option<Counted>,
    extra: Map<String, Value>,
    calls: Gathered,
}

impl Teller {
    pub(super) fn new(reply: &Reply) -> Self {
        Self { counted: Counted::of(reply), extra: reply.extra.clone(), calls: Gathered::default() }
    }

    pub(super) fn delta(&mut self, delta: &Value) -> String {
        self.calls.add(delta);
        let thoughts = delta["reasoning_content"].as_str().or_else(|| delta["thought"]["text"].as_str());
        let thoughts = thoughts.map(|text| json!({"text": text, "thought": true}));
        let text = delta["content"].as_str().filter(|text| !text.is_empty()).map(|text| json!({"text": text}));
        let parts: Vec<Value> = thoughts.into_iter().chain(text).collect();
        if parts.is_empty() { String::new() } else { self.say(&json!(parts), &Value::Null) }
    }

    pub(super) fn finish(&mut self, reason: &Value) -> String {
        let mut said = String::new();
        for (first, arguments) in self.calls.take() {
            let name = first["function"]["name"].as_str().unwrap_or_default();
            said += &self.say(&json!([call_part(name, &arguments, first["signature"].as_str())]), &Value::Null);
        }
        let reason = finish_reason(reason);
        // The last piece has an empty text, not none.
        said + &self.say(&json!([{"text": ""}]), &reason)
    }

    fn say(&self, parts: &Value, finish: &Value) -> String {
        let mut piece = piece(parts, finish);
        if let Some(counted) = self.counted {
            piece["usageMetadata"] = usage(counted, !finish.is_null());
        }
        extend(&mut piece, &self.extra);
        format!("data: {piece}\r\n\r\n")
    }
}
