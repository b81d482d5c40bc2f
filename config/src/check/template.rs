//! Text with holes, as written: `{name}` is a parameter, `{{` and `}}` are braces. What was filled in from outside has no holes.

use crate::raw::Text;
use crate::raw::text::Piece;
use crate::template::{Part, Template};

/// A part of a text with holes. Where a text came from matters to URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bit {
    /// As written.
    Written(String),
    /// From the environment or another file.
    Filled(String),
    /// The argument of this name.
    Parameter(String),
}

/// Finds the holes.
///
/// # Errors
/// A hole that is not closed, or without a name.
pub(super) fn bits(text: &Text) -> Result<Vec<Bit>, &'static str> {
    let mut bits = Vec::new();
    for piece in &text.pieces {
        match piece {
            Piece::Written(written) => holes(written, &mut bits)?,
            Piece::Escaped => bits.push(Bit::Written("${".to_owned())),
            Piece::Filled(filled) => bits.push(Bit::Filled(filled.clone())),
        }
    }
    Ok(bits)
}

fn holes(written: &str, bits: &mut Vec<Bit>) -> Result<(), &'static str> {
    let mut text = String::new();
    let mut rest = written;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        text.push_str(before);
        if brace.starts_with("{{") || brace.starts_with("}}") {
            text.push_str(&brace[..1]);
            rest = &brace[2..];
        } else if let Some(closing) = brace.strip_prefix('}') {
            text.push('}');
            rest = closing;
        } else {
            let end = brace.find('}').ok_or("`{` without its `}`; a brace is written `{{`")?;
            bits.push(Bit::Written(std::mem::take(&mut text)));
            bits.push(Bit::Parameter(parameter(&brace[1..end])?));
            rest = &brace[end + 1..];
        }
    }
    text.push_str(rest);
    bits.push(Bit::Written(text));
    Ok(())
}

fn parameter(name: &str) -> Result<String, &'static str> {
    let legal = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '{' | '"' | '\'' | ':' | ',');
    if name.is_empty() || !name.chars().all(legal) {
        return Err("between `{` and `}` stands a parameter's name; a brace is written `{{`");
    }
    Ok(name.to_owned())
}

/// Joins what is no hole.
pub(super) fn template(bits: impl IntoIterator<Item = Bit>) -> Template {
    let mut parts: Vec<Part> = Vec::new();
    for bit in bits {
        match (bit, parts.last_mut()) {
            (Bit::Parameter(name), _) => parts.push(Part::Parameter(name)),
            (Bit::Written(text) | Bit::Filled(text), _) if text.is_empty() => {}
            (Bit::Written(text) | Bit::Filled(text), Some(Part::Text(before))) => before.push_str(&text),
            (Bit::Written(text) | Bit::Filled(text), _) => parts.push(Part::Text(text)),
        }
    }
    Template { parts }
}
