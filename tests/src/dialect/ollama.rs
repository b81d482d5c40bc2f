//! Ollama's own `/api/chat`: a stream is a line of JSON for each piece, the last one with the counters; calls come whole, their arguments as
//! objects and without ids.

use serde_json::{Map, Value, json};

use super::{Counted, Gathered, extend, object_of};
use crate::scenario::Reply;

pub(super) fn whole(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.content.as_deref().unwrap_or_default()});
    let thoughts: String = reply.thoughts().iter().filter_map(|thought| thought["text"].as_str()).collect();
    if !thoughts.is_empty() {
        message["thinking"] = json!(thoughts);
    }
    let calls: Vec<Value> =
        reply.each_call().iter().map(|call| call_of(&call.name, &call.arguments_text().unwrap_or_default())).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    last(message, &reply.finish_reason(), Counted::of(reply))
}

fn call_of(name: &str, arguments: &str) -> Value {
    json!({"function": {"name": name, "arguments": object_of(arguments)}})
}

fn line(message: Value, is_done: bool) -> Value {
    json!({"model": "upstream-m", "created_at": "2023-11-14T22:13:20.123456789Z", "message": message, "done": is_done})
}

fn last(message: Value, finish: &Value, counted: Option<Counted>) -> Value {
    let mut last = line(message, true);
    match finish.as_str() {
        Some("stop" | "tool_calls") => last["done_reason"] = json!("stop"),
        Some(other) => last["done_reason"] = json!(other),
        None => {}
    }
    last["total_duration"] = json!(5_191_566_416_u64);
    last["load_duration"] = json!(2_154_458);
    if let Some(Counted { prompt, completion, .. }) = counted {
        last["prompt_eval_count"] = json!(prompt);
        last["prompt_eval_duration"] = json!(383_809_000);
        last["eval_count"] = json!(completion);
        last["eval_duration"] = json!(4_799_921_000_u64);
    }
    last
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
        let mut said = String::new();
        if let Some(text) = delta["reasoning_content"].as_str().or_else(|| delta["thought"]["text"].as_str()) {
            said += &self.say(line(json!({"role": "assistant", "content": "", "thinking": text}), false));
        }
        if let Some(text) = delta["content"].as_str().filter(|text| !text.is_empty()) {
            said += &self.say(line(json!({"role": "assistant", "content": text}), false));
        }
        said
    }

    pub(super) fn finish(&mut self, reason: &Value) -> String {
        let mut said = String::new();
        for (first, arguments) in self.calls.take() {
            let call = call_of(first["function"]["name"].as_str().unwrap_or_default(), &arguments);
            said += &self.say(line(json!({"role": "assistant", "content": "", "tool_calls": [call]}), false));
        }
        said + &self.say(last(json!({"role": "assistant", "content": ""}), reason, self.counted))
    }

    fn say(&self, mut line: Value) -> String {
        extend(&mut line, &self.extra);
        format!("{line}\n")
    }
}
