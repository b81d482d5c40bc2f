//! Where in the file something stands, and what is wrong with it.

use std::fmt;
use std::path::PathBuf;

/// A position in a configuration file and the key path that leads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the operator named it.
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
