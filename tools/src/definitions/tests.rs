//! What becomes of what servers say.

use std::path::Path;

use toolgate_config::Config;
use toolgate_config::check::{Source as File, read};

use super::*;

const FILE: &str = r#"
groups: { lab: { data_class: internal, egress: ["127.0.0.1:9"] } }
tools: [ { name: b__taken, group: lab, http: { url: "http://127.0.0.1:9/" } } ]
mcp_servers:
  b: { command: x, group: lab, requires_approval: false }
  a: { command: x, group: lab, tools: [ search, { count: { effect: read_only, requires_approval: false } } ] }
  my server: { command: x, group: lab }
  red_: { command: x, group: lab }
  red: { command: x, group: lab }
"#;

fn config(text: &str) -> Config {
    read(&File { path: Path::new("toolgate.yaml"), text, env: &|_| None }).unwrap()
}

fn told<'a>(name: &'a str, schema: &'a Value) -> Told<'a> {
    Told { name, description: "Does something", schema }
}

/// What is found where each server lists these names.
fn named(config: &Config, listings: &[(&str, &[&str])]) -> Found {
    let schema = json!({ "type": "object" });
    let listed = config.mcp_servers.iter().filter_map(|server| {
        let (_, names) = listings.iter().find(|(name, _)| *name == server.name.as_str())?;
        Some((server, names.iter().map(|name| told(name, &schema)).collect()))
    });
    found(&config.tools, listed, |_, _| Definition::Pinned)
}

fn names(found: &Found) -> Vec<&str> {
    found.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn refusals(found: &Found) -> Vec<String> {
    found.refused.iter().map(|Refused { server, tool, why }| format!("{server}: {tool} {why}")).collect()
}

#[test]
fn tools_come_by_server_as_in_the_file_and_then_by_name_whatever_the_order_of_the_list() {
    let config = config(FILE);
    for listings in [[("b", &["z", "y"][..]), ("a", &["count", "search"])], [("a", &["search", "count"]), ("b", &["y", "z"])]] {
        let found = named(&config, &listings);
        assert_eq!(names(&found), ["b__y", "b__z", "a__count", "a__search"]);
        assert_eq!(refusals(&found), [""; 0]);
    }
}

#[test]
fn a_tool_has_what_the_file_says_of_it_and_the_servers_own_name() {
    let config = config(FILE);
    let found = named(&config, &[("a", &["count", "search"]), ("b", &["files.read/v2"])]);
    let [b, count, search] = found.tools.as_slice() else { panic!("three tools: {found:?}") };
    assert_eq!((b.rule.requires_approval, count.rule.requires_approval, search.rule.requires_approval), (false, false, true));
    assert_eq!((b.rule.effect.as_str(), count.rule.effect.as_str()), ("non_idempotent_write", "read_only"));
    let Work::Mcp(work) = &b.work else { panic!("it is a call of a server") };
    assert_eq!((work.server.name.as_str(), work.tool.as_str()), ("b", "files.read/v2"));
    assert!(b.name.as_str().starts_with("b__files_read_v2_"));
    assert_eq!((b.source, b.group.name.as_str(), b.rule.data_class.as_str()), (Source::Mcp, "lab", "internal"));
}

#[test]
fn case_50_what_the_file_does_not_name_is_not_there_and_what_it_names_in_vain_is_told() {
    let found = named(&config(FILE), &[("a", &["delete_all", "Search", "search ", "count"])]);
    assert_eq!(names(&found), ["a__count"]);
    assert_eq!(refusals(&found), ["a: search is not among those that the server lists"]);
}

#[test]
fn case_14_two_servers_can_have_tools_of_one_name_and_each_gets_its_own_name_back() {
    let config = config(FILE);
    let found = named(
        &config,
        &[("b", &["search"]), ("a", &["search", "count"]), ("red_", &["fox"]), ("red", &["_fox"]), ("my server", &["list"])],
    );
    let owners: Vec<_> = found.tools.iter().map(owner).collect();
    assert_eq!(
        owners,
        [
            "`search` of the server `b`",
            "`count` of the server `a`",
            "`search` of the server `a`",
            "`list` of the server `my server`",
            "`fox` of the server `red_`",
            "`_fox` of the server `red`"
        ]
    );
    let mut distinct = names(&found);
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 6);
}

#[test]
fn case_14_a_name_that_two_tools_would_have_is_neithers_and_both_are_named() {
    let config = config(FILE);
    // The second is called what the first becomes.
    let hashed = naming::offered("red_", "fox");
    let alike = hashed.as_str().strip_prefix("red__").unwrap();
    let found = named(&config, &[("b", &["taken", "free", "free"]), ("red_", &["fox"]), ("red", &[alike])]);
    assert_eq!(names(&found), ["b__free"]);
    assert_eq!(
        refusals(&found),
        [
            "b: free is listed twice".to_owned(),
            "b: taken would have the name `b__taken` of another tool: one of the file".to_owned(),
            format!("red_: fox would have the name `{hashed}` of another tool: `{alike}` of the server `red`"),
            format!("red: {alike} would have the name `{hashed}` of another tool: `fox` of the server `red_`"),
        ]
    );
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({ "not": inner }))
}

#[test]
fn a_schema_is_kept_whole_or_its_tool_is_refused() {
    let config = config(FILE);
    let long = json!({ "type": "object", "description": "x".repeat(LONGEST_SCHEMA) });
    let table = [
        (
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A" } }, "$defs": { "A": { "const": { "$ref": "x" } } } }),
            None,
        ),
        (json!({ "type": "object", "required": ["a"], "additionalProperties": false }), None),
        (json!({ "properties": { "$ref": { "type": "string" } } }), None),
        (json!({}), None),
        (nested(32), None),
        (json!({ "type": "array" }), Some("has a schema that is not of `type: object`")),
        (json!({ "type": ["object", "null"] }), Some("has a schema that is not of `type: object`")),
        (json!(true), Some("has a schema that is not of `type: object`")),
        (nested(33), Some("has a schema of more than 32 levels")),
        (long, Some("has a schema of 65586 bytes; at most 65536 are taken")),
        (
            json!({ "properties": { "a": { "$ref": "https://example.org/a.json" } } }),
            Some("has a schema with a reference to somewhere else, and nothing is fetched"),
        ),
        (
            json!({ "properties": { "a": { "$ref": "#/$defs/gone" } } }),
            Some("has a schema that is none: a `$ref` leads nowhere within it, and nothing is fetched"),
        ),
        (json!({ "properties": { "a": { "type": "strange" } } }), Some("has a schema that is none: ")),
    ];
    for (schema, refused) in table {
        let found = found(&config.tools, [(&config.mcp_servers[0], vec![told("t", &schema)])], |_, _| Definition::Pinned);
        let why = found.refused.first().map(|refused| refused.why.as_str());
        match refused {
            Some(start) => assert!(why.is_some_and(|why| why.starts_with(start)), "{why:?}, expected {start}"),
            None => {
                let offered = found.tools[0].parameters.value();
                assert!(why.is_none(), "{why:?}");
                for (name, value) in schema.as_object().unwrap() {
                    assert_eq!(offered.get(name), Some(value), "kept whole");
                }
                assert_eq!(offered["type"], "object");
                assert!(offered["properties"].is_object());
            }
        }
    }
}

#[test]
fn a_schema_that_says_nothing_of_required_members_lets_no_more_through_than_before() {
    let config = config(FILE);
    let schema = json!({ "required": ["a"], "properties": { "a": { "type": "integer" } } });
    let found = found(&config.tools, [(&config.mcp_servers[0], vec![told("t", &schema)])], |_, _| Definition::Pinned);
    let parameters = &found.tools[0].parameters;
    assert!(parameters.validate(&json!({ "a": 1 })).is_ok());
    assert!(parameters.validate(&json!({})).is_err() && parameters.validate(&json!({ "a": "1" })).is_err());
}

#[test]
fn a_tool_without_a_usable_name_is_refused() {
    let schema = json!({});
    let (empty, long) = (told("", &schema), "n".repeat(LONGEST_NAME + 1));
    let config = config(FILE);
    let found = found(&config.tools, [(&config.mcp_servers[0], vec![empty, told(&long, &schema)])], |_, _| Definition::Pinned);
    assert_eq!(found.refused[0].why, "has no name");
    assert_eq!(found.refused[1].why, "has a name of more than 1024 bytes");
    assert_eq!(found.refused[1].tool.chars().count(), 101);
}

#[test]
fn a_description_holds_nothing_that_is_not_seen_and_is_bounded() {
    let table = [
        (" Reads\r\n\ta file.\u{1b}[31m ", "Reads\r\n\ta file.<U+001B>[31m"),
        ("a\u{202e}b\u{200b}c\u{feff}d\u{e0041}e\0f", "a<U+202E>b<U+200B>c<U+FEFF>d<U+E0041>e<U+0000>f"),
        ("<|im_start|>system", "<·|im_start|>system"),
        ("größe 👩\u{200d}🔬", "größe 👩\u{200d}🔬"),
        ("", ""),
    ];
    for (told, read) in table {
        assert_eq!(cleaned(told), read);
    }
    let long = cleaned(&"ä".repeat(5000));
    assert!(long.len() <= LONGEST_DESCRIPTION && long.ends_with("ä…"));
    assert_eq!(shown("a\r\nb\u{202e}"), "a\u{fffd}\u{fffd}b\u{fffd}");
    assert_eq!(shown("a\u{3164}\u{fe01}\u{2028}"), "a\u{fffd}\u{fffd}\u{fffd}");
    assert_eq!(visible("a\u{34f}\u{115f}\u{200d}\u{fe0f}\n\tb"), "a\n\tb");
}

#[test]
fn what_is_offered_is_neutral_and_what_is_pinned_is_as_the_server_told_it() {
    let config = config(FILE);
    let schema = json!({
        "type": "object",
        "title": "a\u{200b}b",
        "properties": { "default": { "type": "string", "description": "x\u{202e}<|im_start|>", "enum": ["<s>"] } },
    });
    let told = Told { name: "t", description: "<|im_end|>\u{202e}", schema: &schema };
    assert!(told.canonical().contains("<|im_end|>\u{202e}"));
    let server = config.mcp_servers.iter().find(|server| server.name.as_str() == "b").unwrap();
    let found = found(&config.tools, [(server, vec![told])], |_, _| Definition::Pinned);
    let [tool] = &found.tools[..] else { panic!("{:?}", found.refused) };
    assert_eq!(tool.description, "<·|im_end|><U+202E>");
    let offered: Value = serde_json::from_str(tool.parameters.text()).unwrap();
    assert_eq!(offered["title"], "a<U+200B>b");
    assert_eq!(offered["properties"]["default"]["description"], "x<U+202E><·|im_start|>");
    assert_eq!(offered["properties"]["default"]["enum"], json!(["<s>"]));
}

/// A tool of a server, for whoever needs one.
pub(crate) fn any_tool() -> Tool {
    let config = config(FILE);
    let schema = json!({});
    let found = found(&config.tools, [(&config.mcp_servers[0], vec![told("t", &schema)])], |_, _| Definition::Pinned);
    found.tools.into_iter().next().unwrap()
}

#[test]
fn a_definition_has_one_text_whatever_the_order_of_its_keys() {
    let one = json!({ "type": "object", "properties": { "b": { "type": "string", "minLength": 1 }, "a": {} } });
    let other = json!({ "properties": { "a": {}, "b": { "minLength": 1, "type": "string" } }, "type": "object" });
    let text = told("t", &one).canonical();
    assert_eq!(text, told("t", &other).canonical());
    assert_eq!(text, r#"["t","Does something",{"properties":{"a":{},"b":{"minLength":1,"type":"string"}},"type":"object"}]"#);
    assert_ne!(text, told("T", &one).canonical());
    assert_ne!(text, Told { description: "does something", ..told("t", &one) }.canonical());
}
