//! What a call can come to, and what a model is told of it.

use serde_json::{Value, json};
use toolgate_tests::mcp::{McpServer, Say, text, tool};
use toolgate_tests::stand::Stand;

use crate::{asks_for, crm, runs, told};

/// What the server says, whether it is an error, and what the model must find of it.
fn results() -> [(Say, bool, &'static str); 7] {
    [
        (Say::Result(json!({ "isError": true, "content": [{ "type": "text", "text": "no such city" }] })), true, "no such city"),
        (Say::Error(json!({ "code": -32602, "message": "bad parameters" })), true, ""),
        (Say::Result(json!({ "content": [], "structuredContent": { "n": 17 } })), false, r#"{"n":17}"#),
        (Say::Result(json!({ "content": [{ "type": "text", "text": "17" }], "structuredContent": { "n": 17 } })), false, "17"),
        (Say::Result(json!({ "content": [], "structuredContent": {} })), false, "{}"),
        (Say::Result(json!({ "content": [] })), false, "("),
        (Say::Result(json!({})), false, "("),
    ]
}

async fn all_seven(dialect: &str) -> (Stand, Value) {
    let server =
        McpServer::start(&[tool("find")], |asked| (asked.what() == "tools/call").then(|| results()[asked.nth].0.clone())).await;
    let stand = Stand::with(asks_for(&["crm__find"], 7), json!({})).await;
    let mut configuration = crm(&server, json!({}));
    if dialect == "anthropic" {
        configuration["providers"] = json!({ "mock": { "kind": "anthropic", "base_url": "{{upstream}}/anthropic/v1" } });
        configuration["models"]["m"]["params"] = json!({ "max_tokens": 100 });
    }
    let gateway = stand.serve(configuration).await;
    let mut traces = Vec::new();
    for (_, is_error, _) in results() {
        let response = runs(&stand).await;
        let path = format!("/toolgate/traces/{}", response.trace().unwrap());
        let trace = stand.ask(toolgate_tests::scenario::Mode::Plain, json!({ "get": path })).await.json();
        let outcome = trace["rounds"][0]["tool_calls"][0]["outcome"].clone();
        assert_eq!(outcome, if is_error { "error" } else { "ok" }, "{trace}");
        traces.push(trace);
    }
    assert_eq!(server.count("tools/call"), 7, "nothing is tried twice");
    drop(gateway);
    (stand, Value::Array(traces))
}

#[tokio::test]
async fn case_58_whatever_a_call_comes_to_the_model_is_told_once() {
    let (stand, _) = all_seven("openai").await;
    for (nth, (_, _, expected)) in results().into_iter().enumerate() {
        let told = told(&stand, 2 * nth + 1);
        assert_eq!(told.len(), 1);
        // The lines around what a server says are made by chance.
        let said: String = told[0].lines().filter(|line| !line.starts_with('[')).collect();
        assert!(said.contains(expected) && !said.trim().is_empty(), "{nth}: {told:?}");
        assert_eq!(said.matches("17").count(), expected.matches("17").count(), "{nth}: {told:?}");
    }
}

#[tokio::test]
async fn case_58_an_error_is_marked_as_one_where_that_can_be_said() {
    let (stand, _) = all_seven("anthropic").await;
    for (nth, (_, is_error, _)) in results().into_iter().enumerate() {
        let body = stand.upstream.received()[2 * nth + 1].json();
        let messages = body["messages"].as_array().unwrap();
        let mut blocks = messages.iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
        let block = blocks.rfind(|block| block["type"] == "tool_result").unwrap();
        assert_eq!(block["is_error"].as_bool().unwrap_or(false), is_error, "{nth}: {block}");
    }
}

#[tokio::test]
async fn a_refusal_is_its_number_and_a_write_that_may_have_happened_is_said_to() {
    let table = [
        (Say::Status(401, "SECRET-CANARY".into()), false),
        (Say::Status(403, "SECRET-CANARY".into()), false),
        (Say::Status(429, "SECRET-CANARY".into()), false),
        (Say::Status(302, "SECRET-CANARY".into()), false),
        (Say::Status(500, "SECRET-CANARY".into()), true),
        (Say::Status(503, "SECRET-CANARY".into()), true),
        (Say::Close, true),
        (Say::Events(vec!["data: {\"jsonrpc\"".into()]), true),
        (Say::Events(vec!["data: {\"jsonrpc\":\"2.0\",\"id\":SECRET-CANARY}\n\n".into()]), true),
    ];
    let server_says = table.clone();
    let server = McpServer::start(&[tool("find")], move |asked| {
        (asked.what() == "tools/call")
            .then(|| server_says.get(asked.nth).map_or(Say::Result(text("again")), |(say, _)| say.clone()))
    })
    .await;
    let stand = Stand::with(asks_for(&["crm__find"], table.len()), json!({})).await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    for (nth, (say, unknown)) in table.iter().enumerate() {
        runs(&stand).await;
        let told = told(&stand, 2 * nth + 1);
        assert!(told[0].starts_with("Error: "), "{say:?}: {told:?}");
        assert_eq!(told[0].contains("whether it took effect is not known"), *unknown, "{say:?}: {told:?}");
        assert!(!told[0].contains("CANARY"), "{told:?}");
    }
    assert_eq!(server.count("tools/call"), table.len(), "no write is tried twice");
    assert!(!gateway.log().contains("CANARY"), "{}", gateway.log());
}

/// The most memory that a process has ever had, in MiB.
fn most_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn a_server_that_floods_is_cut_off_and_the_run_goes_on() {
    const GIB: usize = 1 << 30;
    let floods = [
        Say::Flood("text/event-stream", "data: ", GIB),
        Say::Flood("text/event-stream", ": ", 64 << 20),
        Say::Flood("application/json", "{\"jsonrpc\":\"2.0\",\"id\":\"", GIB),
        Say::Flood("text/html", "", GIB),
    ];
    let count = floods.len();
    let server =
        McpServer::start(&[tool("find")], move |asked| (asked.what() == "tools/call").then(|| floods[asked.nth].clone())).await;
    let stand = Stand::with(asks_for(&["crm__find"], count), json!({})).await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    runs(&stand).await;
    let before = most_memory(gateway.pid());
    for nth in 1..count {
        runs(&stand).await;
        assert!(told(&stand, 2 * nth + 1)[0].starts_with("Error: "));
    }
    let more = most_memory(gateway.pid()) - before;
    assert!(before < 250 && more < 100, "{before} MiB, and then {more} MiB more");
}
