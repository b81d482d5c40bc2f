//! Gateways that share their counters and their ledger: whatever is asked of which, together they let through what one would.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_tests::caller::{Response, send};
use toolgate_tests::gateway::{Folder, Gateway, free_addresses};
use toolgate_tests::ledger;
use toolgate_tests::scenario::{Ask, Mode};
use toolgate_tests::services::{Database, Redis};
use toolgate_tests::stand::Stand;

/// Two gateways over one Redis and one PostgreSQL.
struct Two {
    stand: Stand,
    database: Database,
    gateways: [Gateway; 2],
    _redis: Redis,
    _folder: Folder,
}

impl Two {
    /// `None`: the services are not at hand.
    async fn start(replies: Value, config: Value) -> Option<Self> {
        let (redis, database) = (Redis::start().await?, Database::make().await?);
        let stand = Stand::with(replies, json!({})).await;
        let mut config = config;
        config["store"] = json!({"url": database.url(), "counters": redis.url()});
        let first = stand.serve(config.clone()).await;
        let (folder, addresses) = (Folder::new(), free_addresses());
        config["server"] = json!({"listen": addresses.0, "admin_listen": addresses.1});
        folder.write("toolgate.yaml", &stand.configuration(config));
        let second = Gateway::start(&folder, addresses, &[]).await.expect("the second gateway starts");
        Some(Self { stand, database, gateways: [first, second], _redis: redis, _folder: folder })
    }

    /// Asks both, in turn, all at once.
    async fn ask(&self, mode: Mode, ask: Value, times: usize) -> Vec<Response> {
        let ask: Ask = serde_json::from_value(ask).expect("a request");
        let one = |number: usize| send(&self.gateways[number % 2].address, ask.steps(mode), &self.stand.stage);
        futures_util::future::join_all((0..times).map(one)).await
    }

    async fn spend(&self, at: usize) -> Value {
        let ask = Ask { get: Some("/toolgate/spend".to_owned()), ..Ask::default() };
        send(&self.gateways[at].address, ask.steps(Mode::Plain), &self.stand.stage).await.json()
    }
}

/// How many got which status, and with which code.
fn outcomes(responses: &[Response]) -> BTreeMap<(u16, String), usize> {
    let mut outcomes = BTreeMap::new();
    for response in responses {
        let code = response.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
        *outcomes.entry((response.status, code)).or_default() += 1;
    }
    outcomes
}

fn expected(answered: usize, refused: usize, code: &str) -> BTreeMap<(u16, String), usize> {
    [((200, String::new()), answered), ((429, code.to_owned()), refused)].into()
}

fn shop(limits: Value) -> Value {
    let mut shop = json!({"name": "shop"});
    shop.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
    json!({"models": {"m": {"tools": null, "price": {"input": 0, "output": 10}}}, "keys": [shop]})
}

#[tokio::test]
async fn two_hundred_at_once_against_a_budget_for_a_hundred() {
    let reply = json!([{"content": "done", "usage": [10, 100], "together": 100, "times": 100}]);
    let config = shop(json!({"budgets": [{"per": "total", "usd": 0.1}, {"per": "month", "requests": 150}]}));
    let Some(two) = Two::start(reply, config).await else { return };
    for mode in [Mode::Plain, Mode::Streamed] {
        let responses = two.ask(mode, json!({"body": {"max_tokens": 100}}), 200).await;
        let answered = if mode == Mode::Plain { 100 } else { 0 };
        let expected = if answered > 0 {
            expected(100, 100, "insufficient_quota")
        } else {
            [((429, "insufficient_quota".to_owned()), 200)].into()
        };
        assert_eq!(outcomes(&responses), expected, "{mode:?}");
    }
    assert_eq!(two.stand.upstream.received().len(), 100);
    for at in 0..2 {
        let spend = two.spend(at).await;
        assert_eq!(
            (spend["budgets"][0]["used"].as_f64(), spend["budgets"][0]["held"].as_f64()),
            (Some(0.1), Some(0.0)),
            "{spend}"
        );
        assert_eq!((spend["budgets"][1]["used"].as_u64(), spend["budgets"][1]["held"].as_u64()), (Some(100), Some(0)), "{spend}");
    }
    let rows = ledger::rows_of_database(&two.database).await.expect("the ledger");
    assert_eq!(rows.iter().map(|row| row[ledger::COST].as_u64().unwrap()).sum::<u64>(), 100_000_000);
}

#[tokio::test]
async fn case_35_one_rate_for_both() {
    let Some(two) =
        Two::start(json!([{"content": "done", "times": 40}]), shop(json!({"rate": {"requests_per_minute": 40}}))).await
    else {
        return;
    };
    let responses = two.ask(Mode::Plain, json!({}), 80).await;
    assert_eq!(outcomes(&responses), expected(40, 40, "rate_limit_exceeded"));
    let waits = responses.iter().filter_map(|response| response.head.header("retry-after"));
    assert!(waits.map(|wait| wait.parse::<u32>().expect("whole seconds")).all(|wait| (1..=60).contains(&wait)));
}

#[tokio::test]
async fn so_many_at_the_same_time_in_both_together() {
    let held = json!({"content": "done", "until_caller_saw": "HTTP/1.1 429", "times": 3});
    let replies = json!([held, {"content": "done", "times": 3}]);
    let Some(two) = Two::start(replies, shop(json!({"rate": {"concurrent": 3}}))).await else { return };
    // One more than may be there: the three wait for its refusal, so nobody comes after them.
    let responses = two.ask(Mode::Plain, json!({}), 4).await;
    assert_eq!(outcomes(&responses), expected(3, 1, "rate_limit_exceeded"));
    for _ in 0..3 {
        assert_eq!(two.ask(Mode::Plain, json!({}), 1).await[0].status, 200);
    }
}
