//! The configuration that scenarios start from, how theirs is merged over it, and the placeholders of a file.

use serde_json::{Map, Value};

/// The secret of the key `shop`, which callers use unless a scenario says otherwise.
pub const SHOP: &str = "tg-shop-KEY-CANARY";
/// The secret of the key `boss`, an admin.
pub const BOSS: &str = "tg-boss-KEY-CANARY";
/// The key that the gateway has for the provider `mock`.
pub const PROVIDER: &str = "sk-PROVIDER-CANARY";

/// What every scenario starts from; it is printed in the README.
pub const DEFAULT: &str = include_str!("../scenarios/default.config");

/// `over` over `base`: mappings member by member, the lists `tools` and `keys` by the names of their entries, everything else replaced.
/// `~` takes a member away.
pub fn merge(base: &mut Value, over: Value) {
    merge_member("", base, over);
}

fn merge_member(name: &str, base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => merge_members(base, over),
        (Value::Array(base), Value::Array(over)) if matches!(name, "tools" | "keys") && named(base) && named(&over) => {
            merge_named(base, over);
        }
        (base, over) => *base = over,
    }
}

fn merge_members(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (name, value) in over {
        match base.get_mut(&name) {
            Some(_) if value.is_null() => drop(base.shift_remove(&name)),
            Some(old) => merge_member(&name, old, value),
            None => drop(base.insert(name, value)),
        }
    }
}

fn merge_named(base: &mut Vec<Value>, over: Vec<Value>) {
    for value in over {
        match base.iter_mut().find(|old| old["name"] == value["name"]) {
            Some(old) => merge(old, value),
            None => base.push(value),
        }
    }
}

fn named(list: &[Value]) -> bool {
    list.iter().all(|value| value.get("name").is_some())
}

/// The default configuration with `over` merged over it, as YAML (which JSON is).
///
/// # Errors
/// The default is broken.
pub fn configuration(over: Value, placeholders: &[(&str, String)]) -> Result<String, String> {
    let mut whole: Value = serde_saphyr::from_str(&fill(DEFAULT, placeholders)).map_err(|error| error.to_string())?;
    if !over.is_null() {
        merge(&mut whole, over);
    }
    serde_json::to_string_pretty(&whole).map_err(|error| error.to_string())
}

/// Fills `{{name}}`, `{{sha256:TEXT}}` and `{{repeat:TEXT:COUNT}}`; a name that is not known stays as it is.
pub fn fill(text: &str, placeholders: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(end) = rest[start..].find("}}").map(|end| start + end) else { break };
        filled.push_str(&rest[..start]);
        match value_of(&rest[start + 2..end], placeholders) {
            Some(value) => {
                filled.push_str(&value);
                rest = &rest[end + 2..];
            }
            None => {
                filled.push_str("{{");
                rest = &rest[start + 2..];
            }
        }
    }
    filled + rest
}

fn value_of(inside: &str, placeholders: &[(&str, String)]) -> Option<String> {
    if let Some(text) = inside.strip_prefix("sha256:") {
        return Some(sha256(text));
    }
    if let Some((text, count)) = inside.strip_prefix("repeat:").and_then(|rest| rest.rsplit_once(':')) {
        return count.parse().ok().map(|count| text.repeat(count));
    }
    placeholders.iter().find(|(name, _)| *name == inside).map(|(_, value)| value.clone())
}

/// Lower-case hexadecimal SHA-256.
pub fn sha256(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
