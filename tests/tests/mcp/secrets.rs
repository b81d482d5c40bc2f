//! Credentials: each goes to its own server, the caller's to none, and what a server gives away goes no further.

use serde_json::{Value, json};
use toolgate_tests::gateway::Gateway;
use toolgate_tests::mcp::{Asked, McpServer, Say, tool};
use toolgate_tests::scenario::Mode;
use toolgate_tests::stand::Stand;

use crate::{asks_for, crm};

fn heads(asked: &[Asked]) -> String {
    asked.iter().map(|asked| format!("{} {:?} {}\n", asked.target, asked.head, asked.message)).collect()
}

#[tokio::test]
async fn case_41_every_server_gets_its_own_credential_and_nobodys_else() {
    let elsewhere = McpServer::good(&[]).await;
    let location = elsewhere.url();
    let [one, other] = [McpServer::good(&[tool("find")]).await, McpServer::good(&[tool("find")]).await];
    let moved =
        McpServer::start(&[tool("find")], move |asked| (asked.what() == "tools/call").then(|| Say::Moved(location.clone())))
            .await;
    let stand = Stand::with(asks_for(&["one__find", "other__find", "moved__find"], 1), json!({})).await;
    let server = |server: &McpServer, token: &str| {
        json!({
            "url": server.url(), "group": "crm", "requires_approval": false, "headers": { "authorization": format!("Bearer {token}") },
        })
    };
    let mut configuration = crm(&one, json!({}));
    configuration["groups"]["crm"]["egress"] =
        [&one, &other, &moved, &elsewhere].map(|server| json!({ "host": server.address, "private": true })).to_vec().into();
    configuration["mcp_servers"] = json!({ "one": server(&one, "TOKEN-OF-ONE"), "other": server(&other, "TOKEN-OF-OTHER"), "moved": server(&moved, "TOKEN-OF-MOVED") });
    let gateway = stand.serve(configuration).await;
    let headers = json!({ "x-api-key": "CLIENT-CANARY-2", "cookie": "s=CLIENT-CANARY-3", "x-toolgate-tools": "one__find, other__find, moved__find" });
    let response = stand.ask(Mode::Plain, json!({ "headers": headers })).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let all = [("ONE", &one), ("OTHER", &other), ("MOVED", &moved)];
    for (name, server) in all {
        let heads = heads(&server.asked());
        assert!(server.count("tools/call") == 1, "{heads}");
        assert!(!heads.contains("CANARY") && !heads.to_ascii_lowercase().contains("x-toolgate"), "{heads}");
        for (whose, _) in all {
            assert_eq!(heads.contains(&format!("TOKEN-OF-{whose}")), whose == name, "{name}: {heads}");
        }
    }
    assert!(elsewhere.asked().is_empty(), "nobody is sent elsewhere");
    let sent: String =
        stand.upstream.received().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    assert!(!sent.contains("TOKEN-OF") && !response.text().contains("TOKEN-OF") && !gateway.log().contains("TOKEN-OF"));
}

/// The same secret, where nobody looks for it.
fn giveaways(secret: &str) -> Vec<Say> {
    let encoded: String = secret.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    vec![
        Say::Result(json!({ "content": [], "structuredContent": { "a": { "b": [secret] } } })),
        Say::Result(json!({ "content": [], "structuredContent": { (secret): 1 } })),
        Say::Result(
            json!({ "content": [{ "type": "resource", "resource": { "uri": "file:///x", "mimeType": "text/plain", "text": secret } }] }),
        ),
        Say::Result(json!({ "content": [{ "type": "text", "text": format!("{{\"k\":\"{encoded}\"}}") }] })),
        Say::Result(json!({ "isError": true, "content": [{ "type": "text", "text": format!("no: {secret}") }] })),
        Say::Error(json!({ "code": -32000, "message": format!("refused {secret}"), "data": { "k": secret } })),
        Say::Status(500, secret.to_owned()),
    ]
}

async fn everything(stand: &Stand, gateway: &Gateway) -> Vec<(&'static str, String)> {
    let sent = stand.upstream.received().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    vec![("the model", sent), ("the log", gateway.log()), ("the metrics", gateway.admin("/metrics").await.text())]
}

#[tokio::test]
async fn case_52_a_secret_in_a_servers_answer_goes_nowhere() {
    const SECRET: &str = "sk-proj-SECRETCANARY0a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuV";
    let says = giveaways(SECRET);
    let count = says.len();
    let server = McpServer::start(&[tool("find")], move |asked| {
        (asked.what() == "tools/call").then(|| says[asked.nth % says.len()].clone())
    })
    .await;
    let stand = Stand::with(asks_for(&["crm__find"], count), json!({})).await;
    stand.configure(crm(&server, json!({ "headers": { "authorization": "Bearer OWN-CANARY" } })));
    let trace = [("TOOLGATE_LOG".to_owned(), "trace".to_owned())];
    let gateway = Gateway::start(&stand.folder, stand.addresses.clone(), &trace).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..count {
        let response = stand.ask(Mode::Plain, json!({})).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let path = format!("/toolgate/traces/{}", response.trace().unwrap());
        let trace: Value = stand.ask(Mode::Plain, json!({ "get": path })).await.json();
        seen.push(("the trace", trace.to_string()));
        seen.push(("the caller", format!("{:?}{}", response.head, response.text())));
    }
    assert_eq!(server.count("tools/call"), count);
    seen.extend(everything(&stand, &gateway).await);
    for (place, text) in seen {
        assert!(!text.contains("SECRETCANARY") && !text.contains("OWN-CANARY"), "{place}: {text}");
    }
}
