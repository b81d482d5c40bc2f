//! Reloads and what was found: neither loses the other.

use serde_json::{Value, json};
use toolgate_tests::gateway::Gateway;
use toolgate_tests::mcp::{McpServer, tool};
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;

use crate::{crm, offered, runs, told};

async fn reload(stand: &Stand, gateway: &Gateway, configuration: Value) {
    stand.configure(configuration);
    let response = gateway.reload().await;
    assert_eq!(response.status, 200, "{}", response.text());
}

#[tokio::test]
async fn a_reload_keeps_what_was_found_and_the_sessions() {
    let server = McpServer::good(&[tool("find")]).await;
    let stand = Stand::with(json!([]), json!({})).await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    let mut other = crm(&server, json!({}));
    other["models"]["m"]["system_prompt"] = json!("Be brief.");
    reload(&stand, &gateway, other).await;
    assert_eq!(offered(&stand).await, ["crm__find"]);
    assert_eq!((server.count("initialize"), server.count("tools/list")), (1, 1));
    reload(&stand, &gateway, crm(&server, json!({ "enabled": false }))).await;
    assert!(offered(&stand).await.is_empty(), "what the file says of a tool holds at once");
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test]
async fn what_changes_after_a_reload_comes_into_the_configuration_in_force() {
    let server = McpServer::good(&[tool("find")]).await;
    let stand = Stand::with(json!([]), json!({})).await;
    let gateway = stand.serve(crm(&server, json!({}))).await;
    reload(&stand, &gateway, crm(&server, json!({ "tools": ["find", "new"] }))).await;
    server.offer(&[tool("find"), tool("new"), tool("more")]);
    server.tell_change(1).await;
    eventually("the new one is offered", || async { offered(&stand).await == ["crm__find", "crm__new"] }).await;
}

#[tokio::test]
async fn servers_come_and_go_with_a_reload_and_a_run_is_told_no_more_than_that() {
    let (old, new) = (McpServer::good(&[tool("find")]).await, McpServer::good(&[tool("count")]).await);
    let stand = Stand::with(
        json!([
            { "calls": [{ "name": "crm__find", "arguments": {} }] },
            { "calls": [{ "name": "crm__find", "arguments": { "n": 2 } }], "until_caller_saw": "reloaded" },
            { "content": "Well." },
        ]),
        json!({}),
    )
    .await;
    let gateway = stand.serve(crm(&old, json!({}))).await;
    let change = async {
        assert!(stand.upstream.until(|asked| asked.len() == 2).await);
        let mut other = crm(&new, json!({}));
        let described = other["mcp_servers"]["crm"].take();
        other["mcp_servers"] = json!({ "shop": described });
        reload(&stand, &gateway, other).await;
        assert_eq!(offered(&stand).await, ["shop__count"]);
        stand.stage.saw(b"reloaded");
    };
    tokio::join!(runs(&stand), change);
    let told = told(&stand, 2);
    assert!(told[0].contains("done"), "{told:?}");
    assert_eq!(told[1], "Error: tool \"crm__find\" is not available.");
    assert_eq!(old.count("tools/call"), 1);
    eventually("the session with the old one is closed", || async { old.sessions() == 0 }).await;
}

#[tokio::test]
async fn what_is_found_does_not_touch_what_was_spent() {
    let server = McpServer::good(&[tool("find")]).await;
    let stand = Stand::with(json!([{ "content": "Well." }, { "content": "Well." }]), json!({})).await;
    let mut configuration = crm(&server, json!({}));
    configuration["keys"] = json!([{ "name": "shop", "budgets": [{ "per": "total", "requests": 2 }] }]);
    let _gateway = stand.serve(configuration).await;
    assert_eq!(stand.hello().await.0, 200);
    for (round, name) in ["a", "b", "c"].into_iter().enumerate() {
        server.offer(&[tool("find"), tool(name)]);
        server.tell_change(1).await;
        let expected = [format!("crm__{name}"), "crm__find".to_owned()];
        eventually(&format!("round {round} is in force"), || async { offered(&stand).await == expected }).await;
    }
    assert_eq!(stand.hello().await.0, 200);
    assert_eq!(stand.hello().await.0, 429);
}
