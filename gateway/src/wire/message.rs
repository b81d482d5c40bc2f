//! The messages that the gateway adds to a transcript.

use std::fmt::Write as _;

use toolgate_tools::toolbox::Call;

use super::object::quoted;

/// A model's turn that asks for tools. Arguments that were no JSON go on as `{}`: a provider refuses every later request over a history
/// that it cannot parse.
pub fn assistant(content: Option<&str>, calls: &[Call]) -> String {
    let mut text = format!(r#"{{"role":"assistant","content":{},"tool_calls":["#, content.unwrap_or("null"));
    for (at, call) in calls.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let (id, name) = (quoted(&call.id), quoted(&call.name));
        let arguments = quoted(call.arguments.as_ref().map_or("{}", |arguments| arguments.text()));
        let _ = write!(text, r#"{comma}{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#);
    }
    text.push_str("]}");
    text
}

/// What a tool returned.
pub fn tool(call: &Call, output: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":{},"content":{}}}"#, quoted(&call.id), quoted(output))
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
