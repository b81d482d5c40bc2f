//! What a single value can be: each type here is read from a node and describes itself as JSON Schema. A string that was filled in
//! stands for any scalar, so that `max_concurrent: ${N}` works.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use crate::place::{Faults, Place};
use crate::raw::numeral::Numeral;
use crate::raw::section::{At, unique};
use crate::raw::text::Text;
use crate::raw::yaml::{Entry, Node, Spot, Value};
use crate::raw::{index, member};

/// A type that can be read from the file and described to an editor.
pub(crate) trait Shape: Sized {
    /// Whether a key of this type is supported yet.
    const SUPPORTED: bool = true;

    /// Reads a value; `None`: it is wrong, and reported.
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self>;

    /// The JSON Schema of such a value.
    fn schema() -> Json;

    /// Reads a member's value. A fault of it stands where the value stands.
    fn read_entry(entry: &Entry<Text>, path: &str, faults: &mut Faults) -> Option<At<Self>> {
        let place = Place::at(entry.value.spot, path);
        Self::read(&entry.value, &place, faults).map(|value| At { value, place })
    }
}

/// Where the fault of a member stands that may be a section or a single value: what is wrong with a section as a whole stands at its name.
pub(crate) fn spot_of(entry: &Entry<Text>) -> Spot {
    if matches!(entry.value.value, Value::Map(_)) { entry.spot } else { entry.value.spot }
}

/// Reports that something else is wanted; never prints what stands there, which may be a secret.
pub(crate) fn wrong<T>(node: &Node<Text>, place: &Place, wanted: &str, faults: &mut Faults) -> Option<T> {
    let found = match &node.value {
        Value::Faulty => return None,
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
    };
    faults.add(place, format!("wrong type: {found}; allowed: {wanted}"));
    None
}

/// Text that was filled in, read as what is wanted.
fn filled<T: std::str::FromStr>(text: &Text) -> Option<T> {
    if text.is_literal() { None } else { text.whole().trim().parse().ok() }
}

/// Reports a text that is not what is wanted, as it is written.
pub(crate) fn not_a<T>(text: &Text, place: &Place, wanted: &str, faults: &mut Faults) -> Option<T> {
    faults.add(place, format!("`{}` is not {wanted}", text.written));
    None
}

/// `schema`, or a string that something is filled into.
pub(crate) fn or_filled(schema: &Json) -> Json {
    json!({ "anyOf": [schema, { "type": "string", "pattern": "\\$\\{[^}]+\\}" }] })
}

impl Shape for Text {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => wrong(node, place, "text (in quotes, if it looks like something else)", faults),
        }
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }
}

/// Text, or a number or a truth value taken as text.
#[derive(Clone, Debug)]
pub(crate) struct Scalar(pub(crate) Text);

impl Shape for Scalar {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(Self(text.clone())),
            Value::Number(number) => Some(Self(Text::literal(&number.to_string()))),
            Value::Bool(value) => Some(Self(Text::literal(&value.to_string()))),
            _ => wrong(node, place, "text, a number, true, false", faults),
        }
    }

    fn schema() -> Json {
        json!({ "type": ["string", "number", "boolean"] })
    }
}

impl Shape for bool {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Bool(value) => Some(*value),
            Value::Text(text) if !text.is_literal() => filled(text).or_else(|| not_a(text, place, "true or false", faults)),
            _ => wrong(node, place, "true, false", faults),
        }
    }

    fn schema() -> Json {
        or_filled(&json!({ "type": "boolean" }))
    }
}

/// A whole number within bounds, both included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count<const MIN: u32, const MAX: u32>(pub(crate) u32);

impl<const MIN: u32, const MAX: u32> Shape for Count<MIN, MAX> {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let wanted =
            if MAX == u32::MAX { format!("a whole number from {MIN}") } else { format!("a whole number from {MIN} to {MAX}") };
        let within = |number: u64| u32::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number)).map(Self);
        match &node.value {
            Value::Number(number) => number.value.as_u64().and_then(within).or_else(|| {
                faults.add(place, format!("{number} is not {wanted}"));
                None
            }),
            Value::Text(text) if !text.is_literal() => {
                filled(text).and_then(within).or_else(|| not_a(text, place, &wanted, faults))
            }
            _ => wrong(node, place, &wanted, faults),
        }
    }

    fn schema() -> Json {
        or_filled(&json!({ "type": "integer", "minimum": MIN, "maximum": MAX }))
    }
}

const DURATION: &str = "a duration longer than zero: 250ms, 10s, 5m, 1h, 30d";

impl Shape for Duration {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Text(text) => duration(&text.whole()).or_else(|| not_a(text, place, DURATION, faults)),
            _ => wrong(node, place, DURATION, faults),
        }
    }

    fn schema() -> Json {
        or_filled(&json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" }))
    }
}

/// A duration as the file has it: `250ms`, `10s`, `5m`, `1h`, `30d`.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?)).filter(|duration| !duration.is_zero())
}

/// A number of bytes, at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) usize);

const SIZE: &str = "a size: a number of bytes from 1, or 64KiB, 10MiB, 1GiB";

impl Shape for Size {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let positive = |bytes: u64| usize::try_from(bytes).ok().filter(|&bytes| bytes > 0).map(Self);
        match &node.value {
            Value::Number(number) => number.value.as_u64().and_then(positive).or_else(|| {
                faults.add(place, format!("{number} is not {SIZE}"));
                None
            }),
            Value::Text(text) => size(&text.whole()).and_then(positive).or_else(|| not_a(text, place, SIZE, faults)),
            _ => wrong(node, place, SIZE, faults),
        }
    }

    fn schema() -> Json {
        or_filled(
            &json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "pattern": "^[0-9]+([KMG]iB)?$" }] }),
        )
    }
}

fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let bytes = match unit {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(bytes)
}

/// Digits and what follows them.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

impl<T: Shape> Shape for Vec<At<T>> {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let Value::List(items) = &node.value else {
            return wrong(node, place, "a list", faults);
        };
        let read = |(at, item): (usize, &Node<Text>)| {
            let place = Place::at(item.spot, &index(&place.path, at));
            T::read(item, &place, faults).map(|value| At { value, place })
        };
        Some(items.iter().enumerate().filter_map(read).collect())
    }

    fn schema() -> Json {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// A mapping from names of the operator's choice, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub(crate) Vec<(At<String>, T)>);

impl<T> Named<T> {
    /// The names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.value.as_str())
    }
}

impl<T: Shape> Shape for Named<T> {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let Value::Map(all) = &node.value else {
            return wrong(node, place, "a mapping", faults);
        };
        let mut named = Vec::with_capacity(all.len());
        for entry in unique(all, place, faults) {
            let path = member(&place.path, &entry.key);
            let name = At { value: entry.key.clone(), place: Place::at(entry.spot, &path) };
            if name.value.is_empty() {
                faults.add(&name.place, "a name is empty");
            }
            // A section's own faults (a missing key) stand at its name, which is where an operator looks.
            if let Some(value) = T::read(&entry.value, &name.place, faults) {
                named.push((name, value));
            }
        }
        Some(Self(named))
    }

    fn schema() -> Json {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

impl Shape for Json {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        Some(match &node.value {
            Value::Faulty => return None,
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.value.clone()),
            Value::Text(text) => Self::String(text.whole().into_owned()),
            Value::List(items) => {
                let read =
                    |(at, item): (usize, &Node<Text>)| Self::read(item, &Place::at(item.spot, &index(&place.path, at)), faults);
                Self::Array(items.iter().enumerate().map(read).collect::<Option<_>>()?)
            }
            Value::Map(_) => Self::Object(Map::read(node, place, faults)?),
        })
    }

    fn schema() -> Json {
        json!({})
    }
}

impl Shape for Map<String, Json> {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let Named(members) = Named::<Json>::read(node, place, faults)?;
        Some(members.into_iter().map(|(name, value)| (name.value, value)).collect())
    }

    fn schema() -> Json {
        json!({ "type": "object" })
    }
}

/// A key whose feature is planned and not there yet: refused by name, never ignored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Later;

impl Shape for Later {
    const SUPPORTED: bool = false;

    fn read(_: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        faults.add(place, "not supported yet");
        None
    }

    fn schema() -> Json {
        json!({ "not": {} })
    }

    // The key is refused, whatever its value.
    fn read_entry(entry: &Entry<Text>, path: &str, faults: &mut Faults) -> Option<At<Self>> {
        let place = Place::at(entry.spot, path);
        Self::read(&entry.value, &place, faults).map(|value| At { value, place })
    }
}

/// A credential in clear where only its hash belongs. What is written is not printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InClear;

impl Shape for InClear {
    const SUPPORTED: bool = false;

    fn read(_: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        faults.add(place, format!("a secret in clear; {HOW_TO_HASH}"));
        None
    }

    fn schema() -> Json {
        json!({ "not": {} })
    }
}

/// What to write in place of a secret.
pub(crate) const HOW_TO_HASH: &str = "allowed: `hash: \"sha256:…\"`, which `toolgate key new --name NAME` prints, or for a secret you have: printf %s SECRET | sha256sum";

/// How much of a streamed round is held back: a number of characters, or `all`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    Characters(u32),
    All,
}

impl Shape for Hold {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        const WANTED: &str = "a number of characters from 0, or the word `all`";
        match &node.value {
            Value::Text(text) if text.whole() == "all" => Some(Self::All),
            Value::Text(text) => filled(text).map(Self::Characters).or_else(|| not_a(text, place, WANTED, faults)),
            Value::Number(number) => characters(number).or_else(|| wrong(node, place, WANTED, faults)),
            _ => wrong(node, place, WANTED, faults),
        }
    }

    fn schema() -> Json {
        or_filled(&json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "const": "all" }] }))
    }
}

fn characters(number: &Numeral) -> Option<Hold> {
    number.value.as_u64().and_then(|number| u32::try_from(number).ok()).map(Hold::Characters)
}
