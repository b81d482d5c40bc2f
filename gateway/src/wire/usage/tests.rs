//! Usages as providers really send them, and what of them is charged.

use super::*;

fn parse(text: &str) -> Usage {
    Usage::parse(text).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn usage_is_read_as_providers_send_it() {
    let table = [
        (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, Some((10, 5, 15, 0))),
        (r#"{"prompt_tokens":10,"completion_tokens":5}"#, Some((10, 5, 15, 0))),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}"#, Some((10, 5, 15, 4))),
        (r#"{"prompt_tokens":10,"completion_tokens":null,"prompt_tokens_details":null}"#, Some((10, 0, 10, 0))),
        (r#"{"prompt_tokens":10.0,"completion_tokens":5e0,"cost":{},"unknown":[1]}"#, Some((10, 5, 15, 0))),
        (r#"{"prompt_tokens":"x","completion_tokens":-3,"total_tokens":0}"#, None),
        (r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#, None),
        (r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"cost":0.5}"#, None),
        ("null", None),
        ("[]", None),
    ];
    for (text, expected) in table {
        let seen = Usage::parse(text).map(|usage| (usage.prompt, usage.completion, usage.total, usage.cached()));
        assert_eq!(seen, expected, "{text}");
    }
}

#[test]
fn each_token_is_charged_once_and_by_its_kind() {
    // What is sent, then: fresh, cached, written to the cache, output, and the part of it that was reasoning.
    let table = [
        // OpenAI.
        (r#"{"prompt_tokens":100,"completion_tokens":20}"#, [100, 0, 0, 20, 0]),
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":8},"completion_tokens_details":{"reasoning_tokens":12,"audio_tokens":3,"accepted_prediction_tokens":1,"rejected_prediction_tokens":2}}"#,
            [36, 64, 0, 20, 12],
        ),
        // OpenRouter, and others that write caches.
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":50}}"#,
            [10, 40, 50, 20, 0],
        ),
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cache_creation_tokens":50}}"#,
            [50, 0, 50, 20, 0],
        ),
        (
            r#"{"prompt_tokens":100,"completion_tokens":2,"prompt_tokens_details":{"cache_write_tokens":50,"cache_creation_tokens":50}}"#,
            [50, 0, 50, 2, 0],
        ),
        // DeepSeek: by its own names, with and without OpenAI's beside them.
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
            [36, 64, 0, 20, 0],
        ),
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64},"prompt_cache_hit_tokens":64,"completion_tokens_details":{"reasoning_tokens":7}}"#,
            [36, 64, 0, 20, 7],
        ),
        // Reasoning beside the completion, as the total says.
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":150,"completion_tokens_details":{"reasoning_tokens":30}}"#,
            [100, 0, 0, 50, 30],
        ),
        // A total that explains nothing changes nothing.
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":999,"completion_tokens_details":{"reasoning_tokens":30}}"#,
            [100, 0, 0, 20, 30],
        ),
        // More cached than there is: nothing falls below zero, nothing is counted twice.
        (
            r#"{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":50,"cache_write_tokens":50}}"#,
            [0, 10, 0, 1, 0],
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":50}}"#,
            [0, 4, 6, 1, 0],
        ),
    ];
    for (text, [fresh, cached, cache_write, output, reasoning]) in table {
        let usage = parse(text);
        assert_eq!(usage.billed(), Billed { fresh, cached, cache_write, output }, "{text}");
        assert_eq!(usage.reasoning(), reasoning, "{text}");
        assert_eq!(usage.billed().total(), usage.prompt + output, "{text}");
    }
}

#[test]
fn absurd_counts_are_no_usage_and_great_ones_do_not_overflow() {
    for absurd in [
        r#"{"prompt_tokens":18446744073709551615,"completion_tokens":1}"#,
        r#"{"prompt_tokens":1,"completion_tokens":1e300}"#,
        r#"{"prompt_tokens":1073741824,"completion_tokens":1,"total_tokens":99999999999999999999}"#,
    ] {
        assert_eq!(Usage::parse(absurd), None, "{absurd}");
    }
    let great = r#"{"prompt_tokens":1073741823,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":1e30}}"#;
    let mut sum = parse(great);
    for _ in 0..1000 {
        sum.add(&parse(great));
    }
    assert_eq!((sum.prompt, sum.cached()), ((MOST - 1) * 1001, MOST * 1001));
}

#[test]
fn case_31_a_bad_cost_is_ignored_and_the_tokens_beside_it_are_not() {
    let table = [
        ("0.00014", Some(140_000)),
        ("1.5e-6", Some(1500)),
        ("0", Some(0)),
        ("null", None),
        ("-1", None),
        ("1e308", None),
        ("1e999", None),
        ("\"NaN\"", None),
        ("\"0.5\"", None),
        ("{\"total\":1}", None),
        ("2000000", None),
    ];
    for (cost, expected) in table {
        let usage = parse(&format!(r#"{{"prompt_tokens":10,"completion_tokens":5,"cost":{cost},"cost_details":{{"x":1}}}}"#));
        assert_eq!((usage.total, usage.reported_cost().map(|cost| cost.0)), (15, expected), "{cost}");
    }
}

#[test]
fn rounds_add_up_with_their_details() {
    let mut sum = parse(r#"{"prompt_tokens":1,"completion_tokens":2,"cost":0.25,"prompt_cache_hit_tokens":1}"#);
    let other =
        r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"completion_tokens_details":{"reasoning_tokens":2}}"#;
    sum.add(&parse(other));
    assert!(!sum.lacks_prompt() && parse(r#"{"completion_tokens":1}"#).lacks_prompt());
    assert_eq!((sum.prompt, sum.completion, sum.total, sum.reasoning()), (4, 6, 10, 2));
    assert_eq!((sum.cached(), sum.reported_cost()), (1, Some(NanoUsd(250_000_000))));
    sum.add(&parse(r#"{"prompt_tokens":3,"completion_tokens":4,"cost":0.5}"#));
    assert_eq!(sum.reported_cost(), Some(NanoUsd(750_000_000)));
}

#[test]
fn a_sum_is_shown_with_openai_s_members_alone() {
    let mut sum = Usage::default();
    let told = r#"{"prompt_tokens":1,"completion_tokens":2,"cost":0.25,"prompt_cache_hit_tokens":1,"completion_tokens_details":{"reasoning_tokens":2}}"#;
    sum.add(&parse(told));
    let expected = r#"{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}"#;
    assert_eq!(sum.render(), expected);
    assert_eq!(
        parse(r#"{"prompt_tokens":1,"prompt_tokens_details":{"cache_write_tokens":1}}"#).render().matches("cache").count(),
        1
    );
}

#[test]
fn what_was_put_aside_is_what_it_was() {
    let usage = parse(r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}"#);
    assert_eq!(serde_json::from_str::<Usage>(&usage.render()).unwrap(), usage);
}
