//! A thousand runs of every kind, and one sum: the ledger, the metrics, the budgets and what callers are told agree to the nano-dollar and to
//! the token.

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolgate_tests::caller::Response;
use toolgate_tests::gateway::Gateway;
use toolgate_tests::ledger;
use toolgate_tests::metrics;
use toolgate_tests::scenario::Mode;
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;

const RUNS: usize = 1000;

/// Prices of which hardly a call comes to whole nano-dollars.
fn config() -> Value {
    json!({
        "providers": {"second": {"kind": "openai_compatible", "base_url": "{{upstream}}/second/v1", "api_key": "sk-SECOND", "retries": 1}},
        "models": {
            "m": {"price": {"input": 0.123457, "cached_input": 0.061729, "output": 0.700001}, "fallback": ["b"], "tools": {"max_rounds": 4}},
            "b": {"provider": "second", "price": {"input": 0.333333, "output": 1.999999}},
        },
        "tools": [{"name": "lookup", "price": 0.000_000_7}, {"name": "calc", "price": 0.002}],
        "keys": [{"name": "shop", "budgets": [{"per": "total", "usd": 1000}, {"per": "total", "tokens": 1_000_000_000}, {"per": "total", "requests": 1_000_000}]}],
    })
}

/// A number that looks like chance and is the same each time.
fn chance(number: u64, of: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)) % of
}

/// The model's replies: answers, calls of tools with and without a price, failures, streams without a usage or with half an end.
fn reply(number: u64) -> Value {
    let (prompt, completion) = (1 + chance(number * 3, 5000), 1 + chance(number * 5, 900));
    let cached = chance(number * 7, prompt + 1);
    let usage = json!({
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens_details": {"reasoning_tokens": completion / 3},
    });
    let call = |name: &str| json!({"name": name, "arguments": {"q": format!("q{number}"), "a": number, "b": 1}});
    let mut reply = match chance(number, 20) {
        0..=7 => json!({"content": "An answer.", "usage": usage}),
        8 => json!({"content": "An answer without a usage.", "usage": "none"}),
        9 => json!({"content": "An answer with zeros.", "usage": [0, 0]}),
        10..=12 => json!({"calls": [call("lookup")], "usage": usage}),
        13 => json!({"calls": [call("lookup"), call("calc"), call("clock")], "usage": usage}),
        14 => json!({"calls": [call("ghost")], "usage": usage}),
        15 => json!({"status": 500}),
        16 => json!({"status": 503}),
        17 => json!({"status": 400, "json": {"error": {"message": "no"}}}),
        18 => json!({"content": "An answer that is cut.", "usage": usage, "cut": "fin"}),
        _ => json!({"sse": [{"delta": {"role": "assistant", "content": "Half an ans"}}, {"cut": "reset"}]}),
    };
    reply["optional"] = json!(true);
    reply
}

async fn ask(stand: &Stand, number: usize) -> Response {
    let mode = if chance(number as u64, 2) == 0 { Mode::Plain } else { Mode::Streamed };
    let model = if chance(number as u64 * 11, 5) == 0 { "b" } else { "m" };
    stand.ask(mode, json!({"says": "word ".repeat(number % 40), "body": {"model": model}})).await
}

/// What the trace of a response says that it cost.
async fn cost_in_trace(stand: &Stand, response: &Response) -> u64 {
    let path = format!("/toolgate/traces/{}", response.trace().expect("a trace"));
    let trace = stand.ask(Mode::Plain, json!({ "get": path })).await.json();
    let cost = trace["cost_usd"].as_f64().unwrap_or_else(|| panic!("no cost: {trace}"));
    let rounds = trace["rounds"].as_array().expect("rounds").iter();
    let parts = rounds.flat_map(|round| {
        let calls = round["tool_calls"].as_array().into_iter().flatten().map(|call| call["cost_usd"].as_f64().unwrap_or(0.0));
        calls.chain([round["cost_usd"].as_f64().expect("a cost")]).collect::<Vec<_>>()
    });
    assert_eq!(parts.map(ledger::nano_usd).sum::<u64>(), ledger::nano_usd(cost), "the parts of {trace}");
    if let Some(told) = response.head.header("x-toolgate-cost-usd") {
        assert_eq!(told, ledger::decimal(ledger::nano_usd(cost)), "the header of {trace}");
    }
    ledger::nano_usd(cost)
}

async fn tokens_in_metrics(gateway: &Gateway) -> u64 {
    let all = metrics::parse(&gateway.admin("/metrics").await.text());
    let counted = |series: &&String| series.starts_with("toolgate_tokens_total") && !series.contains("kind=\"reasoning");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    all.keys().filter(counted).map(|series| all[series] as u64).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_mixed_runs_come_to_one_sum() {
    let replies: Vec<Value> = (0..8000).map(reply).collect();
    let stand = Stand::with(Value::Array(replies), json!({"/calc": {"status": 500}})).await;
    let gateway = stand.serve(config()).await;
    let asking = futures_util::stream::iter(0..RUNS).map(|number| ask(&stand, number)).buffer_unordered(24);
    let responses: Vec<Response> = asking.collect().await;
    eventually("nothing is in flight", || async { gateway.metric("toolgate_in_flight").await == 0.0 }).await;

    let rows = ledger::rows_of_file(&stand.folder.path().join("toolgate.db")).expect("the ledger");
    let cost = |row: &Value| row[ledger::COST].as_u64().expect("a known cost");
    let sum_of = |column: &str| rows.iter().map(|row| row[column].as_u64().unwrap_or(0)).sum::<u64>();
    let written: u64 = rows.iter().map(cost).sum();
    let mut told = 0;
    for response in &responses {
        let of_trace = cost_in_trace(&stand, response).await;
        let of_rows: u64 = rows.iter().filter(|row| row[ledger::TRACE] == response.trace().unwrap()).map(cost).sum();
        assert_eq!(of_trace, of_rows, "the trace and the rows of {:?}", response.trace());
        told += of_trace;
    }
    let counted = ledger::spent(&gateway.admin("/metrics").await.text());
    let spend = stand.ask(Mode::Plain, json!({"get": "/toolgate/spend"})).await.json();
    let used = |at: usize| spend["budgets"][at]["used"].as_f64().expect("an amount");
    assert_eq!([written, counted, ledger::nano_usd(used(0))], [told; 3], "ledger, metrics, budget; and what callers were told");

    let tokens = ["input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens"].map(sum_of).iter().sum::<u64>();
    assert_eq!([tokens_in_metrics(&gateway).await, ledger::nano_usd(used(1)) / 1_000_000_000], [tokens; 2], "tokens");
    assert_eq!(ledger::nano_usd(used(2)) / 1_000_000_000, sum_of("requests"), "requests");
    for budget in spend["budgets"].as_array().unwrap() {
        assert_eq!(budget["held"].as_f64(), Some(0.0), "{spend}");
    }
    let kinds = ["ok", "server_error", "client_error", "cut"];
    assert!(kinds.iter().all(|kind| rows.iter().any(|row| row["outcome"] == *kind)), "some kind of call is missing");
    assert!(rows.iter().any(|row| row["tool"] == "lookup") && rows.iter().any(|row| row["provider"] == "second"));
}
