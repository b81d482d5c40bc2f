//! The tools that a model may call, and which of them it must.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::Unsupported;
use super::model::Generation;
use super::parts::{close, push, unsupported};
use crate::wire::object::{self, Edit, Members, as_str, quoted};

/// A schema that takes any object.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

#[derive(Deserialize)]
struct Tool<'t> {
    #[serde(borrow, default)]
    function: Option<Function<'t>>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'t RawValue>,
    #[serde(borrow, default)]
    cache_control: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct Function<'t> {
    #[serde(borrow)]
    name: &'t RawValue,
    #[serde(borrow, default)]
    description: Option<&'t RawValue>,
    #[serde(borrow, default)]
    parameters: Option<&'t RawValue>,
    #[serde(default)]
    strict: Option<bool>,
}

/// The tools as a list without its brackets, or those of them that may be called.
pub(super) fn list(tools: &RawValue, only: Option<&[String]>, model: Generation) -> Result<String, Unsupported> {
    let malformed = |_| unsupported("tools", "must be a list of functions in the form of the API");
    let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).map_err(malformed)?;
    let mut out = String::with_capacity(tools.iter().map(|tool| tool.get().len()).sum());
    for raw in tools {
        let tool: Tool<'_> = serde_json::from_str(raw.get()).map_err(malformed)?;
        let is_barred = |function: &Function<'_>| only.is_some_and(|names| !names.iter().any(|name| name == function.name.get()));
        match &tool.function {
            Some(function) if is_barred(function) => {}
            Some(function) => write_tool(function, tool.cache_control, model, &mut out),
            None if tool.kind.and_then(as_str).is_some_and(|kind| matches!(&*kind, "custom" | "function")) => {
                return Err(unsupported("tools", "hold one that is no function: this model's provider takes no other kind"));
            }
            // One that the provider has itself.
            None => push(&mut out, raw.get()),
        }
    }
    Ok(out)
}

fn write_tool(function: &Function<'_>, cache: Option<&RawValue>, model: Generation, out: &mut String) {
    push(out, r#"{"name":"#);
    out.push_str(function.name.get());
    if let Some(description) =
        function.description.filter(|description| description.get().len() > 2 && description.get() != "null")
    {
        out.push_str(r#","description":"#);
        out.push_str(description.get());
    }
    out.push_str(r#","input_schema":"#);
    out.push_str(&schema(function.parameters));
    if function.strict == Some(true) && model.keeps_to_schemas() {
        out.push_str(r#","strict":true"#);
    }
    close(cache, out);
}

/// A schema must say that it is one of an object.
fn schema(parameters: Option<&RawValue>) -> Cow<'_, str> {
    let Some(parameters) = parameters.filter(|parameters| parameters.get().starts_with('{')) else { return ANY_OBJECT.into() };
    let says_type = Members::parse(parameters.get().as_bytes()).is_ok_and(|members| members.get("type").is_some());
    if says_type {
        return parameters.get().into();
    }
    let edited = object::edited(parameters.get().as_bytes(), &[Edit::Set("type", "\"object\"")]);
    edited.map_or(ANY_OBJECT.into(), Cow::Owned)
}

/// The tools that a history calls, with a schema that takes anything: for a request that brings none itself.
pub(super) fn of_history(called: &[String]) -> String {
    let mut out = String::new();
    for name in called {
        push(&mut out, "");
        let _ = write!(out, r#"{{"name":{},"input_schema":{ANY_OBJECT}}}"#, quoted(name));
    }
    out
}

#[derive(Deserialize)]
struct AllowedTools<'t> {
    #[serde(borrow, default)]
    mode: Cow<'t, str>,
    #[serde(borrow)]
    tools: Vec<Tool<'t>>,
}

/// What a request wants done about its tools.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Nothing is said.
    Free,
    /// Whatever the model likes.
    Auto,
    /// Anthropic's own form of it.
    None,
    /// A call of any tool, or of the one that is named: its raw name.
    Forced(Option<String>),
    /// Some of the tools only, by their raw names; whether one of them must be called.
    Allowed(Vec<String>, bool),
    /// As the provider itself would have it.
    Own(String),
}

impl Choice {
    pub(super) fn read(raw: Option<&RawValue>) -> Result<Self, Unsupported> {
        let Some(raw) = raw else { return Ok(Self::Free) };
        if let Some(word) = as_str(raw) {
            return match &*word {
                "auto" => Ok(Self::Auto),
                "none" => Ok(Self::None),
                "required" => Ok(Self::Forced(None)),
                _ => Err(unsupported("tool_choice", "must be `auto`, `none`, `required` or one function")),
            };
        }
        let members = Members::parse(raw.get().as_bytes());
        let members = members.map_err(|_| unsupported("tool_choice", "must be a word or an object"))?;
        match members.get("type").and_then(as_str).as_deref() {
            Some("function") => {
                let function = members.get("function").and_then(|function| Members::parse(function.get().as_bytes()).ok());
                let name = function.and_then(|function| function.get("name")).map(|name| name.get().to_owned());
                name.map(|name| Self::Forced(Some(name))).ok_or_else(|| unsupported("tool_choice", "must name its function"))
            }
            Some("allowed_tools") => Self::allowed(&members),
            Some("auto" | "any" | "tool" | "none") => Ok(Self::Own(raw.get().to_owned())),
            _ => Err(unsupported("tool_choice", "asks for what this model's provider does not have: name one function, or none")),
        }
    }

    fn allowed(members: &Members<'_>) -> Result<Self, Unsupported> {
        let list = members.get("allowed_tools").and_then(|list| serde_json::from_str::<AllowedTools<'_>>(list.get()).ok());
        let list = list.ok_or_else(|| unsupported("tool_choice", "must list the tools that it allows"))?;
        let names = list.tools.iter().filter_map(|tool| Some(tool.function.as_ref()?.name.get().to_owned()));
        Ok(Self::Allowed(names.collect(), list.mode == "required"))
    }

    /// The raw names of the only tools that may be called, where not all may.
    pub(super) fn only(&self) -> Option<&[String]> {
        match self {
            Self::Allowed(names, _) => Some(names),
            _ => None,
        }
    }

    pub(super) fn is_forced(&self) -> bool {
        matches!(self, Self::Forced(_) | Self::Allowed(_, true))
    }

    /// As Anthropic has it. `one_at_a_time`: no parallel calls.
    pub(super) fn render(&self, one_at_a_time: bool) -> Option<String> {
        let alone = if one_at_a_time { r#","disable_parallel_tool_use":true"# } else { "" };
        match self {
            Self::Free if !one_at_a_time => None,
            Self::Free | Self::Auto | Self::Allowed(_, false) => Some(format!(r#"{{"type":"auto"{alone}}}"#)),
            Self::None => Some(r#"{"type":"none"}"#.to_owned()),
            Self::Forced(None) | Self::Allowed(_, true) => Some(format!(r#"{{"type":"any"{alone}}}"#)),
            Self::Forced(Some(name)) => Some(format!(r#"{{"type":"tool","name":{name}{alone}}}"#)),
            Self::Own(own) => Some(own.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_tool_keeps_its_whole_schema() {
        let schema = r#"{"type":"object","$defs":{"P":{"const":1.10}},"additionalProperties":false}"#;
        let table = [
            (
                format!(
                    r#"{{"type":"function","function":{{"name":"t","description":"D","parameters":{schema},"strict":true}}}}"#
                ),
                format!(r#"{{"name":"t","description":"D","input_schema":{schema},"strict":true}}"#),
            ),
            (
                r#"{"type":"function","function":{"name":"t"}}"#.to_owned(),
                r#"{"name":"t","input_schema":{"type":"object"}}"#.to_owned(),
            ),
            (
                r#"{"type":"function","function":{"name":"t","description":"","parameters":{"properties":{}}}}"#.to_owned(),
                r#"{"name":"t","input_schema":{"properties":{},"type":"object"}}"#.to_owned(),
            ),
            (
                r#"{"function":{"name":"t","parameters":null},"cache_control":{"type":"ephemeral"}}"#.to_owned(),
                r#"{"name":"t","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}"#.to_owned(),
            ),
            (
                r#"{"type":"web_search_20250305","name":"web_search"}"#.to_owned(),
                r#"{"type":"web_search_20250305","name":"web_search"}"#.to_owned(),
            ),
        ];
        let model = Generation::of("claude-sonnet-4-5");
        for (tool, expected) in table {
            assert_eq!(list(raw(&format!("[{tool}]")), None, model), Ok(expected), "{tool}");
        }
        let strict = raw(r#"[{"function":{"name":"t","strict":true}}]"#);
        let old = list(strict, None, Generation::of("claude-3-haiku")).unwrap();
        assert_eq!(old, r#"{"name":"t","input_schema":{"type":"object"}}"#);
        for tools in ["{}", "[7]", r#"[{"type":"custom","custom":{"name":"x"}}]"#] {
            assert_eq!(list(raw(tools), None, model).map_err(|unsupported| unsupported.field), Err("tools"), "{tools}");
        }
    }

    #[test]
    fn of_tools_that_are_not_allowed_nothing_is_sent() {
        let choice = |mode: &str| {
            let text = r#"{"type":"allowed_tools","allowed_tools":{"mode":"MODE","tools":[{"type":"function","function":{"name":"a"}}]}}"#;
            Choice::read(Some(raw(&text.replace("MODE", mode)))).unwrap()
        };
        let tools = raw(r#"[{"function":{"name":"a"}},{"function":{"name":"b"}}]"#);
        let sent = list(tools, choice("auto").only(), Generation::of("claude-sonnet-4-5"));
        assert_eq!(sent.unwrap(), r#"{"name":"a","input_schema":{"type":"object"}}"#);
        assert_eq!((choice("auto").render(false).unwrap().as_str(), choice("auto").is_forced()), (r#"{"type":"auto"}"#, false));
        assert_eq!(
            (choice("required").render(false).unwrap().as_str(), choice("required").is_forced()),
            (r#"{"type":"any"}"#, true)
        );
    }

    #[test]
    fn each_choice_has_its_form() {
        let table = [
            ("\"auto\"", false, Some(r#"{"type":"auto"}"#)),
            ("\"auto\"", true, Some(r#"{"type":"auto","disable_parallel_tool_use":true}"#)),
            ("\"none\"", true, Some(r#"{"type":"none"}"#)),
            ("\"required\"", false, Some(r#"{"type":"any"}"#)),
            ("\"required\"", true, Some(r#"{"type":"any","disable_parallel_tool_use":true}"#)),
            (r#"{"type":"function","function":{"name":"a\"b"}}"#, false, Some(r#"{"type":"tool","name":"a\"b"}"#)),
            (r#"{"type":"tool","name":"t"}"#, false, Some(r#"{"type":"tool","name":"t"}"#)),
        ];
        for (choice, one_at_a_time, expected) in table {
            let read = Choice::read(Some(raw(choice))).unwrap();
            assert_eq!(read.render(one_at_a_time).as_deref(), expected, "{choice}");
        }
        for choice in ["\"any\"", "7", r#"{"type":"allowed_tools"}"#, r#"{"type":"function"}"#, "{}"] {
            let failed = Choice::read(Some(raw(choice))).map_err(|unsupported| unsupported.field);
            assert_eq!(failed, Err("tool_choice"), "{choice}");
        }
        assert_eq!(Choice::read(None), Ok(Choice::Free));
    }
}
