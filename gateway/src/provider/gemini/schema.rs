//! JSON Schemas in the small part of them that Gemini takes: no references, no constants, no open objects, no alternatives but `anyOf`.
//!
//! What is made allows no more than the original where that can be helped, and rather less: a recursion ends after its second level, a value
//! of any kind is a text. What cannot be said at all stands in the description, for the model to read; the arguments are checked against
//! the original in any case.

mod merge;
mod plain;
mod taken;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use self::merge::{finished, merged};

/// How many times as long as it was a schema may become, references followed. Beyond it, what may be left out is left out.
const MOST_GROWTH: usize = 16;

/// How long a small one may become, in bytes.
const LEAST_ROOM: usize = 2048;

/// What a schema takes apart from its texts, in bytes.
const NODE: usize = 32;

/// How deep they may stand in each other.
const DEEPEST: usize = 24;

/// How many alternatives one value may have.
const MOST_ALTERNATIVES: usize = 32;

/// A schema as Gemini has it, or a part of one: its `type` may be missing until it is finished.
type Made = Map<String, Value>;

/// Why a schema cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// It goes on for ever, or for too long: this level is left out.
    Endless,
    /// Nothing fits it, or nobody knows what it refers to.
    Never,
}

/// The schema of a function's arguments; empty: it has none. `None`: it cannot be said.
pub(super) fn parameters(schema: &str) -> Option<Cow<'_, str>> {
    if taken::is_taken(schema) {
        return Some(Cow::Borrowed(schema));
    }
    let root: Value = serde_json::from_str(schema).ok()?;
    let made = as_object(reduce(&root, schema.len())?)?;
    let has_properties = made.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty());
    // An object without properties is refused at this place.
    Some(if has_properties { Value::Object(made).to_string().into() } else { Cow::Borrowed("") })
}

/// Any schema. `None`: it cannot be said.
pub(super) fn reduced(schema: &str) -> Option<String> {
    let root: Value = serde_json::from_str(schema).ok()?;
    Some(Value::Object(finished(reduce(&root, schema.len())?)).to_string())
}

fn reduce(root: &Value, length: usize) -> Option<Made> {
    let attempt = |again| {
        let room = LEAST_ROOM.saturating_add(length.saturating_mul(MOST_GROWTH));
        let mut reducer = Reducer { root, left: room, depth: 0, references: Vec::new(), again };
        let made = reducer.made(root);
        (made, reducer.left)
    };
    let (made, left) = attempt(1);
    let made = if left > 0 { made } else { attempt(0).0 };
    made.ok()
}

/// The root of arguments is an object and nothing else: alternatives of objects become one that holds what all of them hold.
fn as_object(made: Made) -> Option<Made> {
    // Nothing was said, so anything goes.
    if !made.contains_key("type") && !made.contains_key("anyOf") {
        return Some(Made::new());
    }
    let mut made = finished(made);
    if let Some(Value::Array(alternatives)) = made.remove("anyOf") {
        let objects = alternatives.into_iter().filter_map(|alternative| match alternative {
            Value::Object(made) if made.get("type").is_some_and(|kind| kind == "object") => Some(made),
            _ => None,
        });
        made = objects.reduce(merge::either)?;
    }
    made.remove("nullable");
    made.get("type").is_some_and(|kind| kind == "object").then_some(made)
}

struct Reducer<'s> {
    root: &'s Value,
    /// How much more may be written, in bytes.
    left: usize,
    depth: usize,
    /// The references that are being followed.
    references: Vec<String>,
    /// How often one may be followed inside itself.
    again: usize,
}

impl Reducer<'_> {
    /// A schema that stands by itself.
    fn node(&mut self, schema: &Value) -> Result<Made, Cut> {
        self.made(schema).map(finished)
    }

    /// A schema that may be but a part of one.
    fn made(&mut self, schema: &Value) -> Result<Made, Cut> {
        if self.depth == DEEPEST {
            return Err(Cut::Endless);
        }
        self.charge(NODE)?;
        self.depth += 1;
        let made = match schema {
            Value::Bool(true) => Ok(Made::new()),
            Value::Object(members) => self.whole(members),
            _ => Err(Cut::Never),
        };
        self.depth -= 1;
        made
    }

    /// Takes room for so many bytes.
    fn charge(&mut self, bytes: usize) -> Result<(), Cut> {
        self.left = self.left.saturating_sub(bytes);
        if self.left == 0 { Err(Cut::Endless) } else { Ok(()) }
    }

    /// Both at once. What is common to alternatives is written into each of them.
    fn merged(&mut self, left: Made, right: Made) -> Result<Made, Cut> {
        let alternatives = |made: &Made| list(made, "anyOf").len();
        let (of_left, of_right) = (alternatives(&left), alternatives(&right));
        if of_left + of_right > 0 {
            let copied = merge::weight_of(&left) * of_right.max(1) + merge::weight_of(&right) * of_left.max(1);
            self.charge(copied)?;
        }
        merged(left, right)
    }

    fn whole(&mut self, members: &Map<String, Value>) -> Result<Made, Cut> {
        let mut made = self.plain(members)?;
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let referred = self.referred(reference)?;
            made = self.merged(made, referred)?;
        }
        for part in list(members, "allOf") {
            let part = self.made(part)?;
            made = self.merged(made, part)?;
        }
        for alternatives in ["anyOf", "oneOf"] {
            if members.contains_key(alternatives) {
                made = self.any(made, list(members, alternatives))?;
            }
        }
        Ok(made)
    }

    fn referred(&mut self, reference: &str) -> Result<Made, Cut> {
        if self.references.iter().filter(|followed| *followed == reference).count() > self.again {
            return Err(Cut::Endless);
        }
        let pointer = reference.strip_prefix('#').ok_or(Cut::Never)?;
        let pointer = percent_decode_str(pointer).decode_utf8().map_err(|_| Cut::Never)?;
        let root = self.root;
        let target = root.pointer(&pointer).ok_or(Cut::Never)?;
        self.references.push(reference.to_owned());
        let made = self.made(target);
        self.references.pop();
        made
    }

    /// What is common, with each of the alternatives. `null` among them makes the others nullable; those that cannot be said are left out.
    fn any(&mut self, common: Made, alternatives: &[Value]) -> Result<Made, Cut> {
        let mut is_nullable = false;
        let mut left = Vec::new();
        let mut why = Cut::Never;
        for alternative in alternatives.iter().take(MOST_ALTERNATIVES) {
            if alternative.get("type").is_some_and(|kind| kind == "null") {
                is_nullable = true;
                continue;
            }
            let made = self.charge(merge::weight_of(&common)).and_then(|()| self.made(alternative));
            match made.and_then(|made| self.merged(common.clone(), made)) {
                Ok(made) => left.push(made),
                Err(cut) => why = cut,
            }
        }
        if left.is_empty() && is_nullable {
            left.push(common);
        }
        let all = left.into_iter().map(|mut made| {
            if is_nullable {
                made.insert("nullable".to_owned(), Value::Bool(true));
            }
            made
        });
        merge::any_of(all.collect()).ok_or(why)
    }
}

fn list<'m>(members: &'m Map<String, Value>, name: &str) -> &'m [Value] {
    members.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;
