//! A stream of 60 chunks in each dialect, from a provider's bytes to what the caller is sent: what a translation adds to OpenAI's own form.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use divan::{Bencher, black_box};
use toolgate_config::check::{Source, read};
use toolgate_config::provider::Provider;
use toolgate_gateway::provider::{Decoder, Stamp};
use toolgate_gateway::wire::chunk::Outfit;
use toolgate_gateway::wire::{CallParts, Chunk};

/// Words of the `kind:` of a provider.
const KINDS: [&str; 6] = ["openai", "openai_compatible", "mistral", "anthropic", "gemini", "ollama"];

fn provider(kind: &str) -> Arc<Provider> {
    let text = format!(
        "providers: {{ p: {{ kind: {kind}, base_url: \"http://127.0.0.1:1\" }} }}\nmodels: {{ m: {{ provider: p, price: free }} }}"
    );
    let config = read(&Source { path: Path::new("toolgate.yaml"), text: &text, env: &|_| None });
    let config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
    Arc::clone(&config.model("m").unwrap_or_else(|| panic!("no model")).provider)
}

/// The pieces in which the stream comes: one a read.
fn stream(kind: &str) -> Vec<Bytes> {
    match kind {
        "anthropic" => anthropic(),
        "gemini" => said(|text| {
            format!(
                r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}],"modelVersion":"scripted-1"}}"#
            ) + "\r\n\r\n"
        }),
        "ollama" => said(|text| {
            format!(
                r#"{{"model":"scripted-1","created_at":"2026-01-01T00:00:00Z","message":{{"role":"assistant","content":"{text}"}},"done":false}}"#
            ) + "\n"
        }),
        _ => super::wire::events(),
    }
}

fn said(event: impl Fn(&str) -> String) -> Vec<Bytes> {
    (0..60).map(|at| Bytes::from(event(&format!("word {at} ")))).collect()
}

fn anthropic() -> Vec<Bytes> {
    let event = |kind: &str, rest: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n");
    let start = r#","message":{"id":"msg_0123456789","type":"message","role":"assistant","model":"scripted-1","content":[],"usage":{"input_tokens":60,"output_tokens":1}}"#;
    let block = r#","index":0,"content_block":{"type":"text","text":""}"#;
    let mut events = vec![Bytes::from(event("message_start", start) + &event("content_block_start", block))];
    events.extend(said(|text| {
        event("content_block_delta", &format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#))
    }));
    events
}

/// Cuts the stream into canonical events, reads each, and writes it for the caller.
#[divan::bench(args = KINDS)]
fn relay_60_chunks(bencher: Bencher, kind: &str) {
    let (provider, pieces) = (provider(kind), stream(kind));
    let outfit = Outfit { model: "\"support\"", id: None, role_seen: true, with_usage: false, changes: &[] };
    bencher.bench(|| {
        let (mut decoder, mut calls) = (Decoder::new(&provider, Stamp { created: 1_767_225_600, seed: 7 }), CallParts::default());
        for bytes in black_box(&pieces) {
            assert!(decoder.feed(bytes.clone()).is_ok());
            while let Some(event) = decoder.next_event() {
                let mut out = BytesMut::with_capacity(512);
                let chunk = Chunk::parse(event.data, &mut calls, |_| true);
                chunk.unwrap_or_else(|error| panic!("{error:?}")).write(&outfit, &mut out);
                black_box(out);
            }
        }
    });
}
