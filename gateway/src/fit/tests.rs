//! Runs whose transcripts grow, and what is sent of them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_config::check::{Source, read};

use super::*;
use crate::targets::Targets;
use crate::wire::History;

/// A model with such a window; 0: nobody knows it.
fn target(window: u32) -> Arc<Target> {
    let window = if window == 0 { String::new() } else { format!(", context_window: {window}") };
    let file = format!(
        "providers: {{ p: {{ kind: openai_compatible, base_url: \"http://127.0.0.1:1\" }} }}\n\
         models: {{ m: {{ provider: p{window} }} }}\n"
    );
    let config = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }).unwrap();
    Arc::clone(Targets::of(&config, &config.model("m").unwrap()).current())
}

/// A run under way.
struct Run {
    tokens: Tokens,
    fitting: Fitting,
    target: Arc<Target>,
    slices: Vec<Bytes>,
    system: Option<Bytes>,
    frames: AtomicUsize,
    output_limit: Option<u64>,
}

impl Run {
    fn of(window: u32, messages: &[Value]) -> Self {
        let whole = messages.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Self {
            tokens: Tokens::default(),
            fitting: Fitting::default(),
            target: target(window),
            slices: vec![Bytes::from(whole)],
            system: None,
            frames: AtomicUsize::new(0),
            output_limit: Some(100),
        }
    }

    /// A round adds calls with these results.
    fn add(&mut self, results: &[&str]) {
        let at = self.slices.len();
        let id = |call: usize| format!("c{at}_{call}");
        let call = |call| json!({ "id": id(call), "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let calls: Vec<_> = (0..results.len()).map(call).collect();
        self.push(&json!({ "role": "assistant", "content": null, "tool_calls": calls }));
        for (call, text) in results.iter().enumerate() {
            self.push(&json!({ "role": "tool", "tool_call_id": id(call), "content": text }));
        }
    }

    fn push(&mut self, message: &Value) {
        self.slices.push(Bytes::from(format!(",{message}")));
    }

    async fn fit(&mut self) -> Fitted {
        let frame = |_: &Target| {
            self.frames.fetch_add(1, Ordering::Relaxed);
            Bytes::from_static(br#"{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f"}}]}"#)
        };
        let call = Call {
            tokens: &self.tokens,
            messages: &self.slices,
            system: self.system.as_ref(),
            around: 100,
            frame: &frame,
            output_limit: self.output_limit,
        };
        self.fitting.fit(&self.target, &call).await
    }

    /// What is sent, as a list.
    fn sent(&self, fitted: &Fitted) -> Vec<Value> {
        let inside = fitted.messages(&self.slices).concat();
        serde_json::from_str(&format!("[{}]", String::from_utf8(inside).unwrap())).unwrap()
    }

    fn whole(&self) -> Vec<Value> {
        self.sent(&Fitted::AsItIs(None))
    }
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn words(count: usize) -> String {
    "All work and no play. ".repeat(count / 6)
}

/// The account of what was counted, whose parts must add up and fit.
fn account(fitted: &Fitted) -> &Context {
    let context = fitted.context().unwrap();
    assert!(context.prompt() <= context.budget || matches!(fitted, Fitted::TooLong(_)), "{context:?}");
    assert_eq!(context.prompt(), context.transcript + context.tools + context.system);
    if !context.is_guess {
        assert_eq!(context.budget, context.window - context.reserve - context.safety);
    }
    context
}

#[tokio::test]
async fn what_fits_by_its_length_is_not_looked_at() {
    // The last is no JSON: it is not even read.
    for (window, text) in [(8192, words(1000)), (0, words(90_000)), (1_000_000, words(90_000))] {
        let mut run = Run::of(window, &[user(&text)]);
        run.slices.push(Bytes::from_static(b"no JSON"));
        assert!(matches!(run.fit().await, Fitted::AsItIs(None)), "{window}");
        assert_eq!(run.frames.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn what_fits_when_it_is_counted_stays_byte_for_byte() {
    let mut run = Run::of(3000, &[user(&words(2000))]);
    let fitted = run.fit().await;
    assert!(matches!(fitted, Fitted::AsItIs(Some(_))));
    let context = account(&fitted);
    assert!((1800..2600).contains(&context.transcript) && context.tools > 0 && context.system == 0, "{context:?}");
    assert_eq!((context.window, context.reserve, context.safety, context.dropped_turns), (3000, 100, 90, 0));
    assert_eq!(fitted.messages(&run.slices), run.slices);
}

#[tokio::test]
async fn a_loop_loses_its_oldest_turns_and_keeps_the_rest_as_it_was() {
    let mut run = Run::of(3000, &[json!({ "role": "developer", "content": "D" }), user("What?")]);
    run.system = Some(Bytes::from_static(
        br#"{"role":"system","content":"Be brief, and never say what you do not know. Answer in the language of the question."}"#,
    ));
    for _ in 0..4 {
        run.add(&[&words(500), &words(300)]);
    }
    let fitted = run.fit().await;
    let (whole, sent, context) = (run.whole(), run.sent(&fitted), account(&fitted));
    assert_eq!((context.dropped_turns, context.dropped_messages, context.shortened.len()), (1, 3, 0), "{context:?}");
    assert_eq!(sent[..2], whole[..2]);
    assert_eq!(sent[2..], whole[5..]);
    assert!(context.system > 15);
}

#[tokio::test]
async fn a_conversation_of_the_caller_is_fitted_too() {
    let mut messages = vec![user("First.")];
    for _ in 0..10 {
        messages.push(json!({ "role": "assistant", "content": words(200) }));
        messages.push(user(&words(100)));
    }
    let mut run = Run::of(2000, &messages);
    let fitted = run.fit().await;
    let (sent, context) = (run.sent(&fitted), account(&fitted));
    assert!((3..8).contains(&context.dropped_turns), "{context:?}");
    assert_eq!(sent[0], messages[0]);
    assert_eq!(sent[1..], messages[messages.len() - (sent.len() - 1)..]);
    assert_eq!(sent[1]["role"], "assistant", "the roles still take turns");
}

#[tokio::test]
async fn case_70_the_results_of_the_newest_turn_are_shortened_alike() {
    let mut run = Run::of(20_000, &[user("What?")]);
    let result = words(15_000);
    for _ in 0..5 {
        run.add(&[&result, &result, "short"]);
        let fitted = run.fit().await;
        let (sent, context) = (run.sent(&fitted), account(&fitted));
        assert!(context.prompt() * 10 > context.budget * 7, "as much stays as fits: {context:?}");
        assert_eq!(sent.len(), 5);
        assert_eq!((context.shortened.len(), &sent[4]["content"]), (2, &json!("short")));
        for (short, message) in context.shortened.iter().zip(&sent[2..]) {
            let text = message["content"].as_str().unwrap();
            assert_eq!(short.call, message["tool_call_id"].as_str().unwrap());
            assert!(text.contains(&format!("[cut: {} of {} bytes left out]", short.left_out, result.len())), "{text:.200}");
            assert!(text.starts_with("All work") && text.ends_with("no play. "));
        }
    }
}

#[tokio::test]
async fn where_not_even_what_must_stay_fits_everything_is_sent() {
    let mut run = Run::of(1000, &[user("First."), json!({ "role": "assistant", "content": "A." }), user(&words(3000))]);
    let fitted = run.fit().await;
    assert!(matches!(fitted, Fitted::TooLong(_)));
    assert!(account(&fitted).prompt() > 2000);
    assert_eq!(run.sent(&fitted), run.whole());
}

#[tokio::test]
async fn a_limit_that_leaves_nothing_of_the_window_measures_nothing() {
    let mut run = Run::of(1000, &[user(&words(3000))]);
    run.output_limit = Some(5000);
    assert!(matches!(run.fit().await, Fitted::AsItIs(None)));
}

#[tokio::test]
async fn a_guess_holds_only_what_rounds_add_and_never_the_newest_turn() {
    let mut messages = vec![user("First.")];
    messages.extend((0..20).map(|at| json!({ "role": if at % 2 == 0 { "assistant" } else { "user" }, "content": words(2000) })));
    let mut run = Run::of(0, &messages);
    assert!(matches!(run.fit().await, Fitted::AsItIs(None)));
    let (long, short) = (words(15_000), words(3000));
    for results in [&long, &short, &short, &short] {
        run.add(&[results]);
    }
    let fitted = run.fit().await;
    let (whole, sent, context) = (run.whole(), run.sent(&fitted), account(&fitted));
    assert!(context.is_guess && context.window == 8192 && context.shortened.is_empty());
    assert_eq!(context.dropped_turns, 1, "{context:?}");
    assert_eq!((&sent[..21], &sent[21..]), (&whole[..21], &whole[23..]));
    run.add(&[&long]);
    let fitted = run.fit().await;
    assert_eq!(run.sent(&fitted).last(), run.whole().last());
    assert_eq!(account(&fitted).dropped_turns, 2);
}

#[tokio::test]
async fn each_message_is_read_and_counted_once_in_a_run() {
    let mut run = Run::of(2000, &[user(&words(600))]);
    for round in 1..=100 {
        run.add(&[&words(200)]);
        let fitted = run.fit().await;
        if round < 10 {
            continue;
        }
        assert_eq!(run.sent(&fitted)[0], user(&words(600)), "{round}");
        assert_eq!(account(&fitted).dropped_turns, round - 5, "{round}");
        if round == 50 {
            // Whoever read these again would find no transcript.
            run.slices[1..80].fill(Bytes::from_static(b"no JSON"));
        }
    }
}

#[tokio::test]
async fn what_the_provider_reports_puts_the_count_right_and_never_below_it() {
    let mut run = Run::of(4000, &[user("What?")]);
    for _ in 0..5 {
        run.add(&[&words(600)]);
    }
    let dropped = |fitted: &Fitted| account(fitted).dropped_turns;
    let first = run.fit().await;
    let counted = account(&first).prompt();
    assert_eq!((dropped(&first), counted > 3000), (0, true));
    for (reported, expected) in [(1, 0), (counted, 0), (counted * 3 / 2, 2), (counted, 2)] {
        run.fitting.learn(reported);
        assert_eq!(dropped(&run.fit().await), expected, "{reported} where {counted} were counted");
    }
}

#[tokio::test]
async fn a_provider_that_finds_the_prompt_too_long_gets_what_it_says_or_half_once() {
    let table =
        [(100_000, "Too long.", 3500), (0, "Too long.", 3500), (100_000, "8192", 3500), (0, "Only 2000, not 5000.", 1840)];
    for (window, said, most) in table {
        let mut run = Run::of(window, &[user("What?"), json!({ "role": "assistant", "content": "A." }), user("And?")]);
        for _ in 0..4 {
            run.add(&[&words(1200)]);
        }
        assert!(matches!(run.fit().await, Fitted::AsItIs(_)), "{window}");
        assert!(run.fitting.was_refused(said));
        let fitted = run.fit().await;
        let context = fitted.context().unwrap();
        assert!(matches!(fitted, Fitted::Cut(..)) && context.prompt() <= context.budget && context.budget <= most, "{context:?}");
        assert_eq!(run.sent(&fitted).last(), run.whole().last());
        assert!(!run.fitting.was_refused(said), "only once");
        run.add(&[&words(1200)]);
        assert_eq!(run.fit().await.context().unwrap().budget, context.budget, "it is remembered");
    }
}

#[tokio::test]
async fn case_70_where_nobody_knows_the_window_half_is_no_more_than_most_models_have() {
    let mut run = Run::of(0, &[user("What?")]);
    assert!(matches!(run.fit().await, Fitted::AsItIs(None)));
    let result = words(15_000);
    run.add(&[result.as_str(); 40]);
    assert!(matches!(run.fit().await, Fitted::AsItIs(_)), "the newest turn is left alone");
    assert!(run.fitting.was_refused("Too long."));
    let fitted = run.fit().await;
    let context = fitted.context().unwrap();
    assert_eq!((context.budget, context.shortened.len()), (4 * 8192, 40));
    assert!(context.prompt() <= context.budget);
}

/// A transcript as callers send them: every result behind its call.
fn conversations() -> impl Strategy<Value = Vec<Value>> {
    let text = || (0usize..700).prop_map(words);
    let said = |role: &'static str| text().prop_map(move |text| vec![json!({ "role": role, "content": text })]);
    let calls = prop::collection::vec(text(), 1..4).prop_map(|results| {
        let call = |at| json!({ "id": format!("c{at}"), "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let asks =
            json!({ "role": "assistant", "content": null, "tool_calls": (0..results.len()).map(call).collect::<Vec<_>>() });
        let result = |(at, text)| json!({ "role": "tool", "tool_call_id": format!("c{at}"), "content": text });
        std::iter::once(asks).chain(results.into_iter().enumerate().map(result)).collect()
    });
    let step = prop_oneof![said("user"), said("assistant"), said("system"), calls.clone(), calls];
    let rest = prop::collection::vec(step, 0..8).prop_map(|steps| steps.into_iter().flatten().collect::<Vec<_>>());
    (said("user"), rest).prop_map(|(first, rest)| [first, rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn case_25_what_is_sent_holds_together_and_has_what_must_stay(messages in conversations(), window in 300u32..4000) {
        let mut run = Run::of(window, &messages);
        let fitted = run.fit().now_or_never().unwrap();
        let sent = run.sent(&fitted);
        prop_assert_eq!(History::read(fitted.messages(&run.slices)).unwrap().check(), Ok(()));
        let users = |list: &[Value]| list.iter().filter(|message| message["role"] == "user").cloned().collect::<Vec<_>>();
        let system = |list: &[Value]| list.iter().filter(|message| message["role"] == "system").cloned().collect::<Vec<_>>();
        prop_assert_eq!(system(&sent), system(&messages));
        let (kept, all) = (users(&sent), users(&messages));
        prop_assert_eq!((kept.first(), kept.last()), (all.first(), all.last()));
        prop_assert_eq!(sent.last().map(|message| &message["role"]), messages.last().map(|message| &message["role"]));
        match fitted.context() {
            Some(_) => drop(account(&fitted)),
            None => prop_assert_eq!(sent, messages),
        }
    }
}

#[tokio::test]
async fn another_target_is_fitted_by_its_own_window() {
    let mut run = Run::of(100_000, &[user("What?")]);
    for _ in 0..4 {
        run.add(&[&words(600)]);
    }
    assert!(matches!(run.fit().await, Fitted::AsItIs(None)));
    let small = target(2000);
    let frame = |_: &Target| Bytes::from_static(br#"{"messages":[]}"#);
    let call =
        Call { tokens: &run.tokens, messages: &run.slices, system: None, around: 100, frame: &frame, output_limit: Some(100) };
    let fitted = run.fitting.fit_at_once(&small, &call);
    assert_eq!(account(&fitted).dropped_turns, 2);
    let again = run.fitting.fit(&small, &call).await;
    assert_eq!(again.context(), fitted.context());
}
