//! What Mistral refuses.

use serde_json::Value;

use super::{Asked, Refusal, is_made_of, list, openai, unknown};

const MEMBERS: [&str; 20] = [
    "model",
    "messages",
    "temperature",
    "top_p",
    "max_tokens",
    "stream",
    "stop",
    "random_seed",
    "response_format",
    "tools",
    "tool_choice",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "prediction",
    "parallel_tool_calls",
    "prompt_mode",
    "reasoning_effort",
    "safe_prompt",
    "metadata",
];

pub(super) fn refusal(asked: Asked<'_>) -> Option<Refusal> {
    let body = asked.body;
    let extra = |place: &str, name: &str| Refusal {
        status: 422,
        message: format!("{place}{name}: Extra inputs are not permitted (extra_forbidden)"),
    };
    if let Some(name) = unknown(body, &MEMBERS) {
        return Some(extra("body.", name));
    }
    for (at, message) in list(body, "messages").iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let known: &[&str] = match role {
            "system" | "user" => &["role", "content"],
            "assistant" => &["role", "content", "tool_calls", "prefix"],
            "tool" => &["role", "content", "tool_call_id", "name"],
            _ => {
                let message =
                    format!("body.messages.{at}: Input tag '{role}' found using 'role' does not match any of the expected tags");
                return Some(Refusal { status: 422, message });
            }
        };
        if let Some(name) = unknown(message, known) {
            return Some(extra(&format!("body.messages.{at}.{role}."), name));
        }
    }
    let choice = &body["tool_choice"];
    if choice.as_str().is_some_and(|word| !["auto", "none", "any", "required"].contains(&word)) {
        return Some(Refusal { status: 422, message: format!("body.tool_choice: unexpected value {choice}") });
    }
    about_order(list(body, "messages")).or_else(|| openai::fault(body)).map(Refusal::from)
}

fn about_order(messages: &[Value]) -> Option<String> {
    let mut before = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let allowed: &[&str] = match before {
            "" | "system" => &["system", "user", "assistant"],
            "user" => &["user", "system", "assistant"],
            "assistant" => &["assistant", "user", "tool"],
            _ => &["assistant", "tool"],
        };
        if !allowed.contains(&role) {
            return Some(format!("Unexpected role '{role}' after role '{before}'"));
        }
        let calls = list(message, "tool_calls");
        for call in calls {
            if let Some(fault) = about_id(&call["id"]) {
                return Some(fault);
            }
        }
        if role == "tool"
            && let Some(fault) = about_id(&message["tool_call_id"])
        {
            return Some(fault);
        }
        let is_empty = match &message["content"] {
            Value::String(text) => text.is_empty(),
            Value::Array(parts) => parts.is_empty(),
            _ => true,
        };
        if role == "assistant" && is_empty && calls.is_empty() {
            return Some("Assistant message must have either content or tool_calls, but not none.".to_owned());
        }
        let results = messages[at + 1..].iter().take_while(|message| message["role"] == "tool").count();
        if !calls.is_empty() && results != calls.len() {
            return Some("Not the same number of function calls and responses".to_owned());
        }
        before = role;
    }
    let is_prefix = messages.last().is_some_and(|message| message["prefix"] == true);
    (!["user", "tool"].contains(&before) && !is_prefix)
        .then(|| format!("Expected last role User or Tool (or Assistant with prefix True) for serving but got {before}"))
}

fn about_id(id: &Value) -> Option<String> {
    let text = id.as_str().unwrap_or_default();
    let fits = text.len() == 9 && is_made_of(text, |c| c.is_ascii_alphanumeric());
    (!fits).then(|| format!("Tool call id was {text} but must be a-z, A-Z, 0-9, with a length of 9."))
}
