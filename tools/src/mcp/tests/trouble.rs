//! Servers that die, hang, flood and linger.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use toolgate_config::mcp::{McpServer, Reach};
use toolgate_config::tool::Effect;

use super::super::{CallError, Hub, State};
use super::house::*;
use crate::arguments::Arguments;
use crate::net::Net;

#[tokio::test]
async fn concurrent_calls_share_a_session_and_keep_their_answers_apart() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let calls = (0..50).map(|number| {
        let (hub, work) = (Arc::clone(&hub), fixture.work("echo"));
        tokio::spawn(async move {
            let arguments = format!(r#"{{"n": {number}}}"#);
            assert_eq!(text(call(&hub, &work, &arguments, Effect::ReadOnly).await), arguments);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(fixture.count("initialize"), 1);
    hub.close().await;
}

#[tokio::test]
async fn case_59a_a_server_that_dies_is_mended_and_only_what_may_be_is_done_again() {
    let table = [
        (Effect::ReadOnly, Ok("alive"), 2),
        (Effect::IdempotentWrite, Ok("alive"), 2),
        (Effect::NonIdempotentWrite, Err(CallError::Unknown), 1),
    ];
    for (effect, expected, calls) in table {
        let fixture = fixture(&[]);
        let hub = hub(&[&fixture]).await;
        let answer = call(&hub, &fixture.work("die-once"), "{}", effect).await;
        assert_eq!(answer.map(|answer| answer.pieces[0].as_str().to_owned()), expected.map(str::to_owned), "{effect:?}");
        assert_eq!(fixture.count("tools/call"), calls, "{effect:?}");
        assert_eq!(text(call(&hub, &fixture.work("echo"), "{}", Effect::NonIdempotentWrite).await), "{}", "it is back");
        fixture.hears("tools/list", 2).await;
        hub.close().await;
    }
}

#[tokio::test]
async fn a_write_that_finds_a_dead_server_is_made_in_the_next_session() {
    for _ in 0..5 {
        let fixture = fixture(&[]);
        let hub = hub(&[&fixture]).await;
        let process = fixture.processes("start")[0];
        let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
        assert!(killed.success());
        while runs(process) {
            std::thread::yield_now();
        }
        assert_eq!(text(call(&hub, &fixture.work("echo"), r#"{"a":1}"#, Effect::NonIdempotentWrite).await), r#"{"a": 1}"#);
        assert_eq!(fixture.count("tools/call"), 1);
        hub.close().await;
    }
}

#[tokio::test]
async fn closing_waits_for_no_call() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let (other, work) = (Arc::clone(&hub), fixture.work("slow"));
    let pending = tokio::spawn(async move { call(&other, &work, r#"{"seconds": 600}"#, Effect::ReadOnly).await });
    fixture.hears("tools/call", 1).await;
    timeout(Duration::from_secs(10), hub.close()).await.unwrap();
    assert!(matches!(pending.await.unwrap(), Err(CallError::Down | CallError::Failed)));
}

#[tokio::test]
async fn case_59ab_pending_calls_hear_of_the_end_within_a_second() {
    for tool in ["die", "mute", "huge"] {
        let fixture = fixture(&[]);
        let hub = hub(&[&fixture]).await;
        let (other, work) = (Arc::clone(&hub), fixture.work("slow"));
        let pending = tokio::spawn(async move { call(&other, &work, r#"{"seconds": 600}"#, Effect::NonIdempotentWrite).await });
        fixture.hears("tools/call", 1).await;
        let answer = call(&hub, &fixture.work(tool), "{}", Effect::NonIdempotentWrite).await;
        assert_eq!(answer, Err(CallError::Unknown), "{tool}");
        let pending = timeout(Duration::from_secs(1), pending).await.unwrap().unwrap();
        assert_eq!(pending, Err(CallError::Unknown), "{tool}");
        hub.close().await;
    }
}

#[tokio::test]
async fn case_59c_the_time_limit_covers_the_writing() {
    let fixture = fixture_with(&[], Duration::from_secs(2), &[]);
    let hub = hub(&[&fixture]).await;
    assert_eq!(text(call(&hub, &fixture.work("stop-reading"), "{}", Effect::ReadOnly).await), "deaf now");
    let arguments = Arguments::parse(&format!(r#"{{"x": "{}"}}"#, "y".repeat(1_000_000))).unwrap();
    let due = Instant::now() + Duration::from_millis(300);
    let stuck = hub.call(&fixture.work("echo"), &arguments, Effect::ReadOnly, due).await;
    assert_eq!(stuck, Err(CallError::TimedOut { sent: true }));
    // It waits behind the other and is never begun.
    let due = Instant::now() + Duration::from_millis(300);
    let behind = hub.call(&fixture.work("echo"), &Arguments::parse("{}").unwrap(), Effect::NonIdempotentWrite, due).await;
    assert_eq!(behind, Err(CallError::TimedOut { sent: false }));
    // A server that takes nothing for its time limit is taken for dead.
    fixture.hears("start", 2).await;
    assert_eq!(text(call(&hub, &fixture.work("echo"), r#"{"a":2}"#, Effect::NonIdempotentWrite).await), r#"{"a": 2}"#);
    hub.close().await;
}

#[tokio::test]
async fn case_59d_what_is_no_message_is_passed_over() {
    let fixture = fixture_with(&[], LONG, &[("TOKEN", "SECRET-CANARY-1")]);
    let hub = hub(&[&fixture]).await;
    assert_eq!(text(call(&hub, &fixture.work("chatter"), "{}", Effect::NonIdempotentWrite).await), "done");
    assert_eq!(fixture.count("initialize"), 1);
    hub.close().await;
}

#[tokio::test]
async fn a_server_that_talks_without_end_is_heard_all_the_same() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    assert_eq!(text(call(&hub, &fixture.work("flood"), "{}", Effect::NonIdempotentWrite).await), "done");
    hub.close().await;
}

#[tokio::test]
async fn calls_that_lose_one_session_share_the_next() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (hub, work) = (Arc::clone(&hub), fixture.work("slow"));
            tokio::spawn(async move { text(call(&hub, &work, r#"{"seconds": 0.5}"#, Effect::ReadOnly).await) })
        })
        .collect();
    fixture.hears("tools/call", 20).await;
    assert_eq!(text(call(&hub, &fixture.work("die-once"), "{}", Effect::IdempotentWrite).await), "alive");
    for call in calls {
        assert_eq!(call.await.unwrap(), "slow 0.5");
    }
    assert_eq!(fixture.count("initialize"), 2);
    hub.close().await;
}

#[tokio::test]
async fn a_call_that_always_kills_its_server_is_made_twice_and_not_more() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    assert_eq!(call(&hub, &fixture.work("die"), "{}", Effect::ReadOnly).await, Err(CallError::Failed));
    assert_eq!(call(&hub, &fixture.work("die"), "{}", Effect::IdempotentWrite).await, Err(CallError::Unknown));
    assert_eq!(fixture.count("tools/call"), 4);
    hub.close().await;
}

#[tokio::test]
async fn case_59eg_nothing_is_left_of_a_server_however_it_clings() {
    for modes in [&["deaf-to-term", "child"][..], &["stays"], &["child"], &[]] {
        let fixture = fixture(modes);
        let hub = hub(&[&fixture]).await;
        assert_eq!(text(call(&hub, &fixture.work("echo"), "{}", Effect::ReadOnly).await), "{}", "{modes:?}");
        let processes = [fixture.processes("start"), fixture.processes("child")].concat();
        assert_eq!(processes.len(), 1 + usize::from(modes.contains(&"child")));
        hub.close().await;
        // A child's own burial is the business of whoever inherits it.
        until("nothing is left", || !processes.iter().any(|process| runs(*process))).await;
        assert!(!exists(processes[0]), "{modes:?}: a zombie");
    }
}

#[tokio::test]
async fn case_59f_a_late_answer_is_nobodys_and_the_server_is_told() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let slow = Arguments::parse(r#"{"seconds": 0.5}"#).unwrap();
    let late = hub.call(&fixture.work("slow"), &slow, Effect::ReadOnly, Instant::now() + Duration::from_millis(200)).await;
    assert_eq!(late, Err(CallError::TimedOut { sent: true }));
    fixture.hears("notifications/cancelled", 1).await;
    for number in 0..20 {
        let arguments = format!(r#"{{"n": {number}}}"#);
        assert_eq!(text(call(&hub, &fixture.work("echo"), &arguments, Effect::ReadOnly).await), arguments);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    hub.close().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_called_off() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let work = fixture.work("slow");
    tokio::select! {
        answer = call(&hub, &work, r#"{"seconds": 600}"#, Effect::ReadOnly) => panic!("{answer:?}"),
        () = fixture.hears("tools/call", 1) => {}
    }
    fixture.hears("notifications/cancelled", 1).await;
    hub.close().await;
}

#[tokio::test]
async fn the_trouble_of_one_server_is_not_anothers() {
    let (good, bad) = (fixture(&[]), fixture_with(&["silent"], Duration::from_secs(1), &[]));
    let gone = Arc::new(described(
        "gone",
        Reach::Stdio { command: "no-such-program".to_owned(), args: Vec::new(), env: Vec::new() },
        LONG,
    ));
    let hub = Hub::new(Arc::new(Net::new()));
    let bad_server = Arc::new(described("bad", bad.server.reach.clone(), Duration::from_secs(1)));
    hub.serve(&[bad_server, Arc::clone(&gone), Arc::clone(&good.server)]);
    assert_eq!(text(call(&hub, &good.work("echo"), "{}", Effect::ReadOnly).await), "{}");
    hub.first_look(Instant::now() + LONG).await;
    let states: Vec<State> = hub.listings().into_iter().map(|listing| listing.state).collect();
    let down = |why: &str| State::Down(why.to_owned());
    assert_eq!(states, [down("it did not greet in time"), down("it could not be started: entity not found"), State::Connected]);
    let work = toolgate_config::tool::McpWork { server: gone, tool: "t".to_owned() };
    assert_eq!(call(&hub, &work, "{}", Effect::NonIdempotentWrite).await, Err(CallError::Down));
    hub.close().await;
}

#[tokio::test]
async fn a_server_that_cannot_stay_up_is_left_alone_for_ever_longer() {
    let fixture = fixture(&["exit-at-once"]);
    let hub = hub(&[&fixture]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let starts = fixture.count("start");
    assert!((2..=4).contains(&starts), "{starts}");
    hub.close().await;
}

#[tokio::test]
async fn what_is_reached_as_before_goes_on_and_the_rest_is_closed() {
    let (kept, dropped) = (fixture(&["kept"]), fixture(&["dropped"]));
    let hub = hub(&[&kept, &dropped]).await;
    let same = Arc::new(McpServer { only: Some(Vec::new()), ..described("fixture", kept.server.reach.clone(), LONG) });
    let (other, work) = (Arc::clone(&hub), dropped.work("slow"));
    let under_way = tokio::spawn(async move { call(&other, &work, r#"{"seconds": 0.5}"#, Effect::ReadOnly).await });
    dropped.hears("tools/call", 1).await;
    hub.serve(&[Arc::clone(&same)]);
    assert_eq!(hub.listings().len(), 1);
    assert!(Arc::ptr_eq(&listing(&hub).server, &same), "it is described anew");
    assert_eq!(text(under_way.await.unwrap()), "slow 0.5");
    assert_eq!(call(&hub, &dropped.work("echo"), "{}", Effect::ReadOnly).await, Err(CallError::Down));
    dropped.hears("end of input", 1).await;
    assert_eq!(text(call(&hub, &kept.work("echo"), "{}", Effect::ReadOnly).await), "{}");
    assert_eq!((kept.count("initialize"), kept.count("end of input")), (1, 0));
    hub.close().await;
}

#[tokio::test]
async fn a_server_gets_what_the_file_gives_it_and_little_else() {
    let fixture = fixture_with(&[], LONG, &[("OWN", "1")]);
    let hub = hub(&[&fixture]).await;
    let names: Vec<String> =
        serde_json::from_str(&text(call(&hub, &fixture.work("environment"), "{}", Effect::ReadOnly).await)).unwrap();
    // What starts the interpreter may add its own.
    let leaked: Vec<&String> = names.iter().filter(|name| name.starts_with("CARGO") || name.starts_with("RUST")).collect();
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && leaked.is_empty(), "{names:?}");
    assert!(names.contains(&"OWN".to_owned()) && names.contains(&"PATH".to_owned()), "{names:?}");
    hub.close().await;
}

/// Whether there is such a process that still does something.
fn runs(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}
