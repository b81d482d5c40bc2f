//! What strict APIs with OpenAI's chat completions refuse.

use std::collections::HashSet;

use serde_json::Value;

/// The longest id of a call, in characters.
const LONGEST_ID: usize = 40;

/// The first thing that a strict provider would refuse in a chat-completions request.
pub(super) fn fault(body: &Value) -> Option<String> {
    about_tools(body).or_else(|| about_messages(body["messages"].as_array().map_or(&[], Vec::as_slice)))
}

fn about_tools(body: &Value) -> Option<String> {
    match body.get("tools") {
        Some(Value::Array(tools)) if !tools.is_empty() => {
            let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].to_string()).collect();
            let distinct: HashSet<_> = names.iter().collect();
            (distinct.len() != names.len()).then(|| format!("two tools of one name among {names:?}"))
        }
        Some(other) => Some(format!("tools is {other}")),
        None => ["tool_choice", "parallel_tool_calls"]
            .into_iter()
            .find(|name| body.get(name).is_some())
            .map(|name| format!("{name} without tools")),
    }
}

fn about_messages(messages: &[Value]) -> Option<String> {
    if messages.is_empty() {
        return Some("messages is empty".to_owned());
    }
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some(name) = ["content", "tool_calls"].into_iter().find(|name| message[name].as_array().is_some_and(Vec::is_empty))
        {
            return Some(format!("Invalid 'messages[{at}].{name}': empty array. Expected an array with minimum length 1"));
        }
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(found) = open.iter().position(|call| call == id) else {
                return Some(format!("messages[{at}] answers {id:?}, which was not asked for"));
            };
            open.remove(found);
            continue;
        }
        if !open.is_empty() {
            return Some(format!("messages[{at}] comes before the answers to {open:?}"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            if let Some(fault) = about_call(call) {
                return Some(format!("messages[{at}]: {fault}"));
            }
            open.push(call["id"].as_str().unwrap_or_default().to_owned());
        }
    }
    (!open.is_empty()).then(|| format!("no answer to {open:?}"))
}

fn about_call(call: &Value) -> Option<String> {
    let id = call["id"].as_str().unwrap_or_default();
    if id.is_empty() {
        return Some(format!("a call without an id: {call}"));
    }
    if id.len() > LONGEST_ID {
        return Some(format!("Invalid 'id': string too long. Expected a string with maximum length {LONGEST_ID}, got {id:?}"));
    }
    if call["type"] != "function" || call["function"]["name"].as_str().is_none_or(str::is_empty) {
        return Some(format!("a call that is not of a named function: {call}"));
    }
    let Some(arguments) = call["function"]["arguments"].as_str() else {
        return Some(format!("arguments that are not a string: {call}"));
    };
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => None,
        _ => Some(format!("arguments that are not a JSON object: {arguments:?}")),
    }
}
