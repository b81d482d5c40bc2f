//! What is Anthropic's alone. Its wire pairs are walked with those of the other kinds.

mod encoding;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_config::provider::Provider;

use super::super::{Stamp, golden};
use super::*;
use crate::targets::Target;
use crate::wire::sse::Event;

const STAMP: Stamp = Stamp { created: 1_767_225_600, seed: 7 };

fn target(model: &str, max_output: Option<u32>) -> Target {
    golden::target("anthropic", model, max_output, None)
}

fn provider() -> Arc<Provider> {
    target("m", None).provider
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
        let out = decode(&provider(), Bytes::from(body.to_owned()), STAMP);
        assert_eq!(out, body);
    }
    let cut = Bytes::from_static(b"{\"content\":[{\"type\":\"text\",\"text\":\"\xe6\x97\"}]}");
    assert_eq!(decode(&provider(), cut.clone(), STAMP), cut);
}

#[test]
fn garbage_in_a_stream_goes_on_as_it_is() {
    let mut stream = Stream::new(&provider(), STAMP);
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
