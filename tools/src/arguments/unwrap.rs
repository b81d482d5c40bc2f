//! An object or a list that came as a string: models write them so where they are unsure how deep they are. It is unwrapped only where the
//! schema wants one and does not take the string, and nothing else of the text is touched.

use std::ops::Range;

use serde_json::value::RawValue;
use toolgate_config::schema::Schema;

use super::strict::strict;
use super::{Arguments, Members};

/// How often strings in strings are unwrapped.
const DEEPEST_STRINGS: usize = 4;

impl Arguments {
    /// The arguments with what came as a string and should not have: they fit the schema then. `why` is what is wrong with them as they are.
    ///
    /// # Errors
    /// What is wrong with them all the same.
    pub(crate) fn unwrapped(&self, schema: &Schema, mut why: String) -> Result<Self, String> {
        let mut text = self.text.to_string();
        let mut places = schema.wants_structure(&self.value);
        for _ in 0..DEEPEST_STRINGS {
            // Each of them, also behind one that was.
            if places.iter().filter(|place| unwrap(&mut text, place)).count() == 0 {
                break;
            }
            let unwrapped = Self::parse(&text).map_err(|fault| fault.to_string())?;
            why = match schema.validate(&unwrapped.value) {
                Ok(()) => return Ok(unwrapped),
                Err(why) => why,
            };
            places = schema.wants_structure(&unwrapped.value);
        }
        Err(why)
    }
}

/// Puts what a string at this place holds in its stead, if that is an object or a list. Whether it was one.
fn unwrap(text: &mut String, place: &str) -> bool {
    let Some(range) = find(text, place) else { return false };
    let Some(inner) = text.get(range.clone()).and_then(|raw| serde_json::from_str::<String>(raw).ok()) else { return false };
    let inner = inner.trim_ascii();
    let is_structure = strict(inner).is_ok_and(|value| value.is_object() || value.is_array());
    if is_structure {
        text.replace_range(range, inner);
    }
    is_structure
}

/// Where in a JSON text the value stands that a pointer names.
fn find(text: &str, place: &str) -> Option<Range<usize>> {
    let mut value = text;
    for step in place.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        value = match value.trim_ascii_start().as_bytes().first()? {
            b'{' => serde_json::from_str::<Members<'_>>(value).ok()?.0.into_iter().find(|(key, _)| *key == step)?.1,
            b'[' => serde_json::from_str::<Vec<&RawValue>>(value).ok()?.get(step.parse::<usize>().ok()?).copied()?,
            _ => return None,
        }
        .get();
    }
    let start = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some(start..start + value.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::compile(json!({
            "type": "object",
            "properties": {
                "o": { "type": "object", "properties": { "n": { "type": "number" }, "inner": { "type": "array", "items": { "$ref": "#/$defs/p" } } } },
                "a": { "type": ["array", "null"], "items": { "$ref": "#/$defs/p" } },
                "s": { "type": "string" },
                "either": { "type": ["string", "object"] },
                "any": { "anyOf": [{ "type": "array" }, { "type": "null" }] },
                "a/b~c": { "type": "object" },
                "n": { "type": "number" },
            },
            "$defs": { "p": { "type": "object", "required": ["k"] } },
        }))
        .unwrap()
    }

    fn unwrapped(text: &str) -> Result<String, String> {
        let (arguments, schema) = (Arguments::parse(text).unwrap(), schema());
        let why = schema.validate(arguments.value()).err().unwrap_or_default();
        arguments.unwrapped(&schema, why).map(|arguments| arguments.text().to_owned())
    }

    #[test]
    fn what_came_as_a_string_is_unwrapped_where_the_schema_wants_it_and_no_digit_changes() {
        let table = [
            (r#"{ "o": "{\"n\": 1.50}", "s":"{\"n\":1}" }"#, r#"{ "o": {"n": 1.50}, "s":"{\"n\":1}" }"#),
            (r#"{"a":"[{\"k\":12345678901234567890.10}]","n":1.0}"#, r#"{"a":[{"k":12345678901234567890.10}],"n":1.0}"#),
            (r#"{"a":["{\"k\":1}",{"k":2}]}"#, r#"{"a":[{"k":1},{"k":2}]}"#),
            (r#"{"o":{"inner":"[\"{\\\"k\\\":1}\"]"}}"#, r#"{"o":{"inner":[{"k":1}]}}"#),
            (r#"{"any":" [1] "}"#, r#"{"any":[1]}"#),
            (r#"{"a/b~c":"{}","\u006f":"{}"}"#, r#"{"a/b~c":{},"\u006f":{}}"#),
        ];
        for (text, expected) in table {
            assert_eq!(unwrapped(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_or_does_not_fit_is_said() {
        let table = [
            (r#"{"o":"no object"}"#, r#"/o: "no object" is not of type "object""#),
            (r#"{"o":"{'n':1}"}"#, r#"/o: "{'n':1}" is not of type "object""#),
            (r#"{"o":"{\"n\":1,\"n\":2}"}"#, r#"/o: "{\"n\":1,\"n\":2}" is not of type "object""#),
            (r#"{"o":"7"}"#, r#"/o: "7" is not of type "object""#),
            (r#"{"a":"[{}]"}"#, r#"/a/0: "k" is a required property"#),
            (r#"{"n":"1"}"#, r#"/n: "1" is not of type "number""#),
        ];
        for (text, expected) in table {
            assert_eq!(unwrapped(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn a_long_value_does_not_hide_what_is_wrong() {
        let why = unwrapped(&format!(r#"{{"n":"{}"}}"#, "x".repeat(5000))).unwrap_err();
        assert_eq!(why, r#"/n: the value is not of type "number""#);
    }
}
