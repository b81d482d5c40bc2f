//! Stores and counters that are not there, are stuck, or go away: nobody is let in to spend what cannot be written down or counted.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;
use toolgate_tests::caller::Response;
use toolgate_tests::gateway::{Gateway, command, program};
use toolgate_tests::ledger;
use toolgate_tests::scenario::Mode;
use toolgate_tests::services::{Database, REDIS_PASSWORD, Redis};
use toolgate_tests::stage::{PATIENCE, eventually};
use toolgate_tests::stand::Stand;

fn config(store: Value) -> Value {
    json!({
        "store": store,
        "models": {"m": {"tools": null, "price": {"input": 0, "output": 10}}},
        "keys": [{"name": "shop", "budgets": [{"per": "total", "usd": 1}], "rate": {"requests_per_minute": 100_000}}],
    })
}

async fn replies(count: usize) -> Stand {
    Stand::with(json!([{"content": "done", "usage": [10, 100], "times": count, "optional": true}]), json!({})).await
}

async fn ask(stand: &Stand) -> Response {
    stand.ask(Mode::Plain, json!({"body": {"max_tokens": 100}})).await
}

fn is_overloaded(response: &Response) -> bool {
    let has_wait = response.head.header("retry-after").is_some_and(|wait| wait.parse::<u32>().is_ok());
    response.status == 503 && response.json()["error"]["code"] == "overloaded" && has_wait
}

// ---- At the start -----------------------------------------------------------------------------------------------------------------------

/// It does not start: exit code 3, and the log says why, without a password.
async fn ends_with_3(stand: &Stand, store: Value, why: &str) {
    stand.configure(config(store.clone()));
    let mut gateway = Gateway::spawn(&stand.folder, stand.addresses.clone(), &[], &[]).expect("it can be run");
    let ended = tokio::time::timeout(PATIENCE * 2, gateway.process.wait()).await.expect("it ends").expect("it can be waited for");
    let log = gateway.log();
    assert_eq!(ended.code(), Some(3), "{store}: {log}");
    assert!(log.to_lowercase().contains(why), "{store}: expected {why:?} in\n{log}");
    assert!(!log.contains("CANARY"), "{log}");
}

async fn nobody_listens() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_ends_it_with_exit_code_3() {
    let stand = replies(0).await;
    stand.folder.write("a-file", "");
    stand.folder.write("no-database.db", &"This is not a database. ".repeat(100));
    ends_with_3(&stand, json!({"url": "sqlite:a-file/toolgate.db"}), "toolgate.db").await;
    ends_with_3(&stand, json!({"url": "sqlite:."}), "ledger").await;
    ends_with_3(&stand, json!({"url": "sqlite:no-database.db"}), "not a sqlite database").await;
    let address = nobody_listens().await;
    ends_with_3(&stand, json!({"url": format!("postgres://toolgate:PASSWORD-CANARY@{address}/toolgate")}), "ledger").await;
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_left_as_it_is() {
    let stand = replies(0).await;
    drop(stand.serve(config(json!({}))).await);
    let path = stand.folder.path().join("toolgate.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute("INSERT INTO toolgate_schema SELECT max(version) + 1, since, opened FROM toolgate_schema", [])
        .expect("a version");
    connection.close().expect("it is closed");
    let before = ledger_and_versions(&path);
    ends_with_3(&stand, json!({}), "knows versions up to").await;
    assert_eq!(ledger_and_versions(&path), before);
}

fn ledger_and_versions(path: &Path) -> (i64, i64) {
    let connection = Connection::open(path).unwrap();
    let count = |query| connection.query_row(query, [], |row| row.get(0)).expect("a number");
    (count("SELECT count(*) FROM ledger"), count("SELECT max(version) FROM toolgate_schema"))
}

/// Who runs the tests may be root, whom no file refuses: the program is run without that power.
#[tokio::test]
async fn a_store_that_may_only_be_read_ends_it_with_exit_code_3() {
    let stand = replies(1).await;
    std::fs::create_dir(stand.folder.path().join("store")).unwrap();
    let gateway = stand.serve(config(json!({"url": "sqlite:store/toolgate.db"}))).await;
    assert_eq!(ask(&stand).await.status, 200);
    drop(gateway);
    let folder = stand.folder.path().join("store");
    let may = |path: &Path, mode: u32| std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode is set");
    for file in std::fs::read_dir(&folder).unwrap() {
        may(&file.unwrap().path(), 0o444);
    }
    may(&folder, 0o555);
    let without = "--bounding-set=-dac_override,-dac_read_search";
    let mut command = Command::new(if is_root() { "setpriv".into() } else { program().unwrap() });
    if is_root() {
        command.args([without, "--inh-caps=-dac_override,-dac_read_search"]).arg(program().unwrap());
    }
    command.args(["serve", "--config"]).arg(stand.folder.path().join("toolgate.yaml")).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE * 2, command.output()).await.expect("it ends").expect("it can be run");
    may(&folder, 0o755);
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(printed.contains("toolgate.db"), "{printed}");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[tokio::test]
async fn a_database_that_refuses_the_password_ends_it_with_exit_code_3() {
    let Some(database) = Database::make().await else { return };
    let url = database.url();
    let (start, rest) = url.split_once("://").and_then(|(_, rest)| rest.split_once('@')).expect("a user in the URL");
    let user = start.split(':').next().unwrap();
    ends_with_3(&replies(0).await, json!({"url": format!("postgres://{user}:PASSWORD-CANARY@{rest}")}), "password").await;
}

#[tokio::test]
async fn counters_that_cannot_be_reached_end_it_with_exit_code_3() {
    let stand = replies(0).await;
    let address = nobody_listens().await;
    for on_failure in ["refuse", "local"] {
        let counters = format!("redis://:PASSWORD-CANARY@{address}/0");
        ends_with_3(&stand, json!({"counters": counters, "on_counter_failure": on_failure}), "counters").await;
    }
    let Some(redis) = Redis::start().await else { return };
    let wrong = redis.url().replace(REDIS_PASSWORD, "PASSWORD-CANARY");
    ends_with_3(&stand, json!({"counters": wrong}), "counters").await;
}

#[tokio::test]
async fn the_ledger_cannot_be_read_by_a_command_either() {
    let stand = replies(0).await;
    stand.folder.write("a-file", "");
    stand.configure(config(json!({"url": "sqlite:a-file/toolgate.db"})));
    let args = ["spend", "--config", "toolgate.yaml"].map(str::to_owned);
    let output = command(&stand.folder, &args, &[]).await.expect("it ends");
    assert_eq!(output.exit, 3, "{}{}", output.stdout, output.stderr);
}

// ---- Later ------------------------------------------------------------------------------------------------------------------------------

async fn is_ready(gateway: &Gateway) -> bool {
    gateway.admin("/readyz").await.status == 200
}

#[tokio::test]
async fn a_stuck_disk_is_a_503_and_no_lost_row() {
    let stand = replies(60).await;
    let gateway = stand.serve(config(json!({}))).await;
    let path = stand.folder.path().join("toolgate.db");
    let mut answered = vec![ask(&stand).await];
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    let (plain, streamed) = tokio::join!(ask(&stand), stand.ask(Mode::Streamed, json!({"body": {"max_tokens": 100}})));
    assert!(is_overloaded(&plain), "{} {}", plain.status, plain.text());
    assert!(!streamed.text().contains("[DONE]"), "an answer whose cost is not written down ends well: {}", streamed.text());
    eventually("it is not ready", || async { !is_ready(&gateway).await }).await;
    let asked = stand.upstream.received().len();
    assert!(is_overloaded(&ask(&stand).await), "somebody is let in");
    assert_eq!(stand.upstream.received().len(), asked, "the provider was asked for what could not be written down");
    other.execute_batch("ROLLBACK").unwrap();
    eventually("it is ready again", || is_ready(&gateway)).await;
    answered.push(ask(&stand).await);
    assert!(answered.iter().all(|response| response.status == 200));
    eventually("every call has its row, those too whose callers got none", || async {
        ledger::rows_of_file(&path).expect("the ledger").len() == stand.upstream.received().len()
    })
    .await;
}

#[tokio::test]
async fn a_disk_that_is_stuck_for_a_moment_is_waited_for() {
    let stand = replies(1).await;
    let _gateway = stand.serve(config(json!({}))).await;
    let other = Connection::open(stand.folder.path().join("toolgate.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    let release = async {
        assert!(stand.upstream.until(|seen| seen.len() == 1).await);
        tokio::time::sleep(Duration::from_millis(300)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let (response, ()) = tokio::join!(ask(&stand), release);
    assert_eq!(response.status, 200, "{}", response.text());
}

#[tokio::test]
async fn a_database_that_goes_away_is_a_503_until_it_is_back() {
    let Some(database) = Database::make().await else { return };
    let stand = replies(100).await;
    let gateway = stand.serve(config(json!({"url": database.url()}))).await;
    assert_eq!(ask(&stand).await.status, 200);
    database.shut(true).await;
    eventually("it turns requests away", || async { is_overloaded(&ask(&stand).await) }).await;
    eventually("it is not ready", || async { !is_ready(&gateway).await }).await;
    database.shut(false).await;
    eventually("it is ready again", || is_ready(&gateway)).await;
    eventually("it answers again", || async { ask(&stand).await.status == 200 }).await;
    eventually("every call has its row", || async {
        ledger::rows_of_database(&database).await.expect("the ledger").len() == stand.upstream.received().len()
    })
    .await;
}

#[tokio::test]
async fn counters_that_go_away_are_a_503_until_they_are_back() {
    let Some(mut redis) = Redis::start().await else { return };
    let stand = replies(200).await;
    let gateway = stand.serve(config(json!({"counters": redis.url()}))).await;
    assert_eq!(ask(&stand).await.status, 200);
    redis.kill().await;
    let refused = ask(&stand).await;
    assert!(is_overloaded(&refused), "{} {}", refused.status, refused.text());
    eventually("it is not ready", || async { !is_ready(&gateway).await }).await;
    assert!(!gateway.log().contains(REDIS_PASSWORD));
    redis.start_again().await;
    eventually("it answers again", || async { ask(&stand).await.status == 200 }).await;
    eventually("it is ready again", || is_ready(&gateway)).await;
    let rows = ledger::rows_of_file(&stand.folder.path().join("toolgate.db")).expect("the ledger");
    let spend = stand.ask(Mode::Plain, json!({"get": "/toolgate/spend"})).await.json();
    let written: u64 = rows.iter().map(|row| row[ledger::COST].as_u64().unwrap()).sum();
    let used = ledger::nano_usd(spend["budgets"][0]["used"].as_f64().expect("an amount"));
    assert!(used >= written, "an empty Redis has forgotten what was spent: {used} of {written}");
}

#[tokio::test]
async fn counters_that_go_away_are_local_where_the_file_says_so() {
    let Some(mut redis) = Redis::start().await else { return };
    let stand = replies(20).await;
    let mut config = config(json!({"counters": redis.url(), "on_counter_failure": "local"}));
    config["keys"][0]["budgets"] = json!([{"per": "total", "usd": 0.003}]);
    let gateway = stand.serve(config).await;
    assert_eq!(ask(&stand).await.status, 200);
    redis.kill().await;
    let statuses = [ask(&stand).await.status, ask(&stand).await.status, ask(&stand).await.status];
    assert_eq!(statuses, [200, 200, 429], "its own counters go on from the ledger");
    assert!(gateway.metric("toolgate_counters_local_total").await > 0.0);
    assert!(is_ready(&gateway).await, "it serves, so it is ready");
}

// ---- The end ----------------------------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn sigterm_flushes_the_ledger() {
    let held = json!({"content": "done", "usage": [10, 100], "until_caller_saw": "draining", "times": 8});
    let stand = Stand::with(json!([{"hang": true}, held]), json!({})).await;
    let mut gateway = stand.serve(config(json!({}))).await;
    // One that leaves before, whose row nobody waits for.
    stand.leave(Mode::Plain, json!({}), stand.upstream.until(|seen| seen.len() == 1)).await;
    let running = futures_util::future::join_all((0..8).map(|_| ask(&stand)));
    let drain = async {
        assert!(stand.upstream.until(|seen| seen.len() == 9).await);
        gateway.signal("TERM");
        eventually("/readyz says 503", || async { !is_ready(&gateway).await }).await;
        stand.stage.saw(b"draining");
    };
    let (responses, ()) = tokio::join!(running, drain);
    assert!(responses.iter().all(|response| response.status == 200));
    let ended = tokio::time::timeout(PATIENCE, gateway.process.wait()).await.expect("it ends").unwrap();
    assert_eq!(ended.code(), Some(0));
    assert_eq!(rows(stand.folder.path()).len(), 9);
}

fn rows(folder: &Path) -> Vec<Value> {
    ledger::rows_of_file(&folder.join("toolgate.db")).expect("the ledger")
}
