//! The schemas of an OpenAPI document as one JSON Schema that stands alone: what is referred to becomes a `$defs` entry, what 3.0 writes
//! in its own way is written as JSON Schema has it. Nothing is loosened: what cannot be carried over is a fault.

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};

use super::document::{Here, Version};
use crate::place::Faults;

/// Gathers what the schemas of one operation refer to.
pub(super) struct Schemas {
    version: Version,
    defs: Map<String, Json>,
    names: HashMap<String, String>,
    depth: usize,
}

/// How deep schemas may stand in each other, what they refer to included.
const DEEPEST: usize = 64;

/// Keywords whose value is a schema.
const ONE: [&str; 9] =
    ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties"];

/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value is a mapping of names to schemas.
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// What says nothing about a value, only about the document around it.
const NOT_CARRIED: [&str; 9] =
    ["example", "examples", "xml", "externalDocs", "discriminator", "readOnly", "writeOnly", "deprecated", "$comment"];

/// What gives a schema another meaning by where it stands, or whom it names.
const REFUSED: [&str; 7] =
    ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"];

impl Schemas {
    pub(super) fn new(version: Version) -> Self {
        Self { version, defs: Map::new(), names: HashMap::new(), depth: 0 }
    }

    /// The entries of `$defs` that the schemas so far refer to.
    pub(super) fn into_defs(self) -> Map<String, Json> {
        self.defs
    }

    /// A schema, carried over; `None`: it cannot be, which is reported.
    pub(super) fn carry(&mut self, here: &Here<'_>, faults: &mut Faults) -> Option<Json> {
        if self.depth == DEEPEST {
            faults
                .add(&here.place(), format!("schemas stand more than {DEEPEST} levels deep in each other, references included"));
            return None;
        }
        self.depth += 1;
        let carried = self.carry_one(here, faults);
        self.depth -= 1;
        carried
    }

    fn carry_one(&mut self, here: &Here<'_>, faults: &mut Faults) -> Option<Json> {
        if let Some(reference) = here.get("$ref") {
            return self.reference(here, &reference, faults);
        }
        if !here.is_object() {
            if let (Version::V31, truth @ Json::Bool(_)) = (self.version, here.json()) {
                return Some(truth);
            }
            faults.add(&here.place(), "this is no schema; allowed: an object");
            return None;
        }
        let carried = self.members(here, faults)?;
        Some(match self.version {
            Version::V30 => modern(carried),
            Version::V31 => Json::Object(carried),
        })
    }

    fn members(&mut self, here: &Here<'_>, faults: &mut Faults) -> Option<Map<String, Json>> {
        let mut carried = Map::new();
        let mut whole = true;
        for (key, value) in here.members() {
            if REFUSED.contains(&key) {
                faults.add(&value.place(), format!("a schema with `{key}` cannot be carried over"));
                whole = false;
            } else if !says_nothing(key) {
                match self.member(key, &value, faults) {
                    Some(json) => drop(carried.insert(key.to_owned(), json)),
                    None => whole = false,
                }
            }
        }
        forget_read_only(here, &mut carried, faults);
        whole.then_some(carried)
    }

    fn member(&mut self, key: &str, value: &Here<'_>, faults: &mut Faults) -> Option<Json> {
        match key {
            "additionalProperties" if !value.is_object() => Some(value.json()),
            key if ONE.contains(&key) => self.carry(value, faults),
            key if LIST.contains(&key) => {
                value.items().map(|item| self.carry(&item, faults)).collect::<Vec<_>>().into_iter().collect()
            }
            key if NAMED.contains(&key) => {
                let named = value.members().map(|(name, schema)| Some((name.to_owned(), self.carry(&schema, faults)?)));
                named.collect::<Vec<_>>().into_iter().collect::<Option<Map<_, _>>>().map(Json::Object)
            }
            _ => Some(value.json()),
        }
    }

    /// What is referred to stands once, under a name of its own: a schema may refer to itself.
    fn reference(&mut self, here: &Here<'_>, reference: &Here<'_>, faults: &mut Faults) -> Option<Json> {
        let target = reference.followed(faults)?;
        let pointer = reference.text()?;
        let name = match self.names.get(pointer) {
            Some(name) => name.clone(),
            None => {
                let name = self.name_for(pointer);
                self.names.insert(pointer.to_owned(), name.clone());
                let carried = self.carry(&target, faults)?;
                self.defs.insert(name.clone(), carried);
                name
            }
        };
        let mut carried = match self.version {
            // What stands beside a reference is ignored there.
            Version::V30 => Map::new(),
            Version::V31 => {
                let mut beside = self.members(here, faults)?;
                beside.remove("$ref");
                beside
            }
        };
        carried.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
        Some(Json::Object(carried))
    }

    fn name_for(&self, pointer: &str) -> String {
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
        let taken = |name: &String| self.names.values().any(|other| other == name);
        let mut name = plain.clone();
        for number in 2.. {
            if !taken(&name) {
                break;
            }
            name = format!("{plain}_{number}");
        }
        name
    }
}

/// Whether a member of a schema says nothing about values. What is kept for references is carried over where one leads to it.
pub(super) fn says_nothing(key: &str) -> bool {
    NOT_CARRIED.contains(&key) || key.starts_with("x-") || matches!(key, "$defs" | "definitions")
}

/// Members that only answers have are none of a request.
fn forget_read_only(here: &Here<'_>, carried: &mut Map<String, Json>, faults: &mut Faults) {
    let Some(properties) = here.get("properties") else { return };
    for (name, schema) in properties.members() {
        if schema.resolved(faults).is_some_and(|schema| schema.says("readOnly")) {
            if let Some(Json::Object(properties)) = carried.get_mut("properties") {
                properties.shift_remove(name);
            }
            if let Some(Json::Array(required)) = carried.get_mut("required") {
                required.retain(|other| other != name);
            }
        }
    }
}

/// The words of 3.0 that JSON Schema has otherwise.
fn modern(mut schema: Map<String, Json>) -> Json {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Json::Bool(excluded)) = schema.get(exclusive).cloned() {
            schema.shift_remove(exclusive);
            if let Some(value) = schema.get(bound).cloned().filter(|_| excluded) {
                schema.shift_remove(bound);
                schema.insert(exclusive.to_owned(), value);
            }
        }
    }
    let nullable = schema.shift_remove("nullable") == Some(Json::Bool(true));
    if !nullable {
        return Json::Object(schema);
    }
    if let Some(Json::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Json::Null)
    {
        values.push(Json::Null);
    }
    match schema.get_mut("type") {
        Some(kind @ Json::String(_)) => {
            *kind = json!([kind.take(), "null"]);
            Json::Object(schema)
        }
        _ => json!({ "anyOf": [schema, { "type": "null" }] }),
    }
}
