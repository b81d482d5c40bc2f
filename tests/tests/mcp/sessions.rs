//! Sessions that end, under one call or many, and what is made of them.

use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolgate_tests::mcp::{Asked, McpServer, Say, text, tool};
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;

use crate::{asks_for, crm, offered, runs, told};

fn sessions_asked_for(server: &McpServer) -> Vec<Option<String>> {
    server.asked().iter().filter(|asked| asked.what() == "initialize").map(Asked::session).collect()
}

#[tokio::test]
async fn case_55_a_session_that_is_over_is_begun_anew_without_losing_the_call() {
    let server = McpServer::good(&[tool("find")]).await;
    let stand = Stand::with(asks_for(&["crm__find"], 3), json!({})).await;
    let mut gateway = stand.serve(crm(&server, json!({}))).await;
    runs(&stand).await;
    runs(&stand).await;
    let lists = server.count("tools/list");
    server.forget_sessions();
    runs(&stand).await;
    for nth in [1, 3, 5] {
        let told = told(&stand, nth);
        assert!(told.len() == 1 && told[0].contains("done"), "{told:?}");
    }
    assert_eq!(sessions_asked_for(&server), [None, None]);
    assert!(
        server.until(|asked| asked.iter().filter(|asked| asked.what() == "tools/list").count() > lists).await,
        "the list is read again"
    );
    assert_eq!(server.asked().iter().rfind(|asked| asked.what() == "tools/call").unwrap().session().as_deref(), Some("S2"));
    gateway.signal("TERM");
    gateway.process.wait().await.unwrap();
    assert_eq!(server.sessions(), 0, "the session is closed when the gateway ends");
}

#[tokio::test]
async fn case_55_calls_side_by_side_share_one_new_session() {
    let server = McpServer::good(&[tool("find")]).await;
    let stand = Stand::with(json!([
        { "calls": (0..5).map(|n| json!({ "id": format!("c{n}"), "name": "crm__find", "arguments": { "n": n } })).collect::<Vec<_>>() },
        { "content": "Well." },
    ]), json!({})).await;
    let _gateway = stand.serve(crm(&server, json!({ "effect": "read_only" }))).await;
    server.forget_sessions();
    runs(&stand).await;
    let told = told(&stand, 1);
    assert!(told.len() == 5 && told.iter().all(|told| told.contains("done")), "{told:?}");
    assert_eq!(sessions_asked_for(&server), [None, None]);
}

#[tokio::test]
async fn case_55_a_second_end_is_the_tools_error() {
    let server = McpServer::start(&[tool("find")], |asked| {
        (asked.what() == "tools/call").then(|| Say::Status(404, "SECRET-CANARY".to_owned()))
    })
    .await;
    let stand = Stand::with(asks_for(&["crm__find"], 1), json!({})).await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    runs(&stand).await;
    let told = told(&stand, 1);
    assert!(told[0].starts_with("Error: "), "{told:?}");
    assert!(!told[0].contains("CANARY") && !gateway.log().contains("CANARY"));
    assert_eq!((sessions_asked_for(&server), server.count("tools/call")), (vec![None, None], 2));
}

#[tokio::test]
async fn case_55_without_a_session_there_is_none_to_begin_anew() {
    let server = McpServer::start(&[], |asked| {
        Some(match asked.what() {
            "initialize" => Say::Result(json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "plain", "version": "1" },
            })),
            "tools/list" => Say::Result(json!({ "tools": [tool("find")] })),
            "tools/call" => Say::Status(404, String::new()),
            "GET" => Say::Status(405, String::new()),
            _ => Say::Status(202, String::new()),
        })
    })
    .await;
    let stand = Stand::with(asks_for(&["crm__find"], 1), json!({})).await;
    let _gateway = stand.serve(crm(&server, json!({}))).await;
    runs(&stand).await;
    assert!(told(&stand, 1)[0].starts_with("Error: "));
    assert_eq!((sessions_asked_for(&server), server.count("tools/call")), (vec![None], 1));
}

#[tokio::test]
async fn case_55_a_server_that_comes_back_with_other_tools_is_asked_for_them() {
    let knows = |asked: &Asked| match asked.what() {
        "tools/call" if asked.tool() != "other" => Some(Say::Error(json!({ "code": -32602, "message": "Unknown tool" }))),
        _ => None,
    };
    let server = McpServer::start(&[tool("find")], move |asked| {
        let forgotten = asked.session().is_some_and(|session| session != "S1");
        if forgotten { knows(asked) } else { None }
    })
    .await;
    let stand = Stand::with(asks_for(&["crm__find"], 1), json!({})).await;
    let _gateway = stand.serve(crm(&server, json!({}))).await;
    assert_eq!(offered(&stand).await, ["crm__find"]);
    server.offer(&[tool("other")]);
    server.forget_sessions();
    runs(&stand).await;
    eventually("the other tool is offered", || async { offered(&stand).await == ["crm__other"] }).await;
}

#[tokio::test]
async fn answers_in_a_stream_after_other_messages_are_found() {
    let server = McpServer::start(&[tool("find")], |asked| {
        let note = |method: &str, params: Value| {
            format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "method": method, "params": params }))
        };
        (asked.what() == "tools/call").then(|| {
            Say::Events(vec![
                ": here\n\n".to_owned(),
                note("notifications/progress", json!({ "progressToken": 1, "progress": 1 })),
                note("notifications/message", json!({ "level": "info", "data": "working" })),
                format!(
                    "data: {}\n\n",
                    json!({ "jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {} })
                ),
                format!("id: 1\r\ndata: {}\r\n\r\n", asked.result(text("found it"))),
            ])
        })
    })
    .await;
    let stand = Stand::with(asks_for(&["crm__find"], 1), json!({})).await;
    let _gateway = stand.serve(crm(&server, json!({}))).await;
    runs(&stand).await;
    assert!(told(&stand, 1)[0].contains("found it"));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_called_off() {
    let server = McpServer::start(&[tool("find")], |asked| (asked.what() == "tools/call").then_some(Say::Nothing)).await;
    let stand = Stand::with(asks_for(&["crm__find"], 1), json!({})).await;
    let _gateway = stand.serve(crm(&server, json!({ "timeout": "500ms" }))).await;
    runs(&stand).await;
    assert!(told(&stand, 1)[0].starts_with("Error: "));
    assert!(server.until(|asked| asked.iter().any(|asked| asked.what() == "notifications/cancelled")).await);
    assert_eq!(sessions_asked_for(&server).len(), 1, "the session lives on");
}

/// The address, once whoever listened there has let go of it.
async fn at(address: &str) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_server_that_is_restarted_is_found_again_and_one_that_is_away_is_an_error_until_then() {
    let server = McpServer::good(&[tool("find")]).await;
    let address = server.address.clone();
    let stand = Stand::with(asks_for(&["crm__find"], 3), json!({})).await;
    let _gateway = stand.serve(crm(&server, json!({}))).await;
    drop(server);
    runs(&stand).await;
    let away = told(&stand, 1);
    assert!(away[0].starts_with("Error: ") && !away[0].contains("not known"), "it was never asked: {away:?}");

    let server = McpServer::on(at(&address).await, &[tool("find")], |_| None);
    eventually("it is found", || async { server.sessions() == 1 }).await;
    runs(&stand).await;
    assert!(told(&stand, 3)[0].contains("done"));

    // It goes and comes back before anybody has asked for it.
    let address = server.address.clone();
    drop(server);
    let server = McpServer::on(at(&address).await, &[tool("find")], |_| None);
    runs(&stand).await;
    assert!(told(&stand, 5)[0].contains("done"), "{:?}", told(&stand, 5));
    assert!(server.count("tools/call") <= 2, "refused at most once, and then done");
}
