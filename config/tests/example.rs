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
    assert_eq!((config.providers.len(), config.models.named.len(), config.groups.len(), config.tools.len()), (2, 2, 2, 3));
    assert!(config.models.any.is_some() && config.watched.is_empty());
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
