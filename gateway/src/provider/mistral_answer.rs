//! What Mistral answers, in OpenAI's words: a content in parts, which its models that reason send, an end of its own, and members that it leaves
//! out.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::openai_answer;
use crate::wire::finish::LENGTH;
use crate::wire::object::{Members, Patches, range_of};
use crate::wire::sse::Event;

/// A chunk with its parts told apart: text is content, thinking is a thought.
pub(super) fn event(event: Event) -> Event {
    // Parts and calls have names of their own; most chunks have none of these words, and are not read here.
    let words: [&[u8]; 3] = [b"\"type\"", b"\"tool_calls\"", b"\"model_length\""];
    let is_plain = words.iter().all(|word| memmem::find(&event.data, word).is_none());
    let data = if is_plain { event.data } else { adapted(event.data, Form::Chunk) };
    openai_answer::event(Event { data, ..event })
}

/// A plain answer likewise, with the members that clients look for and Mistral leaves out.
pub(super) fn decode(body: Bytes) -> Bytes {
    openai_answer::decode(adapted(body, Form::Whole))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Chunk,
    Whole,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    choices: Vec<&'a RawValue>,
}

fn adapted(whole: Bytes, form: Form) -> Bytes {
    let choices = serde_json::from_slice::<Raw<'_>>(&whole).map(|raw| raw.choices).unwrap_or_default();
    let places: Vec<_> = choices.into_iter().flat_map(|choice| changes(&whole, choice, form).unwrap_or_default()).collect();
    if places.is_empty() {
        return whole;
    }
    let (mut patches, mut out) = (Patches::default(), BytesMut::with_capacity(whole.len() + 64));
    places.into_iter().for_each(|(place, text)| patches.replace(place, text));
    patches.apply(&whole, &mut out);
    out.freeze()
}

type Changes = Vec<(Range<usize>, String)>;

fn changes(whole: &[u8], choice: &RawValue, form: Form) -> Option<Changes> {
    let members = Members::parse(choice.get().as_bytes()).ok()?;
    let mut changes = Vec::new();
    let finish = members.get("finish_reason").map(RawValue::get).filter(|finish| *finish == "\"model_length\"");
    changes.extend(finish.map(|finish| (range_of(whole, finish), LENGTH.to_owned())));
    let raw = members.get("message").or_else(|| members.get("delta"))?;
    let message = Members::parse(raw.get().as_bytes()).ok()?;
    if form == Form::Whole {
        changes.extend(missing(whole, choice, &members, "logprobs", "null"));
        changes.extend(missing(whole, raw, &message, "refusal", "null"));
    }
    let content = message.get("content").map(RawValue::get);
    changes.extend(content.and_then(|content| Some((range_of(whole, content), told_apart(content)?))));
    let calls: Option<Vec<&RawValue>> = message.get("tool_calls").and_then(|calls| serde_json::from_str(calls.get()).ok());
    for call in calls.into_iter().flatten() {
        let members = Members::parse(call.get().as_bytes()).ok()?;
        changes.extend(missing(whole, call, &members, "type", "\"function\""));
    }
    Some(changes)
}

/// A member that the object does not have, as its first one.
fn missing(whole: &[u8], object: &RawValue, members: &Members<'_>, name: &str, value: &str) -> Option<(Range<usize>, String)> {
    let inside = range_of(whole, object.get()).start + 1;
    let lacks = !members.0.is_empty() && members.get(name).is_none();
    lacks.then(|| (inside..inside, format!("\"{name}\":{value},")))
}

/// A part of an answer. A thought is a list of texts.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
}

/// What a list of parts says, as the value of `content`, and the member for what it thinks behind it.
fn told_apart(content: &str) -> Option<String> {
    if !content.starts_with('[') {
        return None;
    }
    let parts: Vec<Part<'_>> = serde_json::from_str(content).ok()?;
    let (mut said, mut thought) = (String::new(), String::new());
    for part in parts {
        part.text.into_iter().for_each(|text| push_text(&mut said, text));
        part.thinking.into_iter().for_each(|thinking| push_text(&mut thought, thinking));
    }
    let content = if said.is_empty() && !thought.is_empty() { "null".to_owned() } else { format!("\"{said}\"") };
    Some(if thought.is_empty() { content } else { format!("{content},\"reasoning_content\":\"{thought}\"") })
}

/// Appends the inside of a string, or of the texts in a list of parts. What was escaped stays escaped.
fn push_text(out: &mut String, raw: &RawValue) {
    if let Some(inner) = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return out.push_str(inner);
    }
    let parts: Vec<Part<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
    parts.iter().filter_map(|part| part.text).for_each(|text| push_text(out, text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_answer_are_text_and_thoughts() {
        let table = [
            (r#""plain \"type\"""#, r#""plain \"type\"""#),
            (
                r#"[{"type":"thinking","thinking":[{"type":"text","text":"h\""},{"type":"text","text":"m"}]}]"#,
                r#"null,"reasoning_content":"h\"m""#,
            ),
            (
                r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"reference","reference_ids":[1]},{"type":"text","text":"\ud83c\udfbb"}]"#,
                r#""a\ud83c\udfbb","reasoning_content":"hm""#,
            ),
            (r#"[{"type":"text","text":"a"}]"#, r#""a""#),
            ("[]", r#""""#),
            ("null", "null"),
        ];
        for (content, expected) in table {
            for place in ["delta", "message"] {
                let whole = |content: &str| {
                    format!(
                        r#"{{"id":"x","type":0,"choices":[{{"index":0,"logprobs":null,"{place}":{{"role":"assistant","refusal":null,"content":{content}}},"finish_reason":null}}],"y":1.10}}"#
                    )
                };
                let data = Bytes::from(whole(content));
                assert_eq!(event(Event { data: data.clone(), is_error: false }).data, whole(expected));
                assert_eq!(decode(data), whole(expected));
            }
        }
    }

    #[test]
    fn members_that_clients_look_for_are_there() {
        let call = r#"{"id":"D681PevKs","function":{"name":"t","arguments":"{}"},"index":0}"#;
        let typed = call.replacen('{', r#"{"type":"function","#, 1);
        let chunk = |call: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"","tool_calls":[{call}]}}}}]}}"#);
        assert_eq!(event(Event { data: Bytes::from(chunk(call)), is_error: false }).data, chunk(&typed));
        let whole = |more: &str, of_message: &str, call: &str| {
            format!(r#"{{"choices":[{{{more}"message":{{{of_message}"role":"assistant","tool_calls":[{call}]}}}}]}}"#)
        };
        let all = whole(r#""logprobs":null,"#, r#""refusal":null,"#, &typed);
        assert_eq!(decode(Bytes::from(whole("", "", call))), all);
        assert_eq!(decode(Bytes::from(all.clone())), all);
        assert_eq!(
            decode(Bytes::from_static(br#"{"choices":[{"message":{}},{}]}"#)),
            r#"{"choices":[{"logprobs":null,"message":{}},{}]}"#
        );
    }

    #[test]
    fn an_end_has_the_words_of_the_canon() {
        let whole = |finish: &str| Bytes::from(format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}"#));
        let seen = |finish: &str| event(Event { data: whole(finish), is_error: false });
        assert_eq!(seen("model_length").data, whole("length"));
        assert_eq!(seen("stop").data, whole("stop"));
        assert!(seen("error").is_error && !seen("stop").is_error);
    }
}
