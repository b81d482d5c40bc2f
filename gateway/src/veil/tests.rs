use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_config::redaction::Redaction;

use super::*;
use crate::wire::CallParts;
use crate::wire::chunk::Outfit;

const KEY: &str = "sk-abcdefghijklmnopqrstuvwxyz012345";

fn redactor() -> Arc<Redactor> {
    static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| Arc::new(Redactor::new(&Redaction::default().answers)));
    Arc::clone(&REDACTOR)
}

/// A stream that is looked through.
struct Stream {
    veil: Veil<Chunk, ()>,
    calls: CallParts,
    shown: Vec<String>,
}

impl Stream {
    fn new() -> Self {
        Self { veil: Veil::new(&redactor()), calls: CallParts::default(), shown: Vec::new() }
    }

    fn of(events: &[Value]) -> Self {
        let mut stream = Self::new();
        events.iter().for_each(|event| stream.take(event));
        stream
    }

    fn take(&mut self, event: &Value) {
        let chunk = Chunk::parse(Bytes::from(event.to_string()), &mut self.calls, |_| true).unwrap();
        let shown = &mut self.shown;
        self.veil.take(&chunk, (), |chunk, (), changes| shown.push(written(chunk, changes)));
    }

    fn finish(mut self) -> Vec<String> {
        let shown = &mut self.shown;
        self.veil.finish(|chunk, (), changes| shown.push(written(chunk, changes)));
        self.shown
    }

    fn break_off(mut self) -> Vec<String> {
        let shown = &mut self.shown;
        self.veil.break_off(|chunk, (), changes| shown.push(written(chunk, changes)));
        self.shown
    }
}

fn written(chunk: &Chunk, changes: &[Change]) -> String {
    let mut out = bytes::BytesMut::new();
    chunk.write(&Outfit { model: "\"m\"", id: None, role_seen: false, with_usage: false, changes }, &mut out);
    let text = String::from_utf8(out.to_vec()).unwrap();
    text.strip_prefix("data: ").and_then(|text| text.strip_suffix("\n\n")).unwrap().to_owned()
}

fn delta(choice: u32, delta: Value) -> Value {
    json!({ "model": "m", "choices": [{ "index": choice, "delta": delta, "finish_reason": null }] })
}

fn content(text: &str) -> Value {
    delta(0, json!({ "content": text }))
}

fn end(choice: u32) -> Value {
    json!({ "model": "m", "choices": [{ "index": choice, "delta": {}, "finish_reason": "stop" }] })
}

/// What the texts at a place of a choice's deltas come to.
fn joined(shown: &[String], choice: u64, place: &str) -> String {
    let events = shown.iter().map(|event| serde_json::from_str::<Value>(event).unwrap_or_else(|_| panic!("{event}")));
    let choices = events.flat_map(|event| event["choices"].as_array().cloned().unwrap_or_default());
    let own = choices.filter(|own| own["index"] == choice);
    own.filter_map(|own| own["delta"].pointer(place).and_then(Value::as_str).map(str::to_owned)).collect()
}

fn hidden(text: &str) -> String {
    redactor().text(text, &mut Counts::default()).into_owned()
}

/// A text cut at some places, all of them between characters.
fn cut(text: &str, places: &[usize]) -> Vec<String> {
    let mut places: Vec<usize> = places.iter().map(|at| text.floor_char_boundary(at % (text.len() + 1))).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

const SPOKEN: [&str; 7] = [
    "Nothing here but words: \"quotes\", a \\ and a line\nend, 日本 🎻.",
    "key: sk-abcdefghijklmnopqrstuvwxyz012345 done",
    "two: sk-abcdefghijklmnopqrstuvwxyz012345sk-abcdefghijklmnopqrstuvwxyz012345, ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "password=hunter2-and-more\nand then é🎻 eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq98ujk0hsSt0PWxm9g2LfyKXxAQvVmSfVl3J0pOYbBfN2E\nQ8jv3H2u5aQKBgQDf1yz8qk2lB3nWkzT4y9r5V1m\n-----END RSA PRIVATE KEY-----\nis the key",
    "ends with one: sk-abcdefghijklmnopqrstuvwxyz012345",
    "ends in the beginning of one: sk-abc",
];

#[test]
fn case_49_a_secret_is_hidden_wherever_the_stream_is_cut() {
    for text in SPOKEN {
        let each: Vec<Value> = text.chars().map(|character| content(&character.to_string())).collect();
        assert_eq!(joined(&Stream::of(&each).finish(), 0, "/content"), hidden(text), "character by character");
        for at in (0..=text.len()).filter(|&at| text.is_char_boundary(at)) {
            let events = [content(&text[..at]), content(&text[at..]), end(0)];
            assert_eq!(joined(&Stream::of(&events).finish(), 0, "/content"), hidden(text), "cut at {at}");
        }
    }
}

#[test]
fn what_holds_no_secret_goes_on_as_it_came_and_at_once() {
    let mut stream = Stream::new();
    let events =
        [content("The order "), delta(0, json!({ "role": "assistant", "x": 1.5 })), content("é \u{1F3BB} has left.\n"), end(0)];
    for (at, event) in events.iter().enumerate() {
        stream.take(event);
        assert_eq!(stream.shown.len(), at + 1, "{event}");
    }
    assert_eq!(stream.shown, events.map(|event| event.to_string()));
}

#[test]
fn what_waits_keeps_its_bytes_and_its_order() {
    let events = [
        delta(0, json!({ "reasoning_content": "it is sk-" })),
        content("Sure: s"),
        delta(0, json!({ "refusal": "no" })),
        content("tock."),
        delta(0, json!({ "reasoning_content": "y." })),
        end(0),
    ];
    let mut stream = Stream::of(&events[..4]);
    assert!(stream.shown.is_empty());
    stream.take(&events[4]);
    assert_eq!(stream.shown.len(), 5);
    stream.take(&events[5]);
    assert_eq!(stream.finish(), events.map(|event| event.to_string()));
}

#[test]
fn what_never_goes_on_holds_nothing_else_for_long() {
    let mut stream = Stream::of(&[delta(0, json!({ "reasoning_content": "it is sk-" }))]);
    let words = "Word after word, and none of them matters to us.";
    (0..8).for_each(|_| stream.take(&content(words)));
    let many = stream.shown.len();
    assert!(many >= 6, "{many}");
    stream.take(&content(words));
    assert_eq!(stream.shown.len(), many + 1);
    stream.take(&end(0));
    assert_eq!(stream.shown.len(), many + 1, "nothing may come after the end");
    stream.take(&delta(0, json!({ "reasoning_content": &KEY[3..] })));
    let shown = stream.finish();
    assert_eq!(joined(&shown, 0, "/reasoning_content"), "it is [redacted:api_key]");
    assert_eq!(joined(&shown, 0, "/content"), words.repeat(9));
}

#[test]
fn each_choice_has_texts_of_its_own() {
    let (head, tail) = KEY.split_at(9);
    let events = [
        delta(0, json!({ "content": format!("a {head}") })),
        delta(1, json!({ "content": format!("b {head}") })),
        delta(1, json!({ "content": format!("{tail}.") })),
        end(1),
        delta(0, json!({ "content": format!("{tail}!") })),
        end(0),
    ];
    let shown = Stream::of(&events).finish();
    assert_eq!(joined(&shown, 0, "/content"), "a [redacted:api_key]!");
    assert_eq!(joined(&shown, 1, "/content"), "b [redacted:api_key].");
}

#[test]
fn a_stream_that_breaks_off_shows_no_half_of_a_secret() {
    let table = [
        (vec![content("key: sk-abcdefgh")], "key: "),
        (vec![content("key: "), content("sk-abc"), content("def")], "key: "),
        (vec![content("all is said.")], "all is said."),
        (vec![content(KEY), content("abc")], "[redacted:api_key]"),
    ];
    for (events, expected) in table {
        assert_eq!(joined(&Stream::of(&events).break_off(), 0, "/content"), expected, "{events:?}");
    }
    assert_eq!(joined(&Stream::of(&[content("key: sk-abcdefgh")]).finish(), 0, "/content"), "key: sk-abcdefgh");
}

#[test]
fn a_pause_lets_a_few_letters_go_and_no_more() {
    let mut stream = Stream::of(&[content("A")]);
    let Stream { veil, shown, .. } = &mut stream;
    veil.let_go(|chunk, (), changes| shown.push(written(chunk, changes)));
    assert_eq!(stream.shown, [content("A").to_string()]);
    stream.take(&content("KIAIOSFODNN7EXAMPLE."));
    assert_eq!(joined(&stream.finish(), 0, "/content"), "A[redacted:aws_key].");
    let mut stream = Stream::of(&[content("sk-abcdefgh"), opened(0, r#"{"a":"s"#)]);
    let Stream { veil, shown, .. } = &mut stream;
    veil.let_go(|chunk, (), changes| shown.push(written(chunk, changes)));
    assert!(stream.shown.is_empty());
    assert_eq!(arguments(&stream.finish(), 0), r#"{"a":"s"#);
}

fn call(index: u32, arguments: &str) -> Value {
    delta(0, json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] }))
}

fn opened(index: u32, arguments: &str) -> Value {
    let function = json!({ "name": "send", "arguments": arguments });
    delta(0, json!({ "tool_calls": [{ "index": index, "id": format!("c{index}"), "type": "function", "function": function }] }))
}

/// The arguments of a call in what is shown.
fn arguments(shown: &[String], index: u64) -> String {
    let events = shown.iter().map(|event| serde_json::from_str::<Value>(event).unwrap());
    let calls = events.flat_map(|event| event["choices"][0]["delta"]["tool_calls"].as_array().cloned().unwrap_or_default());
    let own = calls.filter(|own| own["index"] == index);
    own.filter_map(|own| own["function"]["arguments"].as_str().map(str::to_owned)).collect()
}

const ARGUMENTS: [&str; 8] = [
    r#"{"to": "x@y.example", "n": 1.10, "list": [true, null, {"a\n": "\u00e9"}]}"#,
    r#"{"body":"key: sk-abcdefghijklmnopqrstuvwxyz012345 done","n":12}"#,
    r#"{"body":"\u0073k-abcdefghijklmnop\u0071rstuvwxyz012345 \ud83c\udfbb \"x\""}"#,
    r#"{"password": "hunter\"2", "user": {"api_key": ["gone"], "token": "${TOKEN}"}, "pin": 1234}"#,
    r#"{"secret": {"value": "a1", "n": 12345678}, "password":[12345678, 12, "x", {"y": "stays"}], "api_key": -99887766}"#,
    r#"{"pem":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----\n"}"#,
    r#"{"sk-abcdefghijklmnopqrstuvwxyz012345":"a key may be one"}"#,
    "{}",
];

#[test]
fn case_49_arguments_stay_json_and_are_the_same_wherever_they_are_cut() {
    for text in ARGUMENTS {
        let expected = redactor().json(text, &mut Counts::default()).into_owned();
        serde_json::from_str::<Value>(&expected).unwrap();
        for at in 0..=text.len() {
            let events = [opened(0, ""), call(0, &text[..at]), call(0, &text[at..]), end(0)];
            assert_eq!(arguments(&Stream::of(&events).finish(), 0), expected, "{text} cut at {at}");
        }
        let mut events = vec![opened(0, ""), opened(1, "")];
        for character in text.chars() {
            events.extend([call(0, &character.to_string()), call(1, &character.to_string())]);
        }
        let shown = Stream::of(&events).finish();
        assert_eq!((arguments(&shown, 0), arguments(&shown, 1)), (expected.clone(), expected));
    }
}

#[test]
fn arguments_that_are_no_json_are_words() {
    for text in ["key: sk-abcdefghijklmnopqrstuvwxyz012345 done", "sk-abcdefghijklmnopqrstuvwxyz012345", "nothing"] {
        let events: Vec<Value> = text.chars().map(|character| call(0, &character.to_string())).collect();
        let events = [vec![opened(0, "")], events].concat();
        assert_eq!(arguments(&Stream::of(&events).finish(), 0), hidden(text));
    }
}

#[test]
fn half_a_character_goes_on_as_it_came() {
    let halves = [
        r#"{"model":"m","choices":[{"index":0,"delta":{"content":"a \ud83c"}}]}"#,
        r#"{"model":"m","choices":[{"index":0,"delta":{"content":"\udfbb sk-abcdefghijklmnopqrstuvwxyz012345 b"}}]}"#,
    ];
    let mut stream = Stream::new();
    for half in halves {
        let chunk = Chunk::parse(Bytes::from_static(half.as_bytes()), &mut CallParts::default(), |_| true).unwrap();
        let shown = &mut stream.shown;
        stream.veil.take(&chunk, (), |chunk, (), changes| shown.push(written(chunk, changes)));
    }
    let shown = stream.finish();
    assert_eq!(shown[0], halves[0]);
    assert_eq!(shown[1], halves[1].replace(KEY, "[redacted:api_key]"));
}

#[test]
fn what_spells_the_same_text_once_more_goes_with_it() {
    let chances = json!({ "content": [{ "token": KEY, "logprob": -0.1 }] });
    let with = |text: &str| json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": text }, "logprobs": chances.clone() }] });
    let (head, tail) = KEY.split_at(10);
    let shown = Stream::of(&[with("clean."), with(head), with(tail)]).finish();
    assert_eq!(shown[0], with("clean.").to_string());
    for event in &shown[1..] {
        let event: Value = serde_json::from_str(event).unwrap();
        assert_eq!(event["choices"][0]["logprobs"], Value::Null, "{event}");
    }
}

#[test]
fn a_thought_that_was_changed_is_signed_by_nobody() {
    let entry = |text: &str, named: bool| {
        let mut entry = json!({ "type": "reasoning.text", "text": text, "signature": "S", "index": 0 });
        if named {
            entry["signer"] = "aa".into();
        }
        delta(0, json!({ "reasoning_details": [entry] }))
    };
    let shown = |event: &Value| serde_json::from_str::<Value>(&Stream::of(std::slice::from_ref(event)).finish()[0]).unwrap();
    let (clean, named, unnamed) = (entry("hm", true), entry(&format!("it is {KEY}"), true), entry(KEY, false));
    assert_eq!(shown(&clean), clean);
    let details = |event: Value| event["choices"][0]["delta"]["reasoning_details"][0].clone();
    let seen = details(shown(&named));
    assert_eq!(
        (&seen["text"], &seen["signature"], &seen["signer"]),
        (&json!("it is [redacted:api_key]"), &Value::Null, &json!("aa"))
    );
    let seen = details(shown(&unnamed));
    assert_eq!((&seen["signature"], &seen["signer"]), (&Value::Null, &json!("redacted")));
    // In pieces, the signature last.
    let piece = |entry: Value| delta(0, json!({ "reasoning_details": [entry] }));
    let (head, tail) = KEY.split_at(10);
    let events = [
        piece(json!({ "type": "reasoning.text", "text": head, "index": 0 })),
        piece(json!({ "type": "reasoning.text", "text": tail, "index": 0 })),
        piece(json!({ "type": "reasoning.text", "signature": "S", "index": 0 })),
        piece(json!({ "type": "reasoning.text", "text": "clean", "index": 1 })),
        piece(json!({ "type": "reasoning.text", "signature": "T", "index": 1 })),
    ];
    let shown = Stream::of(&events).finish();
    let seen: Vec<Value> = shown.iter().map(|event| details(serde_json::from_str(event).unwrap())).collect();
    assert_eq!((&seen[2]["signature"], &seen[2]["signer"]), (&Value::Null, &json!("redacted")));
    assert_eq!(seen[4]["signature"], "T");
}

fn reply(message: Value) -> Reply {
    let body = json!({ "model": "m", "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
    Reply::parse(Bytes::from(body.to_string())).unwrap()
}

#[test]
fn a_plain_answer_without_secrets_is_the_bytes_that_came() {
    let mut counts = Counts::default();
    let clean = reply(
        json!({ "content": "é\n \"q\"", "reasoning": "hm", "tool_calls": [{ "id": "c", "function": { "name": "f", "arguments": "{\"a\": 1.0}" } }] }),
    );
    let body = clean.body().clone();
    let whole = whole(clean, &redactor(), &mut counts);
    assert_eq!((whole.body().as_ptr(), whole.body().len()), (body.as_ptr(), body.len()));
    assert!(counts.is_empty());
}

#[test]
fn every_text_of_a_plain_answer_is_looked_at() {
    let mut counts = Counts::default();
    let said = json!({
        "content": [{ "type": "text", "text": format!("a {}", &KEY[..9]) }, { "type": "text", "text": &KEY[9..] }],
        "refusal": KEY, "reasoning_content": KEY, "reasoning": KEY, "audio": { "id": "a", "transcript": KEY },
        "function_call": { "name": "f", "arguments": format!("{{\"a\":\"{KEY}\"}}") },
        "reasoning_details": [{ "type": "reasoning.summary", "summary": KEY }],
        "tool_calls": [
            { "id": KEY, "function": { "name": "f", "arguments": format!("{{\"a\":\"{KEY}\"}}") } },
            { "id": "d", "type": "custom", "custom": { "name": "g", "input": KEY } },
        ],
    });
    let whole = whole(reply(said), &redactor(), &mut counts);
    let seen: Value = serde_json::from_slice(whole.body()).unwrap();
    let message = &seen["choices"][0]["message"];
    let mark = "[redacted:api_key]";
    let texts: Vec<&str> = message["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
    assert_eq!(texts, [format!("a {mark}"), String::new()]);
    for place in [
        "/refusal",
        "/reasoning_content",
        "/reasoning",
        "/audio/transcript",
        "/reasoning_details/0/summary",
        "/tool_calls/1/custom/input",
    ] {
        assert_eq!(message.pointer(place).and_then(Value::as_str), Some(mark), "{place}");
    }
    for place in ["/function_call/arguments", "/tool_calls/0/function/arguments"] {
        assert_eq!(message.pointer(place).and_then(Value::as_str), Some(&*format!("{{\"a\":\"{mark}\"}}")), "{place}");
    }
    assert_eq!(message["tool_calls"][0]["id"], KEY, "an id is no text");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the texts and the cuts, what is joined is the redaction of the whole, and what a plain answer says.
    #[test]
    fn a_stream_says_what_a_plain_answer_says(
        picked in proptest::collection::vec(0usize..SPOKEN.len(), 1..4),
        document in 0usize..ARGUMENTS.len(),
        places in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let text: String = picked.iter().map(|&at| SPOKEN[at]).collect();
        let (thought, document) = (SPOKEN[picked[0]], ARGUMENTS[document]);
        let mut events = vec![opened(0, "")];
        let pieces = cut(&text, &places).into_iter().zip(cut(thought, &places)).zip(cut(document, &places));
        for ((said, thought), arguments) in pieces {
            events.push(delta(0, json!({ "reasoning_content": thought })));
            events.push(content(&said));
            events.push(call(0, &arguments));
        }
        events.push(end(0));
        let shown = Stream::of(&events).finish();
        prop_assert_eq!(shown.len(), events.len());
        let calls = json!([{ "id": "c0", "function": { "name": "send", "arguments": document } }]);
        let whole = whole(reply(json!({ "content": text, "reasoning_content": thought, "tool_calls": calls })), &redactor(), &mut Counts::default());
        let seen: Value = serde_json::from_slice(whole.body()).unwrap();
        let message = &seen["choices"][0]["message"];
        prop_assert_eq!(Some(&*joined(&shown, 0, "/content")), message["content"].as_str());
        prop_assert_eq!(Some(&*joined(&shown, 0, "/reasoning_content")), message["reasoning_content"].as_str());
        prop_assert_eq!(Some(&*arguments(&shown, 0)), message["tool_calls"][0]["function"]["arguments"].as_str());
    }
}
