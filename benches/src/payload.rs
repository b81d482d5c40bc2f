//! The bytes that are sent: requests, answers, streams. Both ends take them from here, so that each can check the other.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::scenario::{Exchange, Scenario};

/// Chunks with text in a stream.
pub(crate) const CHUNKS: usize = 60;
/// Chunks with text in a stream that is held open.
pub(crate) const OPEN_CHUNKS: usize = 12;
/// Stands once in each chunk with text; a time of sending may follow it.
pub(crate) const TICK: &str = "tick@";
/// Stands in the final answer of a plain request and of a loop, and nowhere else.
pub(crate) const MARK: &str = "that-is-the-answer";
/// Rounds of tool calls before the answer.
pub(crate) const ROUNDS: usize = 2;
/// The tools of a round, called side by side.
pub(crate) const TOOLS: [&str; 2] = ["get_stock", "get_price"];
/// The caller's key, and the digest by which the gateway knows it.
pub(crate) const KEY: &str = "tg-comparison-on-loopback-only";
/// SHA-256 of [`KEY`].
pub(crate) const KEY_HASH: &str = "2171b3fcdfb81b1dc584fdabb53160c54245b9031b60af5b287733e0d84f3450";

const WORDS: &str =
    "The depot has counted what is on its shelves, and what \\\"remains\\\" is ready to be sent;\\nplease ask again. ";

/// The body of the caller's first request.
pub(crate) fn request(scenario: Scenario, bring_tools: bool) -> String {
    let mut body = format!(r#"{{"model":"{}","temperature":0.2,"#, scenario.model());
    if scenario.exchange() == Exchange::Stream {
        body.push_str(r#""stream":true,"stream_options":{"include_usage":true},"#);
    }
    if bring_tools {
        body.push_str(&format!(r#""tools":[{},{}],"#, tool(TOOLS[0]), tool(TOOLS[1])));
    }
    // The messages come last: whoever runs the loop appends to them in front of the last two bytes.
    body.push_str(r#""messages":[{"role":"system","content":"You answer for the shop, briefly and truthfully."}"#);
    for turn in 0..if scenario.long() { 19 } else { 0 } {
        let _ = write!(body, r#",{{"role":"user","content":"{turn}: {}"}}"#, WORDS.repeat(25));
        let _ = write!(body, r#",{{"role":"assistant","content":"{turn}: {}"}}"#, WORDS.repeat(25));
    }
    body.push_str(r#",{"role":"user","content":"How many of article A-7 are there, what does one cost, and is it worth waiting for the next delivery of them?"}]}"#);
    body
}

fn tool(name: &str) -> String {
    format!(
        r#"{{"type":"function","function":{{"name":"{name}","description":"Looks it up by the number of the article.","parameters":{PARAMETERS}}}}}"#
    )
}

/// The schema of both tools.
pub(crate) const PARAMETERS: &str = r#"{"type":"object","required":["item"],"properties":{"item":{"type":"string"}}}"#;

/// What a tool answers.
pub(crate) fn tool_answer(path: &str) -> String {
    format!(r#"{{"path":"{path}","stock":7,"price":"12.50","currency":"EUR","depot":"north","counted":"2026-01-31"}}"#)
}

/// The plain answer: 1.6 KB.
pub(crate) fn answer() -> String {
    let text = format!("{MARK}: {}", WORDS.repeat(11));
    completion(&format!(r#"{{"role":"assistant","content":"{text}","refusal":null}}"#), "stop")
}

/// The answer of a round that asks for both tools.
pub(crate) fn calls(round: usize) -> String {
    let call = |at: usize| {
        let (id, name) = (call_id(round, at), TOOLS[at]);
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{{\"item\":\"A-{round}\"}}"}}}}"#)
    };
    let message = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{},{}]}}"#, call(0), call(1));
    completion(&message, "tool_calls")
}

/// The id of a round's call.
pub(crate) fn call_id(round: usize, at: usize) -> String {
    format!("call_{round}_{at}_0123456789")
}

fn completion(message: &str, finish: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-0123456789","object":"chat.completion","created":1767225600,"model":"scripted-1","choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":"{finish}"}}],"usage":{{"prompt_tokens":60,"completion_tokens":300,"total_tokens":360,"prompt_tokens_details":{{"cached_tokens":0}}}},"system_fingerprint":"fp_0123456789"}}"#
    )
}

/// The events of a stream before its text.
pub(crate) fn opening() -> String {
    event(r#"{"role":"assistant","content":"","refusal":null}"#, "null")
}

/// An event with text, and in it the nanosecond in which it was made.
pub(crate) fn tick() -> String {
    event(&format!(r#"{{"content":"{TICK}{} "}}"#, nanoseconds()), "null")
}

/// The events of a stream after its text; the usage only where it was asked for.
pub(crate) fn closing(usage: bool) -> Vec<String> {
    let counted = r#"data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1767225600,"model":"scripted-1","choices":[],"usage":{"prompt_tokens":60,"completion_tokens":60,"total_tokens":120}}"#;
    let mut events = vec![event("{}", r#""stop""#)];
    if usage {
        events.push(format!("{counted}\n\n"));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn event(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"scripted-1\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
    )
}

/// Nanoseconds since 1970: the clock that two processes share.
pub(crate) fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payload_is_json_of_the_size_that_the_titles_name() {
        let size = |text: &str| {
            serde_json::from_str::<serde_json::Value>(text).expect(text);
            text.len()
        };
        assert!((250..330).contains(&size(&request(Scenario::Plain, false))), "{}", request(Scenario::Plain, false).len());
        assert!((98_000..106_000).contains(&size(&request(Scenario::Long, false))), "{}", request(Scenario::Long, false).len());
        assert!((1_500..1_700).contains(&size(&answer())), "{}", answer().len());
        size(&request(Scenario::LongLoop, true));
        size(&calls(1));
        size(&tool_answer("/tools/get_stock/A-1"));
        for event in [opening(), tick()].iter().chain(&closing(true)).filter(|event| !event.contains("[DONE]")) {
            size(event.strip_prefix("data: ").expect("an event"));
        }
    }
}
