//! An answer as Ollama writes it, whole or as one line of a stream: the same form. Texts stay raw.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::canon::says_something;
use super::super::chunks::NAMELESS;
use super::super::{Stamp, chunks, ids};
use crate::wire::object::as_str;

/// An answer, or a line of one.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, default)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(default)]
    pub(super) done: Option<bool>,
    #[serde(borrow, default)]
    done_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_eval_count: Option<&'a RawValue>,
    #[serde(borrow, default)]
    eval_count: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    pub(super) fn content(&self) -> Option<&'a RawValue> {
        self.content.filter(|text| says_something(text))
    }

    pub(super) fn thinking(&self) -> Option<&'a RawValue> {
        self.thinking.filter(|text| says_something(text))
    }

    /// The name and the arguments of each call.
    pub(super) fn calls(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        let functions = self.tool_calls.iter().flatten().filter_map(|call| call.function.as_ref());
        functions.map(|function| {
            let name = function.name.and_then(as_str).filter(|name| !name.is_empty());
            (name.unwrap_or(Cow::Borrowed(NAMELESS)), function.arguments.map_or(Cow::Borrowed("{}"), arguments))
        })
    }
}

/// The arguments as a text: an object that is written out, or what some servers write as a string.
fn arguments(raw: &RawValue) -> Cow<'_, str> {
    match raw.get() {
        "null" => Cow::Borrowed("{}"),
        text if text.starts_with('"') => as_str(raw).filter(|text| !text.trim().is_empty()).unwrap_or(Cow::Borrowed("{}")),
        object => Cow::Borrowed(object),
    }
}

impl Line<'_> {
    /// Whether it reports an error.
    pub(super) fn is_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }

    /// The canon's word for why it ends.
    pub(super) fn finish(&self, has_calls: bool) -> &'static str {
        match self.done_reason.map(RawValue::get) {
            Some("\"length\"") => "length",
            _ if has_calls => "tool_calls",
            _ => "stop",
        }
    }

    /// What was used. A prompt that was in the cache is not counted by older servers, which is something else than none.
    pub(super) fn usage(&self) -> Option<String> {
        let count = |raw: Option<&RawValue>| raw.and_then(|raw| raw.get().parse::<u64>().ok());
        let (prompt, completion) = (count(self.prompt_eval_count), count(self.eval_count));
        let completion = completion.or(prompt.map(|_| 0))?;
        Some(chunks::usage(prompt.filter(|count| *count > 0), 0, completion, 0))
    }
}

/// The id of an answer, raw.
pub(super) fn answer_id(stamp: Stamp) -> String {
    format!("\"chatcmpl-{:016x}\"", stamp.seed)
}

/// A plain answer as one completion. `None`: the body is none.
pub(super) fn completion(body: &[u8], stamp: Stamp) -> Option<String> {
    let line: Line<'_> = serde_json::from_slice(body).ok().filter(|line: &Line<'_>| !line.is_error())?;
    let message = line.message.as_ref()?;
    let calls: Vec<String> = message
        .calls()
        .enumerate()
        .map(|(at, (name, arguments))| chunks::call(None, &ids::made(stamp, at), &name, &arguments))
        .collect();
    let content = message.content().map_or(if calls.is_empty() { "\"\"" } else { "null" }, RawValue::get);
    let thinking = message.thinking().map(|text| format!(r#","reasoning_content":{}"#, text.get())).unwrap_or_default();
    let finish = line.finish(!calls.is_empty());
    let calls = if calls.is_empty() { String::new() } else { format!(r#","tool_calls":[{}]"#, calls.join(",")) };
    let usage = line.usage().map(|usage| format!(r#","usage":{usage}"#)).unwrap_or_default();
    Some(format!(
        r#"{{"id":{},"object":"chat.completion","created":{},"model":{},"choices":[{{"index":0,"message":{{"role":"assistant","content":{content},"refusal":null{thinking}{calls}}},"logprobs":null,"finish_reason":"{finish}"}}]{usage}}}"#,
        answer_id(stamp),
        stamp.created,
        chunks::named(line.model).unwrap_or("null"),
    ))
}
