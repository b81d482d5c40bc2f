//! What must hold whatever comes: nothing panics, what goes on is JSON, its size is bounded, and where the network cuts a stream makes no
//! difference. One function a target, each of any bytes; `seeds/TARGET` holds inputs to begin with, and every input that was ever a finding.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use serde_json::{Map, json};
use toolgate_config::Config;
use toolgate_config::address::{BaseUrl, HostPort};
use toolgate_config::check::{Source, read};
use toolgate_config::group::EgressEntry;
use toolgate_config::redaction::{Pattern, Personal, Rules};
use toolgate_config::template::{Part, Template};
use toolgate_config::tool::Work;
use toolgate_gateway::provider::{self, Decoder, Endpoint, Stamp};
use toolgate_gateway::targets::{Target, Targets};
use toolgate_gateway::wire::chunk::Outfit;
use toolgate_gateway::wire::form::{Form, Piece};
use toolgate_gateway::wire::pass;
use toolgate_gateway::wire::sse::{self, Event};
use toolgate_gateway::wire::{CallParts, Chunk, Reply, Request, Round, Splice};
use toolgate_policies::egress::{Scope, judge_url};
use toolgate_policies::redact::{Counts, Redactor, Window};
use toolgate_tools::arguments::Arguments;
use toolgate_tools::net::Segments;
use toolgate_tools::request_of;

/// A target's name, and what it does with an input.
pub type Named = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: [Named; 16] = [
    ("sse", sse),
    ("request", request),
    ("form", form),
    ("pass", pass),
    ("decode_openai", decode_openai),
    ("decode_anthropic", decode_anthropic),
    ("decode_gemini", decode_gemini),
    ("decode_ollama", decode_ollama),
    ("encode_openai", encode_openai),
    ("encode_anthropic", encode_anthropic),
    ("encode_gemini", encode_gemini),
    ("encode_ollama", encode_ollama),
    ("encode_mistral", encode_mistral),
    ("redactor", redactor),
    ("url", url),
    ("template", template),
];

/// What is done to a stream of any kind, of which these bytes are the whole.
pub fn sse(data: &[u8]) {
    let read = |pieces: &[&[u8]]| {
        let mut decoder = sse::Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            if decoder.feed(Bytes::copy_from_slice(piece)).is_err() {
                break;
            }
            events.extend(std::iter::from_fn(|| decoder.next_event()));
        }
        events.extend(decoder.end());
        events
    };
    let whole = read(&[data]);
    let said: usize = whole.iter().map(|event| event.data.len()).sum();
    assert!(said <= data.len(), "{said} bytes of {}", data.len());
    if !begins_with_a_mark(data) {
        assert_eq!(read(&cut(data)), whole, "cut otherwise");
    }
}

/// A caller's request: read, and composed for each round.
pub fn request(data: &[u8]) {
    let Ok(request) = Request::parse(&Bytes::copy_from_slice(data)) else { return };
    for round in [Round::First, Round::Later, Round::Closing] {
        for closes_with_tools in [false, true] {
            let composed = composed(&request, round, closes_with_tools);
            let text = joined(&composed);
            assert!(is_json(&text), "{}", String::from_utf8_lossy(&text));
            assert!(text.len() <= data.len() + 4096, "{} bytes of {}", text.len(), data.len());
        }
    }
}

/// A form: it is read alike wherever it is cut, and where it is taken, a reader that splits it at every boundary, whatever stands around it,
/// finds the same `model` and no other.
pub fn form(data: &[u8]) {
    let read = |pieces: &[&[u8]]| {
        let (mut form, mut sent, mut model) = (Form::new("bX"), Vec::new(), None);
        for piece in pieces {
            let fed = form.feed(Bytes::copy_from_slice(piece), &mut |piece| match piece {
                Piece::Bytes(bytes) => sent.extend_from_slice(&bytes),
                Piece::Model(name) => {
                    sent.extend_from_slice(name.as_bytes());
                    assert!(model.replace(name).is_none(), "two models");
                }
            });
            fed.ok()?;
        }
        form.end().ok()?;
        Some((sent, model))
    };
    let whole = read(&[data]);
    assert_eq!(read(&cut(data)), whole, "cut otherwise");
    let Some((sent, model)) = whole else { return };
    assert_eq!(sent, data, "something was lost or added");
    assert_eq!(models_for_a_careless_reader(data), [model.expect("a form without its model")]);
}

fn models_for_a_careless_reader(data: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(data);
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let parts = normal.split("--bX").filter_map(|part| part.split_once("\n\n"));
    let named = |head: &str| {
        let head = head.to_ascii_lowercase();
        head.contains("name=\"model\"") || head.contains("name=model")
    };
    parts.filter(|(head, _)| named(head)).map(|(_, value)| value.strip_suffix('\n').unwrap_or(value).to_owned()).collect()
}

/// What passes through: a request of which only the model's name is changed, and what a provider says of it.
pub fn pass(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    for path in [pass::Path::Embeddings, pass::Path::Completions, pass::Path::Images, pass::Path::Speech] {
        let Ok(request) = pass::Request::parse(path, &body) else { continue };
        for lowered in [None, Some(7)] {
            let sent = request.compose("up", lowered);
            assert!(is_json(&sent), "{}", String::from_utf8_lossy(&sent));
            assert!(sent.len() <= data.len() + 256, "{} bytes of {}", sent.len(), data.len());
        }
    }
    if let Ok(said) = pass::Said::parse(body) {
        said.texts(&mut |_| ());
        for with_usage in [false, true] {
            let shown = said.render("\"m\"", with_usage, true, &[]);
            assert!(is_json(&shown), "{}", String::from_utf8_lossy(&shown));
            assert!(!shown.contains(&b'\n'), "an event's data on several lines");
        }
    }
}

pub fn decode_openai(data: &[u8]) {
    decode("openai", data);
}

pub fn decode_anthropic(data: &[u8]) {
    decode("anthropic", data);
}

pub fn decode_gemini(data: &[u8]) {
    decode("gemini", data);
}

pub fn decode_ollama(data: &[u8]) {
    decode("ollama", data);
}

pub fn encode_openai(data: &[u8]) {
    for kind in ["openai", "groq", "openrouter", "openai_compatible"] {
        encode(kind, data);
    }
}

pub fn encode_anthropic(data: &[u8]) {
    encode("anthropic", data);
}

pub fn encode_gemini(data: &[u8]) {
    encode("gemini", data);
}

pub fn encode_ollama(data: &[u8]) {
    encode("ollama", data);
}

pub fn encode_mistral(data: &[u8]) {
    encode("mistral", data);
}

const STAMP: Stamp = Stamp { created: 1_700_000_000, seed: 7 };

/// The bytes as a stream of this provider's, and as a plain answer.
fn decode(kind: &str, data: &[u8]) {
    let target = target(kind);
    let read = |pieces: &[&[u8]]| {
        let mut decoder = Decoder::new(&target.provider, STAMP);
        let mut events: Vec<Event> = Vec::new();
        for piece in pieces {
            if decoder.feed(Bytes::copy_from_slice(piece)).is_err() {
                break;
            }
            events.extend(std::iter::from_fn(|| decoder.next_event()));
        }
        events.extend(std::iter::from_fn(|| decoder.end()));
        events
    };
    let whole = read(&[data]);
    if !begins_with_a_mark(data) {
        assert_eq!(read(&cut(data)), whole, "cut otherwise");
    }
    let said: usize = whole.iter().map(|event| event.data.len()).sum();
    let lines = data.iter().filter(|byte| matches!(**byte, b'\n' | b'\r')).count();
    assert!(said <= 32 * data.len() + 2048 * (lines + 1), "{said} bytes of {}", data.len());
    let mut calls = CallParts::default();
    for event in whole {
        if !event.is_end_mark() && !event.is_error {
            assert!(kind == "openai" || is_json(&event.data) || holds(data, &event.data), "{:?}", event.data);
            show(event.data, &mut calls);
        }
    }
    let body = Bytes::copy_from_slice(data);
    let answer = provider::decode(&target.provider, body.clone(), STAMP);
    assert!(answer == body || is_json(&answer), "{answer:?}");
    assert!(answer.len() <= 32 * data.len() + 4096, "{} bytes of {}", answer.len(), data.len());
    if let Ok(reply) = Reply::parse(answer) {
        let rendered = reply.render("\"m\"", None);
        assert!(is_json(&rendered), "{rendered:?}");
    }
    let _ = provider::explain_inside(&target.provider, data);
}

/// A chunk as the caller sees it.
fn show(data: Bytes, calls: &mut CallParts) {
    let Ok(chunk) = Chunk::parse(data, calls, |name| name == "lookup") else { return };
    let mut out = BytesMut::new();
    chunk.write(&Outfit { model: "\"m\"", id: None, role_seen: true, with_usage: false, changes: &[] }, &mut out);
    let shown = out.strip_prefix(b"data: ").and_then(|out| out.strip_suffix(b"\n\n"));
    assert!(shown.is_some_and(is_json), "{out:?}");
    assert!(!shown.unwrap_or_default().contains(&b'\n'), "{out:?}");
}

/// The bytes as a caller's request, for this provider.
fn encode(kind: &str, data: &[u8]) {
    let Ok(request) = Request::parse(&Bytes::copy_from_slice(data)) else { return };
    let target = target(kind);
    for round in [Round::First, Round::Later, Round::Closing] {
        let body = Segments::from(composed(&request, round, provider::closes_with_tools(&target.provider)));
        let Ok(encoded) = provider::encode(target, Endpoint::Chat, &body, request.stream) else { continue };
        assert!(encoded.path.starts_with('/') && encoded.path.is_ascii(), "{}", encoded.path);
        let text = joined(encoded.body.pieces());
        assert!(is_json(&text), "{}", String::from_utf8_lossy(&text));
        assert!(text.len() <= 64 * data.len() + 65536, "{} bytes of {}", text.len(), data.len());
    }
}

/// The request with the gateway's own parts in it.
fn composed(request: &Request, round: Round, closes_with_tools: bool) -> Vec<Bytes> {
    let params = Map::from_iter([("temperature".to_owned(), json!(0.5))]);
    let tools = json!([{
        "type": "function",
        "function": {
            "name": "lookup", "description": "Looks up.",
            "parameters": {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}},
        },
    }]);
    let splice = Splice {
        upstream_model: "upstream-m",
        system: Some(br#"{"role":"system","content":"S"}"#),
        params: &params,
        tools: if request.own_tools { Bytes::new() } else { Bytes::from(tools.to_string()) },
        output_limit: None,
        closes_with_tools,
    };
    request.compose(&splice, round, request.transcript())
}

/// A URL that a model chose: what passes is one of the entries, says nothing but where it goes, and is read alike a second time.
pub fn url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let sites = ["https://allowed.test/shop", "http://192.0.2.7:8080", "https://[2001:db8::7]"];
    let sites = sites.map(|site| BaseUrl::parse(site).expect("a site"));
    let entry = |address: &HostPort| EgressEntry { address: address.clone(), private: false };
    let entries: Vec<_> = sites.iter().map(|site| entry(&site.origin.address)).collect();
    assert!(judge_url(Scope::None, &text).is_err());
    for scope in [Scope::OwnSite(&sites), Scope::Listed(&entries)] {
        let Ok(target) = judge_url(scope, &text) else { continue };
        let (origin, path) = (target.permit().origin(), target.path());
        assert!(entries.iter().any(|entry| entry.address == origin.address), "{origin:?}");
        assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{path:?}");
        let again = format!("{}://{}{path}", origin.scheme.as_str(), origin.address);
        assert_eq!(judge_url(scope, &again).as_ref(), Ok(&target), "{again}");
    }
}

/// A tool's URL, and behind the first line end the arguments that fill its holes: whatever they are, a hole in the path is a part of its one
/// segment, a hole in the query a part of its one value, and a hole in a header a part of its one line.
pub fn template(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (written, arguments) = text.split_once('\n').unwrap_or((&text, "{}"));
    let Ok(arguments) = Arguments::parse(arguments) else { return };
    let any = json!({});
    let file = json!({
        "groups": {"g": {"data_class": "public", "egress": ["h.test:443"]}},
        "tools": [{
            "name": "t", "group": "g",
            "parameters": {"type": "object", "properties": {"a": any, "b": any}},
            "http": {"url": format!("https://h.test/{written}"), "query": {"q": "{a}-{b}"}, "headers": {"x-q": "q {a}"}},
        }],
    });
    let file = file.to_string();
    let Ok(config) = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }) else { return };
    let Some(Work::Http(work)) = config.tools.iter().next().map(|tool| &tool.work) else { return };
    let Ok(request) = request_of(work, &arguments) else { return };
    let uri = request.uri().to_string();
    let (path, query) = uri.split_once('?').unwrap_or((&uri, ""));
    assert!(uri.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{uri:?}");
    assert_eq!(path.matches('/').count(), slashes(&work.path), "{uri}");
    let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    assert!(pairs.len() <= work.query.len() && pairs.iter().all(|pair| pair.matches('=').count() == 1), "{uri}");
    assert!(!query.contains('?') && !query.contains('/'), "{uri}");
    for (name, value) in request.headers() {
        assert!(value.as_bytes().iter().all(|byte| !byte.is_ascii_control()), "{name}");
    }
    let names = ["accept", "user-agent", "x-q"];
    assert!(request.headers().keys().all(|name| names.contains(&name.as_str())), "{:?}", request.headers());
}

/// How many slashes are in what the operator wrote.
fn slashes(template: &Template) -> usize {
    let written = template.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.matches('/').count()),
        Part::Parameter(_) => None,
    });
    written.sum()
}

/// A provider of each kind.
static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let kinds = ["openai", "anthropic", "gemini", "ollama", "mistral", "groq", "openrouter", "openai_compatible"];
    let mut providers = Map::new();
    let mut models = Map::new();
    for kind in kinds {
        providers.insert(kind.to_owned(), json!({"kind": kind, "base_url": "http://127.0.0.1:1/v1", "api_key": "k"}));
        models.insert(kind.to_owned(), json!({"provider": kind, "upstream_model": "upstream-m"}));
    }
    let text = json!({"providers": providers, "models": models}).to_string();
    let source = Source { path: Path::new("toolgate.yaml"), text: &text, env: &|_| None };
    read(&source).unwrap_or_else(|faults| panic!("{faults:?}"))
});

static TARGETS: LazyLock<Vec<(String, Arc<Target>)>> = LazyLock::new(|| {
    let names = ["openai", "anthropic", "gemini", "ollama", "mistral", "groq", "openrouter", "openai_compatible"];
    let target = |name: &str| CONFIG.model(name).map(|model| Arc::clone(Targets::of(&CONFIG, &model).current()));
    names.into_iter().filter_map(|name| Some((name.to_owned(), target(name)?))).collect()
});

/// Redaction: twice is once, a stream is what its whole is and keeps little, JSON stays JSON, and a text that loses nothing is not copied.
pub fn redactor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let redactor = &*REDACTOR;
    let mut counts = Counts::default();
    let once = redactor.text(text, &mut counts);
    assert_eq!(matches!(once, Cow::Borrowed(_)), counts.is_empty());
    let twice = redactor.text(&once, &mut counts);
    assert!(matches!(twice, Cow::Borrowed(_)), "{once:?} becomes {twice:?}");
    let (mut window, mut streamed) = (Window::new(redactor.clone()), String::new());
    let mut characters = text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]);
    let mut from = 0;
    for piece in cut(data) {
        let Some(to) = characters.nth(piece.len() - 1) else { break };
        streamed.push_str(&window.push(&text[from..to], &mut counts));
        assert!(window.held() <= 128, "{} wait", window.held());
        from = to;
    }
    streamed.push_str(&window.push(&text[from..], &mut counts));
    streamed.push_str(&window.finish(&mut counts));
    assert_eq!(streamed, once);
    let once = redactor.json(text, &mut counts);
    assert!(!is_json(data) || is_json(once.as_bytes()), "{once}");
    let twice = redactor.json(&once, &mut counts);
    assert!(matches!(twice, Cow::Borrowed(_)), "{once:?} becomes {twice:?}");
}

/// Everything is taken out, and what two patterns match.
static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
    let pattern = |name: &str, regex: &str| Pattern { name: name.into(), regex: regex.into() };
    let patterns = Arc::from([pattern("ticket", "TCK-[0-9]{6}"), pattern("canary", "SECRET-CANARY-[0-9]+")]);
    Arc::new(Redactor::new(&Rules { secrets: true, personal: Personal::ALL.into_iter().collect(), patterns }))
});

fn target(kind: &str) -> &'static Arc<Target> {
    let found = TARGETS.iter().find(|(name, _)| name == kind);
    &found.unwrap_or_else(|| panic!("no provider {kind}")).1
}

/// The same bytes in pieces; where they are cut is drawn from the bytes themselves.
fn cut(data: &[u8]) -> Vec<&[u8]> {
    let mut state =
        data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mut pieces = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let size = 1 + usize::try_from(state % 7).unwrap_or(0);
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A byte order mark is known only where it comes whole, and no sender cuts one.
fn begins_with_a_mark(data: &[u8]) -> bool {
    data.starts_with(b"\xef")
}

fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && serde_json::from_slice::<&serde_json::value::RawValue>(text).is_ok()
}

fn holds(data: &[u8], part: &[u8]) -> bool {
    // Several lines of data are joined, so that only their pieces stand in what came.
    part.split(|byte| *byte == b'\n').all(|line| line.is_empty() || data.windows(line.len()).any(|window| window == line))
}

fn joined(pieces: &[Bytes]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.to_vec()).collect()
}
