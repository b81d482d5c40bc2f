//! What `mcp_servers:` means.

use std::time::Duration;

use toolgate_config::class::DataClass;
use toolgate_config::mcp::Reach;
use toolgate_config::tool::{Effect, ToolRule};

use super::accepted;

const GROUP: &str =
    "groups: { lab: { data_class: internal, personal: true, egress: ['crm.example.org:443'], trust_zone: private } }\n";

#[test]
fn the_shape_of_desktop_clients_is_taken_as_it_is() {
    let config = accepted(&format!(
        "{GROUP}mcp_servers: {{\n\
           \"files\": {{ \"type\": \"stdio\", \"command\": \"npx\", \"args\": [\"-y\", \"server\", 7], \"env\": {{ \"TOKEN\": \"${{SECRET}}\", \"PORT\": 80 }}, \"group\": \"lab\" }},\n\
           \"own\": {{ \"command\": \"./bin/server\", \"group\": \"lab\" }},\n\
           \"off\": {{ \"command\": \"x\", \"disabled\": true, \"group\": \"lab\" }},\n\
           \"crm\": {{ \"type\": \"streamable-http\", \"url\": \"https://CRM.example.org/mcp/?k=a%20b\", \"headers\": {{ \"Authorization\": \"Bearer ${{SECRET}}\" }}, \"group\": \"lab\" }}\n\
         }}\n"
    ));
    let names: Vec<_> = config.mcp_servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["files", "own", "crm"], "in the order of the file, without what is switched off");
    let Reach::Stdio { command, args, env } = &config.mcp_servers[0].reach else { panic!("it is a program") };
    let args: Vec<_> = args.iter().map(|arg| arg.expose()).collect();
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!((command.as_str(), args, env), ("npx", vec!["-y", "server", "7"], vec![("TOKEN", "s3cret"), ("PORT", "80")]));
    let Reach::Stdio { command, .. } = &config.mcp_servers[1].reach else { panic!("it is a program") };
    assert!(command.ends_with("bin/server"), "a path is relative to the file: {command}");
    let Reach::Http { url, headers } = &config.mcp_servers[2].reach else { panic!("it is an address") };
    assert_eq!((url.origin.address.to_string().as_str(), url.path.as_str()), ("crm.example.org:443", "/mcp/?k=a%20b"));
    assert_eq!((headers[0].0.as_str(), headers[0].1.expose()), ("authorization", "Bearer s3cret"));
}

#[test]
fn a_tool_is_a_write_that_asks_for_approval_unless_the_file_says_otherwise() {
    let config = accepted(&format!("{GROUP}mcp_servers: {{ a: {{ command: x, group: lab }} }}\n"));
    let server = &config.mcp_servers[0];
    let expected = ToolRule {
        enabled: true,
        effect: Effect::NonIdempotentWrite,
        requires_admin: false,
        scopes: [].into(),
        requires_approval: true,
        data_class: DataClass::Internal,
        personal: true,
        timeout: Duration::from_secs(30),
        max_result: 50000,
        cache: None,
        price: None,
        redacted: true,
    };
    assert_eq!(server.rule_of("whatever"), Some(&expected));
}

#[test]
fn what_is_said_of_one_tool_goes_before_what_is_said_of_the_server() {
    let config = accepted(&format!(
        "{GROUP}mcp_servers:\n  a:\n    command: x\n    group: lab\n    timeout: 5s\n    requires_approval: false\n    price: 0.5\n    effect: read_only\n    cache: 60s\n    scopes: [s]\n\
         \x20   tools: [find, {{ change: {{ effect: idempotent_write, data_class: public, personal: false, scopes: [], timeout: 1s, price: 0, max_result: 9 }} }}]\n"
    ));
    let server = &config.mcp_servers[0];
    let find = server.rule_of("find").unwrap();
    assert_eq!(
        (find.effect, find.cache, find.price.is_some(), find.timeout),
        (Effect::ReadOnly, Some(Duration::from_secs(60)), true, Duration::from_secs(5))
    );
    assert!(!find.requires_approval && find.scopes.len() == 1);
    let change = server.rule_of("change").unwrap();
    assert_eq!(
        (change.effect, change.cache, change.price, change.timeout),
        (Effect::IdempotentWrite, None, None, Duration::from_secs(1))
    );
    assert_eq!((change.data_class, change.personal, change.scopes.len(), change.max_result), (DataClass::Public, false, 0, 9));
    assert!(!change.requires_approval);
    assert_eq!(server.rule_of("drop"), None, "what the file does not name may not be had");
}

#[test]
fn case_50_an_empty_list_of_tools_is_none() {
    let config = accepted(&format!("{GROUP}mcp_servers: {{ a: {{ command: x, group: lab, tools: [] }} }}\n"));
    assert_eq!(config.mcp_servers[0].rule_of("find"), None);
}
