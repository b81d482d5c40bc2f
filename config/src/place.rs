//! Where in the file something stands, and what is wrong with it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::raw::yaml::Spot;

/// A position in a configuration file and the key path that leads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the operator named it; empty: the configuration itself.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The way to the value: `tools[2].http.url`.
    pub path: String,
}

/// One thing that is wrong with a configuration. Its text is three parts: what is wrong, what is allowed, the nearest known name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands.
    pub place: Place,
    /// A sentence for the operator. It never holds a secret's value.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { file, line, column, path } = &self.place;
        write!(f, "{}:{line}:{column}: ", file.display())?;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl Place {
    pub(crate) fn at(spot: Spot, path: &str) -> Self {
        Self { file: PathBuf::new(), line: spot.line, column: spot.column, path: path.to_owned() }
    }

    /// For the sentence of another fault: `line 3, column 5`.
    pub(crate) fn short(&self) -> String {
        format!("line {}, column {}", self.line, self.column)
    }
}

/// Collects faults: none stops the search for the others.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Notes one.
    pub(crate) fn add(&mut self, place: &Place, message: impl Into<String>) {
        self.0.push(Fault { place: place.clone(), message: message.into() });
    }

    /// Notes the fault of a result, and hands on what is left: `None` is always reported already.
    pub(crate) fn take<T>(&mut self, place: &Place, result: Result<T, impl Into<String>>) -> Option<T> {
        result.map_err(|message| self.add(place, message)).ok()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in the order of the file.
    pub(crate) fn of_file(mut self, file: &Path) -> Vec<Fault> {
        // What stands in a document beside the file keeps its place there, and comes after the file's own.
        for fault in self.0.iter_mut().filter(|fault| fault.place.file.as_os_str().is_empty()) {
            file.clone_into(&mut fault.place.file);
        }
        self.0.sort_by_cached_key(|fault| {
            let Place { file: of, line, column, .. } = &fault.place;
            (of != file, of.clone(), *line, *column)
        });
        // What is wrong with one line for many tools is said once.
        self.0.dedup();
        self.0
    }
}
