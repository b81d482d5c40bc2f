//! What a schema says about its own value: its type, and the keywords of that type. What has no keyword here becomes a word in the
//! description.

use serde_json::{Map, Value, json};

use super::merge::{any_of, weight};
use super::{Cut, Made, Reducer, list};

/// The most that a hint repeats of a value, in bytes.
const LONGEST_HINT: usize = 120;

/// The types that the API has, and the keywords that each is known by where no type is named.
const TYPES: [(&str, &[&str]); 6] = [
    ("object", &["properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"]),
    ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
    ("string", &["pattern", "minLength", "maxLength", "format"]),
    ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("integer", &[]),
    ("boolean", &[]),
];

type Members = Map<String, Value>;

impl Reducer<'_> {
    /// All but references and combinations. Empty: the schema says nothing of itself.
    pub(super) fn plain(&mut self, members: &Members) -> Result<Made, Cut> {
        let values = values(members);
        let named = named_types(members);
        let mut is_nullable = members.get("nullable").is_some_and(|value| value == true);
        is_nullable |= named.contains(&"null") && values.as_ref().is_none_or(|values| values.iter().any(|value| value.is_null()));
        is_nullable |= named.is_empty() && values.as_ref().is_some_and(|values| values.iter().any(|value| value.is_null()));
        let kinds = kinds(members, &named, values.as_deref());
        let mut all = Vec::with_capacity(kinds.len());
        let mut why = Cut::Never;
        for kind in &kinds {
            match self.typed(members, kind, values.as_deref()) {
                Ok(made) => all.push(made),
                Err(cut) => why = cut,
            }
        }
        if kinds.is_empty() {
            self.charge(members.get("description").map_or(0, weight))?;
            let mut made = Made::new();
            describe(members, Vec::new(), &mut made);
            all.push(made);
        }
        if is_nullable {
            all.iter_mut().for_each(|made| {
                made.insert("nullable".to_owned(), Value::Bool(true));
            });
        }
        any_of(all).ok_or(why)
    }

    fn typed(&mut self, members: &Members, kind: &str, values: Option<&[&Value]>) -> Result<Made, Cut> {
        let texts = ["description", "pattern", "default"].iter().filter_map(|name| members.get(*name));
        let required = list(members, "required").iter();
        self.charge(texts.chain(required).chain(values.into_iter().flatten().copied()).map(weight).sum())?;
        let mut made = Made::from_iter([("type".to_owned(), Value::from(kind))]);
        let mut hints = Vec::new();
        if let Some(values) = values {
            let own: Vec<&Value> = values.iter().copied().filter(|value| is_of(kind, value)).collect();
            if own.is_empty() {
                return Err(Cut::Never);
            }
            one_of(kind, &own, &mut made, &mut hints);
        }
        match kind {
            "object" => self.object(members, &mut made, &mut hints)?,
            "array" => self.array(members, &mut made, &mut hints)?,
            "string" => string(members, &mut made, &mut hints),
            "integer" | "number" => number(members, kind, &mut made, &mut hints),
            _ => {}
        }
        describe(members, hints, &mut made);
        Ok(made)
    }

    fn object(&mut self, members: &Members, made: &mut Made, hints: &mut Vec<String>) -> Result<(), Cut> {
        let required = list(members, "required");
        let mut properties = Members::new();
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            match self.charge(name.len()).and_then(|()| self.node(schema)) {
                Ok(property) => {
                    properties.insert(name.clone(), Value::Object(property));
                }
                // What need not be there is left out, and all without it is still right.
                Err(cut) if required.iter().any(|required| required == name) => return Err(cut),
                Err(_) => {}
            }
        }
        let is_open = ["additionalProperties", "patternProperties"]
            .iter()
            .any(|name| members.get(*name).is_some_and(|value| value.is_object() || value == true));
        if is_open && properties.is_empty() {
            hints.push("an object with keys of your choice".to_owned());
        }
        if !properties.is_empty() {
            made.insert("properties".to_owned(), Value::Object(properties));
        }
        if !required.is_empty() {
            made.insert("required".to_owned(), Value::Array(required.to_vec()));
        }
        Ok(())
    }

    fn array(&mut self, members: &Members, made: &mut Made, hints: &mut Vec<String>) -> Result<(), Cut> {
        copy(members, &["minItems", "maxItems"], made);
        if members.get("uniqueItems").is_some_and(|value| value == true) {
            hints.push("no item twice".to_owned());
        }
        let places = if members.contains_key("prefixItems") { list(members, "prefixItems") } else { list(members, "items") };
        let items = if places.is_empty() {
            match members.get("items").filter(|items| !items.is_array()) {
                None => return Ok(()),
                Some(schema) => self.node(schema),
            }
        } else {
            hints.push(format!("{} items, each in its place", places.len()));
            let all: Result<Vec<Made>, Cut> = places.iter().map(|schema| self.node(schema)).collect();
            all.and_then(|all| any_of(all).ok_or(Cut::Never))
        };
        match items {
            Ok(items) => {
                made.insert("items".to_owned(), Value::Object(items));
            }
            Err(cut) if members.get("minItems").and_then(Value::as_u64).unwrap_or(0) > 0 => return Err(cut),
            // Nothing can be an item, so there are none.
            Err(_) => {
                made.insert("items".to_owned(), json!({ "type": "string" }));
                made.insert("maxItems".to_owned(), Value::from(0));
            }
        }
        Ok(())
    }
}

/// The only values that fit, where the schema lists them.
fn values(members: &Members) -> Option<Vec<&Value>> {
    match (members.get("const"), members.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn named_types(members: &Members) -> Vec<&str> {
    match members.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The types of the value: as named, else as its keywords or its listed values say. Empty: anything.
fn kinds(members: &Members, named: &[&str], values: Option<&[&Value]>) -> Vec<&'static str> {
    let known = |kind: &&(&'static str, &[&str])| named.contains(&kind.0);
    if !named.is_empty() {
        return TYPES.iter().filter(known).map(|kind| kind.0).collect();
    }
    if let Some(values) = values {
        return TYPES
            .iter()
            .map(|kind| kind.0)
            .filter(|kind| *kind != "integer")
            .filter(|kind| values.iter().any(|value| is_of(kind, value)))
            .collect();
    }
    let by_keyword = TYPES.iter().find(|(_, keywords)| keywords.iter().any(|keyword| members.contains_key(*keyword)));
    by_keyword.map(|kind| kind.0).into_iter().collect()
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => false,
    }
}

/// Only texts can be listed; numbers get the bounds of their list.
fn one_of(kind: &str, values: &[&Value], made: &mut Made, hints: &mut Vec<String>) {
    let shown = || values.iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let number = |value: &&&Value| value.as_f64().unwrap_or_default();
    match kind {
        "string" => {
            // The API refuses an empty one.
            let words: Vec<Value> =
                values.iter().filter(|value| value.as_str() != Some("")).map(|value| (*value).clone()).collect();
            if !words.is_empty() {
                made.insert("enum".to_owned(), Value::Array(words));
            }
        }
        "integer" | "number" => {
            let least = values.iter().min_by(|left, right| number(left).total_cmp(&number(right)));
            let most = values.iter().max_by(|left, right| number(left).total_cmp(&number(right)));
            for (name, bound) in [("minimum", least), ("maximum", most)] {
                if let Some(bound) = bound {
                    made.insert(name.to_owned(), (*bound).clone());
                }
            }
            if values.len() > 1 {
                hints.push(format!("one of {}", shown()));
            }
        }
        "boolean" if values.len() > 1 => {}
        _ => hints.push(format!("must be {}", shown())),
    }
}

fn string(members: &Members, made: &mut Made, hints: &mut Vec<String>) {
    copy(members, &["minLength", "maxLength"], made);
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
        // The API knows fewer patterns than JSON Schema, and refuses the whole request over one that it does not.
        if is_simple(pattern) {
            made.insert("pattern".to_owned(), Value::from(pattern));
        } else {
            hints.push(format!("matches {pattern}"));
        }
    }
    match members.get("format").and_then(Value::as_str) {
        Some("date-time") => {
            made.insert("format".to_owned(), Value::from("date-time"));
        }
        Some(format) => hints.push(format!("format: {format}")),
        None => {}
    }
}

/// Whether a pattern has only what every engine has.
pub(super) fn is_simple(pattern: &str) -> bool {
    let escapes = pattern.bytes().zip(pattern.bytes().skip(1)).filter(|(first, _)| *first == b'\\');
    let are_plain = escapes.into_iter().all(|(_, next)| b"dwsDWS.\\/-+*?()[]{}|^$".contains(&next));
    are_plain && !pattern.contains("(?")
}

fn number(members: &Members, kind: &str, made: &mut Made, hints: &mut Vec<String>) {
    for (name, exclusive, step, word) in
        [("minimum", "exclusiveMinimum", 1.0, "more than"), ("maximum", "exclusiveMaximum", -1.0, "less than")]
    {
        let bound = members.get(name).filter(|bound| bound.is_number());
        // Of old it was a word about the bound; today it is a bound of its own.
        let beyond = match members.get(exclusive) {
            Some(Value::Bool(true)) => bound,
            other => other.filter(|bound| bound.is_number()),
        };
        let kept = match beyond {
            None => bound.cloned(),
            Some(beyond) if kind == "integer" => inside(beyond, step),
            Some(beyond) => {
                hints.push(format!("{word} {beyond}"));
                Some(beyond.clone())
            }
        };
        if let Some(kept) = kept
            && !made.contains_key(name)
        {
            made.insert(name.to_owned(), kept);
        }
    }
    if let Some(step) = members.get("multipleOf") {
        hints.push(format!("a multiple of {step}"));
    }
}

/// The first whole number inside of an exclusive bound.
fn inside(bound: &Value, step: f64) -> Option<Value> {
    if let Some(bound) = bound.as_i64() {
        return bound.checked_add(step as i64).map(Value::from);
    }
    let number = bound.as_f64()?;
    let whole = if step > 0.0 { number.floor() + 1.0 } else { number.ceil() - 1.0 };
    Some(Value::from(whole as i64))
}

fn copy(members: &Members, names: &[&str], made: &mut Made) {
    for name in names {
        if let Some(value) = members.get(*name).filter(|value| value.is_u64()) {
            made.insert((*name).to_owned(), value.clone());
        }
    }
}

/// The description, with the hints behind it.
fn describe(members: &Members, mut hints: Vec<String>, made: &mut Made) {
    if let Some(default) = members.get("default").filter(|value| !value.is_null()) {
        hints.push(format!("default: {default}"));
    }
    hints.retain(|hint| hint.len() <= LONGEST_HINT);
    let said = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = match (said, hints.is_empty()) {
        ("", true) => return,
        (said, true) => said.to_owned(),
        ("", false) => hints.join("; "),
        (said, false) => format!("{said} ({})", hints.join("; ")),
    };
    made.insert("description".to_owned(), Value::from(description));
}
