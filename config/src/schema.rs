//! A tool's JSON Schema: the text that a model reads and the validator that its arguments meet, made from one value.

use std::collections::HashMap;
use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

/// A JSON Schema, compiled. No reference in it is ever fetched.
pub struct Schema {
    value: Value,
    text: String,
    validator: jsonschema::Validator,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn compile(value: Value) -> Result<Self, String> {
        Unfolding { whole: &value, parts: HashMap::new() }.of(&value, 0)?;
        let validator = jsonschema::validator_for(&value).map_err(|error| invalid(&error))?;
        Ok(Self { text: value.to_string(), value, validator })
    }

    /// The schema as it was given.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The schema as compact JSON: what is offered to a model.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether arguments meet the schema.
    ///
    /// # Errors
    /// The first thing that is wrong, as `place: what is wrong`, bounded; for the model, so that it can try again.
    pub fn validate(&self, arguments: &Value) -> Result<(), String> {
        self.validator.validate(arguments).map_err(|error| {
            // A long value is left out: it is what is wrong that the model must read to the end.
            let is_long = error.instance().to_string().len() > LONGEST_VALUE;
            let what = if is_long { error.masked_with("the value").to_string() } else { error.to_string() };
            let place = error.instance_path().to_string();
            let text = if place.is_empty() { what } else { format!("{place}: {what}") };
            text.chars().take(300).collect()
        })
    }

    /// The places, as JSON pointers, where a string stands and nothing but an object or a list will do.
    pub fn wants_structure(&self, arguments: &Value) -> Vec<String> {
        let mut places = Vec::new();
        self.validator.iter_errors(arguments).for_each(|error| strings(&error, &mut places));
        places
    }
}

/// How much of a value an error repeats, in bytes.
const LONGEST_VALUE: usize = 100;

fn strings(error: &ValidationError<'_>, places: &mut Vec<String>) {
    match error.kind() {
        Kind::Type { kind } if error.instance().is_string() && is_structure(kind) => {
            let place = error.instance_path().to_string();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            context.iter().flatten().for_each(|error| strings(error, places));
        }
        _ => {}
    }
}

fn is_structure(wanted: &TypeKind) -> bool {
    let is_one = |of: &JsonType| matches!(of, JsonType::Object | JsonType::Array);
    match wanted {
        TypeKind::Single(of) => is_one(of),
        TypeKind::Multiple(of) => [JsonType::Object, JsonType::Array].into_iter().any(|one| of.contains(one)),
    }
}

/// How deep a schema may be, what it refers to included, and how many parts it may have when every reference is written out. A few hundred
/// bytes of references can unfold to more than anybody could check in a lifetime, and arguments are checked while a caller waits.
const DEEPEST: usize = 100;
const MOST_PARTS: u64 = 100_000;

/// Counts the parts of a schema with its references written out, each that leads back to itself once.
struct Unfolding<'s> {
    whole: &'s Value,
    parts: HashMap<*const Value, u64>,
}

impl<'s> Unfolding<'s> {
    fn of(&mut self, part: &'s Value, depth: usize) -> Result<u64, String> {
        if depth > DEEPEST {
            return Err(format!("it is more than {DEEPEST} levels deep, references included"));
        }
        if let Some(known) = self.parts.get(&std::ptr::from_ref(part)) {
            return Ok(*known);
        }
        self.parts.insert(part, 1);
        let mut count = 1_u64;
        match part {
            Value::Object(members) => {
                for (name, member) in members {
                    let referred = member.as_str().filter(|_| name == "$ref").and_then(|reference| self.referred(reference));
                    count = count.saturating_add(self.of(referred.unwrap_or(member), depth + 1)?);
                }
            }
            Value::Array(items) => {
                for item in items {
                    count = count.saturating_add(self.of(item, depth + 1)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if count > MOST_PARTS {
            return Err(format!("its references unfold to more than {MOST_PARTS} parts"));
        }
        self.parts.insert(part, count);
        Ok(count)
    }

    fn referred(&self, reference: &str) -> Option<&'s Value> {
        let pointer = percent_encoding::percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
        self.whole.pointer(&pointer)
    }
}

/// Where and what, but not the value: it may have come from the environment.
fn invalid(error: &ValidationError<'_>) -> String {
    if matches!(error.kind(), Kind::Referencing(_)) {
        return "a `$ref` leads nowhere within it, and nothing is fetched".to_owned();
    }
    format!("{}: {}", error.instance_path(), error.masked_with("this"))
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_unfolds_without_end_or_is_too_deep_is_refused() {
        let doubling = |levels: usize| {
            let defs = (0..levels).map(|n| {
                let next = json!({ "$ref": format!("#/$defs/s{}", n + 1) });
                (format!("s{n}"), json!({ "allOf": [next, next] }))
            });
            let defs: serde_json::Map<_, _> = defs.chain([(format!("s{levels}"), json!({ "type": "object" }))]).collect();
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/s0" } }, "$defs": defs })
        };
        assert!(Schema::compile(doubling(8)).is_ok());
        assert!(Schema::compile(doubling(28)).is_err_and(|why| why.contains("unfold")));
        let deep = (0..300).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
        assert!(Schema::compile(deep).is_err_and(|why| why.contains("levels deep")));
        let tree = json!({ "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#" } } } });
        assert!(Schema::compile(tree).is_ok_and(|schema| schema.validate(&json!({ "kids": [{ "kids": [] }] })).is_ok()));
    }
}
