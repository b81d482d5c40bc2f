//! What of a caller's history is mended before it goes on, whoever it goes to: what a strict provider would refuse, and with it every later
//! request of the same conversation. Only turns that call tools are looked at, and only what means the same afterwards is changed, save
//! arguments that cannot be read: nobody can say what they meant.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::wire::object::{self, Patches, as_str, member_around, range_of};

/// The message as it goes on; `None`: it needs no change.
pub(super) fn mended(message: &Bytes) -> Option<Bytes> {
    memmem::find(message, b"\"tool_calls\"")?;
    let Message { content, tool_calls } = serde_json::from_slice(message).ok()?;
    let calls = tool_calls?;
    let mut patches = Patches::default();
    let functions: Vec<Call<'_>> = serde_json::from_str::<Option<_>>(calls.get()).ok()?.unwrap_or_default();
    if functions.is_empty() {
        // OpenAI refuses an empty list, others a `null`.
        patches.replace(member_around(message, range_of(message, calls.get())), "");
    } else if let Some(content) = content.filter(|content| is_empty_list(content)) {
        // A list of parts may not be empty, and a part not without text.
        patches.replace(range_of(message, content.get()), "null");
    }
    let functions = functions.into_iter().filter_map(|call| call.function);
    functions.filter_map(|function| arguments(message, &function)).for_each(|(place, text)| patches.replace(place, text));
    if patches.is_empty() {
        return None;
    }
    let mut text = BytesMut::with_capacity(message.len() + 64);
    patches.apply(message, &mut text);
    Some(text.freeze())
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "object::present")]
    tool_calls: Option<&'a RawValue>,
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
    #[serde(borrow, default, deserialize_with = "object::present")]
    arguments: Option<&'a RawValue>,
}

/// Whether a content is a list of parts that say nothing.
fn is_empty_list(content: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Part<'p> {
        #[serde(borrow)]
        text: &'p RawValue,
    }
    let parts = || serde_json::from_str::<Vec<Part<'_>>>(content.get());
    content.get().starts_with('[') && parts().is_ok_and(|parts| parts.iter().all(|part| part.text.get() == "\"\""))
}

/// Arguments go on as the text of an object: empty ones, `null`, missing ones and what cannot be read as `{}`, an object as its own text.
fn arguments(message: &[u8], function: &Function<'_>) -> Option<(Range<usize>, String)> {
    let Some(arguments) = function.arguments else {
        let after = range_of(message, function.name?.get()).end;
        return Some((after..after, r#","arguments":"{}""#.to_owned()));
    };
    let text = match arguments.get() {
        object if object.starts_with('{') => object,
        _ if as_str(arguments).is_some_and(|text| is_object(&text)) => return None,
        _ => "{}",
    };
    Some((range_of(message, arguments.get()), object::quoted(text)))
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(message: &str) -> String {
        let message = Bytes::copy_from_slice(message.as_bytes());
        String::from_utf8(mended(&message).unwrap_or(message).to_vec()).unwrap()
    }

    #[test]
    fn case_10_and_11_arguments_that_no_provider_takes_are_an_empty_object() {
        let turn = |arguments: &str| format!(r#"{{"tool_calls":[{{"id":"c","function":{{"name":"t"{arguments}}}}}]}}"#);
        let empty = turn(r#","arguments":"{}""#);
        let broken = [r#""{\"q\":\"a""#, r#""[1]""#, r#""x""#, r#""\"{}\"""#, "[]", "7", "null", "\"\"", r#"" ""#];
        for arguments in broken {
            assert_eq!(sent(&turn(&format!(r#","arguments":{arguments}"#))), empty, "{arguments}");
        }
        assert_eq!(sent(&turn("")), empty);
        let fine = turn(r#","arguments":" {\"q\":1e400}""#);
        assert_eq!(sent(&fine), fine);
        assert_eq!(sent(&turn(r#","arguments":{"q": 1.10}"#)), turn(r#","arguments":"{\"q\": 1.10}""#));
    }

    #[test]
    fn case_19_a_content_without_text_beside_calls_is_none() {
        let turn =
            |content: &str| format!(r#"{{{content}"tool_calls":[{{"id":"c","function":{{"name":"t","arguments":"{{}}"}}}}]}}"#);
        for content in ["[]", r#"[{"type":"text","text":""}]"#] {
            assert_eq!(sent(&turn(&format!(r#""content":{content},"#))), turn(r#""content":null,"#), "{content}");
        }
        for content in [r#""content":"","#, r#""content":null,"#, "", r#""content":[{"type":"text","text":"a"}],"#] {
            assert_eq!(sent(&turn(content)), turn(content), "{content}");
        }
    }

    #[test]
    fn a_list_of_calls_that_is_empty_goes_with_its_name() {
        let table = [
            (r#"{"role":"assistant","content":"a","tool_calls":[]}"#, r#"{"role":"assistant","content":"a"}"#),
            (r#"{"tool_calls":null,"content":[]}"#, r#"{"content":[]}"#),
            (r#"{"tool_calls" : [ ] , "role":"user"}"#, r#"{ "role":"user"}"#),
            (r#"{"content":"\"tool_calls\":[]"}"#, r#"{"content":"\"tool_calls\":[]"}"#),
        ];
        for (message, expected) in table {
            assert_eq!(sent(message), expected);
        }
    }
}
