//! Anthropic's Messages: an answer is a list of blocks; a stream opens, fills and closes one after another.

use serde_json::{Map, Value, json};

use super::{Counted, extend, object_of};
use crate::scenario::Reply;

pub(super) fn whole(reply: &Reply) -> Value {
    let mut blocks: Vec<Value> = reply.thoughts().iter().map(thought_block).collect();
    blocks.extend(reply.content.iter().filter(|text| !text.is_empty()).map(|text| json!({"type": "text", "text": text})));
    blocks.extend(reply.each_call().iter().enumerate().map(|(at, call)| {
        let input = object_of(&call.arguments_text().unwrap_or_default());
        json!({"type": "tool_use", "id": call.id_at(at), "name": call.name, "input": input})
    }));
    let mut message = message(json!(blocks), stop_reason(&reply.finish_reason()));
    if let Some(counted) = Counted::of(reply) {
        message["usage"] = usage(counted, counted.completion);
    }
    message
}

fn message(content: Value, stop_reason: Value) -> Value {
    json!({
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": "upstream-m", "content": content,
        "stop_reason": stop_reason, "stop_sequence": null,
    })
}

fn thought_block(thought: &Value) -> Value {
    if let Some(data) = thought.get("redacted") {
        return json!({"type": "redacted_thinking", "data": data});
    }
    let mut block = json!({"type": "thinking", "thinking": thought["text"]});
    if let Some(signature) = thought.get("signature") {
        block["signature"] = signature.clone();
    }
    block
}

fn stop_reason(finish: &Value) -> Value {
    match finish.as_str() {
        Some("stop") => json!("end_turn"),
        Some("tool_calls") => json!("tool_use"),
        Some("length") => json!("max_tokens"),
        Some("content_filter") => json!("refusal"),
        _ => finish.clone(),
    }
}

/// The cache is counted beside the input here, not inside it; thinking inside the output.
fn usage(counted: Counted, output: u64) -> Value {
    json!({
        "input_tokens": counted.prompt - counted.cached - counted.written,
        "cache_creation_input_tokens": counted.written,
        "cache_read_input_tokens": counted.cached,
        "output_tokens": output,
        "service_tier": "standard",
    })
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"})
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Thinking,
    Call(u64),
}

pub struct Teller {
    counted: Option<Counted>,
    extra: Map<String, Value>,
    has_begun: bool,
    open: Open,
    /// Of the block that is open, or is opened next.
    index: u64,
    /// What closes a thinking block.
    signature: Value,
}

impl Teller {
    pub(super) fn new(reply: &Reply) -> Self {
        Self {
            counted: Counted::of(reply),
            extra: reply.extra.clone(),
            has_begun: false,
            open: Open::Nothing,
            index: 0,
            signature: Value::Null,
        }
    }

    pub(super) fn delta(&mut self, delta: &Value) -> String {
        let mut said = self.begin();
        if let Some(thought) = delta.get("thought") {
            said += &self.thought(thought);
        }
        if let Some(text) = delta["reasoning_content"].as_str().filter(|text| !text.is_empty()) {
            said += &self.block(Open::Thinking, || json!({"type": "thinking", "thinking": "", "signature": ""}));
            said += &self.part(json!({"type": "thinking_delta", "thinking": text}));
        }
        if let Some(text) = delta["content"].as_str().filter(|text| !text.is_empty()) {
            said += &self.block(Open::Text, || json!({"type": "text", "text": ""}));
            said += &self.part(json!({"type": "text_delta", "text": text}));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            said += &self.call(call);
        }
        said
    }

    fn call(&mut self, call: &Value) -> String {
        let open = Open::Call(call["index"].as_u64().unwrap_or(0));
        let is_new = self.open != open;
        let start = || json!({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": {}});
        let mut said = self.block(open, start);
        let arguments = &call["function"]["arguments"];
        let text = arguments.as_str().map(str::to_owned).or_else(|| arguments.is_object().then(|| arguments.to_string()));
        // The first piece that the API sends is empty, but only where any follows.
        if let Some(text) = text.filter(|text| !text.is_empty() || (is_new && arguments.is_string())) {
            said += &self.part(json!({"type": "input_json_delta", "partial_json": text}));
        }
        said
    }

    fn thought(&mut self, thought: &Value) -> String {
        let mut said = self.close();
        if thought.get("redacted").is_some() {
            said += &self.start(Open::Thinking, &thought_block(thought));
            self.signature = Value::Null;
            return said + &self.close();
        }
        said += &self.block(Open::Thinking, || json!({"type": "thinking", "thinking": "", "signature": ""}));
        let text = thought["text"].as_str().unwrap_or_default();
        let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        for piece in [&text[..half], &text[half..]].into_iter().filter(|piece| !piece.is_empty()) {
            said += &self.part(json!({"type": "thinking_delta", "thinking": piece}));
        }
        self.signature = thought.get("signature").cloned().unwrap_or_default();
        said + &self.close()
    }

    pub(super) fn finish(&mut self, reason: &Value) -> String {
        let mut event = json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(reason), "stop_sequence": null}});
        if let Some(counted) = self.counted {
            event["usage"] = json!({"output_tokens": counted.completion});
        }
        self.begin() + &self.close() + &said(&event)
    }

    pub(super) fn done(&mut self) -> String {
        self.begin() + &self.close() + &said(&json!({"type": "message_stop"}))
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.has_begun, true) {
            return String::new();
        }
        let mut message = message(json!([]), Value::Null);
        extend(&mut message, &self.extra);
        if let Some(counted) = self.counted {
            message["usage"] = usage(counted, 1);
        }
        said(&json!({"type": "message_start", "message": message})) + &said(&json!({"type": "ping"}))
    }

    /// Makes sure that this block is the open one.
    fn block(&mut self, open: Open, start: impl FnOnce() -> Value) -> String {
        if self.open == open {
            return String::new();
        }
        self.close() + &self.start(open, &start())
    }

    fn start(&mut self, open: Open, block: &Value) -> String {
        self.open = open;
        said(&json!({"type": "content_block_start", "index": self.index, "content_block": block}))
    }

    fn part(&self, delta: Value) -> String {
        said(&json!({"type": "content_block_delta", "index": self.index, "delta": delta}))
    }

    fn close(&mut self) -> String {
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        if open == Open::Nothing {
            return String::new();
        }
        let mut closed = String::new();
        let signature = std::mem::take(&mut self.signature);
        if open == Open::Thinking && signature.is_string() {
            closed += &self.part(json!({"type": "signature_delta", "signature": signature}));
        }
        closed += &said(&json!({"type": "content_block_stop", "index": self.index}));
        self.index += 1;
        closed
    }
}

fn said(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}
