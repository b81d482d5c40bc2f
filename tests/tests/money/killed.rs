//! A gateway that is killed under load, again and again: every response that a caller received whole is in the ledger, and no budget is lower
//! than the ledger says.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_tests::caller::Response;
use toolgate_tests::ledger;
use toolgate_tests::scenario::Mode;
use toolgate_tests::services::{Database, Redis};
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;
use toolgate_tests::stream::Stream;

const KILLS: u64 = 20;
const CALLERS: usize = 16;

fn config(store: Value) -> Value {
    json!({
        "store": store,
        "models": {"m": {"tools": null, "price": {"input": 1, "output": 1}}},
        "keys": [{"name": "shop", "budgets": [{"per": "total", "usd": 1000}, {"per": "month", "requests": 1_000_000}]}],
    })
}

/// Asks again and again, plain and streamed by turns, until the gateway is gone; gives what came back whole.
async fn ask_until(stand: &Stand, gone: &AtomicBool, count: &AtomicUsize) -> Vec<Response> {
    let mut whole = Vec::new();
    for mode in [Mode::Plain, Mode::Streamed].into_iter().cycle() {
        if gone.load(Ordering::Relaxed) {
            break;
        }
        let response = stand.ask(mode, json!({"body": {"max_tokens": 100}})).await;
        if is_whole(&response) {
            whole.push(response);
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    whole
}

fn is_whole(response: &Response) -> bool {
    let is_over = !response.is_stream() || Stream::parse(&response.body).done == 1;
    response.status == 200 && response.broken.is_none() && is_over
}

/// What the budgets of the key say, by unit: used and held.
async fn used(stand: &Stand) -> [u64; 2] {
    let spend = stand.ask(Mode::Plain, json!({"get": "/toolgate/spend"})).await.json();
    let used = |at: usize| spend["budgets"][at]["used"].as_f64().unwrap_or_else(|| panic!("no budget {at}: {spend}"));
    [ledger::nano_usd(used(0)), ledger::nano_usd(used(1)) / 1_000_000_000]
}

async fn kill_again_and_again<F: Future<Output = Vec<Value>>>(store: Value, rows: impl Fn(String) -> F) {
    let reply = json!({"content": "done", "usage": [100, 50], "optional": true, "times": 40_000});
    let stand = Stand::with(json!([reply]), json!({})).await;
    let mut whole = Vec::new();
    for round in 0..KILLS {
        let mut gateway = stand.serve(config(store.clone())).await;
        let (gone, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        let callers = futures_util::future::join_all((0..CALLERS).map(|_| ask_until(&stand, &gone, &count)));
        let kill = async {
            // It comes in the middle of something, in another moment each time.
            eventually("responses come back whole", || async { count.load(Ordering::Relaxed) >= 10 }).await;
            tokio::time::sleep(Duration::from_millis((round * 7) % 40)).await;
            gateway.process.kill().await.expect("it is killed");
            gone.store(true, Ordering::Relaxed);
        };
        let (responses, ()) = tokio::join!(callers, kill);
        whole.extend(responses.into_iter().flatten());
    }
    let _gateway = stand.serve(config(store)).await;
    let used = used(&stand).await;
    let rows = rows(stand.folder.path().display().to_string()).await;
    let cost = |row: &Value| row[ledger::COST].as_u64().expect("a known cost");
    for response in &whole {
        let trace = response.trace().expect("a trace");
        let of_it: Vec<&Value> = rows.iter().filter(|row| row[ledger::TRACE] == *trace).collect();
        assert_eq!(of_it.len(), 1, "the response {trace} was received whole");
        assert_eq!(cost(of_it[0]), 150_000);
    }
    let written = [rows.iter().map(cost).sum(), rows.iter().map(|row| row["requests"].as_u64().unwrap()).sum::<u64>()];
    assert!(used[0] >= written[0] && used[1] >= written[1], "the budgets say {used:?}, the ledger {written:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_store_of_its_own() {
    kill_again_and_again(json!({}), |folder| async move {
        ledger::rows_of_file(&std::path::Path::new(&folder).join("toolgate.db")).expect("the ledger")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_store_that_others_share() {
    let Some((database, redis)) = Database::make().await.zip(Redis::start().await) else { return };
    let store = json!({"url": database.url(), "counters": redis.url()});
    let database = &database;
    kill_again_and_again(store, |_| async move { ledger::rows_of_database(database).await.expect("the ledger") }).await;
}
