//! E-mail addresses.

use crate::redact::hit::{Hit, Tail};
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View};

/// The longest local part, in bytes.
pub(in crate::redact) const LOCAL: usize = 64;
/// How far the domain is looked at, in bytes: with the local part, no more than a check may look ahead.
const DOMAIN: usize = 60;

/// An address whose `@` stands at `start`.
pub(in crate::redact) fn find(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    let from = begins(view, start);
    if from == start || view.before(start) == Some(b'.') {
        return Ok(None);
    }
    let (to, labels) = domain(view, end)?;
    if labels < 2 || !is_top_level(last_label(view.slice(end, to))) {
        return Ok(None);
    }
    if view.is_mask(to)? || (view.at(to)? == Some(b'.') && view.is_mask(to + 1)?) {
        return Ok(None);
    }
    let local = view.slice(from, start);
    if is_remote(view, local, to)? || is_file_name(last_label(view.slice(end, to))) {
        return Ok(None);
    }
    Ok(Some(Hit::new(from, to, Kind::Email).with(Tail::Domain)))
}

/// Where the local part that ends at a place would begin; the place itself, where there is none.
pub(in crate::redact) fn begins(view: &View<'_>, place: usize) -> usize {
    let mut from = view.run_back(place, LOCAL + 1, local);
    if place - from > LOCAL {
        return place;
    }
    // It begins with a letter or a digit, and with a whole character.
    while from < place
        && view
            .slice(from, from + 1)
            .first()
            .is_some_and(|&byte| !byte.is_ascii_alphanumeric() && byte != b'_' && !(0xC3..=0xC9).contains(&byte))
    {
        from += 1;
    }
    from
}

/// What a local part is made of.
pub(in crate::redact) fn local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'' | 0x80..=0xBF | 0xC3..=0xC9)
}

/// Where the domain ends, a last dot not included, and how many labels it has.
fn domain(view: &View<'_>, from: usize) -> Found<(usize, usize)> {
    let (mut to, mut labels) = (from, 0);
    loop {
        let end = view.run(to, (from + DOMAIN).saturating_sub(to), label)?;
        labels += usize::from(end > to);
        if end == to || end == from + DOMAIN || view.at(end)? != Some(b'.') || !view.at(end + 1)?.is_some_and(label) {
            return Ok((end, labels));
        }
        to = end + 1;
    }
}

/// A bit more of a domain that was longer than what was looked at.
pub(in crate::redact) fn domain_step(view: &View<'_>, from: usize) -> Found<Option<usize>> {
    match view.at(from)? {
        Some(byte) if label(byte) => Ok(Some(from + 1)),
        Some(b'.') if view.at(from + 1)?.is_some_and(label) => Ok(Some(from + 2)),
        _ => Ok(None),
    }
}

fn label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | 0x80..=0xBF | 0xC3..=0xC9)
}

fn last_label(domain: &[u8]) -> &[u8] {
    domain.rsplit(|&byte| byte == b'.').next().unwrap_or_default()
}

fn is_top_level(label: &[u8]) -> bool {
    label.len() >= 2 && (label.iter().all(u8::is_ascii_alphabetic) || label.starts_with(b"xn--") || !label.is_ascii())
}

/// Whether this is a remote of git's: `git@github.com:owner/name`.
fn is_remote(view: &View<'_>, local: &[u8], to: usize) -> Found<bool> {
    Ok(local == b"git" && matches!(view.at(to)?, Some(b':' | b'/')))
}

/// Whether the last label ends a file's name: `icon@2x.png`.
fn is_file_name(label: &[u8]) -> bool {
    FILES.iter().any(|ending| label.eq_ignore_ascii_case(ending))
}

const FILES: [&[u8]; 14] =
    [b"png", b"jpg", b"jpeg", b"gif", b"webp", b"svg", b"avif", b"css", b"js", b"ts", b"json", b"html", b"yaml", b"yml"];
