//! What a server offers, and that it changes.

use toolgate_config::tool::Effect;

use super::super::State;
use super::house::*;

#[tokio::test]
async fn case_56_all_pages_are_read_and_none_without_end() {
    let table = [("pages", 43, 2, true), ("same-cursor", 5, 2, true), ("endless", 50, 50, false), ("many", 500, 1, false)];
    for (mode, tools, pages, whole) in table {
        let fixture = fixture(&[mode]);
        let hub = hub(&[&fixture]).await;
        let listing = listing(&hub);
        assert_eq!(listing.tools.len(), tools, "{mode}");
        assert_eq!(listing.state == State::Connected, whole, "{mode}: {:?}", listing.state);
        assert_eq!(fixture.count("tools/list"), pages, "{mode}");
        hub.close().await;
    }
}

#[tokio::test]
async fn case_56_half_a_list_is_no_list() {
    let fixture = fixture(&["pages", "page-fails"]);
    let hub = hub(&[&fixture]).await;
    let listing = listing(&hub);
    assert!(listing.tools.is_empty(), "{:?}", listing.tools);
    assert_eq!(listing.state, State::Degraded("page 2 of its list of tools: an answer with error -32603".to_owned()));
    hub.close().await;
}

#[tokio::test]
async fn what_is_no_tool_is_left_out_and_the_rest_is_kept() {
    let fixture = fixture(&["odd-tools"]);
    let hub = hub(&[&fixture]).await;
    let listing = listing(&hub);
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["good", "bare"]);
    assert_eq!(listing.tools[0].description, "ab\nc");
    assert!(listing.tools[1].schema.is_null());
    assert_eq!((listing.about.name.as_str(), listing.about.protocol.as_str()), ("fixture", "2025-11-25"));
    hub.close().await;
}

#[tokio::test]
async fn case_61_a_burst_of_news_is_one_piece_of_news() {
    let list = tempfile("echo burst old");
    let fixture = fixture_with(&[], LONG, &[("LIST", list.to_str().unwrap())]);
    let hub = hub(&[&fixture]).await;
    hub.changed().await;
    std::fs::write(&list, "echo burst new").unwrap();
    assert_eq!(text(call(&hub, &fixture.work("burst"), "{}", Effect::ReadOnly).await), "sent");
    until("the new list", || listing(&hub).tools.iter().any(|tool| tool.name == "new")).await;
    hub.changed().await;
    assert!(!listing(&hub).tools.iter().any(|tool| tool.name == "old"));
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert!((2..=4).contains(&fixture.count("tools/list")), "{:?}", fixture.heard());
    hub.close().await;
    let _ = std::fs::remove_file(list);
}

#[tokio::test]
async fn case_61_a_list_that_fails_leaves_the_old_one() {
    let list = tempfile("echo burst old");
    let fixture = fixture_with(&["second-list-fails"], LONG, &[("LIST", list.to_str().unwrap())]);
    let hub = hub(&[&fixture]).await;
    std::fs::write(&list, "echo burst new").unwrap();
    assert_eq!(text(call(&hub, &fixture.work("burst"), "{}", Effect::ReadOnly).await), "sent");
    until("a list that fails", || matches!(listing(&hub).state, State::Degraded(_))).await;
    assert_eq!(listing(&hub).tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(), ["echo", "burst", "old"]);
    hub.close().await;
    let _ = std::fs::remove_file(list);
}

#[tokio::test]
async fn a_server_that_knows_only_the_newer_protocol_is_greeted_in_it() {
    let fixture = fixture(&["newer"]);
    let hub = hub(&[&fixture]).await;
    let listing = listing(&hub);
    assert_eq!((listing.state, listing.tools.len(), listing.about.protocol.as_str()), (State::Connected, 3, "2026-07-28"));
    assert_eq!(text(call(&hub, &fixture.work("echo"), r#"{"a":1}"#, Effect::ReadOnly).await), r#"{"a": 1}"#);
    hub.close().await;
}

#[tokio::test]
async fn a_server_that_asks_gets_an_answer_to_a_ping_and_to_nothing_else() {
    let fixture = fixture(&["asks"]);
    let hub = hub(&[&fixture]).await;
    fixture.hears("answer", 5).await;
    let heard = fixture.heard();
    let answer = |id: &str| heard.iter().find(|line| line.starts_with("answer") && line.contains(id)).unwrap().clone();
    assert!(answer("\"q0\"").contains("\"result\""), "{heard:?}");
    for id in ["\"q1\"", "\"q2\"", "\"q3\"", "\"q4\""] {
        assert!(answer(id).contains("-32601"), "{id}: {heard:?}");
    }
    hub.close().await;
}

fn tempfile(text: &str) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("toolgate-mcp-list-{}-{count}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}
