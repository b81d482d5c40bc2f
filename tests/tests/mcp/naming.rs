//! Names: legal, distinct, the same after every restart, and each server gets its own back.

use serde_json::{Value, json};
use toolgate_tests::gateway::command;
use toolgate_tests::mcp::{McpServer, tool};
use toolgate_tests::scenario::Mode;
use toolgate_tests::stand::Stand;

use crate::offered;

/// Several servers under these names, all in one group.
fn servers(all: &[(&str, &McpServer)]) -> Value {
    let egress: Vec<Value> = all.iter().map(|(_, server)| json!({ "host": server.address, "private": true })).collect();
    let mut described = serde_json::Map::new();
    for (name, server) in all {
        described.insert((*name).to_owned(), json!({ "url": server.url(), "group": "crm", "requires_approval": false }));
    }
    json!({
        "groups": { "crm": { "data_class": "internal", "egress": egress } },
        "models": { "m": { "tools": { "groups": ["crm"] } } },
        "mcp_servers": described,
    })
}

/// The tools that a server was asked for, in order.
fn called(server: &McpServer) -> Vec<String> {
    server.asked().iter().filter(|asked| asked.what() == "tools/call").map(|asked| asked.tool().to_owned()).collect()
}

#[tokio::test]
async fn case_14_names_are_legal_and_distinct_and_each_call_goes_to_its_own_server() {
    let long = |last: char| format!("{}{last}", "n".repeat(89));
    let (a, b) = (McpServer::good(&[tool("search")]).await, McpServer::good(&[tool("search")]).await);
    let (red_, red) = (McpServer::good(&[tool("fox")]).await, McpServer::good(&[tool("_fox")]).await);
    let odd = McpServer::good(&[tool("files.read/v2"), tool(&long('a')), tool(&long('b'))]).await;
    let all = [("a", &a), ("b", &b), ("red_", &red_), ("red", &red), ("my server", &odd)];

    // The first asks what there is, the others in turn for each of that.
    let stand = Stand::with(json!([]), json!({})).await;
    let mut gateway = stand.serve(servers(&all)).await;
    let names = offered(&stand).await;
    gateway.stop().await.unwrap();
    assert_eq!(names.len(), 7, "{names:?}");
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(names.iter().all(|name| (1..=64).contains(&name.len()) && name.chars().all(legal)), "{names:?}");
    assert_eq!(names[..2], ["a__search", "b__search"]);

    let calls: Vec<Value> = names.iter().map(|name| json!({ "name": name, "arguments": {} })).collect();
    let stand = Stand::with(json!([{ "calls": calls }, { "content": "Well." }]), json!({})).await;
    let reversed: Vec<_> = all.iter().rev().copied().collect();
    let _gateway = stand.serve(servers(&reversed)).await;
    let mut again = offered(&stand).await;
    let mut before = names.clone();
    again.sort();
    before.sort();
    assert_eq!(again, before, "the same in whatever order");
    let response = stand.ask(Mode::Plain, json!({})).await;
    assert_eq!(response.status, 200, "{}", response.text());
    for (server, tools) in [(&a, vec!["search"]), (&b, vec!["search"]), (&red_, vec!["fox"]), (&red, vec!["_fox"])] {
        assert_eq!(called(server), tools);
    }
    let mut called = called(&odd);
    called.sort();
    assert_eq!(called, ["files.read/v2".to_owned(), long('a'), long('b')]);
}

#[tokio::test]
async fn case_14_a_clash_that_can_be_seen_in_the_file_is_a_fault_that_names_both() {
    let server = McpServer::good(&[tool("search")]).await;
    let stand = Stand::with(json!([]), json!({})).await;
    stand.configure(servers(&[("my server", &server), ("my_server", &server)]));
    let args = ["check", "--config", "toolgate.yaml"].map(str::to_owned);
    let output = command(&stand.folder, &args, &[]).await.unwrap();
    assert_eq!(output.exit, 1);
    let said = output.stdout + &output.stderr;
    assert!(said.contains("mcp_servers[\"my server\"]") && said.contains("mcp_servers.my_server"), "{said}");
}

#[tokio::test]
async fn case_14_a_name_of_the_file_is_nobody_elses() {
    let server = McpServer::good(&[tool("search"), tool("find")]).await;
    let stand = Stand::with(json!([]), json!({})).await;
    let mut configuration = servers(&[("crm", &server)]);
    configuration["tools"] =
        json!([{ "name": "crm__search", "group": "lab", "http": { "method": "POST", "url": "{{tools}}/lookup" } }]);
    let gateway = stand.serve(configuration).await;
    assert_eq!(offered(&stand).await, ["crm__find"]);
    assert!(gateway.log().contains("would have the name `crm__search` of another tool: one of the file"), "{}", gateway.log());
}

#[tokio::test]
async fn a_tool_is_granted_by_its_group_or_by_its_name() {
    let server = McpServer::good(&[tool("search"), tool("find")]).await;
    let grant = |model: Value, key: Value| {
        let mut configuration = servers(&[("crm", &server)]);
        configuration["models"] = json!({ "m": { "tools": model } });
        if !key.is_null() {
            configuration["keys"] = json!([{ "name": "shop", "tools": key }]);
        }
        configuration
    };
    for (model, key, expected) in [
        (json!({ "groups": ["crm"] }), Value::Null, vec!["crm__find", "crm__search"]),
        (json!({ "groups": [], "names": ["crm__find"] }), Value::Null, vec!["crm__find"]),
        (json!({ "groups": ["crm"] }), json!({ "names": ["crm__search"] }), vec!["crm__search"]),
        (json!({ "groups": ["lab"] }), json!({ "groups": ["crm"] }), vec![]),
    ] {
        let stand = Stand::with(json!([]), json!({})).await;
        let _gateway = stand.serve(grant(model, key)).await;
        assert_eq!(offered(&stand).await, expected);
    }
    let stand = Stand::with(json!([]), json!({})).await;
    let _gateway = stand.serve(grant(json!({ "groups": ["crm"] }), Value::Null)).await;
    let dry =
        stand.ask(Mode::Plain, json!({ "headers": { "x-toolgate-dry-run": "1", "x-toolgate-tools": "crm__find" } })).await.json();
    assert_eq!(dry["upstream_request"]["tools"].as_array().map(Vec::len), Some(1), "{dry}");
}
