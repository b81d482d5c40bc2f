//! What answers of servers that are nearly OpenAI's have otherwise: the arguments of a call as an object, where a client expects its text.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::object::{Patches, quoted, range_of};
use crate::wire::sse::Event;

/// A chunk whose calls have texts for arguments.
pub(super) fn event(event: Event) -> Event {
    Event { data: with_texts(event.data), ..event }
}

/// A plain answer likewise, or the data of a chunk.
pub(super) fn with_texts(whole: Bytes) -> Bytes {
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
}
