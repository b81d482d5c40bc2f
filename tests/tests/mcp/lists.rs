//! What a server offers: pages that are missing, repeated, endless or broken, and lists that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolgate_tests::gateway::Gateway;
use toolgate_tests::mcp::{McpServer, Say, tool};
use toolgate_tests::scenario::Mode;
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;

use crate::{asks_for, crm, offered, runs, told};

fn tools(count: usize) -> Vec<Value> {
    (0..count).map(|n| tool(&format!("t{n}"))).collect()
}

fn warnings(gateway: &Gateway) -> usize {
    gateway.log().lines().filter(|line| line.contains("\"WARN\"") && line.contains("crm")).count()
}

async fn stand() -> Stand {
    Stand::with(json!([]), json!({})).await
}

#[tokio::test]
async fn case_56_every_page_is_read() {
    let server = McpServer::good(&tools(43)).await;
    let stand = stand().await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    assert_eq!(offered(&stand).await.len(), 43);
    assert_eq!((server.count("tools/list"), warnings(&gateway)), (2, 0));
}

#[tokio::test]
async fn case_56_a_cursor_that_comes_again_is_the_end() {
    let page = json!({ "tools": tools(5), "nextCursor": "x" });
    let server = McpServer::start(&[], move |asked| (asked.what() == "tools/list").then(|| Say::Result(page.clone()))).await;
    let stand = stand().await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    assert_eq!(offered(&stand).await.len(), 5);
    assert_eq!((server.count("tools/list"), warnings(&gateway)), (2, 1), "{}", gateway.log());
}

#[tokio::test]
async fn case_56_endless_pages_end_at_a_bound() {
    let page = |n: usize| json!({ "tools": [tool(&format!("t{n}"))], "nextCursor": n.to_string() });
    let server = McpServer::start(&[], move |asked| (asked.what() == "tools/list").then(|| Say::Result(page(asked.nth)))).await;
    let stand = stand().await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    assert_eq!(offered(&stand).await.len(), 50);
    assert_eq!((server.count("tools/list"), warnings(&gateway)), (50, 1), "{}", gateway.log());
}

#[tokio::test]
async fn case_56_half_a_list_is_none() {
    let page = json!({ "tools": tools(40), "nextCursor": "p2" });
    let server = McpServer::start(&[], move |asked| match (asked.what(), asked.message["params"]["cursor"].as_str()) {
        ("tools/list", None) => Some(Say::Result(page.clone())),
        ("tools/list", _) => Some(Say::Status(500, "SECRET-CANARY".to_owned())),
        _ => None,
    })
    .await;
    let stand = stand().await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    assert!(offered(&stand).await.is_empty());
    assert!(warnings(&gateway) >= 1 && !gateway.log().contains("CANARY"), "{}", gateway.log());
}

#[tokio::test]
async fn case_61_a_list_that_changes_in_the_middle_of_a_run_is_in_force_for_what_comes_after() {
    let mut search = tool("search");
    let server = McpServer::good(&[tool("old"), search.clone()]).await;
    let stand = Stand::with(
        json!([
            { "calls": [{ "name": "crm__search", "arguments": {} }] },
            { "calls": [{ "name": "crm__old", "arguments": {} }], "until_caller_saw": "changed" },
            { "content": "Well." },
        ]),
        json!({}),
    )
    .await;
    let _gateway = stand.serve(crm(&server, json!({ "tools": ["old", "search", "new"] }))).await;
    assert_eq!(offered(&stand).await, ["crm__old", "crm__search"]);
    let lists = server.count("tools/list");
    let change = async {
        assert!(stand.upstream.until(|asked| asked.len() == 2).await);
        search["inputSchema"]["properties"]["q"] = json!({ "type": "string" });
        server.offer(&[tool("new"), tool("delete_all"), search]);
        server.tell_change(100).await;
        // What a model reads of `search` is not what was known of it: it is withheld until somebody has looked.
        eventually("the new list is in force", || async { offered(&stand).await == ["crm__new"] }).await;
        stand.stage.saw(b"changed");
    };
    tokio::join!(runs(&stand), change);
    let told = told(&stand, 2);
    assert!(told[0].contains("done"), "{told:?}");
    assert_eq!(told[1], "Error: tool \"crm__old\" is not available.");
    let asked = server.count("tools/list") - lists;
    assert!((1..=4).contains(&asked), "a burst is one piece of news: {asked} lists");
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn case_61_a_list_that_cannot_be_read_leaves_the_old_one() {
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let server = McpServer::start(&[tool("old")], move |asked| {
        (asked.what() == "tools/list" && is_broken.load(Ordering::SeqCst)).then(|| Say::Status(500, String::new()))
    })
    .await;
    let stand = Stand::with(asks_for(&["crm__old"], 1), json!({})).await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    let lists = server.count("tools/list");
    broken.store(true, Ordering::SeqCst);
    server.offer(&[tool("new")]);
    server.tell_change(1).await;
    assert!(server.until(|asked| asked.iter().filter(|asked| asked.what() == "tools/list").count() > lists).await);
    eventually("it is told", || async { warnings(&gateway) > 0 }).await;
    assert_eq!(offered(&stand).await, ["crm__old"]);
    runs(&stand).await;
    assert!(told(&stand, 1)[0].contains("done"));
}

#[tokio::test]
async fn a_server_that_is_not_there_takes_nothing_from_the_others() {
    let server = McpServer::good(&[tool("find")]).await;
    let gone = McpServer::good(&[tool("find")]).await;
    let address = gone.address.clone();
    drop(gone);
    let stand = Stand::with(asks_for(&["crm__find"], 1), json!({})).await;
    let mut configuration = crm(&server, json!({}));
    configuration["groups"]["crm"]["egress"] =
        json!([{ "host": server.address, "private": true }, { "host": address, "private": true }]);
    configuration["mcp_servers"]["gone"] =
        json!({ "url": format!("http://{address}/mcp"), "group": "crm", "requires_approval": false });
    let _gateway = stand.serve(configuration).await;
    assert_eq!(offered(&stand).await, ["crm__find"]);
    let response = stand.ask(Mode::Plain, json!({})).await;
    assert_eq!(response.status, 200);
}
