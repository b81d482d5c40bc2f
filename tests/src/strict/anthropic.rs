//! What Anthropic's Messages refuse.

use serde_json::Value;

use super::{Asked, Refusal, is_made_of, list, unknown};
use crate::dialect::Told;

const MEMBERS: [&str; 20] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "stop_sequences",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "tools",
    "tool_choice",
    "metadata",
    "thinking",
    "service_tier",
    "container",
    "output_config",
    "inference_geo",
    "cache_control",
    "context_management",
    "mcp_servers",
];
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(super) fn refusal(asked: Asked<'_>) -> Option<Refusal> {
    let Asked { body, told, .. } = asked;
    about_headers(asked)
        .or_else(|| about_members(body).or_else(|| about_tools(body)).or_else(|| about_system(body)).map(Refusal::from))
        .or_else(|| about_messages(body, told).or_else(|| about_thinking(body)).map(Refusal::from))
}

fn about_headers(asked: Asked<'_>) -> Option<Refusal> {
    if asked.head.header("x-api-key").is_none_or(|key| key.is_empty()) {
        return Some(Refusal { status: 401, message: "x-api-key header is required".to_owned() });
    }
    if asked.head.header("authorization").is_some() {
        return Some("both x-api-key and authorization are given".into());
    }
    if asked.head.header("anthropic-version").is_none_or(|version| version != "2023-06-01") {
        return Some("anthropic-version: header is required".into());
    }
    None
}

fn about_members(body: &Value) -> Option<String> {
    if let Some(name) = unknown(body, &MEMBERS) {
        return Some(format!("{name}: Extra inputs are not permitted"));
    }
    if let Some(name) = unknown(&body["metadata"], &["user_id"]) {
        return Some(format!("metadata.{name}: Extra inputs are not permitted"));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Some("model: Field required".to_owned());
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        return Some("max_tokens: Field required".to_owned());
    }
    for (name, most) in [("temperature", 1.0), ("top_p", 1.0)] {
        if body.get(name).is_some_and(|value| value.as_f64().is_none_or(|value| !(0.0..=most).contains(&value))) {
            return Some(format!("{name}: range: 0..1"));
        }
    }
    let stops = list(body, "stop_sequences");
    if body.get("stop_sequences").is_some_and(|stops| !stops.is_array()) {
        return Some("stop_sequences: Input should be a valid list".to_owned());
    }
    if stops.iter().any(|stop| stop.as_str().is_none_or(|stop| stop.trim().is_empty())) {
        return Some("stop_sequences: each stop sequence must contain non-whitespace".to_owned());
    }
    None
}

fn about_tools(body: &Value) -> Option<String> {
    let tools = list(body, "tools");
    let mut names: Vec<&str> = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        if let Some(name) = unknown(tool, &["name", "description", "input_schema", "type", "cache_control", "strict"]) {
            return Some(format!("tools.{at}.custom.{name}: Extra inputs are not permitted"));
        }
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_made_of(name, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-') || name.len() > 128 {
            return Some(format!("tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"));
        }
        if names.contains(&name) {
            return Some("tools: Tool names must be unique.".to_owned());
        }
        names.push(name);
        let schema = &tool["input_schema"];
        if schema["type"] != "object" {
            return Some(format!("tools.{at}.custom.input_schema.type: Field required"));
        }
        if ["oneOf", "allOf", "anyOf"].iter().any(|word| schema.get(word).is_some()) {
            return Some(format!(
                "tools.{at}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
            ));
        }
    }
    let choice = body.get("tool_choice")?;
    if tools.is_empty() {
        return Some("tool_choice may only be specified while providing tools.".to_owned());
    }
    let kind = choice["type"].as_str().unwrap_or_default();
    let known: &[&str] = match kind {
        "auto" | "any" => &["type", "disable_parallel_tool_use"],
        "tool" => &["type", "name", "disable_parallel_tool_use"],
        "none" => &["type"],
        _ => return Some(format!("tool_choice: Input tag '{kind}' does not match any of the expected tags")),
    };
    if let Some(name) = unknown(choice, known) {
        return Some(format!("tool_choice.{kind}.{name}: Extra inputs are not permitted"));
    }
    if kind == "tool" && !names.contains(&choice["name"].as_str().unwrap_or_default()) {
        return Some(format!("Tool '{}' not found in provided tools", choice["name"]));
    }
    None
}

fn about_system(body: &Value) -> Option<String> {
    let system = body.get("system")?;
    let blocks = match system {
        Value::String(text) if text.is_empty() => return Some("system: text content blocks must be non-empty".to_owned()),
        Value::String(_) => return None,
        Value::Array(blocks) => blocks,
        _ => return Some("system: Input should be a valid string or list".to_owned()),
    };
    let is_text = |block: &Value| block["type"] == "text" && block["text"].as_str().is_some_and(|text| !text.trim().is_empty());
    (!blocks.iter().all(is_text)).then(|| "system: text content blocks must be non-empty".to_owned())
}

fn about_messages(body: &Value, told: &Told) -> Option<String> {
    let messages = list(body, "messages");
    if messages.is_empty() {
        return Some("messages: at least one message is required".to_owned());
    }
    if messages[0]["role"] != "user" {
        return Some("messages: first message must use the \"user\" role".to_owned());
    }
    let turns = turns(messages);
    let mut seen: Vec<String> = Vec::new();
    for (at, (role, blocks)) in turns.iter().enumerate() {
        if role != "user" && role != "assistant" {
            return Some(format!("messages.{at}.role: Input should be 'user' or 'assistant'"));
        }
        if blocks.is_empty() {
            return Some(format!(
                "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
            ));
        }
        for (number, block) in blocks.iter().enumerate() {
            if let Some(fault) = about_block(role, block, told) {
                return Some(format!("messages.{at}.content.{number}{fault}"));
            }
        }
        let results = ids(blocks, "tool_result", "tool_use_id");
        let before = at.checked_sub(1).map(|at| ids(&turns[at].1, "tool_use", "id")).unwrap_or_default();
        if let Some(fault) = about_results(at, blocks, &results, &before) {
            return Some(fault);
        }
        let calls = ids(blocks, "tool_use", "id");
        if calls.iter().any(|id| seen.contains(id)) {
            return Some(format!("messages.{at}: `tool_use` ids must be unique"));
        }
        seen.extend(calls.clone());
        if !calls.is_empty() && at + 1 == turns.len() {
            return Some(format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {calls:?}"
            ));
        }
    }
    let has_tools = turns.iter().flat_map(|(_, blocks)| blocks).any(|block| is_one_of(block, &["tool_use", "tool_result"]));
    if has_tools && list(body, "tools").is_empty() {
        return Some("Requests which include `tool_use` or `tool_result` blocks must define tools".to_owned());
    }
    let (role, blocks) = turns.last()?;
    let last = blocks.last().and_then(|block| block["text"].as_str()).unwrap_or_default();
    (role == "assistant" && last.ends_with(char::is_whitespace))
        .then(|| "messages: final assistant content cannot end with trailing whitespace".to_owned())
}

/// Neighbours of one role are one turn there.
fn turns(messages: &[Value]) -> Vec<(String, Vec<Value>)> {
    let mut turns: Vec<(String, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        let blocks = match &message["content"] {
            Value::String(text) if text.is_empty() => Vec::new(),
            Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            other => vec![other.clone()],
        };
        match turns.last_mut() {
            Some((last, before)) if last == role && !blocks.is_empty() => before.extend(blocks),
            _ => turns.push((role.to_owned(), blocks)),
        }
    }
    turns
}

fn is_one_of(block: &Value, kinds: &[&str]) -> bool {
    kinds.iter().any(|kind| block["type"] == *kind)
}

fn ids(blocks: &[Value], kind: &str, member: &str) -> Vec<String> {
    let of_kind = blocks.iter().filter(|block| block["type"] == kind);
    of_kind.map(|block| block[member].as_str().unwrap_or_default().to_owned()).collect()
}

/// All results of the turn before, each once, before anything else.
fn about_results(at: usize, blocks: &[Value], results: &[String], before: &[String]) -> Option<String> {
    if let Some(id) = results.iter().find(|id| !before.contains(id)) {
        return Some(format!(
            "messages.{at}.content: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ));
    }
    let first = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
    let missing: Vec<&String> = before.iter().filter(|id| !results[..first.min(results.len())].contains(id)).collect();
    if !missing.is_empty() {
        return Some(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing:?}",
            at - 1
        ));
    }
    let twice = results.iter().enumerate().find(|(number, id)| results[..*number].contains(id));
    twice.map(|(_, id)| {
        format!("messages.{at}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}")
    })
}

fn about_block(role: &str, block: &Value, told: &Told) -> Option<String> {
    let kind = block["type"].as_str().unwrap_or_default();
    let known: &[&str] = match (role, kind) {
        (_, "text") => &["type", "text", "cache_control", "citations"],
        ("user", "image") => &["type", "source", "cache_control"],
        ("user", "document") => &["type", "source", "title", "context", "citations", "cache_control"],
        ("user", "tool_result") => &["type", "tool_use_id", "content", "is_error", "cache_control"],
        ("assistant", "tool_use") => &["type", "id", "name", "input", "cache_control"],
        ("assistant", "thinking") => &["type", "thinking", "signature"],
        ("assistant", "redacted_thinking") => &["type", "data"],
        _ => return Some(format!(": Input tag '{kind}' does not match any of the expected tags for {role}")),
    };
    if let Some(name) = unknown(block, known) {
        return Some(format!(".{kind}.{name}: Extra inputs are not permitted"));
    }
    let is_id = |id: &Value| id.as_str().is_some_and(|id| is_made_of(id, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    match kind {
        "text" if block["text"].as_str().is_none_or(str::is_empty) => {
            Some(".text: text content blocks must be non-empty".to_owned())
        }
        "text" if block["text"].as_str().is_some_and(|text| text.trim().is_empty()) => {
            Some(".text: text content blocks must contain non-whitespace text".to_owned())
        }
        "tool_use" if !is_id(&block["id"]) => Some(".tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'".to_owned()),
        "tool_use" if !block["input"].is_object() => Some(".tool_use.input: Input should be a valid dictionary".to_owned()),
        "tool_result" if !is_id(&block["tool_use_id"]) => {
            Some(".tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'".to_owned())
        }
        "tool_result" => list(block, "content").iter().find_map(about_part),
        "image" | "document" => about_part(block),
        "thinking" => about_signature(block, told),
        "redacted_thinking" => {
            let is_known = told.redacted.iter().any(|data| block["data"] == **data);
            (!is_known).then(|| ": Invalid `data` in `redacted_thinking` block".to_owned())
        }
        _ => None,
    }
}

/// What may stand in a result too.
fn about_part(block: &Value) -> Option<String> {
    let source = &block["source"];
    match block["type"].as_str() {
        Some("text") if block["text"].as_str().is_none_or(str::is_empty) => {
            Some(".text: text content blocks must be non-empty".to_owned())
        }
        Some("image") if source["type"] == "base64" && !IMAGES.iter().any(|kind| source["media_type"] == *kind) => Some(
            ".image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'".to_owned(),
        ),
        Some("image" | "document")
            if source["type"] == "base64" && source["data"].as_str().is_none_or(|data| data.is_empty() || data.contains(':')) =>
        {
            Some(".source.base64.data: invalid base64 data".to_owned())
        }
        Some("text" | "image" | "document" | "search_result") => None,
        other => Some(format!(".content: Input tag {other:?} does not match any of the expected tags")),
    }
}

fn about_signature(block: &Value, told: &Told) -> Option<String> {
    let Some(signature) = block["signature"].as_str() else { return Some(".thinking.signature: Field required".to_owned()) };
    match told.signatures.iter().find(|(known, _)| known == signature) {
        None => Some(": Invalid `signature` in `thinking` block".to_owned()),
        Some((_, text)) if block["thinking"] != **text => {
            Some(": `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.".to_owned())
        }
        Some(_) => None,
    }
}

/// With thinking on: no forced tool, room for it, and the turn that is being continued starts with a thought.
fn about_thinking(body: &Value) -> Option<String> {
    let thinking = &body["thinking"];
    if !matches!(thinking["type"].as_str(), Some("enabled" | "adaptive")) {
        return None;
    }
    if thinking["type"] == "enabled" {
        let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
        if budget < 1024 {
            return Some("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".to_owned());
        }
        if body["max_tokens"].as_u64() <= Some(budget) {
            return Some("`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned());
        }
    }
    if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return Some("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
    }
    if body.get("temperature").is_some_and(|value| value.as_f64() != Some(1.0)) {
        return Some("`temperature` may only be set to 1 when thinking is enabled.".to_owned());
    }
    if body.get("top_k").is_some() || body["top_p"].as_f64().is_some_and(|value| value < 0.95) {
        return Some(
            "`top_p` must be greater than or equal to 0.95 or unset, `top_k` must be unset when thinking is enabled.".to_owned(),
        );
    }
    if thinking["type"] != "enabled" {
        return None;
    }
    let turns = turns(list(body, "messages"));
    let has_results = |blocks: &[Value]| blocks.iter().any(|block| block["type"] == "tool_result");
    let (_, answered) = turns.last()?;
    if !has_results(answered) {
        return None;
    }
    // The turn that is continued begins after the last words of the user's own.
    let own = turns.iter().rposition(|(role, blocks)| role == "user" && !has_results(blocks)).unwrap_or(0);
    let (_, blocks) = turns[own..].iter().find(|(role, _)| role == "assistant")?;
    let is_first = blocks.first().is_some_and(|block| is_one_of(block, &["thinking", "redacted_thinking"]));
    (!is_first).then(|| {
        "Expected `thinking` or `redacted_thinking`, but found something else. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).".to_owned()
    })
}
