//! A whole chat completion: what it says, and how it goes on to the caller.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{CallParts, Piece};
use super::chunk::says_something;
use super::object::{self, Edit, Members, Patches};
use super::said;
use super::spoken::{Change, Field, Notes, Text, Texts, number};
use super::sse::{END_MARK, Event};
use super::usage::Usage;
use super::{finish, mend};

/// A completion as it came, and where in it the things stand that matter here.
#[derive(Debug)]
pub struct Reply {
    body: Bytes,
    model: Option<Range<usize>>,
    usage: Option<Range<usize>>,
    content: Option<Range<usize>>,
    thoughts: Option<Range<usize>>,
    aloud: Option<Range<usize>>,
    finish: Option<Range<usize>>,
    /// Where the texts stand that the model wrote, in any of its answers.
    texts: Texts,
    /// Whether the first choice says anything.
    pub has_text: bool,
    /// The calls that the first choice asks for.
    pub calls: CallParts,
}

/// What a body may be instead of a completion.
#[derive(Debug, PartialEq, Eq)]
pub enum NoReply {
    /// Not JSON, or not the JSON of a completion.
    Garbage,
    /// An error under a status of success.
    Error,
}

/// A body as the text of an object. What is not read of it goes on all the same, so it has to be text as well.
///
/// # Errors
/// [`NoReply::Garbage`].
pub(super) fn document(body: &[u8]) -> Result<&str, NoReply> {
    let text = std::str::from_utf8(body).map_err(|_| NoReply::Garbage)?;
    // A struct would be read from a list as well.
    if text.trim_start().starts_with('{') { Ok(text) } else { Err(NoReply::Garbage) }
}

impl Reply {
    /// Reads a body.
    ///
    /// # Errors
    /// [`NoReply`].
    pub fn parse(body: Bytes) -> Result<Self, NoReply> {
        let text = document(&body)?;
        let raw: Raw<'_> = match serde_json::from_str(text) {
            Ok(raw) => raw,
            Err(_) => return Self::parse(mend::numbers(text).ok_or(NoReply::Garbage)?.into()),
        };
        if raw.error.is_some_and(|error| error.get() != "null") || raw.object.is_some_and(object::is_error) {
            return Err(NoReply::Error);
        }
        let choice = raw.choices.first().ok_or(NoReply::Garbage)?;
        let message = choice.message.as_ref();
        let place = |part| object::place(&body, part);
        let content = message.and_then(|message| message.content);
        let mut calls = CallParts::default();
        for piece in message.and_then(|message| message.tool_calls.as_deref()).unwrap_or_default() {
            calls.add_whole(piece);
        }
        if calls.are_too_many() {
            return Err(NoReply::Garbage);
        }
        let mut texts = Texts::new();
        for (at, choice) in raw.choices.iter().enumerate() {
            choice.note(&mut Notes { whole: &body, choice: number(choice.index, at), texts: &mut texts });
        }
        Ok(Self {
            texts,
            // A `null` is a place to put the name.
            model: raw.model.map(|model| object::range_of(&body, model.get())),
            usage: place(raw.usage),
            content: place(content),
            thoughts: place(message.and_then(|message| message.reasoning_details)),
            aloud: place(message.and_then(|message| message.reasoning_content)),
            finish: place(choice.finish_reason),
            has_text: content.is_some_and(says_something),
            calls,
            body,
        })
    }

    /// The text as a raw JSON value.
    pub fn content(&self) -> Option<&str> {
        self.text(self.content.as_ref())
    }

    /// Thoughts that the provider must get back, as a raw JSON list.
    pub fn thoughts(&self) -> Option<&str> {
        self.text(self.thoughts.as_ref())
    }

    /// What the model thought aloud, raw and with its quotes.
    pub fn aloud(&self) -> Option<&str> {
        self.text(self.aloud.as_ref())
    }

    /// The reason why it ends, raw and with its quotes.
    pub fn finish(&self) -> Option<&str> {
        self.text(self.finish.as_ref())
    }

    /// What the provider says was used.
    pub fn usage(&self) -> Option<Usage> {
        self.text(self.usage.as_ref()).and_then(Usage::parse)
    }

    /// Whether its usage says nothing of the prompt, as that of some providers does where the prompt was in their cache.
    pub fn lacks_prompt(&self) -> bool {
        self.text(self.usage.as_ref()).is_some_and(|usage| !usage.contains("\"prompt_tokens\""))
    }

    /// Gives each text that the model said, in any of its answers, to `said`, as the inside of a JSON string.
    pub fn texts(&self, said: &mut impl FnMut(&str)) {
        let raw: Option<Raw<'_>> = serde_json::from_slice(&self.body).ok();
        for message in raw.iter().flat_map(|raw| &raw.choices).filter_map(|choice| choice.message.as_ref()) {
            message.texts().each(said);
            message.tool_calls.iter().flatten().for_each(|call| call.each(said));
        }
    }

    /// The body as it came.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Where in it the texts stand that the model wrote.
    pub fn spoken(&self) -> &[Text] {
        &self.texts
    }

    /// The same completion with these changes made in its body.
    #[must_use]
    pub fn changed(self, changes: Vec<Change>) -> Self {
        if changes.is_empty() {
            return self;
        }
        let (mut patches, mut out) = (Patches::default(), BytesMut::with_capacity(self.body.len()));
        changes.into_iter().for_each(|change| patches.replace(change.place, change.text));
        patches.apply(&self.body, &mut out);
        Self::parse(out.freeze()).unwrap_or(self)
    }

    /// The body for the caller: the model under its own name (a JSON string), and the usage of the whole run where it had more rounds.
    pub fn render(&self, model: &str, usage: Option<&str>) -> Bytes {
        let mut patches = Patches::default();
        patches.name_model(&self.body, self.model.as_ref(), model, None);
        match (&self.usage, usage) {
            (Some(range), Some(usage)) => patches.replace(range.clone(), usage),
            (None, Some(usage)) => return self.with_new_usage(model, usage),
            (_, None) => {}
        }
        if patches.is_empty() {
            return self.body.clone();
        }
        let mut out = BytesMut::with_capacity(self.body.len() + 64);
        patches.apply(&self.body, &mut out);
        out.freeze()
    }

    /// The completion as the events of a stream that says the same, for a caller that asked for one.
    pub fn as_events(&self) -> Vec<Event> {
        let event = |text: String| Event { data: Bytes::from(text), is_error: false };
        let chunk = |choices: &str, usage: Edit<'_>| {
            let edits = [Edit::Set("object", "\"chat.completion.chunk\""), Edit::Set("choices", choices), usage];
            object::edited(&self.body, &edits).unwrap_or_default()
        };
        let mut events = vec![event(chunk(&self.choices_as_deltas().unwrap_or_default(), Edit::Remove("usage")))];
        if let Some(usage) = self.text(self.usage.as_ref()) {
            events.push(event(chunk("[]", Edit::Set("usage", usage))));
        }
        events.push(Event { data: Bytes::from_static(END_MARK), is_error: false });
        events
    }

    fn choices_as_deltas(&self) -> Option<String> {
        let members = Members::parse(&self.body).ok()?;
        let choices: Vec<&RawValue> = serde_json::from_str(members.get("choices")?.get()).ok()?;
        let delta = |choice: &RawValue| {
            let message = Members::parse(choice.get().as_bytes()).ok()?.get("message")?.get();
            let message = with_indexes(message).unwrap_or_else(|| message.to_owned());
            object::edited(choice.get().as_bytes(), &[Edit::Set("delta", &message), Edit::Remove("message")]).ok()
        };
        Some(format!("[{}]", choices.into_iter().filter_map(delta).collect::<Vec<_>>().join(",")))
    }

    /// The same completion with its first choice saying only `content` (a raw JSON string), asking for nothing, ending with `finish`.
    pub fn ending(&self, content: &str, finish: &str) -> Self {
        let changed = self.first_choice_changed(content, finish).and_then(|text| Self::parse(Bytes::from(text)).ok());
        changed.unwrap_or_else(|| self.copy())
    }

    /// The same completion, of whose calls only these are left: of each its place among all, and its id. Arguments are strings here, whatever
    /// the provider made of them.
    pub fn returning<'i>(&self, calls: impl Iterator<Item = (usize, &'i str)>) -> Self {
        let changed = self.calls_changed(calls).and_then(|text| Self::parse(Bytes::from(text)).ok());
        changed.unwrap_or_else(|| self.copy())
    }

    fn calls_changed<'i>(&self, calls: impl Iterator<Item = (usize, &'i str)>) -> Option<String> {
        let members = Members::parse(&self.body).ok()?;
        let choices: Vec<&RawValue> = serde_json::from_str(members.get("choices")?.get()).ok()?;
        let choice = choices.first()?.get().as_bytes();
        let message = Members::parse(choice).ok()?.get("message")?.get().as_bytes();
        let all: Vec<&RawValue> = serde_json::from_str(Members::parse(message).ok()?.get("tool_calls")?.get()).ok()?;
        let calls = calls.filter_map(|(at, id)| returned(all.get(at)?.get(), id)).collect::<Vec<_>>().join(",");
        let message = object::edited(message, &[Edit::Set("tool_calls", &format!("[{calls}]"))]).ok()?;
        let edits = [Edit::Set("message", &message), Edit::Set("finish_reason", finish::TOOL_CALLS)];
        let choice = object::edited(choice, &edits).ok()?;
        object::edited(&self.body, &[Edit::Set("choices", &format!("[{choice}]"))]).ok()
    }

    fn first_choice_changed(&self, content: &str, finish: &str) -> Option<String> {
        let members = Members::parse(&self.body).ok()?;
        let choices: Vec<&RawValue> = serde_json::from_str(members.get("choices")?.get()).ok()?;
        let choice = choices.first()?.get().as_bytes();
        let message = Members::parse(choice).ok()?.get("message").filter(|message| message.get() != "null");
        let message = message.map_or(r#"{"role":"assistant"}"#, RawValue::get).as_bytes();
        let message = object::edited(message, &[Edit::Set("content", content), Edit::Remove("tool_calls")]).ok()?;
        let choice = object::edited(choice, &[Edit::Set("message", &message), Edit::Set("finish_reason", finish)]).ok()?;
        object::edited(&self.body, &[Edit::Set("choices", &format!("[{choice}]"))]).ok()
    }

    fn with_new_usage(&self, model: &str, usage: &str) -> Bytes {
        let text = object::edited(&self.body, &[Edit::Set("model", model), Edit::Set("usage", usage)]);
        text.map_or_else(|_| self.body.clone(), Bytes::from)
    }

    fn copy(&self) -> Self {
        Self {
            body: self.body.clone(),
            model: self.model.clone(),
            usage: self.usage.clone(),
            content: self.content.clone(),
            thoughts: self.thoughts.clone(),
            aloud: self.aloud.clone(),
            finish: self.finish.clone(),
            texts: self.texts.clone(),
            has_text: self.has_text,
            calls: CallParts::default(),
        }
    }

    fn text(&self, range: Option<&Range<usize>>) -> Option<&str> {
        object::text_at(&self.body, range)
    }
}

/// A call with its id, and with arguments that are a string, `{}` where there are none.
fn returned(call: &str, id: &str) -> Option<String> {
    let function = Members::parse(call.as_bytes()).ok()?.get("function")?.get().as_bytes();
    let arguments = Members::parse(function).ok()?.get("arguments").map_or("null", RawValue::get);
    let text = match object::string(arguments) {
        Some(text) if !text.trim().is_empty() => arguments.to_owned(),
        None if arguments != "null" => object::quoted(arguments),
        _ => "\"{}\"".to_owned(),
    };
    let function = object::edited(function, &[Edit::Set("arguments", &text)]).ok()?;
    object::edited(call.as_bytes(), &[Edit::Set("id", &object::quoted(id)), Edit::Set("function", &function)]).ok()
}

/// A message whose calls are numbered, as a delta's must be.
fn with_indexes(message: &str) -> Option<String> {
    let calls: Vec<&RawValue> = serde_json::from_str(Members::parse(message.as_bytes()).ok()?.get("tool_calls")?.get()).ok()?;
    let numbered =
        |(at, call): (usize, &RawValue)| object::edited(call.get().as_bytes(), &[Edit::Set("index", &at.to_string())]).ok();
    let calls = calls.into_iter().enumerate().filter_map(numbered).collect::<Vec<_>>().join(",");
    object::edited(message.as_bytes(), &[Edit::Set("tool_calls", &format!("[{calls}]"))]).ok()
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default, deserialize_with = "object::present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    audio: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Piece<'a>>>,
}

impl Choice<'_> {
    /// Takes note of its texts.
    fn note(&self, notes: &mut Notes<'_>) {
        let Some(message) = &self.message else { return };
        notes.text(Field::Content, message.content);
        notes.string(Field::Refusal, message.refusal);
        notes.string(Field::Aloud, message.reasoning_content);
        notes.string(Field::Reasoning, message.reasoning);
        notes.thoughts(message.reasoning_details);
        notes.audio(message.audio);
        notes.function(message.function_call);
        for (at, call) in message.tool_calls.iter().flatten().enumerate() {
            notes.string(Field::Call(at as u64), call.arguments());
            notes.string(Field::Input(at as u64), call.input());
        }
    }
}

impl<'a> Message<'a> {
    fn texts(&self) -> said::Texts<'a> {
        let Self { content, refusal, reasoning_content, reasoning, function_call, .. } = *self;
        said::Texts { content, refusal, reasoning_content, reasoning, function_call }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Reply {
        Reply::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn only_model_and_usage_are_the_gateways() {
        let text = r#"{ "id":"x", "model":"up", "choices":[{"message":{"content":"a"},"finish_reason":"stop","x":1e400}], "usage":{"total_tokens":3}, "y":1.10}"#;
        assert_eq!(reply(text).render("\"m\"", None), text.replace("\"up\"", "\"m\""));
        let expected = text.replace("\"up\"", "\"m\"").replace(r#"{"total_tokens":3}"#, "{}");
        assert_eq!(reply(text).render("\"m\"", Some("{}")), expected);
        assert_eq!(reply(text).render("\"up\"", None), text);
    }

    #[test]
    fn a_provider_that_names_no_model_is_given_the_callers_name() {
        let table = [
            (r#"{"choices":[{}]}"#, r#"{"model":"m","choices":[{}]}"#),
            (r#" { "choices":[{}]}"#, r#" {"model":"m", "choices":[{}]}"#),
            (r#"{"choices":[{}],"model": null}"#, r#"{"choices":[{}],"model": "m"}"#),
        ];
        for (text, expected) in table {
            assert_eq!(reply(text).render("\"m\"", None), expected, "{text}");
        }
    }

    #[test]
    fn an_ending_says_what_it_must_and_keeps_the_rest() {
        let text = r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]},"finish_reason":"tool_calls"}],"y":1.10}"#;
        let expected = r#"{"model":"m","id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"N"},"finish_reason":"length"}],"y":1.10}"#;
        let ending = reply(text).ending("\"N\"", "\"length\"");
        assert_eq!(ending.render("\"m\"", None), expected);
        assert!(ending.calls.is_empty());
    }

    #[test]
    fn all_that_a_model_said_is_there_to_be_counted() {
        let text = r#"{"choices":[
            {"message":{"content":"a","reasoning_content":"hm","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}},{"id":"c","function":{"name":"f","arguments":"{}"}}]}},
            {"message":{"content":"b","refusal":"no"}},{}]}"#;
        let mut said = Vec::new();
        reply(text).texts(&mut |text| said.push(text.to_owned()));
        assert_eq!(said, ["a", "hm", r"\n", "f", "{}", r"\n", "f", "{}", "b", "no"]);
    }

    #[test]
    fn more_calls_than_any_model_means_are_no_completion() {
        let with = |calls: usize| {
            let calls = vec![r#"{"id":"c","function":{"name":"t"}}"#; calls].join(",");
            Reply::parse(Bytes::from(format!(r#"{{"choices":[{{"message":{{"tool_calls":[{calls}]}}}}]}}"#)))
        };
        assert!(with(1000).is_ok());
        assert_eq!(with(5000).err(), Some(NoReply::Garbage));
    }

    #[test]
    fn case_31_a_number_that_json_does_not_have_loses_no_answer() {
        let text = r#"{"model":"m","choices":[{"message":{"content":"NaN"}}],"usage":{"prompt_tokens":3,"cost":NaN}}"#;
        let reply = reply(text);
        assert_eq!(reply.usage().map(|usage| (usage.prompt, usage.reported_cost())), Some((3, None)));
        assert_eq!(reply.render("\"m\"", None), text.replace(":NaN", ":null"));
    }

    #[test]
    fn what_is_no_text_reaches_nobody() {
        let body = Bytes::from_static(b"{\"unknown\":\"\xff\",\"choices\":[{\"message\":{\"content\":\"a\"}}]}");
        assert_eq!(Reply::parse(body).err(), Some(NoReply::Garbage));
    }

    #[test]
    fn what_is_no_completion_is_told_apart() {
        let table = [
            (r#"{"error":{"message":"x"}}"#, NoReply::Error),
            (r#"{"object":"error","message":"x","code":400}"#, NoReply::Error),
            ("<html>", NoReply::Garbage),
            (r#"["m",null,null,[[["text"],"stop"]]]"#, NoReply::Garbage),
            (r#"{"choices":[]}"#, NoReply::Garbage),
            ("{}", NoReply::Garbage),
        ];
        for (text, expected) in table {
            assert_eq!(Reply::parse(Bytes::copy_from_slice(text.as_bytes())).err(), Some(expected), "{text}");
        }
    }
}
