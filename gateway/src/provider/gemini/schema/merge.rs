//! Two schemas that hold at once, or either of them, as one.

use serde_json::Value;

use super::{Cut, MOST_ALTERNATIVES, Made};

/// Both at once.
///
/// # Errors
/// Nothing fits both.
pub(super) fn merged(mut left: Made, mut right: Made) -> Result<Made, Cut> {
    if right.is_empty() {
        return Ok(left);
    }
    if left.is_empty() {
        return Ok(right);
    }
    for is_left in [true, false] {
        let side = if is_left { &mut left } else { &mut right };
        if let Some(Value::Array(alternatives)) = side.remove("anyOf") {
            let (rest, other) = if is_left { (left, right) } else { (right, left) };
            let common = merged(rest, other)?;
            let objects = alternatives.into_iter().filter_map(|alternative| match alternative {
                Value::Object(made) => merged(made, common.clone()).ok(),
                _ => None,
            });
            return any_of(objects.collect()).ok_or(Cut::Never);
        }
    }
    let is_nullable = stays_nullable(&left, &right);
    left.remove("nullable");
    right.remove("nullable");
    for (key, value) in right {
        match left.remove(&key) {
            None => left.insert(key, value),
            Some(known) => {
                let both = both(&key, known, value)?;
                left.insert(key, both)
            }
        };
    }
    if is_nullable {
        left.insert("nullable".to_owned(), Value::Bool(true));
    }
    Ok(left)
}

/// `null` fits both only where it fits each; what has no type of its own has no say.
fn stays_nullable(left: &Made, right: &Made) -> bool {
    let is_nullable = |made: &Made| made.contains_key("nullable");
    let allows = |made: &Made| is_nullable(made) || !made.contains_key("type");
    (is_nullable(left) || is_nullable(right)) && allows(left) && allows(right)
}

/// The values of one keyword.
fn both(key: &str, left: Value, right: Value) -> Result<Value, Cut> {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    Ok(match (key, left, right) {
        ("type", left, right) if left == right => left,
        ("type", Value::String(left), Value::String(right)) => match (&*left, &*right) {
            ("integer", "number") | ("number", "integer") => Value::from("integer"),
            _ => return Err(Cut::Never),
        },
        ("properties", Value::Object(mut left), Value::Object(right)) => {
            for (name, value) in right {
                let value = match (left.remove(&name), value) {
                    (Some(Value::Object(known)), Value::Object(more)) => {
                        Value::Object(merged(known.clone(), more).unwrap_or(known))
                    }
                    (_, value) => value,
                };
                left.insert(name, value);
            }
            Value::Object(left)
        }
        ("required", Value::Array(mut left), Value::Array(right)) => {
            let new: Vec<Value> = right.into_iter().filter(|name| !left.contains(name)).collect();
            left.extend(new);
            Value::Array(left)
        }
        ("enum", Value::Array(left), Value::Array(right)) => {
            let common: Vec<Value> = left.into_iter().filter(|value| right.contains(value)).collect();
            if common.is_empty() {
                return Err(Cut::Never);
            }
            Value::Array(common)
        }
        ("items", Value::Object(left), Value::Object(right)) => Value::Object(merged(left, right)?),
        ("minimum" | "minLength" | "minItems", left, right) => {
            if number(&left) >= number(&right) {
                left
            } else {
                right
            }
        }
        ("maximum" | "maxLength" | "maxItems", left, right) => {
            if number(&left) <= number(&right) {
                left
            } else {
                right
            }
        }
        (_, left, _) => left,
    })
}

/// One object for either of two: all properties, and what both require.
pub(super) fn either(mut left: Made, mut right: Made) -> Made {
    let mut taken = |name: &str| (left.remove(name), right.remove(name));
    let (left_properties, right_properties) = taken("properties");
    let (left_required, right_required) = taken("required");
    let mut properties = as_map(left_properties);
    for (name, value) in as_map(right_properties) {
        let value = match properties.remove(&name) {
            Some(known) if known != value => one_of_two(known, value),
            _ => value,
        };
        properties.insert(name, value);
    }
    left.insert("properties".to_owned(), Value::Object(properties));
    if let (Some(Value::Array(left_required)), Some(Value::Array(right_required))) = (left_required, right_required) {
        let common: Vec<Value> = left_required.into_iter().filter(|name| right_required.contains(name)).collect();
        if !common.is_empty() {
            left.insert("required".to_owned(), Value::Array(common));
        }
    }
    left
}

fn one_of_two(left: Value, right: Value) -> Value {
    let alternatives = |value: Value| match value {
        Value::Object(mut made) => match made.remove("anyOf") {
            Some(Value::Array(several)) => several,
            _ => vec![Value::Object(made)],
        },
        _ => Vec::new(),
    };
    let mut all = alternatives(left);
    all.extend(alternatives(right));
    let made = all.into_iter().filter_map(|value| if let Value::Object(made) = value { Some(made) } else { None });
    Value::Object(any_of(made.collect()).unwrap_or_default())
}

fn as_map(value: Option<Value>) -> Made {
    match value {
        Some(Value::Object(map)) => map,
        _ => Made::new(),
    }
}

/// Alternatives. The API takes nothing beside `anyOf`, so all that is common stands in each of them. `None`: there are none.
pub(super) fn any_of(all: Vec<Made>) -> Option<Made> {
    let mut flat: Vec<Made> = Vec::with_capacity(all.len());
    for mut made in all {
        match made.remove("anyOf") {
            Some(Value::Array(several)) => flat.extend(several.into_iter().map(|value| as_map(Some(value)))),
            _ => flat.push(made),
        }
    }
    let mut different: Vec<Made> = Vec::with_capacity(flat.len());
    for made in flat {
        if different.len() < MOST_ALTERNATIVES && !different.contains(&made) {
            different.push(made);
        }
    }
    if different.len() < 2 {
        return different.pop();
    }
    let alternatives = different.into_iter().map(|made| Value::Object(finished(made))).collect();
    Some(Made::from_iter([("anyOf".to_owned(), Value::Array(alternatives))]))
}

/// About how long a schema is, in bytes.
pub(super) fn weight_of(made: &Made) -> usize {
    made.iter().map(|(key, value)| key.len() + 4 + weight(value)).sum()
}

pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum::<usize>() + 2,
        Value::Object(made) => weight_of(made) + 2,
        _ => 8,
    }
}

/// A schema that stands by itself has a type, an array has items, and an object requires no more than it has.
pub(super) fn finished(mut made: Made) -> Made {
    if made.contains_key("anyOf") {
        return made;
    }
    match made.get("type").and_then(Value::as_str) {
        // A text is something that every value can be written as, and all that is not one is caught by the original.
        None => {
            made.insert("type".to_owned(), Value::from("string"));
        }
        Some("array") if !made.contains_key("items") => {
            let text = Made::from_iter([("type".to_owned(), Value::from("string"))]);
            made.insert("items".to_owned(), Value::Object(text));
        }
        Some("object") => {
            if let Some(Value::Array(mut names)) = made.remove("required") {
                let known = made.get("properties").and_then(Value::as_object);
                names.retain(|name| name.as_str().is_some_and(|name| known.is_some_and(|known| known.contains_key(name))));
                if !names.is_empty() {
                    made.insert("required".to_owned(), Value::Array(names));
                }
            }
        }
        Some(_) => {}
    }
    made
}
