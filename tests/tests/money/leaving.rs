//! Case 29: callers that go away. Each leaves exactly one row a model call, priced by what it had by then, and nothing that is held.

use serde_json::{Value, json};
use toolgate_tests::gateway::Gateway;
use toolgate_tests::ledger;
use toolgate_tests::scenario::Mode;
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;

fn config() -> Value {
    json!({
        "models": {"m": {"price": {"input": 1, "output": 1}}},
        "tools": [{"name": "clock", "price": 0.25}],
        "keys": [{"name": "shop", "budgets": [{"per": "total", "usd": 1}], "rate": {"concurrent": 1}}],
    })
}

fn rows(stand: &Stand) -> Vec<Value> {
    ledger::rows_of_file(&stand.folder.path().join("toolgate.db")).expect("the ledger")
}

/// Returns the rows when there are so many, nothing is held any more, and what was used is what they come to.
async fn settled(stand: &Stand, gateway: &Gateway, count: usize) -> Vec<Value> {
    eventually("every call has its row", || async { rows(stand).len() >= count }).await;
    eventually("nothing is in flight", || async { gateway.metric("toolgate_in_flight").await == 0.0 }).await;
    let rows = rows(stand);
    assert_eq!(rows.len(), count, "{rows:#?}");
    let written: u64 = rows.iter().map(|row| row[ledger::COST].as_u64().expect("a known cost")).sum();
    eventually("nothing is held, and what was used is what the ledger comes to", || async {
        let spend = stand.ask(Mode::Plain, json!({"get": "/toolgate/spend"})).await.json();
        let used = ledger::nano_usd(spend["budgets"][0]["used"].as_f64().expect("an amount"));
        (used, spend["budgets"][0]["held"].as_f64()) == (written, Some(0.0))
    })
    .await;
    rows
}

/// 20 words of 8 characters, of which the caller hears five before it leaves.
fn long_stream() -> Value {
    let word = |number: usize| json!({"delta": {"content": format!("word{number:03} ")}});
    let mut sse = vec![json!({"delta": {"role": "assistant", "content": ""}})];
    sse.extend((1..=5).map(word));
    sse.push(json!({"until_caller_saw": "it never does"}));
    json!({ "sse": sse })
}

#[tokio::test]
async fn case_29_in_the_middle_of_a_stream() {
    let stand = Stand::with(json!([long_stream(), {"content": "done"}]), json!({})).await;
    let mut over = config();
    over["models"]["m"]["tools"] = Value::Null;
    let gateway = stand.serve(over).await;
    stand.leave(Mode::Streamed, json!({}), stand.stage.until_caller_saw("word005")).await;
    let rows = settled(&stand, &gateway, 1).await;
    assert_eq!((&rows[0]["outcome"], &rows[0]["estimated"]), (&json!("cancelled"), &json!(1)));
    assert!(rows[0]["output_tokens"].as_u64() >= Some(5) && rows[0]["input_tokens"].as_u64() >= Some(1), "{rows:#?}");
    // Its place is free again.
    assert_eq!(stand.hello().await.0, 200);
}

#[tokio::test]
async fn case_29_before_the_headers() {
    for mode in [Mode::Plain, Mode::Streamed] {
        let stand = Stand::with(json!([{"hang": true}, {"content": "done"}]), json!({})).await;
        let gateway = stand.serve(config()).await;
        stand.leave(mode, json!({}), stand.upstream.until(|seen| seen.len() == 1)).await;
        let rows = settled(&stand, &gateway, 1).await;
        assert_eq!((&rows[0]["outcome"], &rows[0]["output_tokens"]), (&json!("cancelled"), &json!(0)), "{mode:?}");
        assert!(rows[0]["input_tokens"].as_u64() >= Some(1), "{rows:#?}");
        assert_eq!(stand.hello().await.0, 200);
    }
}

#[tokio::test]
async fn case_29_while_a_tool_runs_in_the_second_round() {
    let call = |name: &str| json!({"calls": [{"name": name, "arguments": {"q": "a"}}], "usage": [100, 10]});
    let replies = json!([call("lookup"), call("clock"), {"content": "done"}]);
    let stand = Stand::with(replies, json!({"/clock": {"hang": true}})).await;
    let gateway = stand.serve(config()).await;
    stand.leave(Mode::Plain, json!({}), stand.tools.until(|seen| seen.len() == 2)).await;
    // The tool was asked, so it is paid for.
    let rows = settled(&stand, &gateway, 3).await;
    let costs: Vec<u64> = rows.iter().map(|row| row[ledger::COST].as_u64().unwrap()).collect();
    assert_eq!(costs, [110_000, 110_000, 250_000_000], "{rows:#?}");
    assert_eq!(stand.hello().await.0, 200);
}

#[tokio::test]
async fn case_29_right_after_the_end() {
    let stand = Stand::with(json!([{"content": "done", "usage": [100, 10]}]), json!({})).await;
    let gateway = stand.serve(config()).await;
    stand.leave(Mode::Streamed, json!({}), stand.stage.until_caller_saw("[DONE]")).await;
    let rows = settled(&stand, &gateway, 1).await;
    assert_eq!((&rows[0]["outcome"], &rows[0][ledger::COST]), (&json!("ok"), &json!(110_000)));
}

#[tokio::test]
async fn half_of_many_leave_and_give_their_share_back() {
    let hang = json!({"hang": true, "times": 10});
    let stand = Stand::with(json!([hang, {"content": "done", "usage": [0, 100], "together": 10, "times": 10}]), json!({})).await;
    let config = json!({
        "models": {"m": {"tools": null, "price": {"input": 0, "output": 10}}},
        "keys": [{"name": "shop", "budgets": [{"per": "total", "usd": 0.01}]}],
    });
    let gateway = stand.serve(config).await;
    let ask = json!({"body": {"max_tokens": 100}});
    let all_there = || stand.upstream.until(|seen| seen.len() == 10);
    futures_util::future::join_all((0..10).map(|_| stand.leave(Mode::Plain, ask.clone(), all_there()))).await;
    settled(&stand, &gateway, 10).await;
    let responses = futures_util::future::join_all((0..15).map(|_| stand.ask(Mode::Plain, ask.clone()))).await;
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 10);
    settled(&stand, &gateway, 20).await;
}

#[tokio::test]
async fn case_29_in_the_middle_of_speech() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\nconnection: close\r\n\r\n";
    let sound = format!("{head}first{}", "x".repeat(7495));
    let stand = Stand::with(json!([{"raw": [sound, {"cut": "silence"}]}, {"content": "done"}]), json!({})).await;
    let mut over = config();
    over["models"]["m"]["tools"] = Value::Null;
    let gateway = stand.serve(over).await;
    let ask = json!({"path": "/v1/audio/speech", "text": r#"{"model":"m","input":"Hello"}"#});
    stand.leave(Mode::Plain, ask, stand.stage.until_caller_saw("first")).await;
    let rows = settled(&stand, &gateway, 1).await;
    assert_eq!((&rows[0]["outcome"], &rows[0]["estimated"]), (&json!("cancelled"), &json!(1)));
    assert!(rows[0]["output_tokens"].as_u64() >= Some(1) && rows[0]["input_tokens"].as_u64() >= Some(1), "{rows:#?}");
    assert_eq!(stand.hello().await.0, 200);
}

#[tokio::test]
async fn case_29_in_the_middle_of_a_form() {
    let stand = Stand::with(json!([{"content": "done"}]), json!({})).await;
    let gateway = stand.serve(config()).await;
    let head = "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer tg-shop-KEY-CANARY\r\n\
                content-type: multipart/form-data; boundary=XX\r\ncontent-length: 100000\r\n\r\n";
    let form = format!("{head}--XX\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--XX\r\n");
    let is_held = || async {
        let spend = stand.ask(Mode::Plain, json!({"get": "/toolgate/spend"})).await.json();
        spend["budgets"][0]["held"].as_f64() > Some(0.0)
    };
    let under_way = async {
        eventually("its cost is set aside", is_held).await;
        true
    };
    stand.leave(Mode::Plain, json!({"raw": [form]}), under_way).await;
    // What did not come whole costs nothing.
    let rows = settled(&stand, &gateway, 1).await;
    assert_eq!((&rows[0]["input_tokens"], &rows[0][ledger::COST]), (&json!(0), &json!(0)));
}
