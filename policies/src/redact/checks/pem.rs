//! Private keys as PEM blocks, also where the end was cut off, where the lines' ends are written `\n`, or where there are no lines at all.

use crate::redact::hit::{Hit, Tail};
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View};

/// The longest label that a block may have, in bytes.
const LABEL: usize = 48;
/// Shorter runs are taken for words, unless the block ends behind them.
const LINE: usize = 16;
/// How many blanks, line ends, quotes and the like may stand between two lines.
const GAP: usize = 24;
/// The longest header inside of the block.
const HEADER: usize = 80;

/// A block whose `-----BEGIN` or `---- BEGIN` ends at `end`.
pub(in crate::redact) fn find(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    if !view.is(start, b"-----BEGIN ") && !view.is(start, b"---- BEGIN ") {
        return Ok(None);
    }
    let label_end = view.run(end, LABEL, label)?;
    let private = view.slice(end, label_end).windows(KEY.len()).any(|window| window == KEY);
    if !private || view.at(label_end)? != Some(b'-') {
        return Ok(None);
    }
    let to = view.run(label_end, 5, |byte| byte == b'-')?;
    Ok(Some(Hit::new(start, to, Kind::PrivateKey).with(Tail::Pem(Pem::Between))))
}

const KEY: &[u8] = b"PRIVATE KEY";

/// Where in a block it is.
#[derive(Clone, Copy, Debug)]
pub(in crate::redact) enum Pem {
    /// Between two lines.
    Between,
    /// In a line of base64.
    Line,
}

/// What of a block is swallowed: to where, and where in the block that is; `None`: behind it.
type Swallowed = Option<(usize, Option<Pem>)>;

impl Pem {
    /// Swallows a bit more. `None`: what follows is no part of the block.
    pub(in crate::redact) fn step(self, view: &View<'_>, from: usize) -> Found<Swallowed> {
        match self {
            Self::Line if view.at(from)?.is_some_and(base64) => Ok(Some((from + 1, Some(Self::Line)))),
            Self::Line => Self::Between.step(view, from),
            Self::Between => between(view, from),
        }
    }
}

fn between(view: &View<'_>, from: usize) -> Found<Swallowed> {
    let begin = gap(view, from)?;
    if view.at(begin)? == Some(b'-') {
        return last(view, begin);
    }
    let end = view.run(begin, LINE, base64)?;
    if end == begin + LINE {
        return Ok(Some((end, Some(Pem::Line))));
    }
    if end == begin {
        return Ok(None);
    }
    if let Some(end) = header(view, begin)? {
        return Ok(Some((end, Some(Pem::Between))));
    }
    let behind = gap(view, end)?;
    let ends = view.at(behind)?.is_none() || view.goes_on(behind, b"-----END")? || view.goes_on(behind, b"---- END")?;
    Ok(ends.then_some((end, Some(Pem::Between))))
}

/// Blanks, line ends, also written `\n`, and what joins strings in source code.
fn gap(view: &View<'_>, from: usize) -> Found<usize> {
    let mut to = from;
    while to < from + GAP {
        match view.at(to)? {
            Some(b'\\') if matches!(view.at(to + 1)?, Some(b'n' | b'r' | b't')) => to += 2,
            Some(b' ' | b'\t' | b'\r' | b'\n' | b'\\' | b'"' | b'\'' | b'>' | b'|' | b'.') => to += 1,
            _ => break,
        }
    }
    Ok(to)
}

/// `-----END … KEY-----`.
fn last(view: &View<'_>, begin: usize) -> Found<Swallowed> {
    let dashes = view.run(begin, 5, |byte| byte == b'-')?;
    let blank = view.run(dashes, 1, |byte| byte == b' ')?;
    if !view.goes_on(blank, b"END ")? {
        return Ok(None);
    }
    let end = view.run(blank, LABEL, label)?;
    Ok(Some((view.run(end, 5, |byte| byte == b'-')?, None)))
}

/// `Proc-Type: 4,ENCRYPTED`.
fn header(view: &View<'_>, begin: usize) -> Found<Option<usize>> {
    let end = view.run(begin, 16, |byte| byte.is_ascii_alphabetic() || byte == b'-')?;
    let known = HEADERS.iter().any(|header| view.slice(begin, end).eq_ignore_ascii_case(header));
    if !known || view.at(end)? != Some(b':') {
        return Ok(None);
    }
    view.run(end, HEADER, |byte| !matches!(byte, b'\n' | b'\r' | b'\\' | b'"')).map(Some)
}

const HEADERS: [&[u8]; 5] = [b"Proc-Type", b"DEK-Info", b"Comment", b"Version", b"Subject"];

fn label(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
