//! The wire pairs of `tests/golden/anthropic`, and what holds at every cut of a stream.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use toolgate_config::check::{Source, read};
use toolgate_config::provider::Provider;
use toolgate_tools::net::Segments;

use super::super::{Decoder, Encoded, Stamp, Unsupported, signer};
use super::*;
use crate::targets::Target;
use crate::wire::sse::Event;

const STAMP: Stamp = Stamp { created: 1_767_225_600, seed: 7 };

static PROVIDER: LazyLock<Arc<Provider>> = LazyLock::new(|| {
    let file = r#"
providers: { claude: { kind: anthropic, api_key: "${KEY}" } }
models: { m: { provider: claude } }
"#;
    let env = |name: &str| (name == "KEY").then(|| "sk-ant-test".to_owned());
    let config = read(&Source { path: Path::new("toolgate.yaml"), text: file, env: &env }).unwrap();
    Arc::clone(&config.model("m").unwrap().provider)
});

/// What the files call the signer of this provider's thoughts.
const SIGNER: &str = "SIGNER";

fn target(model: &str, max_output: Option<u32>) -> Target {
    Target {
        provider: Arc::clone(&PROVIDER),
        upstream_model: model.to_owned(),
        price: None,
        max_output,
        window: 200_000,
        is_window_guessed: false,
        label: "m".to_owned(),
    }
}

fn sent(model: &str, body: &str) -> Result<String, Unsupported> {
    let body = Segments::from(Bytes::from(body.to_owned()));
    let Encoded { body, .. } = encode(&target(model, None), &body, false)?;
    Ok(String::from_utf8(body.pieces().concat()).unwrap())
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/anthropic").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|has| has == ending));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn blesses() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Compares what was made with `out` of a pair, or writes it there.
fn compare(file: &Path, mut pair: Value, seen: Value) {
    if blesses() {
        pair.as_object_mut().unwrap().retain(|key, _| !["out", "unsupported"].contains(&key.as_str()));
        pair.as_object_mut().unwrap().extend(seen.as_object().unwrap().clone());
        std::fs::write(file, serde_json::to_string_pretty(&pair).unwrap() + "\n").unwrap();
        return;
    }
    for (name, value) in seen.as_object().unwrap() {
        assert_eq!(pair.get(name), Some(value), "{}", file.display());
    }
}

fn pair(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).unwrap();
    // Who signed is a hash of the provider; the files call it by its name.
    serde_json::from_str(&text.replace(SIGNER, &signer(&PROVIDER))).unwrap()
}

fn unsigned(text: &str) -> String {
    text.replace(&signer(&PROVIDER), SIGNER)
}

#[test]
fn golden_requests() {
    for file in files("encode", "json") {
        let mut pair = pair(&file);
        let max_output = pair.get("max_output").and_then(Value::as_u64).map(|most| u32::try_from(most).unwrap());
        let target = target(pair["model"].as_str().unwrap(), max_output);
        let body = Segments::from(Bytes::from(pair["in"].to_string()));
        let stream = pair["in"]["stream"] == json!(true);
        let seen = match encode(&target, &body, stream) {
            Ok(Encoded { body, .. }) => json!({"out": serde_json::from_slice::<Value>(&body.pieces().concat()).unwrap()}),
            Err(Unsupported { field, why }) => json!({"unsupported": field, "why": why}),
        };
        if blesses() {
            pair = serde_json::from_str(&unsigned(&pair.to_string())).unwrap();
        }
        compare(&file, pair, seen);
    }
}

#[test]
fn golden_plain_answers() {
    for file in files("plain", "json") {
        let pair: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let body = Bytes::from(pair["in"].to_string());
        let out = decode(&PROVIDER, body, STAMP);
        let out: Value = serde_json::from_str(&unsigned(std::str::from_utf8(&out).unwrap())).unwrap();
        compare(&file, pair, json!({ "out": out }));
    }
}

/// The canonical events of a stream that comes in these pieces, one a line.
fn heard(pieces: &[&[u8]]) -> String {
    let mut decoder = Decoder::new(&PROVIDER, STAMP);
    let mut lines = String::new();
    let mut note = |event: Event| {
        let mark = if event.is_error { "error: " } else { "" };
        lines += &format!("{mark}{}\n", unsigned(&String::from_utf8_lossy(&event.data)));
    };
    for piece in pieces {
        decoder.feed(Bytes::copy_from_slice(piece)).unwrap();
        std::iter::from_fn(|| decoder.next_event()).for_each(&mut note);
    }
    std::iter::from_fn(|| decoder.end()).for_each(&mut note);
    lines
}

#[test]
fn golden_streams() {
    for file in files("stream", "sse") {
        let seen = heard(&[&std::fs::read(&file).unwrap()]);
        let chunks = file.with_extension("chunks");
        if blesses() {
            std::fs::write(&chunks, &seen).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&chunks).unwrap(), seen, "{}", file.display());
    }
}

#[test]
fn case_07_golden_streams_say_the_same_at_every_cut() {
    for file in files("stream", "sse") {
        let stream = std::fs::read(&file).unwrap();
        let whole = std::fs::read_to_string(file.with_extension("chunks")).unwrap();
        for at in 1..stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(heard(&[head, tail]), whole, "{} cut at {at}", file.display());
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(heard(&bytes), whole, "{} byte by byte", file.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn golden_streams_say_the_same_in_any_pieces(file: Index, cuts in prop::collection::vec(any::<Index>(), 0..12)) {
        let files = files("stream", "sse");
        let file = file.get(&files);
        let stream = std::fs::read(file).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        prop_assert_eq!(heard(&pieces), std::fs::read_to_string(file.with_extension("chunks")).unwrap());
    }

    #[test]
    fn no_stream_makes_the_decoder_panic(text in "(data: )?[\\x20-\\x7e\n]{0,120}", flips in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4), file: Index) {
        let files = files("stream", "sse");
        let mut stream = std::fs::read(file.get(&files)).unwrap();
        for (at, byte) in flips {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        stream.extend_from_slice(text.as_bytes());
        heard(&[&stream]);
    }
}

#[test]
fn what_is_not_interpreted_goes_on_digit_for_digit() {
    let body = r#"{"model":"m","top_k":40,"context_management":{"x":1.10,"big":12345678901234567890},"messages":[{"role":"user","content":"\u00e9\ud83c\udfbb"}]}"#;
    let sent = sent("claude-sonnet-4-5", body).unwrap();
    assert!(sent.contains(r#""context_management":{"x":1.10,"big":12345678901234567890}"#), "{sent}");
    assert!(sent.contains(r#""text":"\u00e9\ud83c\udfbb""#), "{sent}");
}

#[test]
fn case_16_ids_take_the_providers_form_and_stay_a_pair() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"},
        {"role":"assistant","tool_calls":[{"id":"fc:1/rs.2","function":{"name":"t","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"fc:1/rs.2","content":"ok"}]}"#;
    let sent: Value = serde_json::from_str(&sent("claude-sonnet-4-5", body).unwrap()).unwrap();
    let id = sent["messages"][1]["content"][0]["id"].as_str().unwrap();
    assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{id}");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], id);
}

#[test]
fn case_10_arguments_that_are_no_object_go_on_as_an_empty_one() {
    for arguments in [r#""""#, r#""  ""#, "null", r#""{\"q\":\"a""#, "7", r#""[1]""#] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"t","arguments":{arguments}}}}}]}}]}}"#
        );
        let sent = sent("claude-sonnet-4-5", &body).unwrap();
        assert!(sent.contains(r#""name":"t","input":{}}"#), "{arguments}: {sent}");
    }
    let object = r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{\"q\": 1.10}"}}]}]}"#;
    assert!(sent("claude-sonnet-4-5", object).unwrap().contains(r#""input":{"q": 1.10}"#));
}

#[test]
fn case_19_every_empty_content_is_taken() {
    for content in [r#","content":"""#, r#","content":null"#, "", r#","content":[]"#, r#","content":[{"type":"text","text":""}]"#]
    {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"developer","content":"D"}},{{"role":"system","content":"S"}},{{"role":"user","content":"q"}},
            {{"role":"assistant"{content},"tool_calls":[{{"id":"c","function":{{"name":"t","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":""}},{{"role":"user","content":"a"}},{{"role":"user","content":"b"}}]}}"#
        );
        let sent: Value = serde_json::from_str(&sent("claude-sonnet-4-5", &body).unwrap()).unwrap();
        assert_eq!(sent["system"], json!([{"type":"text","text":"D"},{"type":"text","text":"S"}]));
        let expected = json!([
            {"role":"user","content":[{"type":"text","text":"q"}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"t","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        ]);
        assert_eq!(sent["messages"], expected, "{content}");
    }
}

#[test]
fn members_that_ask_for_what_there_is_not_are_named_and_neutral_ones_left_out() {
    let table = [
        ("n", "2", "1"),
        ("functions", "[{}]", "[]"),
        ("function_call", "\"auto\"", "null"),
        ("logprobs", "true", "false"),
        ("top_logprobs", "3", "0"),
        ("logit_bias", "{\"1\":1}", "{}"),
        ("presence_penalty", "0.5", "0"),
        ("frequency_penalty", "-1", "0.0"),
        ("audio", "{\"voice\":\"x\"}", "null"),
        ("modalities", "[\"text\",\"audio\"]", "[\"text\"]"),
        ("prediction", "{\"type\":\"content\"}", "null"),
        ("web_search_options", "{}", "null"),
        ("store", "true", "false"),
        ("service_tier", "\"flex\"", "\"auto\""),
        ("temperature", "1.5", "1"),
        ("stop", "\"\\n\"", "\"\""),
        ("stop", "[\"a\",\" \"]", "[]"),
        ("response_format", "{\"type\":\"json_object\"}", "{\"type\":\"text\"}"),
        ("reasoning_effort", "\"huge\"", "null"),
    ];
    for (name, asks, neutral) in table {
        let body = |value: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"{name}":{value}}}"#);
        assert_eq!(sent("claude-sonnet-4-5", &body(asks)).map_err(|unsupported| unsupported.field), Err(name), "{asks}");
        let sent: Value = serde_json::from_str(&sent("claude-sonnet-4-5", &body(neutral)).unwrap()).unwrap();
        let members: Vec<_> = sent.as_object().unwrap().keys().collect();
        assert_eq!(members, ["model", "max_tokens", "messages"], "{name} {neutral}");
    }
    for hint in
        ["\"seed\":7", "\"verbosity\":\"low\"", "\"prompt_cache_key\":\"k\"", "\"stream_options\":{\"include_usage\":true}"]
    {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],{hint}}}"#);
        assert!(!sent("claude-sonnet-4-5", &body).unwrap().contains(hint), "{hint}");
    }
}

#[test]
fn sampling_goes_on_as_far_as_the_model_takes_it() {
    let think = r#""reasoning_effort":"low","max_tokens":9000"#;
    let table = [
        ("claude-sonnet-4-5", r#""temperature":0.20"#.to_owned(), Ok(())),
        ("claude-sonnet-4-5", r#""temperature":0.2,"top_p":0.9"#.to_owned(), Err("top_p")),
        ("claude-sonnet-4-5", r#""temperature":0.2,"top_p":1"#.to_owned(), Ok(())),
        ("claude-3-7-sonnet", r#""temperature":0.2,"top_p":0.9"#.to_owned(), Ok(())),
        ("claude-sonnet-4-5", format!(r#"{think},"temperature":0.2"#), Err("temperature")),
        ("claude-sonnet-4-5", format!(r#"{think},"top_p":0.5"#), Err("top_p")),
        ("claude-sonnet-4-5", format!(r#"{think},"top_p":0.95,"temperature":1"#), Ok(())),
        ("claude-sonnet-4-5", format!(r#"{think},"top_k":5"#), Err("top_k")),
        ("claude-sonnet-5", r#""temperature":0.2"#.to_owned(), Err("temperature")),
        ("claude-opus-4-7", r#""top_k":5"#.to_owned(), Err("top_k")),
        ("claude-sonnet-5", r#""temperature":1.0,"top_p":1"#.to_owned(), Ok(())),
    ];
    for (model, members, expected) in table {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],{members}}}"#);
        assert_eq!(sent(model, &body).map(|_| ()).map_err(|unsupported| unsupported.field), expected, "{model} {members}");
    }
}

#[test]
fn the_operators_params_do_not_break_a_model_that_refuses_them() {
    let all = json!({"temperature": 0.2, "presence_penalty": 0.5, "max_tokens": 9, "logit_bias": {"1": 1}});
    let table = [
        ("claude-sonnet-4-5", all.clone(), json!({"temperature": 0.2, "max_tokens": 9})),
        ("claude-opus-5", all, json!({"max_tokens": 9})),
        ("claude-sonnet-4-5", json!({"top_k": 5}), json!({"top_k": 5})),
    ];
    for (model, given, expected) in table {
        assert_eq!(json!(&*params(model, given.as_object().unwrap())), expected, "{model}");
    }
}

#[test]
fn a_transcript_begins_with_the_user() {
    let point = json!({"role":"user","content":[{"type":"text","text":"."}]});
    let table = [
        (r#"[{"role":"system","content":"S"}]"#, 1),
        (r#"[{"role":"assistant","content":"Hello."},{"role":"user","content":"x"}]"#, 3),
        (r#"[{"role":"user","content":""}]"#, 1),
    ];
    for (messages, turns) in table {
        let sent: Value =
            serde_json::from_str(&sent("claude-sonnet-4-5", &format!(r#"{{"model":"m","messages":{messages}}}"#)).unwrap())
                .unwrap();
        assert_eq!((&sent["messages"][0], sent["messages"].as_array().unwrap().len()), (&point, turns), "{messages}");
    }
}

#[test]
fn an_id_that_comes_again_is_another_id() {
    let round = r#"{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"ok"}"#;
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}},{round},{round}]}}"#);
    let first = sent("claude-sonnet-4-5", &body).unwrap();
    let sent: Value = serde_json::from_str(&first).unwrap();
    let id = |turn: usize, name: &str| sent["messages"][turn]["content"][0][name].as_str().unwrap();
    assert_eq!((id(1, "id"), id(2, "tool_use_id")), ("c", "c"));
    assert_eq!(id(3, "id"), id(4, "tool_use_id"));
    assert_ne!(id(3, "id"), "c");
    assert_eq!(first, self::sent("claude-sonnet-4-5", &body).unwrap(), "the same in every round");
}

#[test]
fn max_tokens_is_always_sent() {
    let table = [
        (None, "", "4096"),
        (Some(64_000), "", "64000"),
        (Some(64_000), r#","max_tokens":9"#, "9"),
        (None, r#","max_completion_tokens":7"#, "7"),
        (None, r#","max_completion_tokens":7,"max_tokens":9"#, "9"),
        (None, r#","max_tokens":null"#, "4096"),
    ];
    for (max_output, members, expected) in table {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}]{members}}}"#);
        let body = Segments::from(Bytes::from(body));
        let encoded = encode(&target("claude-sonnet-4-5", max_output), &body, false).unwrap();
        let sent: Value = serde_json::from_slice(&encoded.body.pieces().concat()).unwrap();
        assert_eq!(sent["max_tokens"].to_string(), expected, "{members}");
    }
}

#[test]
fn the_path_is_below_the_version() {
    let table =
        [("", "/v1/messages"), ("/v1", "/v1/messages"), ("/anthropic", "/anthropic/v1/messages"), ("/a/v1", "/a/v1/messages")];
    for (base, expected) in table {
        assert_eq!(path(base), expected);
    }
}

#[test]
fn case_41_the_key_goes_in_its_header_and_none_of_the_callers_headers_does() {
    let caller = HeaderMap::from_iter([
        (header::AUTHORIZATION, HeaderValue::from_static("Bearer CANARY")),
        (HeaderName::from_static("x-api-key"), HeaderValue::from_static("CANARY")),
        (HeaderName::from_static("anthropic-beta"), HeaderValue::from_static("CANARY")),
        (USER_AGENT, HeaderValue::from_static("app/1")),
    ]);
    let sent = headers(Some(&Secret::new("own")), &caller, true);
    assert!(sent.values().all(|value| !value.as_bytes().windows(6).any(|part| part == b"CANARY")));
    let shown = |name: &str| sent[name].to_str().unwrap().to_owned();
    assert_eq!(
        (shown("x-api-key"), shown("anthropic-version"), shown("user-agent")),
        ("own".into(), "2023-06-01".into(), "app/1".into())
    );
    assert_eq!(shown("accept"), "text/event-stream");
}

#[test]
fn what_is_no_answer_goes_on_as_it_is() {
    for body in [
        "",
        "<html>",
        "{}",
        "[]",
        r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
        r#"{"content":"x"}"#,
        r#"{"content":[7]}"#,
    ] {
        let out = decode(&PROVIDER, Bytes::from(body.to_owned()), STAMP);
        assert_eq!(out, body);
    }
    let cut = Bytes::from_static(b"{\"content\":[{\"type\":\"text\",\"text\":\"\xe6\x97\"}]}");
    assert_eq!(decode(&PROVIDER, cut.clone(), STAMP), cut);
}

#[test]
fn garbage_in_a_stream_goes_on_as_it_is() {
    let mut stream = Stream::new(&PROVIDER, STAMP);
    for data in [
        &b"not json"[..],
        b"{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"\xe6\x97\"}}",
        b"[]",
        b"{\"a\":1}",
    ] {
        let (mut ready, event) = (VecDeque::new(), Event { data: Bytes::copy_from_slice(data), is_error: false });
        stream.hear(event.clone(), &mut ready);
        assert_eq!(ready, [event]);
    }
}
