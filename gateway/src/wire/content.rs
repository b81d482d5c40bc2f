//! The text of a message, for whoever has to put a shorter one in its place.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::{quoted, range_of, string};

/// The text of a message, where that is all there is to its content: a string, or one part that is a text.
pub fn text(message: &[u8]) -> Option<Cow<'_, str>> {
    string(raw_text(message)?)
}

/// The message with another text in the place of its own, and everything else as it was.
pub fn with_text(message: &Bytes, text: &str) -> Bytes {
    let Some(raw) = raw_text(message) else { return message.clone() };
    let place = range_of(message, raw);
    Bytes::from([&message[..place.start], quoted(text).as_bytes(), &message[place.end..]].concat())
}

fn raw_text(message: &[u8]) -> Option<&str> {
    let content = serde_json::from_slice::<Message<'_>>(message).ok()?.content?.get();
    if !content.starts_with('[') {
        return Some(content);
    }
    let [Part { text }] = serde_json::from_str(content).ok()?;
    Some(text?.get())
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow, default)]
    content: Option<&'m RawValue>,
}

#[derive(Deserialize)]
struct Part<'p> {
    #[serde(borrow, default)]
    text: Option<&'p RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_where_it_is_all_there_is() {
        let table = [
            (r#"{"role":"user","content":"a\nb"}"#, Some("a\nb")),
            (r#"{"content":[{"type":"text","text":"x"}]}"#, Some("x")),
            (r#"{"content":[{"text":"x"},{"text":"y"}]}"#, None),
            (r#"{"content":[{"image_url":"x"}]}"#, None),
            (r#"{"content":"\ud83c"}"#, None),
            (r#"{"content":null}"#, None),
            (r#"{"content":{"a":"b"}}"#, None),
            ("{}", None),
            ("[]", None),
        ];
        for (message, expected) in table {
            assert_eq!(text(message.as_bytes()).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn another_text_leaves_the_rest_as_it_was() {
        let table = [
            (r#"{ "content":"long", "x":1.10,"role":"tool"}"#, r#"{ "content":"a\"\n", "x":1.10,"role":"tool"}"#),
            (r#"{"content":[ {"type":"text","text":"long","y":1} ]}"#, r#"{"content":[ {"type":"text","text":"a\"\n","y":1} ]}"#),
            (r#"{"content":[{"a":1},{"b":2}]}"#, r#"{"content":[{"a":1},{"b":2}]}"#),
        ];
        for (before, after) in table {
            assert_eq!(with_text(&Bytes::copy_from_slice(before.as_bytes()), "a\"\n"), after);
        }
    }
}
