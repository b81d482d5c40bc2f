//! The wire pairs of `tests/golden/anthropic`, and what holds at every cut of a stream.

mod encoding;

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
