//! A tool's JSON Schema: the text that a model reads and the validator that its arguments meet, made from one value.

use std::fmt;

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
            let place = error.instance_path().to_string();
            let text = if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
            text.chars().take(300).collect()
        })
    }
}

/// Where and what, but not the value: it may have come from the environment.
fn invalid(error: &jsonschema::ValidationError<'_>) -> String {
    if matches!(error.kind(), jsonschema::error::ValidationErrorKind::Referencing(_)) {
        return "a `$ref` leads nowhere within it, and nothing is fetched".to_owned();
    }
    format!("{}: {}", error.instance_path(), error.masked_with("this"))
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
