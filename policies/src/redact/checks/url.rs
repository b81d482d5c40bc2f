//! Credentials in the part of a URL that names the host: `scheme://user:password@host`.

use super::judge::is_placeholder;
use crate::redact::hit::{Hit, Tail};
use crate::redact::kind::Kind;
use crate::redact::view::{Found, LOOK, View, alnum, digit};

/// The userinfo behind a `://` that ends at `end`.
pub(in crate::redact) fn userinfo(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    if !view.before(start).is_some_and(alnum) {
        return Ok(None);
    }
    let colon = view.run(end, LOOK / 2, |byte| !ends_authority(byte) && !matches!(byte, b':' | b'@'))?;
    match view.at(colon)? {
        Some(b':') => password(view, end, colon + 1),
        Some(b'@') => Ok(token(view, end, colon)),
        _ => Ok(None),
    }
}

fn password(view: &View<'_>, hold: usize, from: usize) -> Found<Option<Hit>> {
    if view.mask(from)?.is_some() {
        return Ok(None);
    }
    let until = hold + LOOK;
    let port = view.run(from, 6, digit)?;
    if !view.at(port)?.is_some_and(|byte| {
        byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'/' | b'?' | b'#' | b',' | b'"' | b'\'' | b')' | b']' | b'>' | b';' | b'`' | b'<' | b'\\' | b'}' | b'|'
            )
    }) {
        return Ok(None);
    }
    // An unescaped `/` or `#` in a password is wrong, and common.
    let mut to = from;
    let mut at = None;
    while to < until {
        match view.at(to)? {
            Some(b'@') => at = Some(to),
            Some(b'/' | b'?' | b'#') if at.is_some() => break,
            Some(b'[') if view.mask(to)?.is_some() => break,
            Some(byte) if !byte.is_ascii() || byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>') => {}
            _ => break,
        }
        to += 1;
    }
    let end = match at {
        Some(at) => at,
        None if to >= until => to,
        None => return Ok(None),
    };
    let text = view.slice(from, end);
    if text.is_empty() || is_placeholder(text) {
        return Ok(None);
    }
    let tail =
        if at.is_some() { Tail::Over } else { Tail::Run(|byte| byte != b'@' && byte.is_ascii_graphic() || !byte.is_ascii()) };
    Ok(Some(Hit::new(from, end, Kind::Password).with(tail)))
}

/// A token that stands where the user's name would.
fn token(view: &View<'_>, from: usize, to: usize) -> Option<Hit> {
    let text = view.slice(from, to);
    let long = text.len() >= 20 && text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic);
    (long && text.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')))
        .then(|| Hit::new(from, to, Kind::Token))
}

fn ends_authority(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'/' | b'?'
                | b'#'
                | b'"'
                | b'\''
                | b'`'
                | b'<'
                | b'>'
                | b'('
                | b')'
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b','
                | b';'
                | b'|'
                | b'\\'
        )
}

/// What follows the address of a webhook, which is all that whoever calls it must know.
pub(in crate::redact) fn webhook(view: &View<'_>, end: usize) -> Found<Option<Hit>> {
    let to = view.run(end, 8, of_webhook)?;
    Ok((to == end + 8).then(|| Hit::new(end, to, Kind::Webhook).with(Tail::Run(of_webhook))))
}

fn of_webhook(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'@' | b':')
}
