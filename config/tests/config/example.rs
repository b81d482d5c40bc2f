//! The example is what most operators begin with: it loads, and it shows every key that is supported.

use std::path::Path;

use serde_json::Value;
use toolgate_config::check::{Source, read};
use toolgate_config::raw::schema;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/toolgate.example.yaml");

#[test]
fn the_example_loads() {
    let text = std::fs::read_to_string(PATH).unwrap();
    let config = read(&Source { path: Path::new(PATH), text: &text, env: &|name| Some(format!("value-of-{name}")) });
    let config =
        config.unwrap_or_else(|faults| panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>()));
    assert_eq!((config.providers.len(), config.models.named.len(), config.groups.len(), config.tools.len()), (2, 2, 3, 5));
    assert!(config.models.any.is_some() && config.mcp_servers.len() == 2);
    assert_eq!(config.watched.len(), 1, "the document of `openapi:`");
}

#[test]
fn whatever_line_of_it_is_lost_or_cut_it_loads_or_says_why() {
    let text = std::fs::read_to_string(PATH).unwrap();
    let lines: Vec<_> = text.lines().collect();
    for at in 0..lines.len() {
        for instead in
            ["", lines[at].split_at_checked(lines[at].len() / 2).map_or("x", |half| half.0), "  - : {x", "      tools: ${X}"]
        {
            let mut lines = lines.clone();
            lines[at] = instead;
            let text = lines.join("\n");
            if let Err(faults) = read(&Source { path: Path::new(PATH), text: &text, env: &|_| Some("x".to_owned()) }) {
                assert!(!faults.is_empty(), "refused without a reason:\n{text}");
                assert!(faults.is_sorted_by_key(|fault| (
                    fault.place.file != Path::new(PATH),
                    fault.place.line,
                    fault.place.column
                )));
            }
        }
    }
}

#[test]
fn the_example_names_every_supported_key() {
    let text = std::fs::read_to_string(PATH).unwrap();
    let mut missing = Vec::new();
    for name in supported(&schema()) {
        if !text.contains(&format!("{name}:")) {
            missing.push(name);
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_example_is_valid_by_the_schema_and_later_or_unknown_keys_are_not() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let value = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    let faults: Vec<_> = validator
        .iter_errors(&value(&std::fs::read_to_string(PATH).unwrap()))
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(faults, Vec::<String>::new());
    for text in [
        "mcp_servers: { a: { command: x } }",
        "mcp_servers: { a: { command: x, group: g, tools: [ { b: {}, c: {} } ] } }",
        "sever: {}",
        "server: { max_concurrent: 0 }",
        "auth: key",
        "providers: { p: {} }",
        "providers: { p: { kind: claude } }",
        "store: { url: x }",
        "groups: { g: { egress: all } }",
        "keys: [ { name: a, secret: b } ]",
        "limits: { budgets: [ { per: day, usd: 0 } ] }",
        "limits: { budgets: [ { usd: 1 } ] }",
        "limits: { rate: 60 }",
        "limits: { rate: [ { concurrent: 0 } ] }",
        "models: { m: { provider: p, price: fre } }",
        "models: { m: { provider: p, price: { input: 1 } } }",
        "models: { m: { provider: p, price: { input: -1, output: 1 } } }",
    ] {
        assert!(!validator.is_valid(&value(text)), "{text}");
    }
    for text in [
        "limits: { budgets: [ { per: day, usd: 0.000000001 } ], rate: { concurrent: 1 } }",
        "limits: { budgets: [ { per: '${PER}', usd: '${USD}' } ], rate: [ { concurrent: '${N}' }, { tokens_per_minute: 1 } ] }",
        "models: { m: { provider: p, price: free }, n: { provider: p, price: '${PRICE}' }, o: { provider: p, price: { input: 0, output: 0 } } }",
        "store: { url: none, counters: memory }",
        "store: { url: 'sqlite:x', counters: 'redis://h' }",
        "store: { url: 'postgres://u@h/d', counters: 'redis+unix:///s' }",
        "store: { url: '${URL}', counters: '${URL}' }",
    ] {
        assert!(validator.is_valid(&value(text)), "{text}");
    }
}

fn supported(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    match schema {
        Value::Object(members) => {
            for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if property.get("not").is_none() {
                    names.push(name.clone());
                }
            }
            members.values().for_each(|value| names.extend(supported(value)));
        }
        Value::Array(items) => items.iter().for_each(|item| names.extend(supported(item))),
        _ => {}
    }
    names
}
