//! What hiding secrets adds to an answer: to a stream of 60 chunks and to a plain one, neither of which holds any, and to a stream that does.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use toolgate_config::redaction::Redaction;
use toolgate_gateway::veil::{self, Veil};
use toolgate_gateway::wire::chunk::Outfit;
use toolgate_gateway::wire::spoken::Change;
use toolgate_gateway::wire::{CallParts, Chunk, Reply};
use toolgate_policies::redact::{Counts, Redactor};

fn redactor(secrets: bool) -> Arc<Redactor> {
    let mut rules = Redaction::default().answers;
    rules.secrets = secrets;
    Arc::new(Redactor::new(&rules))
}

fn relay(bencher: Bencher, redactor: &Arc<Redactor>, payloads: &[Bytes]) {
    bencher.bench(|| {
        let (mut veil, mut calls) = (Veil::new(redactor), CallParts::default());
        let mut show = |chunk: &Chunk, (): (), changes: &[Change]| {
            let mut out = BytesMut::with_capacity(512);
            chunk.write(&Outfit { model: "\"support\"", id: None, role_seen: true, with_usage: false, changes }, &mut out);
            black_box(out);
        };
        for payload in black_box(payloads) {
            let chunk = Chunk::parse(payload.clone(), &mut calls, |_| true);
            veil.take(&chunk.unwrap_or_else(|error| panic!("{error:?}")), (), &mut show);
        }
        veil.finish(&mut show);
    });
}

fn payloads() -> Vec<Bytes> {
    super::wire::events().iter().map(|event| event.slice("data: ".len()..event.len() - 2)).collect()
}

/// 60 chunks of words; `false`: nothing is hidden.
#[divan::bench(args = [false, true])]
fn relay_60_chunks(bencher: Bencher, secrets: bool) {
    relay(bencher, &redactor(secrets), &payloads());
}

/// 60 chunks of words, a key in pieces among them.
#[divan::bench]
fn relay_60_chunks_and_a_secret(bencher: Bencher) {
    let mut payloads = payloads();
    for (at, piece) in ["sk-abcd", "efghijklm", "nopqrstuv", "wxyz0123 "].iter().enumerate() {
        let payload = String::from_utf8_lossy(&payloads[20 + at]).replace(&format!("word {} ", 20 + at), piece);
        payloads[20 + at] = Bytes::from(payload);
    }
    relay(bencher, &redactor(true), &payloads);
}

/// A plain answer of 1.6 KB; `false`: nothing is hidden.
#[divan::bench(args = [false, true])]
fn plain_reply(bencher: Bencher, secrets: bool) {
    let (body, redactor) = (super::wire::plain(), redactor(secrets));
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let reply = Reply::parse(black_box(&body).clone()).unwrap_or_else(|error| panic!("{error:?}"));
        veil::whole(reply, &redactor, &mut Counts::default()).render("\"support\"", None)
    });
}
