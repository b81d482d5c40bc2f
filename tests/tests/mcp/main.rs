//! Servers of tools, spoken to for real: scripted ones that are odd or bad, and the public conformance suite.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

mod conformance;
mod definitions;
mod errors;
mod lists;
mod naming;
mod real;
mod reloads;
mod secrets;
mod sessions;

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_tests::caller::Response;
use toolgate_tests::mcp::McpServer;
use toolgate_tests::scenario::Mode;
use toolgate_tests::stand::Stand;

/// The folder into which `./tests/run` has installed real servers and the conformance suite.
fn installed() -> PathBuf {
    PathBuf::from(std::env::var_os("TOOLGATE_MCP").expect("TOOLGATE_MCP is not set: ./tests/run installs what these tests need"))
}

/// A model that asks for these tools, all at once, and then is content; so often.
fn asks_for(tools: &[&str], times: usize) -> Value {
    let calls: Vec<Value> = tools.iter().map(|name| json!({ "name": name, "arguments": {} })).collect();
    let run = [json!({ "calls": calls }), json!({ "content": "Well." })];
    (0..times).flat_map(|_| run.clone()).collect()
}

/// The configuration with this server, under the name `crm`; `over` is merged over what is said of it.
fn crm(server: &McpServer, over: Value) -> Value {
    let mut described = json!({ "url": server.url(), "group": "crm", "requires_approval": false });
    for (name, value) in over.as_object().into_iter().flatten() {
        described[name] = value.clone();
    }
    json!({
        "groups": { "crm": { "data_class": "internal", "egress": [{ "host": server.address, "private": true }] } },
        "models": { "m": { "tools": { "groups": ["crm"] } } },
        "mcp_servers": { "crm": described },
    })
}

/// What the model was told by the tools when it was asked the `nth` time.
fn told(stand: &Stand, nth: usize) -> Vec<String> {
    let body = stand.upstream.received()[nth].json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let told = messages.iter().filter(|message| message["role"] == "tool");
    told.map(|message| message["content"].as_str().map_or_else(|| message["content"].to_string(), str::to_owned)).collect()
}

/// The tools that a model would be offered now.
async fn offered(stand: &Stand) -> Vec<String> {
    let dry = stand.ask(Mode::Plain, json!({ "headers": { "x-toolgate-dry-run": "1" } })).await.json();
    let tools = dry["upstream_request"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Asks something, and sees that the run went well.
async fn runs(stand: &Stand) -> Response {
    let response = stand.ask(Mode::Plain, json!({})).await;
    let content = response.json()["choices"][0]["message"]["content"].clone();
    assert_eq!((response.status, content), (200, json!("Well.")), "{}", response.text());
    response
}
