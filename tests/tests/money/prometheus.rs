//! The dashboard and the rules in `config/prometheus`, held against the real Prometheus, which scrapes a real gateway: every metric that they
//! name is there, every panel shows something, an alert fires.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use toolgate_tests::caller::{request, send};
use toolgate_tests::config::BOSS;
use toolgate_tests::gateway::{Folder, Gateway, free_addresses};
use toolgate_tests::reply::Step;
use toolgate_tests::scenario::Mode;
use toolgate_tests::services::{Redis, not_played, program};
use toolgate_tests::stage::{PATIENCE, Stage, eventually};
use toolgate_tests::stand::Stand;

/// No file can make a tool ask for what its group does not list, so nothing counts it so far.
const COUNTED_BY_NOTHING_YET: &str = "toolgate_egress_denied_total";

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prometheus").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(shipped(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

// ---- promtool ---------------------------------------------------------------------------------------------------------------------------

async fn promtool(args: &[&str], stdin: Option<&str>) {
    const VARIABLE: &str = "TOOLGATE_TEST_PROMTOOL";
    let Some(promtool) = program(VARIABLE, &["promtool"]) else { return not_played(VARIABLE) };
    let folder = Folder::new();
    let input = stdin.map_or_else(Stdio::null, |text| std::fs::File::open(folder.write("stdin", text)).unwrap().into());
    let mut command = Command::new(promtool);
    let output = command.args(args).current_dir(shipped("")).stdin(input).output().await.expect("promtool runs");
    let printed = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {args:?}:\n{}", String::from_utf8_lossy(&printed));
}

#[tokio::test]
async fn the_rules_are_rules_and_fire_when_they_should() {
    promtool(&["check", "rules", "alerts.yml"], None).await;
    promtool(&["test", "rules", "alerts.test.yml"], None).await;
}

#[tokio::test]
async fn the_example_for_prometheus_is_a_configuration() {
    promtool(&["check", "config", "prometheus.yml"], None).await;
}

#[test]
fn every_alert_has_a_test() {
    let tests = read("alerts.test.yml");
    for name in alerts().iter().filter_map(|rule| rule["alert"].as_str()) {
        let fires = format!("alertname: {name}\n        exp_alerts:");
        assert!(tests.contains(&fires), "{name} fires in no test");
    }
}

#[test]
fn every_metric_of_the_rules_and_the_dashboard_is_in_the_documents() {
    let page = std::fs::read_to_string(shipped("../../docs/metrics.md")).unwrap();
    let unknown: Vec<_> = named_metrics().into_iter().filter(|name| !page.contains(&format!("`{name}"))).collect();
    assert!(unknown.is_empty(), "docs/metrics.md does not know {unknown:?}");
}

// ---- What the files hold ----------------------------------------------------------------------------------------------------------------

fn alerts() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&read("alerts.yml")).expect("YAML");
    let groups = file["groups"].as_array().expect("groups").iter();
    groups.flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
}

/// Every query of the dashboard with its panel, as Grafana would send it.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read("toolgate.dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let of_panel = |panel: &Value| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        let queries = targets.into_iter().map(move |target| (title.clone(), filled(target["expr"].as_str().expect("a query"))));
        queries.collect::<Vec<_>>()
    };
    let annotations = dashboard["annotations"]["list"].as_array().expect("annotations").iter();
    let annotations = annotations.map(|one| (one["name"].to_string(), filled(one["expr"].as_str().expect("a query"))));
    panels.flat_map(of_panel).chain(annotations).collect()
}

fn filled(query: &str) -> String {
    let query = query.replace("$__rate_interval", "1m");
    ["$instance", "$key", "$model"].iter().fold(query, |query, variable| query.replace(variable, ".*"))
}

/// The metrics that the rules and the dashboard name, as docs/metrics.md has them.
fn named_metrics() -> BTreeSet<String> {
    let rules = alerts().into_iter().map(|rule| rule["expr"].as_str().expect("an expression").to_owned());
    let all = rules.chain(queries().into_iter().map(|(_, query)| query));
    let words: BTreeSet<String> = all.flat_map(|text| words(&text)).collect();
    let without_suffix = |word: &str| ["_bucket", "_sum", "_count"].iter().find_map(|s| word.strip_suffix(s)).map(str::to_owned);
    words.into_iter().map(|word| without_suffix(&word).unwrap_or(word)).collect()
}

/// The names of metrics in an expression; those that rules record hold a colon.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    words.filter(|word| word.starts_with("toolgate_") && !word.contains(':')).map(str::to_owned).collect()
}

#[test]
fn no_two_panels_of_the_dashboard_stand_on_the_same_place() {
    let dashboard: Value = serde_json::from_str(&read("toolgate.dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64()), "two panels have the id {}", panel["id"]);
        let side = |name: &str| panel["gridPos"][name].as_u64().expect("a place");
        assert!(side("x") + side("w") <= 24, "{} stands over the edge", panel["title"]);
        for cell in (side("y")..side("y") + side("h")).flat_map(|y| (side("x")..side("x") + side("w")).map(move |x| (x, y))) {
            assert!(taken.insert(cell), "{} stands on another", panel["title"]);
        }
    }
}

// ---- The real one -----------------------------------------------------------------------------------------------------------------------

/// A Prometheus with the shipped configuration, quicker, and with one gateway.
struct Prometheus {
    address: String,
    _folder: Folder,
    _process: Child,
}

impl Prometheus {
    async fn start(program: &Path, gateway: &Gateway) -> Self {
        let (folder, address) = (Folder::new(), free_addresses().0);
        let rules = format!("[ {} ]", shipped("alerts.yml").canonicalize().unwrap().display());
        let config = read("prometheus.yml").replace("127.0.0.1:9080", &gateway.admin).replace(": 15s", ": 200ms");
        let config = folder.write("prometheus.yml", &config.replace("[ alerts.yml ]", &rules));
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("Prometheus can be run");
        let prometheus = Self { address, _folder: folder, _process: process };
        // It is a large program, and the machine may be busy.
        for _ in 0..300 {
            if prometheus.get("/-/ready").await.0 == 200 {
                break;
            }
            tokio::time::sleep(PATIENCE / 100).await;
        }
        prometheus
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let response = send(&self.address, vec![Step::Send(request("GET", path, &[], None))], &Stage::default()).await;
        (response.status, response.json())
    }

    /// What a query comes to; it must be one that Prometheus understands.
    async fn query(&self, query: &str) -> Vec<Value> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (status, body) = self.get(&format!("/api/v1/query?query={escaped}")).await;
        assert_eq!(status, 200, "{query}: {body}");
        body["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    async fn shows(&self, query: &str) -> bool {
        !self.query(query).await.is_empty()
    }

    async fn is_firing(&self, alert: &str) -> bool {
        let (_, body) = self.get("/api/v1/alerts").await;
        let alerts = body["data"]["alerts"].as_array().cloned().unwrap_or_default();
        alerts.iter().any(|one| one["labels"]["alertname"] == alert && one["state"] == "firing")
    }
}

/// A gateway of which every metric can be seen: money and tokens, budgets and rates that refuse, tools that run, are withheld and are refused.
fn everything(redis: &Redis) -> Value {
    json!({
        "store": {"counters": redis.url(), "on_counter_failure": "local"},
        "models": {
            "m": {"price": {"input": 1, "output": 2}, "tools": {"max_rounds": 1}},
            "unpriced": {"provider": "mock"},
        },
        "tools": [{"name": "calc", "enabled": false}],
        "keys": [
            {"name": "shop", "models": ["m"], "budgets": [{"per": "total", "requests": 2}, {"per": "month", "usd": 5}]},
            {"name": "boss", "rate": {"requests_per_minute": 2}},
        ],
    })
}

fn replies() -> Value {
    let usage = json!({
        "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 20},
    });
    let calls = json!([{"id": "a", "name": "lookup", "arguments": {"q": "a"}}, {"id": "b", "name": "calc", "arguments": {"a": 1, "b": 2}}]);
    let run = [json!({"calls": calls, "usage": usage}), json!({"content": "done", "usage": usage})];
    let plain = json!({"content": "done", "times": 4});
    Value::Array([run.clone().to_vec(), vec![plain.clone(), plain.clone()], run.to_vec(), vec![plain.clone(), plain]].concat())
}

#[tokio::test]
async fn a_real_prometheus_sees_everything_that_the_dashboard_shows_and_an_alert_fires() {
    const VARIABLE: &str = "TOOLGATE_TEST_PROMETHEUS";
    let Some(program) = program(VARIABLE, &["prometheus"]) else { return not_played(VARIABLE) };
    let Some(mut redis) = Redis::start().await else { return };
    let stand = Stand::with(replies(), json!({})).await;
    let gateway = stand.serve(everything(&redis)).await;
    let prometheus = Prometheus::start(&program, &gateway).await;
    let unpriced = json!({"key": BOSS, "body": {"model": "unpriced"}});

    assert_eq!(stand.ask(Mode::Streamed, json!({})).await.status, 200);
    for status in [200, 200, 429] {
        assert_eq!(stand.ask(Mode::Plain, unpriced.clone()).await.status, status);
    }
    eventually("what was spent is seen", || prometheus.shows("toolgate_spend_usd_total > 0")).await;
    assert_eq!(stand.ask(Mode::Plain, json!({})).await.status, 200);
    for _ in 0..2 {
        assert_eq!(stand.ask(Mode::Plain, json!({})).await.status, 429);
        eventually("a refusal is seen", || prometheus.shows("toolgate_budget_denied_total > 0")).await;
    }
    eventually("a full budget calls somebody", || prometheus.is_firing("ToolgateBudgetAlmostGone")).await;
    eventually("a refusal calls somebody", || prometheus.is_firing("ToolgateBudgetDenied")).await;

    redis.kill().await;
    eventually("the counters are local", || async {
        stand.ask(Mode::Plain, unpriced.clone()).await;
        gateway.metric("toolgate_counters_local_total").await > 0.0
    })
    .await;
    eventually("each for itself is seen", || prometheus.shows("toolgate_counters_local_total > 0")).await;

    promtool(&["check", "metrics"], Some(&gateway.admin("/metrics").await.text())).await;
    let (_, names) = prometheus.get("/api/v1/label/__name__/values").await;
    let seen: BTreeSet<&str> = names["data"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let missing: Vec<String> = named_metrics().into_iter().filter(|name| !is_seen(&seen, name)).collect();
    assert_eq!(missing, [COUNTED_BY_NOTHING_YET], "named in the rules or the dashboard, and not there");
    let mut empty = Vec::new();
    for (panel, query) in queries() {
        let may_be_empty = query.contains(COUNTED_BY_NOTHING_YET) || panel.contains("Reloads");
        if prometheus.query(&query).await.is_empty() && !may_be_empty {
            empty.push(format!("{panel}: {query}"));
        }
    }
    assert!(empty.is_empty(), "panels that show nothing:\n{}", empty.join("\n"));
}

/// A histogram is there under other names.
fn is_seen(seen: &BTreeSet<&str>, name: &str) -> bool {
    seen.contains(name) || seen.contains(format!("{name}_bucket").as_str())
}
