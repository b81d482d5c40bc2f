//! Text with parameters in it: `/v1/orders/{order_id}`. What a value may do to the text around it is decided where it is filled in.

use std::fmt;

/// Literal text and the parameters between.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// In order; two neighbours are never both text.
    pub parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, PartialEq, Eq)]
pub enum Part {
    /// As written, environment filled in; it may hold a credential.
    Text(String),
    /// The argument of this name.
    Parameter(String),
}

impl Template {
    /// The parameters it names, in order, repeated as they are.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Parameter(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }
}

// A header's text may be a credential, so a template shows its parameters only.
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(_) => f.write_str("…")?,
                Part::Parameter(name) => write!(f, "{{{name}}}")?,
            }
        }
        Ok(())
    }
}
