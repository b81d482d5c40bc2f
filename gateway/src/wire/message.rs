//! The messages that the gateway adds to a transcript.

use toolgate_tools::media::Media;
use toolgate_tools::toolbox::Call;

use super::object::{push_quoted, quoted};

/// A model's turn that asks for tools: what it said, a raw JSON value, and its thoughts, a raw list. Arguments that were no JSON go on as `{}`: a provider refuses every later request over a history
/// that it cannot parse.
pub fn assistant(content: Option<&str>, thoughts: Option<&str>, calls: &[Call]) -> String {
    let mut text = String::with_capacity(64 + thoughts.map_or(0, str::len) + calls.len() * 160);
    text.push_str(r#"{"role":"assistant","content":"#);
    text.push_str(content.unwrap_or("null"));
    if let Some(thoughts) = thoughts {
        text.push_str(r#","reasoning_details":"#);
        text.push_str(thoughts);
    }
    text.push_str(r#","tool_calls":["#);
    for (at, call) in calls.iter().enumerate() {
        text.push_str(if at == 0 { r#"{"id":"# } else { r#",{"id":"# });
        push_quoted(&mut text, &call.id);
        text.push_str(r#","type":"function","function":{"name":"#);
        push_quoted(&mut text, &call.name);
        text.push_str(r#","arguments":"#);
        push_quoted(&mut text, call.arguments.as_ref().map_or("{}", |arguments| arguments.text()));
        text.push_str("}}");
    }
    text.push_str("]}");
    text
}

/// Calls as a delta has them, numbered from 0: of each its id, its name, and its arguments as a raw JSON string.
pub fn calls_in_delta<'c>(calls: impl Iterator<Item = (&'c Call, &'c str)>) -> String {
    let mut text = String::from("[");
    for (at, (call, arguments)) in calls.enumerate() {
        text.push_str(if at == 0 { "{\"index\":" } else { ",{\"index\":" });
        text.push_str(&at.to_string());
        text.push_str(",\"id\":");
        push_quoted(&mut text, &call.id);
        text.push_str(r#","type":"function","function":{"name":"#);
        push_quoted(&mut text, &call.name);
        text.push_str(r#","arguments":"#);
        text.push_str(arguments);
        text.push_str("}}");
    }
    text.push(']');
    text
}

/// A turn of [`assistant`]'s with another id for one of its calls, wherever it stands: inside of a string its quotes would be escaped.
pub fn with_other_id(turn: &str, id: &str, other: &str) -> String {
    let member = |id: &str| format!("\"id\":{}", quoted(id));
    turn.replace(&member(id), &member(other))
}

/// What a tool returned: its text, and behind it what is none.
pub fn tool(call: &Call, output: &str, media: &[Media]) -> String {
    let mut text = String::with_capacity(64 + call.id.len() + output.len() + output.len() / 8);
    text.push_str(r#"{"role":"tool","tool_call_id":"#);
    push_quoted(&mut text, &call.id);
    text.push_str(r#","content":"#);
    if media.is_empty() {
        push_quoted(&mut text, output);
    } else {
        text.push_str(r#"[{"type":"text","text":"#);
        push_quoted(&mut text, output);
        text.push('}');
        media.iter().for_each(|media| push_part(&mut text, media));
        text.push(']');
    }
    text.push('}');
    text
}

fn push_part(text: &mut String, media: &Media) {
    let (open, close) = if media.is_picture() {
        (r#",{"type":"image_url","image_url":{"url":"#, "}}")
    } else {
        (r#",{"type":"file","file":{"file_data":"#, "}}")
    };
    text.push_str(open);
    push_quoted(text, &media.address());
    text.push_str(close);
}

/// The operator's own words, which go first.
pub fn system(text: &str) -> String {
    format!(r#"{{"role":"system","content":{}}}"#, quoted(text))
}

/// One tool as a model is offered it.
pub fn offered(name: &str, description: &str, parameters: &str) -> String {
    let (name, description) = (quoted(name), quoted(description));
    format!(r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#)
}
