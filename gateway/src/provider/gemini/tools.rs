//! Tools as `functionDeclarations`, and which of them the model may or must use.

use std::borrow::Cow;

use tracing::warn;

use super::super::Unsupported;
use super::super::canon::{Canon, Choice, Function};
use super::schema;
use crate::wire::object::push_quoted;

/// Stands before a name that the API would refuse: it must begin with a letter or an underscore. A dot is in no name of OpenAI's, so that
/// the mark is known again.
const MARK: &str = "_.";

/// What some models put before the name of a function of their own accord.
const SPACES: [&str; 2] = ["default_api:", "default_api."];

/// The members for tools, each with a comma in front; empty where none are offered.
///
/// # Errors
/// A tool that is no function, a name that the API has no form for, or a choice that cannot be kept.
pub(super) fn write(canon: &Canon<'_>) -> Result<String, Unsupported> {
    let mut declared: Vec<&str> = Vec::with_capacity(canon.tools.len());
    let mut out = String::new();
    for tool in &canon.tools {
        let function = tool.function()?;
        if !is_wanted(&canon.choice, &function.name) {
            continue;
        }
        check_name(&function.name)?;
        let Some(parameters) = parameters(function) else {
            // One tool that cannot be said is no reason to lose the others.
            warn!(tool = &*function.name, "the tool's schema cannot be said in the form that Gemini takes: it is not offered");
            continue;
        };
        out.push_str(if declared.is_empty() { r#","tools":[{"functionDeclarations":["# } else { "," });
        declare(function, &parameters, &mut out);
        declared.push(&function.name);
    }
    if !declared.is_empty() {
        out.push_str("]}]");
    }
    choose(&canon.choice, &declared, &mut out)?;
    Ok(out)
}

/// Whether a choice leaves this tool in. One that must be used is named beside the others, for the history may hold calls of those.
fn is_wanted(choice: &Choice<'_>, name: &str) -> bool {
    match choice {
        Choice::Among(names, false) => names.iter().any(|wanted| wanted == name),
        _ => true,
    }
}

fn check_name(name: &str) -> Result<(), Unsupported> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let why = "holds a function whose name is not one of 1 to 64 letters, digits, `_` and `-`";
    Err(Unsupported { field: "tools", why: why.to_owned() })
}

/// The schema of the arguments; empty: there are none. `None`: it cannot be said.
fn parameters<'a>(function: &Function<'a>) -> Option<Cow<'a, str>> {
    match function.parameters {
        None => Some(Cow::Borrowed("")),
        Some(schema) => schema::parameters(schema.get()),
    }
}

fn declare(function: &Function<'_>, parameters: &str, out: &mut String) {
    out.push_str(r#"{"name":"#);
    push_quoted(out, &sent_name(&function.name));
    if let Some(description) = function.description.filter(|text| text.get().starts_with('"')) {
        out.push_str(r#","description":"#);
        out.push_str(description.get());
    }
    if !parameters.is_empty() {
        out.push_str(r#","parameters":"#);
        out.push_str(parameters);
    }
    out.push('}');
}

fn choose(choice: &Choice<'_>, declared: &[&str], out: &mut String) -> Result<(), Unsupported> {
    let config = |mode: &str, names: &[&str]| {
        let mut text = format!(r#","toolConfig":{{"functionCallingConfig":{{"mode":"{mode}""#);
        for (at, name) in names.iter().enumerate() {
            text.push_str(if at == 0 { r#","allowedFunctionNames":["# } else { "," });
            push_quoted(&mut text, &sent_name(name));
        }
        text.push_str(if names.is_empty() { "}}" } else { "]}}" });
        text
    };
    let among = |names: &[Cow<'_, str>]| {
        let known: Vec<&str> = declared.iter().copied().filter(|name| names.iter().any(|wanted| wanted == name)).collect();
        let why = "names no tool that this provider can be offered";
        if known.is_empty() { Err(Unsupported { field: "tool_choice", why: why.to_owned() }) } else { Ok(config("ANY", &known)) }
    };
    match choice {
        Choice::Auto | Choice::Among(_, false) => {}
        Choice::Never if declared.is_empty() => {}
        Choice::Never => out.push_str(&config("NONE", &[])),
        Choice::Required if declared.is_empty() => {
            let why = "is `required`, and none of the tools can be offered to this provider";
            return Err(Unsupported { field: "tool_choice", why: why.to_owned() });
        }
        Choice::Required => out.push_str(&config("ANY", &[])),
        Choice::Named(name) => out.push_str(&among(std::slice::from_ref(name))?),
        Choice::Among(names, true) => out.push_str(&among(names)?),
    }
    Ok(())
}

/// A function's name as the API takes it.
pub(super) fn sent_name(name: &str) -> Cow<'_, str> {
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("{MARK}{name}"))
    }
}

/// The name behind one that the API sends.
pub(super) fn own_name(name: &str) -> &str {
    let name = SPACES.iter().find_map(|space| name.strip_prefix(space)).unwrap_or(name);
    name.strip_prefix(MARK).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(members: &str) -> Result<String, &'static str> {
        let body = format!(r#"{{"messages":[]{members}}}"#);
        write(&Canon::read(body.as_bytes()).unwrap()).map_err(|unsupported| unsupported.field)
    }

    const TOOLS: &str = r#","tools":[{"type":"function","function":{"name":"lookup","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}},{"type":"function","function":{"name":"7zip","description":"Z"}}]"#;

    #[test]
    fn case_20_a_choice_is_only_sent_with_tools() {
        for choice in ["", r#","tool_choice":"auto""#, r#","tool_choice":"none""#] {
            assert_eq!(written(choice), Ok(String::new()), "{choice}");
            assert_eq!(written(&format!(r#","tools":[]{choice}"#)), Ok(String::new()), "{choice}");
        }
        assert_eq!(written(r#","tool_choice":"required""#), Err("tool_choice"));
    }

    #[test]
    fn a_choice_becomes_a_mode() {
        let named = r#"{"type":"function","function":{"name":"7zip"}}"#;
        let table = [
            (r#""auto""#.to_owned(), ""),
            (r#""none""#.to_owned(), r#","toolConfig":{"functionCallingConfig":{"mode":"NONE"}}"#),
            (r#""required""#.to_owned(), r#","toolConfig":{"functionCallingConfig":{"mode":"ANY"}}"#),
            (named.to_owned(), r#","toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["_.7zip"]}}"#),
            (
                format!(r#"{{"type":"allowed_tools","allowed_tools":{{"mode":"required","tools":[{named}]}}}}"#),
                r#","toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["_.7zip"]}}"#,
            ),
        ];
        let all = concat!(
            r#","tools":[{"functionDeclarations":[{"name":"lookup","parameters":{"type":"object","properties":{"q":{"type":"string"}}}},"#,
            r#"{"name":"_.7zip","description":"Z"}]}]"#
        );
        for (choice, config) in table {
            assert_eq!(written(&format!(r#"{TOOLS},"tool_choice":{choice}"#)), Ok(format!("{all}{config}")), "{choice}");
        }
        let among = format!(r#"{{"type":"allowed_tools","allowed_tools":{{"mode":"auto","tools":[{named}]}}}}"#);
        let only = r#","tools":[{"functionDeclarations":[{"name":"_.7zip","description":"Z"}]}]"#;
        assert_eq!(written(&format!(r#"{TOOLS},"tool_choice":{among}"#)), Ok(only.to_owned()));
        let unknown = r#"{"type":"function","function":{"name":"other"}}"#;
        assert_eq!(written(&format!(r#"{TOOLS},"tool_choice":{unknown}"#)), Err("tool_choice"));
    }

    #[test]
    fn what_is_no_function_is_refused() {
        assert_eq!(written(r#","tools":[{"type":"custom","custom":{"name":"a"}}]"#), Err("tools"));
        assert_eq!(written(r#","tools":[{"type":"function","function":{"name":"a b"}}]"#), Err("tools"));
    }

    #[test]
    fn case_23_a_schema_that_cannot_be_said_drops_its_tool_alone() {
        let tools = r#","tools":[{"function":{"name":"odd","parameters":{"type":"object","required":["a"],"properties":{"a":false}}}},{"function":{"name":"clock"}}]"#;
        assert_eq!(written(tools), Ok(r#","tools":[{"functionDeclarations":[{"name":"clock"}]}]"#.to_owned()));
    }

    #[test]
    fn names_come_back_as_they_were() {
        for name in ["lookup", "_x", "7zip", "-a", "a.b"] {
            assert_eq!(own_name(&sent_name(name)), name);
        }
        assert_eq!(own_name("default_api:lookup"), "lookup");
        assert_eq!(own_name("default_api.lookup"), "lookup");
    }
}
