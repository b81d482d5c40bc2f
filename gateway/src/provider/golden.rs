//! The wire pairs of `tests/golden`, a folder each kind of provider, and what holds at every cut of a stream.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};
use toolgate_config::check::{Source, read};
use toolgate_config::provider::Provider;
use toolgate_config::redaction::Redaction;
use toolgate_policies::redact::Redactor;
use toolgate_tools::net::Segments;

use super::{Decoder, Encoded, Endpoint, Stamp, Unsupported, decode, encode, signer};
use crate::targets::Target;
use crate::veil::Veil;
use crate::wire::chunk::Outfit;
use crate::wire::spoken::Change;
use crate::wire::sse::Event;
use crate::wire::{CallParts, Chunk};

/// Kinds whose folders are walked here.
const KINDS: [&str; 8] = ["anthropic", "openai", "openai_compatible", "mistral", "groq", "openrouter", "gemini", "ollama"];

const STAMP: Stamp = Stamp { created: 1_767_225_600, seed: 7 };

/// A provider of each kind, and how it signs.
static PROVIDERS: LazyLock<Vec<(Arc<Provider>, String)>> = LazyLock::new(|| KINDS.into_iter().map(provider).collect());

fn provider(kind: &str) -> (Arc<Provider>, String) {
    let provider = format!("{{ kind: {kind}, base_url: 'https://api.example.org/v1', api_key: '${{KEY}}' }}");
    let file = format!("providers: {{ {kind}: {provider} }}\nmodels: {{ m: {{ provider: {kind} }} }}\n");
    let env = |name: &str| (name == "KEY").then(|| "sk-golden-test".to_owned());
    let config = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &env }).unwrap();
    let provider = Arc::clone(&config.model("m").unwrap().provider);
    let signs = signer(&provider);
    (provider, signs)
}

fn of(kind: &str) -> &'static (Arc<Provider>, String) {
    PROVIDERS.iter().find(|(provider, _)| provider.name.as_str() == kind).unwrap()
}

/// A model at a provider of this kind.
pub(super) fn target(kind: &str, model: &str, max_output: Option<u32>, window: Option<u32>) -> Target {
    Target {
        provider: Arc::clone(&of(kind).0),
        upstream_model: model.to_owned(),
        price: None,
        max_output,
        window: window.unwrap_or(200_000),
        is_window_guessed: window.is_none(),
        label: "m".to_owned(),
    }
}

/// The body that a model is sent.
pub(super) fn sent(kind: &str, model: &str, body: &str) -> Result<String, Unsupported> {
    let stream = serde_json::from_str::<Value>(body).unwrap()["stream"] == true;
    let body = Segments::from(Bytes::copy_from_slice(body.as_bytes()));
    let Encoded { body, .. } = encode(&target(kind, model, None, None), Endpoint::Chat, &body, stream)?;
    Ok(String::from_utf8(body.pieces().concat()).unwrap())
}

/// How a provider of this kind signs.
pub(super) fn signs(kind: &str) -> &'static str {
    &of(kind).1
}

fn files(kind: &str, folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(kind).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|has| has == ending));
    files.sort();
    assert!(!files.is_empty(), "{kind} {ending}");
    files
}

/// Every file of a folder of every kind, with the kind.
fn all(folder: &str, ending: &str) -> Vec<(&'static str, PathBuf)> {
    KINDS.into_iter().flat_map(|kind| files(kind, folder, ending).into_iter().map(move |file| (kind, file))).collect()
}

/// Every recorded stream of every kind, with the kind.
fn streams() -> Vec<(&'static str, PathBuf)> {
    let ending = |kind| if kind == "ollama" { "ndjson" } else { "sse" };
    KINDS.into_iter().flat_map(|kind| files(kind, "stream", ending(kind)).into_iter().map(move |file| (kind, file))).collect()
}

fn blesses() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Who signed is a hash of the provider; the files call it by a word.
fn unsigned(kind: &str, text: &str) -> String {
    text.replace(&of(kind).1, "SIGNER")
}

/// The pair in a file.
fn pair(kind: &str, file: &Path) -> Map<String, Value> {
    let text = std::fs::read_to_string(file).unwrap();
    serde_json::from_str(&text.replace("SIGNER", &of(kind).1)).unwrap()
}

/// Compares what was made with what the file says of it, or writes it there.
fn compare(kind: &str, file: &Path, mut pair: Map<String, Value>, seen: Value) {
    let seen = seen.as_object().unwrap();
    if blesses() {
        pair.retain(|key, _| !["out", "unsupported", "why"].contains(&key.as_str()));
        pair.extend(seen.clone());
        let text = unsigned(kind, &serde_json::to_string_pretty(&pair).unwrap());
        return std::fs::write(file, text + "\n").unwrap();
    }
    for name in ["out", "unsupported", "why"] {
        assert_eq!(pair.get(name), seen.get(name), "{}", file.display());
    }
}

#[test]
fn golden_requests() {
    for (kind, file) in all("encode", "json") {
        let pair = pair(kind, &file);
        let number = |name| pair.get(name).and_then(Value::as_u64).map(|number| u32::try_from(number).unwrap());
        let target = target(kind, pair["model"].as_str().unwrap(), number("max_output"), number("window"));
        let body = Segments::from(Bytes::from(pair["in"].to_string()));
        let seen = match encode(&target, Endpoint::Chat, &body, pair["in"]["stream"] == true) {
            Ok(Encoded { body, .. }) => json!({"out": serde_json::from_slice::<Value>(&body.pieces().concat()).unwrap()}),
            Err(Unsupported { field, why }) => json!({"unsupported": field, "why": why}),
        };
        compare(kind, &file, pair, seen);
    }
}

#[test]
fn golden_plain_answers() {
    for (kind, file) in all("plain", "json") {
        let pair = pair(kind, &file);
        let out = decode(&of(kind).0, Bytes::from(pair["in"].to_string()), STAMP);
        compare(kind, &file, pair, json!({"out": serde_json::from_slice::<Value>(&out).unwrap()}));
    }
}

/// The canonical events of a stream that comes in these pieces, one a line.
fn heard(kind: &str, pieces: &[&[u8]]) -> String {
    let mut decoder = Decoder::new(&of(kind).0, STAMP);
    let mut lines = String::new();
    let mut note = |event: Event| {
        lines += if event.is_error { "error: " } else { "" };
        lines += &String::from_utf8_lossy(&event.data).replace('\n', "\\n");
        lines.push('\n');
    };
    for piece in pieces {
        decoder.feed(Bytes::copy_from_slice(piece)).unwrap();
        std::iter::from_fn(|| decoder.next_event()).for_each(&mut note);
    }
    std::iter::from_fn(|| decoder.end()).for_each(&mut note);
    unsigned(kind, &lines)
}

#[test]
fn golden_streams() {
    for (kind, file) in streams() {
        let seen = heard(kind, &[&std::fs::read(&file).unwrap()]);
        let chunks = file.with_extension("chunks");
        if blesses() {
            std::fs::write(&chunks, &seen).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&chunks).unwrap(), seen, "{}", file.display());
    }
}

#[test]
fn case_07_golden_streams_say_the_same_at_every_cut() {
    for (kind, file) in streams() {
        let stream = std::fs::read(&file).unwrap();
        let whole = std::fs::read_to_string(file.with_extension("chunks")).unwrap();
        for at in 1..stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(heard(kind, &[head, tail]), whole, "{} cut at {at}", file.display());
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(heard(kind, &bytes), whole, "{} byte by byte", file.display());
    }
}

/// What the events of a stream leave as, and all that is said in a field of their deltas.
fn veiled(events: &[Value], field: &str) -> (Vec<String>, String) {
    static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| Arc::new(Redactor::new(&Redaction::default().answers)));
    let (mut veil, mut calls, mut shown) = (Veil::new(&REDACTOR), CallParts::default(), Vec::new());
    let mut show = |chunk: &Chunk, (): (), changes: &[Change]| {
        let mut out = bytes::BytesMut::new();
        chunk.write(&Outfit { model: "\"m\"", id: None, role_seen: false, with_usage: true, changes }, &mut out);
        shown.push(String::from_utf8(out[6..out.len() - 2].to_vec()).unwrap());
    };
    for event in events {
        let chunk = Chunk::parse(Bytes::from(event.to_string()), &mut calls, |_| true).unwrap();
        veil.take(&chunk, (), &mut show);
    }
    veil.finish(&mut show);
    let said = shown.iter().map(|event| serde_json::from_str(event).unwrap()).filter_map(|event| said(&event, field)).collect();
    (shown, said)
}

fn said(event: &Value, field: &str) -> Option<String> {
    // Of several answers, the first.
    let event = Some(event).filter(|event| event["choices"][0]["index"] == 0)?;
    event.pointer(&format!("/choices/0/delta/{field}")).and_then(Value::as_str).map(str::to_owned)
}

/// The events of a recorded stream, the model's name as the caller has it.
fn events(file: &Path) -> Vec<Value> {
    let chunks = std::fs::read_to_string(file.with_extension("chunks")).unwrap();
    let events = chunks.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let chunks = events.filter(|event| event.get("choices").is_some());
    chunks.map(|event| json!({ "model": "m", "choices": event["choices"], "usage": event["usage"] })).collect()
}

#[test]
fn golden_streams_pass_the_veil_as_they_came() {
    for (_, file) in streams() {
        let events = events(&file);
        let expected: Vec<String> = events.iter().map(Value::to_string).collect();
        assert_eq!(veiled(&events, "content").0, expected, "{}", file.display());
    }
}

#[test]
fn case_49_a_secret_that_is_planted_in_a_golden_stream_is_hidden_at_every_cut() {
    let secret = " sk-abcdefghijklmnopqrstuvwxyz012345, ";
    let mut planted = 0;
    for (_, file) in streams() {
        for field in ["content", "reasoning_content"] {
            let events = events(&file);
            let speaking: Vec<usize> = (0..events.len()).filter(|&at| said(&events[at], field).is_some()).collect();
            let [first, second, ..] = speaking[..] else { continue };
            let plain = veiled(&events, field).1;
            let head = said(&events[first], field).unwrap();
            assert!(plain.starts_with(&head));
            let expected = format!("{head} [redacted:api_key], {}", &plain[head.len()..]);
            for at in 0..=secret.len() {
                let mut events = events.clone();
                events[first]["choices"][0]["delta"][field] = (head.clone() + &secret[..at]).into();
                let tail = said(&events[second], field).unwrap();
                events[second]["choices"][0]["delta"][field] = (secret[at..].to_owned() + &tail).into();
                assert_eq!(veiled(&events, field).1, expected, "{} {field} cut at {at}", file.display());
            }
            planted += 1;
        }
    }
    assert!(planted > 8, "{planted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn golden_streams_say_the_same_in_any_pieces(file: Index, cuts in prop::collection::vec(any::<Index>(), 0..12)) {
        let files = streams();
        let (kind, file) = file.get(&files);
        let stream = std::fs::read(file).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        prop_assert_eq!(heard(kind, &pieces), std::fs::read_to_string(file.with_extension("chunks")).unwrap());
    }

    #[test]
    fn no_stream_makes_a_decoder_panic(file: Index, flips in prop::collection::vec((any::<Index>(), any::<u8>()), 0..6), end: Index) {
        let files = streams();
        let (kind, file) = file.get(&files);
        let mut stream = std::fs::read(file).unwrap();
        for (at, byte) in flips {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        stream.truncate(end.index(stream.len()) + 1);
        heard(kind, &[&stream]);
    }
}
