//! Calls that ended in every way, and what is charged for them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_config::check::{Source, read};

use super::*;
use crate::targets::Targets;
use crate::trace::Outcome;
use crate::wire::Usage;

/// A model of this name at some provider.
pub(super) fn target(upstream_model: &str) -> Arc<Target> {
    let file = format!(
        "providers: {{ p: {{ kind: openai_compatible, base_url: \"http://127.0.0.1:1\" }} }}\n\
         models: {{ m: {{ provider: p, upstream_model: {upstream_model} }} }}\n"
    );
    let config = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }).unwrap();
    Arc::clone(Targets::of(&config, &config.model("m").unwrap()).current())
}

fn body(text: &str) -> Segments {
    let whole = json!({ "model": "m", "messages": [{ "role": "user", "content": text }] }).to_string();
    let (head, tail) = whole.split_at(whole.len() / 3);
    [head, tail].map(|part| Bytes::copy_from_slice(part.as_bytes())).into_iter().collect()
}

fn round(model: &str, sent: Segments, outcome: Outcome) -> Round {
    Round {
        target: target(model),
        attempt: 1,
        outcome,
        took: Duration::ZERO,
        finish_reason: None,
        usage: None,
        estimated: false,
        cost: None,
        lowered: None,
        context: None,
        tally: Some(Box::new(Tally::of(sent))),
        tool_calls: Vec::new(),
    }
}

/// A call in which these pieces were said and, if any, this was reported.
fn heard(model: &str, said: &[&str], reported: Option<(u64, u64)>, outcome: Outcome) -> Round {
    let mut round = round(model, body("The ship is late."), outcome);
    let tally = round.tally.as_mut().unwrap();
    tally.listen(model);
    for text in said {
        tally.say(text);
    }
    if let Some((prompt, completion)) = reported {
        tally.report(Usage::counted(prompt, completion));
    }
    round
}

#[tokio::test]
async fn each_way_to_end_has_its_charge() {
    use Outcome::{Cancelled, ConnectError, Cut, Ok, RateLimited, ServerError, Timeout};
    let (said, none): (&[&str], &[&str]) = (&["It will come ", "in the morning."], &[]);
    // 3 for the message, 1 for the role, 5 for the text, 3 for the reply; the answer is 7.
    let (prompt, output) = (12, 7);
    let table = [
        (said, Some((100, 10)), Ok, Some((100, 10, false))),
        (said, None, Ok, Some((prompt, output, true))),
        (said, Some((100, 0)), Ok, Some((100, output, true))),
        (said, Some((0, 10)), Ok, Some((0, 10, false))),
        (none, None, Ok, Some((prompt, 0, true))),
        // Cut by the provider, by a time-out, by the caller: before the first word, after some, after the usage.
        (said, None, Cut, Some((prompt, output, true))),
        (said, None, Timeout, Some((prompt, output, true))),
        (said, None, Cancelled, Some((prompt, output, true))),
        (none, None, Cancelled, Some((prompt, 0, true))),
        (none, None, Timeout, Some((prompt, 0, true))),
        (said, Some((100, 10)), Cut, Some((100, 10, false))),
        // An error after some of the answer, and one in its place.
        (said, None, ServerError, Some((prompt, output, true))),
        (none, None, ServerError, None),
        (none, None, RateLimited, None),
        (none, None, ConnectError, None),
    ];
    let tokens = Tokens::default();
    for (said, reported, outcome, expected) in table {
        let mut round = heard("gpt-4o-mini", said, reported, outcome);
        tokens.charge(&mut round).await;
        let seen = round.usage.map(|usage| (usage.prompt, usage.completion, round.estimated));
        assert_eq!(seen, expected, "{said:?} {reported:?} {outcome:?}");
        assert!(round.tally.is_none());
        tokens.charge(&mut round).await;
        assert_eq!(round.usage.map(|usage| (usage.prompt, usage.completion, round.estimated)), expected, "once more");
    }
}

#[tokio::test]
async fn a_model_without_a_vocabulary_is_estimated() {
    let tokens = Tokens::default();
    let mut round = heard("upstream-m", &["It will come in the morning."], None, Outcome::Cut);
    tokens.charge(&mut round).await;
    let usage = round.usage.unwrap();
    assert!((9..=15).contains(&usage.prompt) && (5..=9).contains(&usage.completion), "{usage:?}");
    assert!(round.estimated);
}

#[tokio::test]
async fn what_providers_report_is_learnt_for_models_without_a_vocabulary() {
    let tokens = Tokens::default();
    let long = include_str!("samples/english.txt");
    for (model, learns) in [("upstream-m", true), ("gpt-4o-mini", false)] {
        let target = target(model);
        let before = tokens.prompt(&target, &body(long)).await;
        for _ in 0..20 {
            let mut round = round(model, body(long), Outcome::Ok);
            round.tally.as_mut().unwrap().report(Usage::counted(before * 3 / 2, 10));
            tokens.charge(&mut round).await;
            assert_eq!((round.usage.unwrap().prompt, round.estimated), (before * 3 / 2, false));
        }
        let after = tokens.prompt(&target, &body(long)).await;
        let expected = if learns { before * 3 / 2 } else { before };
        assert!(after.abs_diff(expected) * 50 <= expected, "{model}: {before}, then {after}");
    }
}

#[tokio::test]
async fn a_long_prompt_is_counted_elsewhere_and_a_longer_one_estimated() {
    let tokens = Tokens::default();
    let target = target("gpt-4o-mini");
    let english = include_str!("samples/english.txt");
    for (times, off) in [(1, 0), (20, 0), (400, 10)] {
        let text = english.repeat(times);
        let counted = Encoding::O200k.count(&text) + 7;
        let seen = tokens.prompt(&target, &body(&text)).await;
        assert!(seen.abs_diff(counted) * 100 <= counted * off, "{times} times: {seen}, not {counted}");
        assert!(rough(body(&text).len()) > counted);
    }
}

#[tokio::test]
async fn a_count_that_is_dropped_can_be_made_again() {
    let tokens = Tokens::default();
    let english = include_str!("samples/english.txt").repeat(20);
    let mut round = round("gpt-4o-mini", body(&english), Outcome::Cancelled);
    {
        let charge = std::pin::pin!(tokens.charge(&mut round));
        assert!(futures_util::poll!(charge).is_pending(), "it is counted on another thread");
    }
    assert!(round.usage.is_none() && round.tally.is_some());
    tokens.charge(&mut round).await;
    assert_eq!(round.usage.map(|usage| usage.prompt), Some(Encoding::O200k.count(&english) + 7));
}

#[test]
fn no_text_has_more_tokens_than_it_can_have() {
    let texts = [
        include_str!("samples/english.txt").to_owned(),
        "aGVsbG8gd29ybGQhIDEyMzQ1Njc4OTAgYWJjZGVm7wQ2Zx9kL0pRt5vB".repeat(20),
        "0f3a9c77e1b24d5896ab10ff".repeat(40),
        "6f1c2b7e-93a4-4c1d-8f60-2b9d5e7a1c34 ".repeat(30),
        "2026-11-30T21:04:41.908673Z 127.0.0.1 200 1532 ".repeat(30),
        "🎻🦀🧵🪗🧭".repeat(40),
        "日本の港に船が着く。".repeat(40),
        "சென்னை துறைமுகம் ".repeat(40),
        "xq zj vk wp ".repeat(60),
    ];
    for text in &texts {
        for encoding in [Encoding::O200k, Encoding::Cl100k] {
            let (count, most) = (encoding.count(text), most(text.len(), &[]));
            assert!(count <= most, "{count} by {encoding:?}, not {most}: {text:.20}");
        }
    }
}
