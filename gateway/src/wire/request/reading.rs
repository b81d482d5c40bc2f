//! What of a caller's body is read: the members that are interpreted, each once and of its type, and the transcript, in which empty call
//! arguments are mended. Everything else is left alone.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadRequest, ToolChoice, mending};
use crate::wire::history::{Entry, History, Role};
use crate::wire::object::{self, Members, as_str, range_of, spells, string};
use crate::wire::scan;

/// The members of a body, raw keys and raw values.
pub(super) fn members(body: &[u8]) -> Result<Vec<(&str, &str)>, BadRequest> {
    if let Some(members) = std::str::from_utf8(body).ok().and_then(scan::members) {
        return Ok(members);
    }
    match Members::parse(body) {
        Ok(Members(members)) => Ok(members.iter().map(|(key, value)| (key.get(), value.get())).collect()),
        Err(error) if error.is_data() => Err(BadRequest::NotAnObject),
        Err(error) => Err(BadRequest::Json(error.to_string())),
    }
}

/// The raw values of the members that are interpreted.
#[derive(Default)]
pub(super) struct Known<'a> {
    model: Option<&'a str>,
    pub(super) messages: Option<&'a str>,
    stream: Option<&'a str>,
    stream_options: Option<&'a str>,
    pub(super) tools: Option<&'a str>,
    tool_choice: Option<&'a str>,
    parallel_tool_calls: Option<&'a str>,
    n: Option<&'a str>,
    max_tokens: Option<&'a str>,
    max_completion_tokens: Option<&'a str>,
    pub(super) functions: Option<&'a str>,
    pub(super) function_call: Option<&'a str>,
}

#[derive(Default)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

/// The names of the members that are interpreted.
const NAMES: [&str; 12] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "n",
    "max_tokens",
    "max_completion_tokens",
    "functions",
    "function_call",
];

impl<'a> Known<'a> {
    pub(super) fn find(members: &[(&'a str, &'a str)]) -> Result<Self, BadRequest> {
        let mut known = Self::default();
        for &(key, value) in members {
            let Some((name, place)) = known.place(key) else {
                if let Some(name) = object::alike(key, &NAMES) {
                    return Err(BadRequest::Member(name, "must be written in small letters: its provider might read it in any"));
                }
                continue;
            };
            // Two members of one name are read differently by different parsers, so whoever judges one might send the other.
            if place.replace(value).is_some() {
                return Err(BadRequest::Member(name, "is there twice"));
            }
            if key.contains('\\') {
                return Err(BadRequest::Member(name, "must be written without escapes in its name"));
            }
        }
        Ok(known)
    }

    fn place(&mut self, key: &str) -> Option<(&'static str, &mut Option<&'a str>)> {
        let named: [(&'static str, &mut Option<&'a str>); 12] = [
            ("model", &mut self.model),
            ("messages", &mut self.messages),
            ("stream", &mut self.stream),
            ("stream_options", &mut self.stream_options),
            ("tools", &mut self.tools),
            ("tool_choice", &mut self.tool_choice),
            ("parallel_tool_calls", &mut self.parallel_tool_calls),
            ("n", &mut self.n),
            ("max_tokens", &mut self.max_tokens),
            ("max_completion_tokens", &mut self.max_completion_tokens),
            ("functions", &mut self.functions),
            ("function_call", &mut self.function_call),
        ];
        named.into_iter().find(|(name, _)| spells(key.as_bytes(), name))
    }

    pub(super) fn model(&self) -> Result<String, BadRequest> {
        let model = self.model.ok_or(BadRequest::Member("model", "is required: the name of a model"))?;
        string(model)
            .map(Cow::into_owned)
            .filter(|name| !name.is_empty() && name.len() <= 256)
            .ok_or(BadRequest::Member("model", "must be a string of 1 to 256 bytes"))
    }

    pub(super) fn stream(&self) -> Result<bool, BadRequest> {
        match self.stream.unwrap_or("null") {
            "true" => Ok(true),
            "false" | "null" => Ok(false),
            _ => Err(BadRequest::Member("stream", "must be true or false")),
        }
    }

    pub(super) fn stream_options(&self) -> Result<StreamOptions, BadRequest> {
        let Some(raw) = self.stream_options.filter(|raw| *raw != "null") else { return Ok(StreamOptions::default()) };
        let options = Members::parse(raw.as_bytes());
        let options = options.map_err(|_| BadRequest::Member("stream_options", "must be an object"))?;
        Ok(StreamOptions { include_usage: options.get("include_usage").is_some_and(|value| value.get() == "true") })
    }

    /// How many answers are asked for.
    pub(super) fn answers(&self) -> Result<u64, BadRequest> {
        let raw = self.n.unwrap_or("null");
        if raw == "null" { Ok(1) } else { whole(raw).ok_or(BadRequest::Member("n", "must be a whole number from 1")) }
    }

    /// How long an answer may be. Which of the two names a provider obeys is its own business, so the larger counts; and none where one of
    /// them is no number from 1, for some providers take 0, -1 or text for no limit at all.
    pub(super) fn output_limit(&self) -> Option<u64> {
        let named = [self.max_completion_tokens, self.max_tokens].into_iter().flatten();
        named.map(whole).try_fold(0, |most: u64, limit| Some(most.max(limit?))).filter(|limit| *limit > 0)
    }

    pub(super) fn has_items(&self, name: &'static str, list: Option<&str>) -> Result<bool, BadRequest> {
        match list.unwrap_or("null") {
            "null" => Ok(false),
            text if text.starts_with('[') => Ok(text[1..text.len() - 1].bytes().any(|byte| !byte.is_ascii_whitespace())),
            _ => Err(BadRequest::Member(name, "must be a list")),
        }
    }

    pub(super) fn tool_choice(&self) -> ToolChoice {
        match self.tool_choice.unwrap_or("null") {
            "null" | "\"auto\"" | "\"none\"" => ToolChoice::Free,
            _ => ToolChoice::Required,
        }
    }
}

/// A number from 1, as callers really write it, rounded up.
fn whole(raw: &str) -> Option<u64> {
    let number: f64 = raw.parse().ok().filter(|number: &f64| *number > 0.0)?;
    Some(number.ceil() as u64)
}

/// The names in a list of tools.
pub(super) fn names(list: &[u8]) -> BTreeSet<String> {
    let name = |tool: Tool<'_>| {
        let name = tool.function.or(tool.custom).map_or(tool.name, |named| named.name)?;
        as_str(name).map(Cow::into_owned)
    };
    tools(list).into_iter().filter_map(name).collect()
}

/// Whether there are custom ones in it.
pub(super) fn has_custom(list: &[u8]) -> bool {
    memmem::find(list, b"\"custom\"").is_some() && tools(list).iter().any(|tool| tool.custom.is_some())
}

/// Those that can be read.
fn tools(list: &[u8]) -> Vec<Tool<'_>> {
    let tools: Vec<&RawValue> = serde_json::from_slice(list).unwrap_or_default();
    tools.into_iter().filter_map(|tool| serde_json::from_str(tool.get()).ok()).collect()
}

#[derive(Deserialize)]
struct Tool<'t> {
    #[serde(borrow, default)]
    function: Option<Named<'t>>,
    #[serde(borrow, default)]
    custom: Option<Named<'t>>,
    #[serde(borrow, default)]
    name: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct Named<'n> {
    #[serde(borrow, default)]
    name: Option<&'n RawValue>,
}

/// A transcript as it came.
#[derive(Debug)]
pub(super) struct Transcript {
    /// The inside of the `messages` list: in one piece, but for messages with empty call arguments. Those go on as `{}`, since providers
    /// refuse a history whose arguments are no JSON.
    pub(super) segments: Vec<Bytes>,
    /// Message by message, where tools are in it.
    pub(super) history: Option<History>,
}

/// Reads the `messages` list. What has nothing to do with tools is not looked at.
pub(super) fn transcript(body: &Bytes, list: &str) -> Result<Transcript, BadRequest> {
    let inner = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).map(str::trim);
    let inner = inner.ok_or(BadRequest::Member("messages", "must be a list of messages"))?;
    if inner.is_empty() {
        return Err(BadRequest::Member("messages", "must hold at least one message"));
    }
    let whole = slice(body, inner);
    // The beginning of `tool_calls` and of `tool_call_id`.
    if memmem::find(inner.as_bytes(), b"\"tool_call").is_none() {
        return Ok(Transcript { segments: vec![whole], history: None });
    }
    let unreadable = |_| BadRequest::Member("messages", "must be objects, with `tool_calls` as the API has them");
    let mut history = History::read(std::slice::from_ref(&whole)).map_err(unreadable)?;
    let segments = mended(&whole, &mut history)?;
    Ok(Transcript { segments, history: Some(history) })
}

/// The transcript in as many slices as mended messages make necessary.
fn mended(whole: &Bytes, history: &mut History) -> Result<Vec<Bytes>, BadRequest> {
    let mut segments = Vec::with_capacity(1);
    let mut at = 0;
    for entry in history.entries.iter_mut().filter(|entry| entry.role == Role::Assistant || !entry.calls.is_empty()) {
        let Some(message) = mending::mended(&entry.bytes) else { continue };
        let text = std::str::from_utf8(&entry.bytes).unwrap_or_default();
        let place = range_of(whole, text);
        segments.push(whole.slice(at..place.start));
        at = place.end;
        // Where its arguments stand is another place now.
        *entry = Entry::read(message).map_err(|_| BadRequest::Member("messages", "must be objects"))?;
        segments.push(entry.bytes.clone());
    }
    segments.push(whole.slice(at..));
    segments.retain(|segment| !segment.is_empty());
    Ok(segments)
}

/// A part of the body, which shares its bytes.
pub(super) fn slice(body: &Bytes, part: &str) -> Bytes {
    body.slice_ref(part.as_bytes())
}
