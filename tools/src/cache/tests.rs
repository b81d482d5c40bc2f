//! Calls that are the same, and calls that only look so.

use std::path::Path;
use std::sync::atomic::AtomicUsize;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use toolgate_config::check::{Source, read};
use toolgate_config::secret::Secret;

use super::*;

const LONG: Duration = Duration::from_secs(30);

/// The tool of a configuration that was read now.
fn tool() -> Arc<Tool> {
    let text = r#"
providers: { p: { kind: openai_compatible, base_url: "http://127.0.0.1:9/v1", trust_zone: local } }
models: { m: { provider: p } }
groups: { g: { egress: ["127.0.0.1:9"], data_class: public } }
tools: [ { name: t, group: g, http: { url: "http://127.0.0.1:9/" }, cache: 60s } ]
"#;
    let config = read(&Source { path: Path::new("toolgate.yaml"), text, env: &|_| None });
    let config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
    Arc::clone(config.tools.iter().next().unwrap())
}

fn caller(key: Option<&str>, user: Option<&str>, bearer: Option<&str>) -> Caller {
    Caller { key: key.map(KeyName::new), user: user.map(Arc::from), bearer: bearer.map(Secret::new) }
}

fn output(outcome: Outcome, text: &str) -> Output {
    Output { text: text.to_owned(), ..Output::said(outcome, &Said::Failed, "t") }
}

/// A tool that counts how often it is asked.
#[derive(Default)]
struct Asked(AtomicUsize);

impl Asked {
    fn once(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A process with one tool and what it was asked.
struct Stand {
    cache: Cache,
    tool: Arc<Tool>,
    asked: Asked,
}

impl Stand {
    fn new() -> Self {
        Self { cache: Cache::default(), tool: tool(), asked: Asked::default() }
    }

    async fn call_for(&self, holds: Duration, caller: &Caller, arguments: &str, outcome: Outcome) -> Output {
        let arguments = Arguments::parse(arguments).unwrap();
        let due = Instant::now() + LONG;
        let ask = Ask { tool: &self.tool, holds, arguments: &arguments, caller, due };
        self.cache.answer(ask, async || output(outcome, &self.asked.once().to_string())).await
    }

    async fn call(&self, caller: &Caller, arguments: &str) -> String {
        self.call_for(LONG, caller, arguments, Outcome::Ok).await.text
    }
}

#[tokio::test]
async fn the_same_call_is_asked_once() {
    let (stand, shop) = (Stand::new(), caller(Some("shop"), None, None));
    let first = stand.call_for(LONG, &shop, r#"{"a":1,"b":"x"}"#, Outcome::Ok).await;
    assert_eq!((first.text.as_str(), first.reached, first.cached), ("1", true, false));
    for same in [r#"{"a":1,"b":"x"}"#, r#"{ "b" : "\u0078", "a" : 1 }"#] {
        let again = stand.call_for(LONG, &shop, same, Outcome::Ok).await;
        assert_eq!((again.text.as_str(), again.outcome, again.reached, again.cached), ("1", Outcome::Ok, false, true), "{same}");
    }
    for (other, text) in [(r#"{"a":1.0,"b":"x"}"#, "2"), (r#"{"a":"1","b":"x"}"#, "3"), ("{}", "4"), (r#"{"a":1}"#, "5")] {
        assert_eq!(stand.call(&shop, other).await, text, "{other}");
    }
}

#[tokio::test]
async fn no_caller_is_answered_with_what_another_one_was() {
    let stand = Stand::new();
    let callers = [
        caller(Some("shop"), None, None),
        caller(Some("shop"), Some("ann"), None),
        caller(Some("shop"), Some("bob"), None),
        caller(Some("ann"), None, None),
        caller(None, None, Some("shop")),
        caller(None, None, Some("other")),
        caller(None, None, None),
    ];
    for round in 0..2 {
        for (at, caller) in callers.iter().enumerate() {
            assert_eq!(stand.call(caller, "{}").await, (at + 1).to_string(), "round {round}, {caller:?}");
        }
    }
}

#[tokio::test]
async fn after_a_reload_every_tool_is_another_one() {
    let (mut stand, shop) = (Stand::new(), caller(Some("shop"), None, None));
    assert_eq!(stand.call(&shop, "{}").await, "1");
    stand.tool = tool();
    assert_eq!(stand.call(&shop, "{}").await, "2");
}

#[tokio::test]
async fn nothing_that_went_wrong_is_kept() {
    let (stand, shop) = (Stand::new(), caller(Some("shop"), None, None));
    let outcomes = [Outcome::Error, Outcome::Timeout, Outcome::InvalidArguments, Outcome::Refused];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let output = stand.call_for(LONG, &shop, "{}", outcome).await;
        assert_eq!((output.outcome, output.text, output.cached), (outcome, (at + 1).to_string(), false));
    }
    assert_eq!(stand.call(&shop, "{}").await, "5");
    assert_eq!(stand.call(&shop, "{}").await, "5");
}

#[tokio::test]
async fn an_answer_holds_as_long_as_its_tool_says() {
    let (stand, shop) = (Stand::new(), caller(Some("shop"), None, None));
    let short = Duration::from_millis(30);
    assert_eq!(stand.call_for(short, &shop, "{}", Outcome::Ok).await.text, "1");
    tokio::time::sleep(2 * short).await;
    assert_eq!(stand.call_for(LONG, &shop, "{}", Outcome::Ok).await.text, "2");
    tokio::time::sleep(2 * short).await;
    assert_eq!(stand.call_for(LONG, &shop, "{}", Outcome::Ok).await.text, "2");
}

/// Calls that are made side by side, of a tool that waits until it may answer.
struct Crowd {
    stand: Arc<Stand>,
    go: Arc<Notify>,
    calls: JoinSet<Output>,
}

impl Crowd {
    fn new() -> Self {
        Self { stand: Arc::new(Stand::new()), go: Arc::default(), calls: JoinSet::new() }
    }

    /// One more that asks, and waits for so long.
    async fn join(&mut self, patience: Duration, outcome: Outcome) -> tokio::task::AbortHandle {
        let (stand, go) = (Arc::clone(&self.stand), Arc::clone(&self.go));
        let handle = self.calls.spawn(async move {
            let (arguments, caller) = (Arguments::parse("{}").unwrap(), caller(Some("shop"), None, None));
            let due = Instant::now() + patience;
            let ask = Ask { tool: &stand.tool, holds: LONG, arguments: &arguments, caller: &caller, due };
            let run = async || {
                let text = stand.asked.once().to_string();
                match tokio::time::timeout_at(due, go.notified()).await {
                    Ok(()) => output(outcome, &text),
                    Err(_) => output(Outcome::Timeout, &text),
                }
            };
            stand.cache.answer(ask, run).await
        });
        // Until it asks, or waits for whoever does.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        handle
    }

    async fn texts(mut self) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        while let Some(ended) = self.calls.join_next().await {
            all.extend(ended.ok().map(|output| (output.text, output.cached)));
        }
        all.sort();
        all
    }
}

#[tokio::test]
async fn calls_that_are_made_side_by_side_are_asked_once() {
    for (outcome, cached) in [(Outcome::Ok, true), (Outcome::Error, false)] {
        let mut crowd = Crowd::new();
        for _ in 0..5 {
            crowd.join(LONG, outcome).await;
        }
        crowd.go.notify_one();
        let stand = Arc::clone(&crowd.stand);
        let mut expected = vec![("1".to_owned(), cached); 4];
        expected.insert(0, ("1".to_owned(), false));
        assert_eq!(crowd.texts().await, expected);
        assert_eq!(stand.asked.times(), 1);
    }
}

#[tokio::test]
async fn who_waits_and_leaves_spoils_nothing_and_who_asks_and_leaves_is_replaced() {
    let mut crowd = Crowd::new();
    let asks = crowd.join(LONG, Outcome::Ok).await;
    let waits = crowd.join(LONG, Outcome::Ok).await;
    crowd.join(LONG, Outcome::Ok).await;
    waits.abort();
    asks.abort();
    while crowd.stand.asked.times() < 2 {
        tokio::task::yield_now().await;
    }
    crowd.go.notify_one();
    assert_eq!(crowd.texts().await, [("2".to_owned(), false)]);
}

#[tokio::test]
async fn who_has_more_time_asks_again() {
    let mut crowd = Crowd::new();
    crowd.join(Duration::from_millis(40), Outcome::Ok).await;
    crowd.join(LONG, Outcome::Ok).await;
    let stand = Arc::clone(&crowd.stand);
    while stand.asked.times() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    crowd.go.notify_one();
    assert_eq!(crowd.texts().await, [("1".to_owned(), false), ("2".to_owned(), false)]);
}

#[tokio::test]
async fn who_waits_waits_no_longer_than_its_own_time() {
    let mut crowd = Crowd::new();
    crowd.join(LONG, Outcome::Ok).await;
    crowd.join(Duration::from_millis(40), Outcome::Ok).await;
    let late = crowd.calls.join_next().await.unwrap().unwrap();
    assert_eq!((late.outcome, late.reached), (Outcome::Timeout, false));
    crowd.go.notify_one();
    assert_eq!(crowd.texts().await, [("1".to_owned(), false)]);
}

#[tokio::test]
async fn what_is_kept_is_bounded() {
    let (stand, shop) = (Stand::new(), caller(Some("shop"), None, None));
    let large = "x".repeat(1 << 20);
    for number in 0..100 {
        let arguments = Arguments::parse(&format!("{{\"n\":{number}}}")).unwrap();
        let ask = Ask { tool: &stand.tool, holds: LONG, arguments: &arguments, caller: &shop, due: Instant::now() + LONG };
        stand.cache.answer(ask, async || output(Outcome::Ok, &large)).await;
    }
    stand.cache.0.run_pending_tasks().await;
    let kept = stand.cache.0.weighted_size();
    assert!(kept <= LARGEST && kept > LARGEST / 2, "{kept}");
}
