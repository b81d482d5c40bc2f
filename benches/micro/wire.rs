//! The wire: a 100 KB transcript with 64 offered tools, a stream of 60 chunks, a plain answer.

use bytes::{Bytes, BytesMut};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use toolgate_gateway::wire::chunk::Outfit;
use toolgate_gateway::wire::sse::Decoder;
use toolgate_gateway::wire::{CallParts, Chunk, Reply, Request, Round, Splice, message};

/// Tools that are offered.
const TOOLS: usize = 64;

/// Forty messages of 2.5 KB with escapes in them, after a system message.
pub(crate) fn long_request() -> Bytes {
    let text = "The depot has counted what is on its shelves, and what \\\"remains\\\" is ready to be sent;\\nplease ask again. ";
    let turn = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        format!(r#",{{"role":"{role}","content":"{}"}}"#, text.repeat(24))
    };
    let turns: String = (0..40).map(turn).collect();
    let first = r#"{"role":"system","content":"You answer for the shop."}"#;
    Bytes::from(format!(r#"{{"model":"support","temperature":0.2,"messages":[{first}{turns}]}}"#))
}

/// The list of tools as it is made once for a run.
fn offered() -> Bytes {
    let parameters = r#"{"type":"object","required":["item"],"properties":{"item":{"type":"string"}}}"#;
    let tool = |at: usize| message::offered(&format!("tool_{at}"), "Looks it up by the number of the article.", parameters);
    Bytes::from(format!("[{}]", (0..TOOLS).map(tool).collect::<Vec<_>>().join(",")))
}

/// Reads a body of 100 KB.
#[divan::bench]
fn parse_100_kb(bencher: Bencher) {
    let body = long_request();
    bencher.counter(BytesCount::new(body.len())).bench(|| Request::parse(black_box(&body)));
}

/// Makes the request of a further round: the same transcript with 64 tools and two results behind it.
#[divan::bench]
fn splice_100_kb_64_tools(bencher: Bencher) {
    let body = long_request();
    let request = Request::parse(&body).unwrap_or_else(|error| panic!("{error:?}"));
    let (tools, params) = (offered(), serde_json::Map::new());
    let mut messages = request.transcript().to_vec();
    messages.push(Bytes::from_static(br#",{"role":"tool","tool_call_id":"a","content":"7"}"#));
    messages.push(Bytes::from_static(b",{}"));
    bencher.bench(|| {
        let splice = Splice {
            upstream_model: "scripted-1",
            system: None,
            params: &params,
            tools: tools.clone(),
            output_limit: None,
            closes_with_tools: false,
        };
        request.compose(black_box(&splice), Round::Later, black_box(&messages))
    });
}

/// The events of a stream of 60 chunks, in the pieces in which they came: one a read.
pub(crate) fn events() -> Vec<Bytes> {
    let event = |delta: &str| {
        Bytes::from(format!(
            "data: {{\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"scripted-1\",\
             \"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null}}\n\n"
        ))
    };
    (0..60).map(|at| event(&format!(r#"{{"content":"word {at} "}}"#))).collect()
}

/// Cuts a stream into events.
#[divan::bench]
fn decode_60_events(bencher: Bencher) {
    let events = events();
    bencher.bench(|| {
        let mut decoder = Decoder::default();
        for bytes in black_box(&events) {
            assert!(decoder.feed(bytes.clone()).is_ok());
            while let Some(event) = decoder.next_event() {
                black_box(event);
            }
        }
    });
}

/// Reads 60 chunks and writes them for the caller, under the name that it knows the model by and without the usage it did not ask for.
#[divan::bench]
fn relay_60_chunks(bencher: Bencher) {
    let payloads: Vec<_> = events().iter().map(|event| event.slice("data: ".len()..event.len() - 2)).collect();
    let outfit = Outfit { model: "\"support\"", id: None, role_seen: true, with_usage: false, changes: &[] };
    bencher.bench(|| {
        let mut calls = CallParts::default();
        for payload in black_box(&payloads) {
            let mut out = BytesMut::with_capacity(512);
            let chunk = Chunk::parse(payload.clone(), &mut calls, |_| true);
            chunk.unwrap_or_else(|error| panic!("{error:?}")).write(&outfit, &mut out);
            black_box(out);
        }
    });
}

/// A plain answer of 1.6 KB.
pub(crate) fn plain() -> Bytes {
    let text = "All of it is on its way, and will be there in the morning. ".repeat(20);
    Bytes::from(format!(
        r#"{{"id":"chatcmpl-0123456789","object":"chat.completion","created":1767225600,"model":"scripted-1","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":60,"completion_tokens":300,"total_tokens":360}}}}"#
    ))
}

/// Reads a plain answer and writes it for the caller.
#[divan::bench]
fn plain_reply(bencher: Bencher) {
    let body = plain();
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let reply = Reply::parse(black_box(&body).clone()).unwrap_or_else(|error| panic!("{error:?}"));
        (reply.usage(), reply.render("\"support\"", None))
    });
}
