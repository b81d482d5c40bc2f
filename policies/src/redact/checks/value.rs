//! Where a value ends that stands behind a name.

use crate::redact::view::{Found, View};

/// What ends a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redact) enum Close {
    /// The quote that it began with, or the line's end; a backslash takes what follows with it.
    Quote(u8),
    /// The same quote with a backslash before it: a string within a string.
    Escaped(u8),
    /// White space, quotes and brackets; a `,`, `;` or `&` where another name follows, or nothing.
    Bare,
    /// What ends a value in a URL's query.
    Query,
    /// The line's end, or the quote that the line stands in.
    Line(Option<u8>),
    /// The next tag.
    Tag,
    /// A `;`, white space or a quote.
    Cookie,
}

impl Close {
    /// Behind the byte at a place, if that still belongs to the value.
    pub(in crate::redact) fn step(self, view: &View<'_>, place: usize) -> Found<Option<usize>> {
        let Some(byte) = view.at(place)? else { return Ok(None) };
        if byte == b'[' && view.mask(place)?.is_some() {
            return Ok(None);
        }
        let next = match self {
            Self::Quote(quote) => match byte {
                b'\\' => return behind_backslash(view, place),
                b'\n' | b'\r' => false,
                _ => byte != quote,
            },
            Self::Escaped(quote) => match byte {
                b'\n' | b'\r' => false,
                b'\\' => view.at(place + 1)? != Some(quote),
                _ => byte != quote,
            },
            Self::Bare => bare(view, place, byte)?,
            Self::Query => !ends_query_value(byte),
            Self::Line(quote) => {
                !matches!(byte, b'\n' | b'\r') && Some(byte) != quote && !(byte == b'\\' && ends_line(view.at(place + 1)?))
            }
            Self::Tag => !matches!(byte, b'<' | b'\n' | b'\r'),
            Self::Cookie => !matches!(byte, b';' | b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b',' | b'\\'),
        };
        Ok(next.then_some(place + 1))
    }

    /// Where the value ends that begins at a place: at the latest after `max` bytes.
    pub(in crate::redact) fn end(self, view: &View<'_>, from: usize, max: usize) -> Found<usize> {
        let mut to = from;
        while to < from + max {
            match self.step(view, to)? {
                Some(next) => to = next,
                None => break,
            }
        }
        Ok(to)
    }
}

/// A backslash takes the next character with it, but never the line's end.
fn behind_backslash(view: &View<'_>, place: usize) -> Found<Option<usize>> {
    Ok(Some(match view.at(place + 1)? {
        None | Some(b'\n' | b'\r' | b'[') => place + 1,
        Some(byte) if !byte.is_ascii() => place + 1,
        Some(_) => place + 2,
    }))
}

fn ends_line(byte: Option<u8>) -> bool {
    matches!(byte, Some(b'n' | b'r' | b'"' | b'\''))
}

fn bare(view: &View<'_>, place: usize, byte: u8) -> Found<bool> {
    Ok(match byte {
        b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'<' | b'>' => false,
        b')' | b']' | b'}' => view.word_goes_on(place + 1)?,
        b',' | b';' | b'&' | b'|' => !separates(view, byte, place + 1)?,
        b'\\' => !matches!(view.at(place + 1)?, Some(b'n' | b'r' | b't' | b'"' | b'\'')),
        _ => true,
    })
}

/// Whether what follows a `,`, `;` or `&` is white space, the end, or another name with its value.
fn separates(view: &View<'_>, sign: u8, from: usize) -> Found<bool> {
    let to = view.run(from, 24, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))?;
    let next = view.at(to)?;
    Ok(if to == from {
        next.is_none_or(|byte| !byte.is_ascii_graphic() || matches!(byte, b'"' | b'\'' | b'`'))
    } else {
        // Names in the connection strings of ADO are two words: `User Id`.
        matches!(next, Some(b'=' | b':')) || (sign == b';' && next == Some(b' '))
    })
}

/// What ends a value in a URL's query.
fn ends_query_value(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'&' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'{' | b'}' | b'[' | b']' | b'(' | b')' | b',' | b';' | b'#' | b'\\'
        )
}
