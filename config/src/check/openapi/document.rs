//! An OpenAPI document as a tree: every part of it knows its place, and references within it are followed. What the parts mean is the
//! business of the modules beside this one.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json};

use crate::place::{Faults, Place};
use crate::raw::yaml::{self, Entry, Node, Value};
use crate::raw::{index, member};

/// The longest document that is read, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// How many references may lead from one to the next.
const MOST_HOPS: usize = 32;

/// A document that is well-formed, of a version that is known.
pub(super) struct Document {
    file: PathBuf,
    root: Node<String>,
    pub(super) version: Version,
}

/// The two kinds of documents: in 3.0 a schema is nearly JSON Schema, since 3.1 it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V30,
    V31,
}

impl Document {
    /// Reads a document; `None`: it cannot be read, and that is reported, at `named` where the file itself is the fault.
    pub(super) fn read(file: &Path, named: &Place, faults: &mut Faults) -> Option<Self> {
        let text = faults.take(named, text(file))?;
        let start = |spot| Place { file: file.to_owned(), ..Place::at(spot, "") };
        let root = yaml::parse(&text).map_err(|(spot, why)| faults.add(&start(spot), why)).ok()?;
        let mut document = Self { file: file.to_owned(), root, version: Version::V31 };
        document.version = document.version(faults)?;
        document.whole().no_key_twice(faults).then_some(document)
    }

    /// The whole of it.
    pub(super) fn whole(&self) -> Here<'_> {
        Here { document: self, node: &self.root, path: String::new() }
    }

    fn version(&self, faults: &mut Faults) -> Option<Version> {
        const ALLOWED: &str = "allowed: a document with `openapi: 3.0.x` or `3.1.x`";
        let whole = self.whole();
        let Some(named) = whole.get("openapi") else {
            let old = if whole.get("swagger").is_some() { "this is Swagger 2.0, which can be converted; " } else { "" };
            faults.add(&whole.place(), format!("{old}no `openapi`; {ALLOWED}"));
            return None;
        };
        // An unquoted 3.1 is a number.
        let written = named.text().map_or_else(|| named.json().to_string(), str::to_owned);
        let is = |minor: &str| written == minor || written.strip_prefix(minor).is_some_and(|rest| rest.starts_with('.'));
        match (is("3.0"), is("3.1")) {
            (true, _) => Some(Version::V30),
            (_, true) => Some(Version::V31),
            _ => {
                faults.add(&named.place(), format!("`{written}` is not known; {ALLOWED}"));
                None
            }
        }
    }
}

fn text(file: &Path) -> Result<String, String> {
    let unreadable = |error| format!("the document `{}` cannot be read: {error}", file.display());
    let found = std::fs::metadata(file).map_err(unreadable)?;
    if !found.is_file() {
        return Err(format!("the document `{}` is no plain file", file.display()));
    }
    let length = found.len();
    if length > LONGEST {
        return Err(format!("the document has {length} bytes; allowed: at most {LONGEST}"));
    }
    std::fs::read_to_string(file).map_err(unreadable)
}

/// A part of a document, and the way there.
#[derive(Clone)]
pub(super) struct Here<'d> {
    document: &'d Document,
    node: &'d Node<String>,
    path: String,
}

impl<'d> Here<'d> {
    /// Where it stands.
    pub(super) fn place(&self) -> Place {
        Place { file: self.document.file.clone(), ..Place::at(self.node.spot, &self.path) }
    }

    /// The member of this name.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let entry = self.map()?.iter().find(|entry| entry.key == key)?;
        Some(self.entry(entry))
    }

    /// The members of an object, in their order.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'d str, Self)> + use<'_, 'd> {
        self.map().into_iter().flatten().map(|entry| (entry.key.as_str(), self.entry(entry)))
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'_, 'd> {
        let items = match &self.node.value {
            Value::List(items) => items.as_slice(),
            _ => &[],
        };
        items.iter().enumerate().map(|(at, node)| Self { node, path: index(&self.path, at), ..self.clone() })
    }

    /// A text.
    pub(super) fn text(&self) -> Option<&'d str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the member of this name is `true`.
    pub(super) fn says(&self, key: &str) -> bool {
        self.flag(key) == Some(true)
    }

    /// The truth value of this name.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)?.node.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is an object.
    pub(super) fn is_object(&self) -> bool {
        self.map().is_some()
    }

    /// The value, as it stands there.
    pub(super) fn json(&self) -> Json {
        json(self.node)
    }

    /// What it refers to, or itself. A reference that leads nowhere, out of the document, or in a circle is reported.
    pub(super) fn resolved(&self, faults: &mut Faults) -> Option<Self> {
        let mut here = self.clone();
        for _ in 0..MOST_HOPS {
            match here.get("$ref") {
                None => return Some(here),
                Some(reference) => here = reference.followed(faults)?,
            }
        }
        faults.add(&self.place(), "the references lead in a circle");
        None
    }

    /// What the text of a `$ref` leads to.
    pub(super) fn followed(&self, faults: &mut Faults) -> Option<Self> {
        let followed = self.text().ok_or_else(|| "a reference is a text".to_owned()).and_then(|text| self.follow(text));
        faults.take(&self.place(), followed)
    }

    fn follow(&self, reference: &str) -> Result<Self, String> {
        let outside = || format!("`{reference}` leads out of this document; allowed: references within it, `#/components/…`");
        let pointer = reference.strip_prefix('#').ok_or_else(outside)?;
        let mut here = self.document.whole();
        for step in pointer.split('/').skip(1) {
            let step = percent_decode_str(step).decode_utf8_lossy().replace("~1", "/").replace("~0", "~");
            let item = step.parse::<usize>().ok().and_then(|at| here.items().nth(at));
            here = here.get(&step).or(item).ok_or_else(|| format!("`{reference}` leads nowhere"))?;
        }
        Ok(here)
    }

    fn map(&self) -> Option<&'d [Entry<String>]> {
        match &self.node.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    fn entry(&self, entry: &'d Entry<String>) -> Self {
        Self { node: &entry.value, path: member(&self.path, &entry.key), ..self.clone() }
    }

    fn no_key_twice(&self, faults: &mut Faults) -> bool {
        let mut first = std::collections::HashSet::new();
        let mut fine = true;
        for entry in self.map().into_iter().flatten() {
            let here = self.entry(entry);
            if !first.insert(entry.key.as_str()) {
                faults.add(&Place { line: entry.spot.line, column: entry.spot.column, ..here.place() }, "this key is here twice");
                fine = false;
            }
            fine &= here.no_key_twice(faults);
        }
        self.items().fold(fine, |fine, item| item.no_key_twice(faults) && fine)
    }
}

fn json(node: &Node<String>) -> Json {
    match &node.value {
        Value::Null | Value::Faulty => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => Json::Number(number.value.clone()),
        Value::Text(text) => Json::String(text.clone()),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.clone(), json(&entry.value))).collect::<Map<_, _>>())
        }
    }
}
