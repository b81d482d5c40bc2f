//! A part of a JSON text by a JSON pointer, as it stands in the text: nothing is parsed that is not on the way, nothing is written anew.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The part that the pointer leads to; `None` where it leads nowhere, or where the text is no JSON.
pub(crate) fn select<'t>(json: &'t str, pointer: &str) -> Option<&'t str> {
    let whole: &RawValue = serde_json::from_str(json).ok()?;
    let Some(steps) = pointer.strip_prefix('/') else { return pointer.is_empty().then(|| whole.get()) };
    steps.split('/').try_fold(whole.get(), |part, step| descend(part, &step.replace("~1", "/").replace("~0", "~")))
}

fn descend<'t>(json: &'t str, step: &str) -> Option<&'t str> {
    let mut from = serde_json::Deserializer::from_str(json);
    match json.as_bytes().first()? {
        b'{' => from.deserialize_map(Member(step)).ok()?,
        b'[' => from.deserialize_seq(Item(index(step)?)).ok()?,
        _ => None,
    }
    .map(RawValue::get)
}

/// An array index: digits, without a leading zero.
fn index(step: &str) -> Option<usize> {
    let plain = step == "0" || (!step.starts_with('0') && step.bytes().all(|byte| byte.is_ascii_digit()));
    if plain { step.parse().ok() } else { None }
}

/// The member of this name; the last one, where there are several, as most parsers see it.
struct Member<'s>(&'s str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = members.next_key::<String>()? {
            if key == self.0 {
                found = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// The item at this place.
struct Item(usize);

impl<'de> Visitor<'de> for Item {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let mut at = 0;
        while let Some(item) = items.next_element::<&RawValue>()? {
            if at == self.0 {
                found = Some(item);
            }
            at += 1;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_to_the_text_as_it_stands() {
        let json = r#" {"data": { "n": 1.50, "list": [ 10, {"x" : 1e3}, "s" ] }, "a/b": 1, "m~n": 2, "": 3, "e\u0064": 4} "#;
        let table = [
            ("", Some(json.trim())),
            ("/data/n", Some("1.50")),
            ("/data/list", Some(r#"[ 10, {"x" : 1e3}, "s" ]"#)),
            ("/data/list/0", Some("10")),
            ("/data/list/1", Some(r#"{"x" : 1e3}"#)),
            ("/data/list/1/x", Some("1e3")),
            ("/data/list/2", Some(r#""s""#)),
            ("/a~1b", Some("1")),
            ("/m~0n", Some("2")),
            ("/", Some("3")),
            ("/ed", Some("4")),
            ("/data/list/3", None),
            ("/data/list/01", None),
            ("/data/list/-", None),
            ("/data/list/", None),
            ("/data/list/+1", None),
            ("/data/missing", None),
            ("/data/n/x", None),
            ("data", None),
        ];
        for (pointer, expected) in table {
            assert_eq!(select(json, pointer), expected, "{pointer}");
        }
    }

    #[test]
    fn what_is_no_json_has_no_parts() {
        for text in ["", "<html>", r#"{"data":1"#, r#"{"data":1} x"#, "data: 1"] {
            assert_eq!(select(text, "/data"), None, "{text}");
            assert_eq!(select(text, ""), None, "{text}");
        }
    }
}
