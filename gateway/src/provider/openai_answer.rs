//! What answers of servers that are nearly OpenAI's have otherwise: the arguments of a call as an object, where a client expects its text, and
//! an end that is an error, which would pass for the end of an answer.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::object::{Patches, quoted, range_of};
use crate::wire::sse::Event;

/// A chunk whose calls have texts for arguments; one in which the answer ended in an error is one.
pub(super) fn event(event: Event) -> Event {
    let is_error = event.is_error || is_broken(&event.data);
    Event { data: with_texts(event.data), is_error }
}

/// A plain answer likewise.
pub(super) fn decode(body: Bytes) -> Bytes {
    if is_broken(&body) { Bytes::from_static(br#"{"error":{}}"#) } else { with_texts(body) }
}

/// Whether an answer, or a chunk of one, says that it ended in an error, as OpenRouter and Mistral do.
fn is_broken(whole: &[u8]) -> bool {
    if memmem::find(whole, b"\"error\"").is_none() {
        return false;
    }
    let Ok(Raw { choices }) = serde_json::from_slice(whole) else { return false };
    let ends_badly = |choice: &Choice<'_>| choice.finish_reason.is_some_and(|finish| finish.get() == "\"error\"");
    choices.iter().any(|choice| choice.error.is_some_and(|error| error.get() != "null") || ends_badly(choice))
}

fn with_texts(whole: Bytes) -> Bytes {
    if !holds_an_object(&whole) {
        return whole;
    }
    let patches = objects(&whole);
    if patches.is_empty() {
        return whole;
    }
    let (mut all, mut out) = (Patches::default(), BytesMut::with_capacity(whole.len() + 32));
    patches.into_iter().for_each(|(place, text)| all.replace(place, text));
    all.apply(&whole, &mut out);
    out.freeze()
}

/// Whether a member of that name is an object. Most chunks have none of that name.
fn holds_an_object(whole: &[u8]) -> bool {
    const NAME: &[u8] = b"\"arguments\"";
    memmem::find_iter(whole, NAME).any(|at| {
        let value = whole[at + NAME.len()..].trim_ascii_start().strip_prefix(b":");
        value.is_some_and(|value| value.trim_ascii_start().starts_with(b"{"))
    })
}

fn objects(whole: &Bytes) -> Vec<(Range<usize>, String)> {
    let Ok(Raw { choices }) = serde_json::from_slice(whole) else { return Vec::new() };
    let calls = choices.iter().filter_map(|choice| choice.message.as_ref()?.tool_calls.as_ref()).flatten();
    let arguments = calls.filter_map(|call| call.function.as_ref()?.arguments);
    let objects = arguments.map(RawValue::get).filter(|arguments| arguments.starts_with('{'));
    objects.map(|object| (range_of(whole, object), quoted(object))).collect()
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default, alias = "delta")]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
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
    arguments: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_13_an_object_is_the_text_that_it_should_have_been() {
        let whole = |place: &str, arguments: &str| {
            format!(
                r#"{{"x":1e400,"choices":[{{"{place}":{{"tool_calls":[{{"id":"c","function":{{"name":"t","arguments":{arguments}}}}},{{"function":null}}]}}}}]}}"#
            )
        };
        let table = [
            (r#"{"q": "a", "n":1.10}"#, r#""{\"q\": \"a\", \"n\":1.10}""#),
            (" {}", r#" "{}""#),
            (r#""{\"arguments\":{}}""#, r#""{\"arguments\":{}}""#),
            ("null", "null"),
        ];
        for (arguments, expected) in table {
            for place in ["message", "delta"] {
                assert_eq!(with_texts(Bytes::from(whole(place, arguments))), whole(place, expected), "{arguments}");
            }
        }
        for other in [r#"{"arguments":{}}"#, r#"{"arguments":{"#, "no json"] {
            assert_eq!(with_texts(Bytes::from_static(other.as_bytes())), other);
        }
    }

    #[test]
    fn case_40_an_answer_that_ends_in_an_error_is_one() {
        let table = [
            (r#"{"choices":[{"error":{"code":502,"message":"gone"},"message":{"content":"a"},"finish_reason":"error"}]}"#, true),
            (r#"{"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#, true),
            (r#"{"choices":[{"delta":{"content":"\"error\""},"error":null,"finish_reason":"stop"}]}"#, false),
            (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, false),
            ("\"error\"", false),
        ];
        for (data, expected) in table {
            let data = Bytes::from_static(data.as_bytes());
            assert_eq!(event(Event { data: data.clone(), is_error: false }).is_error, expected, "{data:?}");
            assert_eq!(decode(data.clone()) != data, expected, "{data:?}");
        }
        assert!(event(Event { data: Bytes::from_static(b"x"), is_error: true }).is_error);
    }
}
