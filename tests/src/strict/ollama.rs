//! What Ollama's `/api/chat` refuses: it reads its own types and nothing else. Members that it does not know it leaves out without a word, which
//! is a refusal here, for what is not read is lost.

use serde_json::Value;

use super::{Asked, Refusal, list, unknown};

const MEMBERS: [&str; 9] = ["model", "messages", "stream", "format", "keep_alive", "tools", "options", "think", "truncate"];
const OPTIONS: [(&str, &str); 12] = [
    ("num_ctx", "integer"),
    ("num_predict", "integer"),
    ("num_keep", "integer"),
    ("seed", "integer"),
    ("top_k", "integer"),
    ("temperature", "float32"),
    ("top_p", "float32"),
    ("min_p", "float32"),
    ("repeat_penalty", "float32"),
    ("presence_penalty", "float32"),
    ("frequency_penalty", "float32"),
    ("stop", "array"),
];

pub(super) fn refusal(asked: Asked<'_>) -> Option<Refusal> {
    let body = asked.body;
    if let Some(name) = unknown(body, &MEMBERS) {
        return Some(format!("{name} would be left out without a word").into());
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Some("model is required".into());
    }
    if let Some(fault) = about_options(&body["options"]) {
        return Some(fault.into());
    }
    let is_level =
        |think: &Value| think.is_boolean() || think.as_str().is_some_and(|level| ["high", "medium", "low"].contains(&level));
    if body.get("think").is_some_and(|think| !is_level(think)) {
        return Some("invalid think value: must be \"high\", \"medium\", \"low\", true, or false".into());
    }
    if body.get("format").is_some_and(|format| *format != "json" && !format.is_object()) {
        return Some("invalid format: expected \"json\" or a JSON schema".into());
    }
    let tools = list(body, "tools").iter().find_map(about_tool);
    tools.or_else(|| list(body, "messages").iter().find_map(about_message)).map(Refusal::from)
}

fn about_options(options: &Value) -> Option<String> {
    options.as_object()?.iter().find_map(|(name, value)| {
        let Some((_, kind)) = OPTIONS.iter().find(|(known, _)| known == name) else {
            return Some(format!("invalid option provided: {name}"));
        };
        let fits = match *kind {
            "integer" => value.is_i64() || value.is_u64(),
            "array" => value.is_array(),
            _ => value.is_number(),
        };
        (!fits).then(|| format!("option {name:?} must be of type {kind}"))
    })
}

fn about_tool(tool: &Value) -> Option<String> {
    let function = &tool["function"];
    if tool["type"] != "function" || function["name"].as_str().is_none_or(str::is_empty) {
        return Some(format!("a tool that is no named function: {tool}"));
    }
    let parameters = &function["parameters"];
    if !parameters.is_object() || !parameters["type"].is_string() {
        return Some("json: cannot unmarshal into Go struct field ChatRequest.tools.function.parameters.type".to_owned());
    }
    None
}

fn about_message(message: &Value) -> Option<String> {
    let role = message["role"].as_str().unwrap_or_default();
    if !["system", "user", "assistant", "tool"].contains(&role) {
        return Some(format!("invalid role: {role}, must be one of [user, assistant, system, tool]"));
    }
    let known = ["role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"];
    if let Some(name) = unknown(message, &known) {
        return Some(format!("messages.{name} would be left out without a word"));
    }
    if message.get("content").is_some_and(|content| !content.is_string() && !content.is_null()) {
        return Some("json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string".to_owned());
    }
    if role == "tool" && message["tool_name"].as_str().is_none_or(str::is_empty) {
        return Some("a result without tool_name: its template cannot say whose it is".to_owned());
    }
    let is_base64 = |image: &Value| {
        image.as_str().is_some_and(|data| super::is_made_of(data, |c| c.is_ascii_alphanumeric() || "+/=".contains(c)))
    };
    if !list(message, "images").iter().all(is_base64) {
        return Some("illegal base64 data at input byte 4".to_owned());
    }
    let is_object = |call: &Value| call["function"]["arguments"].is_object() && call["function"]["name"].is_string();
    (!list(message, "tool_calls").iter().all(is_object)).then(|| {
        "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type map[string]interface {}".to_owned()
    })
}
