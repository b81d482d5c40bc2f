//! Counting of tokens: the estimate of a text, a request of 100 KB estimated and counted, a stream of 60 chunks with its count.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use toolgate_config::check::{Source, read};
use toolgate_gateway::targets::{Target, Targets};
use toolgate_gateway::tokens::estimate::Estimate;
use toolgate_gateway::tokens::{Tally, Tokens};
use toolgate_gateway::wire::chunk::Outfit;
use toolgate_gateway::wire::{CallParts, Chunk};
use toolgate_tools::net::Segments;

use crate::wire::{events, long_request};

/// A model of this name at some provider.
fn target(model: &str) -> Arc<Target> {
    let text = &format!(
        "providers: {{ p: {{ kind: openai_compatible, base_url: \"http://127.0.0.1:1\" }} }}\nmodels: {{ {model}: {{ provider: p }} }}"
    );
    let config = read(&Source { path: Path::new("toolgate.yaml"), text, env: &|_| None }).ok();
    let found = config.and_then(|config| config.model(model).map(|model| Arc::clone(Targets::of(&config, &model).current())));
    found.unwrap_or_else(|| panic!("{text}"))
}

/// Estimates a text of 100 KB.
#[divan::bench]
fn estimate_100_kb(bencher: Bencher) {
    let text = long_request();
    bencher.counter(BytesCount::new(text.len())).bench(|| {
        let mut estimate = Estimate::default();
        estimate.text(black_box(&text));
        estimate.tokens()
    });
}

/// Counts a request of 100 KB, by OpenAI's vocabulary (on another thread) and by the estimate.
#[divan::bench(args = ["gpt-4o-mini", "scripted-1"])]
fn count_100_kb(bencher: Bencher, model: &str) {
    let (tokens, target, body) = (Tokens::default(), target(model), Segments::from(long_request()));
    let runtime = tokio::runtime::Runtime::new().unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(tokens.prompt(&target, &body));
    bencher.counter(BytesCount::new(body.len())).bench(|| runtime.block_on(tokens.prompt(&target, black_box(&body))));
}

/// The same of a request of 2 KB, which both count where they are.
#[divan::bench(args = ["gpt-4o-mini", "scripted-1"])]
fn count_2_kb(bencher: Bencher, model: &str) {
    let text =
        "The depot has counted what is on its shelves, and what remains is ready to be sent; please ask again. ".repeat(20);
    let body = Bytes::from(format!(r#"{{"model":"support","messages":[{{"role":"user","content":"{text}"}}]}}"#));
    let (tokens, target, body) = (Tokens::default(), target(model), Segments::from(body));
    let runtime = tokio::runtime::Runtime::new().unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(tokens.prompt(&target, &body));
    bencher.counter(BytesCount::new(body.len())).bench(|| runtime.block_on(tokens.prompt(&target, black_box(&body))));
}

/// What `relay_60_chunks` does, with the count of what is said: kept for a vocabulary, and estimated.
#[divan::bench(args = ["gpt-4o-mini", "scripted-1"])]
fn relay_and_count_60_chunks(bencher: Bencher, model: &str) {
    let payloads: Vec<_> = events().iter().map(|event| event.slice("data: ".len()..event.len() - 2)).collect();
    let outfit = Outfit { model: "\"support\"", id: None, role_seen: true, with_usage: false, changes: &[] };
    bencher.bench(|| {
        let (mut calls, mut tally) = (CallParts::default(), Tally::default());
        tally.listen(model);
        for payload in black_box(&payloads) {
            let mut out = BytesMut::with_capacity(512);
            let chunk = Chunk::hear(payload.clone(), &mut calls, |_| true, &mut |said| tally.say(said));
            chunk.unwrap_or_else(|error| panic!("{error:?}")).write(&outfit, &mut out);
            black_box(out);
        }
        tally.said_tokens()
    });
}
