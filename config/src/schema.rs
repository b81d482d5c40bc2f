//! A tool's JSON Schema: the text that a model reads and the validator that its arguments meet, made from one value.

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
