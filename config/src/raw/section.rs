//! What a table of keys is made of. `section!` turns one table into the raw struct, its reader and its JSON Schema, so that none of the
//! three can say something else than the others.

use serde_json::{Map, Value as Json, json};

use crate::place::{Faults, Place};
use crate::raw::shape::{Shape, wrong};
use crate::raw::text::Text;
use crate::raw::yaml::{Entry, Node, Value};
use crate::raw::{advice, member};

/// A table of keys. A row is the key's description (its doc comment), its name, its type, and either nothing (the key is optional),
/// `= required`, or `= "default"` as it would be written in the file.
macro_rules! section {
    ($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $text:literal])+ $key:ident: $type:ty $(= $rule:tt)?,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "a key that is not supported yet is read only to be refused")]
        pub(crate) struct $name {
            pub(crate) place: $crate::place::Place,
            $($(#[doc = $text])+ pub(crate) $key: $crate::raw::section::Given<$type>,)+
        }

        impl $name {
            const ROWS: &'static [$crate::raw::section::Row] = &[$(
                $crate::raw::section::Row {
                    name: $crate::raw::section::plain(stringify!($key)),
                    about: concat!($($text),+),
                    rule: $crate::raw::section::rule!($($rule)?),
                    supported: <$type as $crate::raw::shape::Shape>::SUPPORTED,
                    schema: <$type as $crate::raw::shape::Shape>::schema,
                },
            )+];
        }

        impl $crate::raw::shape::Shape for $name {
            fn read(
                node: &$crate::raw::yaml::Node<$crate::raw::text::Text>,
                place: &$crate::place::Place,
                faults: &mut $crate::place::Faults,
            ) -> Option<Self> {
                let fields = $crate::raw::section::Fields::of(node, place, Self::ROWS, faults)?;
                Some(Self { $($key: fields.read($crate::raw::section::plain(stringify!($key)), faults),)+ place: place.clone() })
            }

            fn schema() -> serde_json::Value {
                $crate::raw::section::schema(concat!($($about),+), Self::ROWS)
            }

            // What is wrong with a section as a whole stands at its name.
            fn read_entry(
                entry: &$crate::raw::yaml::Entry<$crate::raw::text::Text>,
                path: &str,
                faults: &mut $crate::place::Faults,
            ) -> Option<$crate::raw::section::At<Self>> {
                let place = $crate::place::Place::at(entry.spot, path);
                Self::read(&entry.value, &place, faults).map(|value| $crate::raw::section::At { value, place })
            }
        }
    };
}

/// The last column of a table.
macro_rules! rule {
    () => {
        $crate::raw::section::Rule::Optional
    };
    (required) => {
        $crate::raw::section::Rule::Required
    };
    ($default:literal) => {
        $crate::raw::section::Rule::Default($default)
    };
}

pub(crate) use {rule, section};

/// The name of a key that Rust has another use for: `r#type` is `type` in the file.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// A row of a table: all that is known of a key.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) rule: Rule,
    pub(crate) supported: bool,
    pub(crate) schema: fn() -> Json,
}

/// What holds where a key is not written.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Nothing.
    Optional,
    /// That is a fault.
    Required,
    /// The same as if this were written.
    Default(&'static str),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl<T: Shape> Shape for At<T> {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let place = Place::at(node.spot, &place.path);
        T::read(node, &place, faults).map(|value| Self { value, place })
    }

    fn schema() -> Json {
        T::schema()
    }
}

/// What has become of a key.
#[derive(Clone, Debug)]
pub(crate) enum Given<T> {
    /// Not written, and without a default.
    Absent,
    /// Wrong or missing, and reported: whoever needs it stops silently.
    Faulty,
    /// The value; a default stands at the place of its section.
    Here(At<T>),
}

impl<T> Given<T> {
    /// The value and its place, if there is one.
    pub(crate) fn get(&self) -> Option<&At<T>> {
        match self {
            Self::Here(at) => Some(at),
            Self::Absent | Self::Faulty => None,
        }
    }

    /// The value, if there is one.
    pub(crate) fn value(&self) -> Option<&T> {
        self.get().map(|at| &at.value)
    }

    /// `None`: reported already. `Some(None)`: not written.
    pub(crate) fn optional(&self) -> Option<Option<&At<T>>> {
        match self {
            Self::Absent => Some(None),
            Self::Faulty => None,
            Self::Here(at) => Some(Some(at)),
        }
    }

    /// Whether it is not written.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T: Copy> Given<T> {
    /// The value, or the other where nothing is written. `None`: reported already.
    pub(crate) fn or(&self, other: T) -> Option<T> {
        self.optional().map(|given| given.map_or(other, |at| at.value))
    }
}

/// The members of a mapping, met with their table: what is unknown or written twice is reported.
pub(crate) struct Fields<'a> {
    place: &'a Place,
    rows: &'static [Row],
    entries: Vec<&'a Entry<Text>>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(node: &'a Node<Text>, place: &'a Place, rows: &'static [Row], faults: &mut Faults) -> Option<Self> {
        let Value::Map(all) = &node.value else {
            return wrong(node, place, "a mapping", faults);
        };
        let mut entries = unique(all, place, faults);
        entries.retain(|entry| {
            let known = rows.iter().any(|row| row.name == entry.key);
            if !known {
                let names = rows.iter().filter(|row| row.supported).map(|row| row.name);
                let message = format!("unknown key; {}", advice(&entry.key, names));
                faults.add(&Place::at(entry.spot, &member(&place.path, &entry.key)), message);
            }
            known
        });
        Some(Self { place, rows, entries })
    }

    pub(crate) fn read<T: Shape>(&self, name: &str, faults: &mut Faults) -> Given<T> {
        let path = member(&self.place.path, name);
        if let Some(entry) = self.entries.iter().find(|entry| entry.key == name) {
            return given(T::read_entry(entry, &path, faults));
        }
        match self.rows.iter().find(|row| row.name == name).map(|row| row.rule) {
            None | Some(Rule::Optional) => Given::Absent,
            Some(Rule::Required) => {
                faults.add(self.place, format!("`{name}` is missing"));
                Given::Faulty
            }
            Some(Rule::Default(text)) => {
                let spot = crate::raw::yaml::Spot { line: self.place.line, column: self.place.column };
                let node = Node { spot, value: written(text) };
                let place = Place { path, ..self.place.clone() };
                given(T::read(&node, &place, faults).map(|value| At { value, place }))
            }
        }
    }
}

fn given<T>(value: Option<At<T>>) -> Given<T> {
    value.map_or(Given::Faulty, Given::Here)
}

/// The members of a mapping, each key once: the second of two is reported and left out.
pub(crate) fn unique<'a>(all: &'a [Entry<Text>], place: &Place, faults: &mut Faults) -> Vec<&'a Entry<Text>> {
    let mut first = std::collections::HashMap::with_capacity(all.len());
    let mut entries = Vec::with_capacity(all.len());
    for entry in all {
        let here = Place::at(entry.spot, &member(&place.path, &entry.key));
        match first.entry(entry.key.as_str()) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(here);
                entries.push(entry);
            }
            std::collections::hash_map::Entry::Occupied(other) => {
                faults.add(&here, format!("this key is here twice; the first is at {}", other.get().short()));
            }
        }
    }
    entries
}

/// A default as the file would have it.
fn written(text: &'static str) -> Value<Text> {
    match serde_json::from_str(text) {
        Ok(Json::Bool(value)) => Value::Bool(value),
        Ok(Json::Number(value)) => Value::Number(value.into()),
        Ok(Json::Array(_)) => Value::List(Vec::new()),
        Ok(Json::Object(_)) => Value::Map(Vec::new()),
        _ => Value::Text(Text::literal(text)),
    }
}

/// A section that is not written, where that means something else than an empty one: the defaults of its table hold all the same.
pub(crate) fn unwritten<T: Shape>(place: &Place) -> Option<T> {
    let spot = crate::raw::yaml::Spot { line: place.line, column: place.column };
    T::read(&Node { spot, value: Value::Map(Vec::new()) }, place, &mut Faults::default())
}

/// The JSON Schema of a table.
pub(crate) fn schema(about: &str, rows: &[Row]) -> Json {
    let properties: Map<String, Json> = rows.iter().map(|row| (row.name.to_owned(), property(row))).collect();
    let required: Vec<_> = rows.iter().filter(|row| matches!(row.rule, Rule::Required)).map(|row| row.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": about.trim(),
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(row: &Row) -> Json {
    let mut schema = (row.schema)();
    let about = row.about.trim();
    schema["description"] = if row.supported { json!(about) } else { json!(format!("Not supported yet. {about}")) };
    if let Rule::Default(text) = row.rule {
        schema["default"] = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    }
    schema
}
