//! The file as it is written: YAML with places (`yaml`, `numeral`), strings filled in (`text`), one table of keys a section (`file`,
//! `models`, `keys`, `money`, `tools`, `mcp`, `openapi`, `store`), and the readers that these tables are made of (`shape`, `words`, `section`). A table drives everything that is said about a key:
//! how it is read, what is refused, and the JSON Schema. What values mean together is the business of `check`.

pub(crate) mod file;
pub(crate) mod keys;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod money;
pub(crate) mod numeral;
pub(crate) mod openapi;
pub(crate) mod redaction;
pub(crate) mod section;
pub(crate) mod shape;
pub(crate) mod store;
pub(crate) mod text;
pub(crate) mod tools;
pub(crate) mod words;
pub(crate) mod yaml;

use serde_json::{Value, json};

pub(crate) use file::{File, Server, Tls};
pub(crate) use keys::Key;
pub(crate) use mcp::McpServer;
pub(crate) use models::{Model, ModelTools, Provider};
pub(crate) use money::{Budget, Price, Prices, Rate, Rates};
pub(crate) use section::{At, Given};
pub(crate) use shape::Named;
pub use shape::duration;
pub(crate) use store::Store;
pub(crate) use text::Text;
pub(crate) use tools::{EgressEntry, Group, Http, Tool};

use shape::Shape;

/// The JSON Schema of the whole file, for editors.
pub fn schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolgate configuration",
    });
    if let (Value::Object(all), Value::Object(file)) = (&mut schema, File::schema()) {
        all.extend(file);
    }
    schema
}

/// The key path of a member: `tools.x`, or `models["gpt-4.1"]` where the name is not a plain word.
pub(crate) fn member(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (plain, path) {
        (true, "") => key.to_owned(),
        (true, path) => format!("{path}.{key}"),
        (false, path) => format!("{path}[{key:?}]"),
    }
}

/// The key path of an item: `tools[2]`.
pub(crate) fn index(path: &str, at: usize) -> String {
    format!("{path}[{at}]")
}

/// The known name that is closest to a word, if any is close: most of it must be right.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |name: &str| strsim::osa_distance(&word, &name.to_lowercase());
    let close = |(name, distance): &(&str, usize)| {
        let (shorter, longer) = (name.len().min(word.len()), name.len().max(word.len()));
        *distance < shorter && *distance <= longer / 3 + 1
    };
    known.into_iter().map(|name| (name, distance(name))).filter(close).min_by_key(|(_, distance)| *distance).map(|(name, _)| name)
}

/// How many names a fault lists.
const LISTED: usize = 24;

/// Names as a fault lists them.
pub(crate) fn listed(names: &[&str]) -> String {
    match names.split_at_checked(LISTED) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        _ => names.join(", "),
    }
}

/// The tail of a fault about a name: what is allowed, and the nearest known one.
pub(crate) fn advice<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let allowed = if known.is_empty() { "there are none".to_owned() } else { format!("allowed: {}", listed(&known)) };
    match nearest(word, known) {
        Some(name) => format!("{allowed}; nearest: {name}"),
        None => allowed,
    }
}
