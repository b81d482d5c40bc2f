//! Strings after `${NAME}` and `${file:PATH}` are filled in. What was filled in stays apart from what was written: it is opaque to
//! templates, it is no literal, and no fault prints it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::place::{Faults, Place};
use crate::raw::yaml::{Entry, Node, Value};
use crate::raw::{index, member};

/// A string of the file, filled in.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// As it stands in the file: what a fault may print where the string is no secret.
    pub(crate) written: String,
    pub(crate) pieces: Vec<Piece>,
}

/// A piece of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As written.
    Written(String),
    /// `${`, written as `$${`.
    Escaped,
    /// From the environment or another file.
    Filled(String),
}

impl Text {
    /// A string without anything to fill in.
    pub(crate) fn literal(text: &str) -> Self {
        Self { written: text.to_owned(), pieces: vec![Piece::Written(text.to_owned())] }
    }

    /// The whole string.
    pub(crate) fn whole(&self) -> Cow<'_, str> {
        match self.pieces.as_slice() {
            [] => Cow::Borrowed(""),
            [only] => Cow::Borrowed(only.as_str()),
            many => many.iter().map(Piece::as_str).collect(),
        }
    }

    /// Whether all of it stands in the file.
    pub(crate) fn is_literal(&self) -> bool {
        !self.pieces.iter().any(|piece| matches!(piece, Piece::Filled(_)))
    }
}

impl Piece {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Written(text) | Self::Filled(text) => text,
            Self::Escaped => "${",
        }
    }
}

/// Where the values come from.
pub(crate) struct Surroundings<'a> {
    /// The environment.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// The folder of the configuration file: relative paths begin here.
    pub(crate) folder: &'a Path,
    /// The files that were read, or should have been.
    pub(crate) watched: Vec<PathBuf>,
}

impl Surroundings<'_> {
    /// Fills in every string below a node. One that cannot be filled in is reported and becomes `Faulty`.
    pub(crate) fn fill(&mut self, node: Node<String>, path: &str, faults: &mut Faults) -> Node<Text> {
        let Node { spot, value } = node;
        let value = match value {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Number(value) => Value::Number(value),
            Value::Faulty => Value::Faulty,
            Value::Text(written) => match self.text(written) {
                Ok(text) => Value::Text(text),
                Err(message) => {
                    faults.add(&Place::at(spot, path), message);
                    Value::Faulty
                }
            },
            Value::List(items) => {
                let filled = |(at, item)| self.fill(item, &index(path, at), faults);
                Value::List(items.into_iter().enumerate().map(filled).collect())
            }
            Value::Map(entries) => {
                let filled = |Entry { key, spot, value }| {
                    let value = self.fill(value, &member(path, &key), faults);
                    Entry { key, spot, value }
                };
                Value::Map(entries.into_iter().map(filled).collect())
            }
        };
        Node { spot, value }
    }

    fn text(&mut self, written: String) -> Result<Text, String> {
        let mut pieces = Vec::new();
        let mut rest = written.as_str();
        while let Some(at) = rest.find("${") {
            let before = &rest[..at];
            if let Some(before) = before.strip_suffix('$') {
                push_written(&mut pieces, before);
                pieces.push(Piece::Escaped);
                rest = &rest[at + 2..];
                continue;
            }
            push_written(&mut pieces, before);
            let end = rest[at..].find('}').ok_or("`${` without its `}`; a literal `${` is written `$${`")? + at;
            pieces.push(Piece::Filled(self.value(&rest[at + 2..end])?));
            rest = &rest[end + 1..];
        }
        push_written(&mut pieces, rest);
        Ok(Text { pieces, written })
    }

    fn value(&mut self, name: &str) -> Result<String, String> {
        if let Some(path) = name.strip_prefix("file:") {
            return self.file(path);
        }
        if !is_variable(name) {
            return Err(format!("`${{{name}}}` is neither `${{NAME}}` nor `${{file:PATH}}`; a literal `${{` is written `$${{`"));
        }
        (self.env)(name).ok_or_else(|| format!("the environment variable `{name}` is not set"))
    }

    fn file(&mut self, path: &str) -> Result<String, String> {
        let full = self.folder.join(path);
        let content =
            std::fs::read_to_string(&full).map_err(|error| format!("the file `{}` cannot be read: {error}", full.display()));
        self.watched.push(full);
        Ok(content?.trim().to_owned())
    }
}

fn push_written(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Written(text.to_owned()));
    }
}

fn is_variable(name: &str) -> bool {
    let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) && name.chars().all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(written: &str) -> Result<Text, String> {
        let env = |name: &str| (name == "A").then(|| "a{b}".to_owned());
        Surroundings { env: &env, folder: Path::new("/nowhere"), watched: Vec::new() }.text(written.to_owned())
    }

    #[test]
    fn variables_are_filled_in_and_stay_apart() {
        for (written, whole, literal) in [
            ("", "", true),
            ("plain $5 {x}", "plain $5 {x}", true),
            ("${A}", "a{b}", false),
            ("x-${A}-${A}", "x-a{b}-a{b}", false),
            ("$${A}", "${A}", true),
            ("$$${A}", "$${A}", true),
            ("$$x${A}", "$$xa{b}", false),
        ] {
            let text = filled(written).unwrap();
            assert_eq!((text.whole().as_ref(), text.is_literal()), (whole, literal), "{written}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_says_why() {
        for (written, fault) in [
            ("${B}", "the environment variable `B` is not set"),
            ("${A", "`${` without its `}`; a literal `${` is written `$${`"),
            ("${}", "`${}` is neither `${NAME}` nor `${file:PATH}`; a literal `${` is written `$${`"),
            ("${A:-x}", "`${A:-x}` is neither `${NAME}` nor `${file:PATH}`; a literal `${` is written `$${`"),
            ("${file:x}", "the file `/nowhere/x` cannot be read: No such file or directory (os error 2)"),
        ] {
            assert_eq!(filled(written).unwrap_err(), fault, "{written}");
        }
    }
}
