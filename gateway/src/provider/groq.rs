//! Groq's accent: it refuses what it cannot do and members of turns that it does not know, and has places of its own in its streams.

use bytes::Bytes;
use memchr::memmem;
use toolgate_tools::net::Segments;

use super::openai_body::{Fate, Turns, list, neutral, rewritten};
use super::{Unsupported, openai_answer};
use crate::wire::object::{self, Edit, Members};
use crate::wire::sse::Event;

pub(super) fn encode(model: &str, body: &Segments) -> Result<Segments, Unsupported> {
    // Of its models only these take their thoughts back.
    let turns = if model.contains("gpt-oss") { WITH_THOUGHTS } else { TURNS };
    rewritten(body, member, |messages| list(messages, turns))
}

/// What becomes of a member. Labels and hints go silently.
fn member(_: &Members<'_>, name: &str, value: &str) -> Result<Fate<'static>, Unsupported> {
    match name {
        "metadata" | "safety_identifier" | "prompt_cache_key" | "prompt_cache_retention" | "prediction" | "verbosity" => {
            Ok(Fate::Goes)
        }
        "n" => neutral("n", value, &["1"]),
        "logprobs" => neutral("logprobs", value, &["false"]),
        "top_logprobs" => neutral("top_logprobs", value, &["0"]),
        "logit_bias" => neutral("logit_bias", value, &["{}"]),
        "modalities" => neutral("modalities", value, &["[\"text\"]"]),
        "audio" => neutral("audio", value, &[]),
        "web_search_options" => neutral("web_search_options", value, &[]),
        "store" => neutral("store", value, &["false"]),
        _ if value == "null" => Ok(Fate::Goes),
        _ => Ok(Fate::Stays),
    }
}

const TURNS: Turns = Turns {
    knows_developer: false,
    ids: None,
    without: &["name", "refusal", "annotations", "audio", "reasoning", "reasoning_content", "reasoning_details"],
    without_nulls: true,
};

const WITH_THOUGHTS: Turns =
    Turns { without: &["name", "refusal", "annotations", "audio", "reasoning_content", "reasoning_details"], ..TURNS };

/// A chunk with its usage in the usual place: Groq has one of its own, in which errors stand as well.
pub(super) fn event(event: Event) -> Event {
    let event = openai_answer::event(event);
    if memmem::find(&event.data, b"\"x_groq\"").is_none() {
        return event;
    }
    match moved(&event.data) {
        Moved::Nothing => event,
        Moved::Usage(data) => Event { data: Bytes::from(data), ..event },
        Moved::Error => Event { is_error: true, ..event },
    }
}

enum Moved {
    Nothing,
    Usage(String),
    Error,
}

fn moved(data: &[u8]) -> Moved {
    let Ok(members) = Members::parse(data) else { return Moved::Nothing };
    let Some(own) = members.get("x_groq").and_then(|own| Members::parse(own.get().as_bytes()).ok()) else {
        return Moved::Nothing;
    };
    let told = |members: &Members<'_>, name: &str| members.get(name).is_some_and(|value| value.get() != "null");
    if told(&own, "error") {
        return Moved::Error;
    }
    let Some(usage) = own.get("usage").filter(|_| !told(&members, "usage") && told(&own, "usage")) else { return Moved::Nothing };
    object::edited(data, &[Edit::Set("usage", usage.get()), Edit::Remove("x_groq")]).map_or(Moved::Nothing, Moved::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(model: &str, members: &str, turn: &str) -> Result<String, &'static str> {
        let body = Bytes::from(format!(r#"{{"model":"m","messages":[{turn}]{members}}}"#));
        let body = encode(model, &Segments::from(body)).map_err(|unsupported| unsupported.field)?;
        Ok(String::from_utf8(body.pieces().concat()).unwrap())
    }

    #[test]
    fn what_groq_cannot_do_is_named_and_what_asks_for_nothing_is_left_out() {
        let gone = [
            r#","n":1"#,
            r#","n":null"#,
            r#","logprobs":false"#,
            r#","logit_bias":{}"#,
            r#","top_logprobs":0"#,
            r#","modalities":["text"]"#,
            r#","prompt_cache_key":"k","safety_identifier":"s","metadata":{"a":"b"},"stop":null"#,
        ];
        for members in gone {
            assert_eq!(sent("m", members, ""), Ok(r#"{"model":"m","messages":[]}"#.to_owned()), "{members}");
        }
        for (field, value) in
            [("n", "2"), ("logprobs", "true"), ("logit_bias", "{\"1\":1}"), ("top_logprobs", "3"), ("store", "true")]
        {
            assert_eq!(sent("m", &format!(r#","{field}":{value}"#), ""), Err(field));
        }
        let stay = r#","user":"u","seed":7,"stream_options":{"include_usage":true},"service_tier":"flex","reasoning_format":"parsed","x":1e400"#;
        assert_eq!(sent("m", stay, ""), Ok(format!(r#"{{"model":"m","messages":[]{stay}}}"#)));
    }

    #[test]
    fn turns_hold_what_groq_takes() {
        let said = r#"{"role":"assistant","content":null,"refusal":null,"annotations":[],"name":"a","tool_calls":[{"id":"c"}],"function_call":null,"reasoning":"hm","reasoning_content":"hm"}"#;
        let bare = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}"#;
        let thought = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c"}],"reasoning":"hm"}"#;
        let whole = |turn: &str| Ok(format!(r#"{{"model":"m","messages":[{turn}]}}"#));
        assert_eq!(sent("llama", "", said), whole(bare));
        assert_eq!(sent("openai/gpt-oss-120b", "", said), whole(thought));
        assert_eq!(sent("llama", "", r#"{"role":"developer","content":"D"}"#), whole(r#"{"role":"system","content":"D"}"#));
    }

    #[test]
    fn case_26_usage_is_where_it_is_looked_for() {
        let table = [
            (
                r#"{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":10,"queue_time":0.10}}}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":10,"queue_time":0.10}}"#,
            ),
            (r#"{"usage":null,"x_groq":{"usage":{"a":1}},"choices":[]}"#, r#"{"usage":{"a":1},"choices":[]}"#),
            (r#"{"x_groq":{"id":"r"}}"#, r#"{"x_groq":{"id":"r"}}"#),
            (r#"{"x_groq":{"usage":{"a":1}},"usage":{"b":1}}"#, r#"{"x_groq":{"usage":{"a":1}},"usage":{"b":1}}"#),
            (r#"{"x_groq":null}"#, r#"{"x_groq":null}"#),
            (r#"{"x_groq":"#, r#"{"x_groq":"#),
        ];
        for (data, expected) in table {
            let seen = event(Event { data: Bytes::from_static(data.as_bytes()), is_error: false });
            assert_eq!((&seen.data[..], seen.is_error), (expected.as_bytes(), false));
        }
        let broken =
            event(Event { data: Bytes::from_static(br#"{"x_groq":{"id":"r","error":"over capacity"}}"#), is_error: false });
        assert!(broken.is_error);
    }
}
