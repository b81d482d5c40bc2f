//! What HTTP's headers carry: `Authorization` in any scheme, `Bearer` and `Basic` wherever they stand, cookies.

use super::judge::is_placeholder;
use super::value::Close;
use crate::redact::hit::{Hit, Tail};
use crate::redact::kind::Kind;
use crate::redact::trigger::Trigger;
use crate::redact::view::{Found, LOOK, View, base64, bearer, blank};

/// `Authorization: Scheme credentials`: the scheme stays.
pub(in crate::redact) fn authorization(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    let quote = view.before(start).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let Some((from, close)) = header_value(view, end, quote)? else { return Ok(None) };
    let scheme = view.run(from, 24, |byte| byte.is_ascii_alphanumeric() || byte == b'-')?;
    let behind = view.run(scheme, 4, blank)?;
    let named = scheme > from && behind > scheme && view.at(from)?.is_some_and(|byte| byte.is_ascii_alphabetic());
    let from = if named { behind } else { from };
    if view.mask(from)?.is_some() {
        return Ok(None);
    }
    let to = close.end(view, from, (end + LOOK).saturating_sub(from))?;
    if view.is_mask(to)? {
        return Ok(None);
    }
    let text = view.slice(from, to);
    let words = text.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'.' | b',' | b'-' | b'\''));
    if is_placeholder(text)
        || text.len() < 4
        || (words && text.len() < LOOK / 2 && !view.slice(from, to).iter().any(u8::is_ascii_uppercase))
    {
        return Ok(None);
    }
    Ok(Some(Hit::new(from, to, Kind::Credential).with(Tail::Value(close))))
}

/// Where the value of a header begins, and what closes it: the quote that the header or the value stands in.
fn header_value(view: &View<'_>, end: usize, outer: Option<u8>) -> Found<Option<(usize, Close)>> {
    let (mut place, mut outer) = (end, outer);
    let escaped = usize::from(view.at(place)? == Some(b'\\'));
    if matches!(view.at(place + escaped)?, Some(b'"' | b'\'')) {
        (place, outer) = (place + escaped + 1, None);
        place += usize::from(view.at(place)? == Some(b']'));
    }
    place = view.run(place, 8, blank)?;
    if !matches!(view.at(place)?, Some(b':' | b'=')) || matches!(view.at(place + 1)?, Some(b':' | b'=')) {
        return Ok(None);
    }
    let from = view.run(place + 1, 8, |byte| blank(byte) || byte == b'>')?;
    Ok(Some(match view.at(from)? {
        Some(quote @ (b'"' | b'\'' | b'`')) => (from + 1, Close::Quote(quote)),
        Some(b'\\') if matches!(view.at(from + 1)?, Some(b'"' | b'\'')) => {
            (from + 2, Close::Escaped(view.at(from + 1)?.unwrap_or(b'"')))
        }
        _ => (from, Close::Line(outer)),
    }))
}

/// `Bearer token`.
pub(in crate::redact) fn bearer_token(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    if !view.word_begins(start) || !view.at(end)?.is_some_and(blank) {
        return Ok(None);
    }
    let from = view.run(end, 4, blank)?;
    if view.mask(from)?.is_some() {
        return Ok(None);
    }
    let to = view.run(from, 40, bearer)?;
    if view.is_mask(to)? {
        return Ok(None);
    }
    let text = view.slice(from, to);
    let inner = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
    let odd = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=');
    let mixed = text.iter().skip(1).any(u8::is_ascii_uppercase) && text.iter().any(u8::is_ascii_lowercase);
    let likely = text.len() >= 24 || (text.len() >= 6 && (inner.iter().any(odd) || mixed)) || text.len() >= 16;
    Ok((likely && !is_placeholder(text)).then(|| Hit::new(from, to, Kind::Token).with(Tail::Run(bearer))))
}

/// `Basic` and what decodes to a name and a password.
pub(in crate::redact) fn basic(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    if !view.word_begins(start) || !view.at(end)?.is_some_and(blank) {
        return Ok(None);
    }
    let from = view.run(end, 4, blank)?;
    let to = view.run(from, LOOK - 8, base64)?;
    if view.is_mask(to)? {
        return Ok(None);
    }
    let login = to - from >= 8 && is_login(view.slice(from, to));
    Ok(login.then(|| Hit::new(from, to, Kind::Credential).with(Tail::Run(base64))))
}

/// Whether base64 holds printable text with a colon.
fn is_login(encoded: &[u8]) -> bool {
    let mut decoded = Vec::with_capacity(encoded.len());
    for group in encoded.chunks(4) {
        let bits = group
            .iter()
            .map(|&byte| sextet(byte))
            .take_while(Option::is_some)
            .flatten()
            .fold((0_u32, 0), |(bits, count), next| (bits << 6 | next, count + 1));
        let whole = bits.0 << (6 * (4 - bits.1));
        decoded.extend_from_slice(whole.to_be_bytes().get(1..bits.1.max(1)).unwrap_or_default());
    }
    decoded.contains(&b':') && decoded.iter().all(|byte| !byte.is_ascii_control())
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

/// `Cookie: name=value; …` and `Set-Cookie: name=value; attributes`: the names stay.
pub(in crate::redact) fn cookies(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    if view.before(start).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(None);
    }
    let one = view.left(start, 4).eq_ignore_ascii_case(b"set-");
    let quote = view.before(start).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    match header_value(view, end, quote)? {
        Some((from, _)) => pair(view, from, from, !one),
        None => Ok(None),
    }
}

/// The next pair of a `Cookie` header, behind the value that ends at `from`.
pub(in crate::redact) fn next_cookie(view: &View<'_>, from: usize) -> Found<Option<Hit>> {
    if view.at(from)? != Some(b';') {
        return Ok(None);
    }
    let name = view.run(from + 1, 2, blank)?;
    pair(view, from, name, true)
}

fn pair(view: &View<'_>, hold: usize, name: usize, more: bool) -> Found<Option<Hit>> {
    let equals = view.run(name, LOOK / 2, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'=' | b';' | b',' | b'"' | b'\'' | b'[' | b'\\')
    })?;
    if equals == name || view.at(equals)? != Some(b'=') {
        return Ok(None);
    }
    let quoted = usize::from(view.at(equals + 1)? == Some(b'"'));
    let from = equals + 1 + quoted;
    let then = more.then_some(Trigger::NextCookie);
    if let Some(to) = view.mask(from)? {
        return Ok(more.then(|| Hit { then, ..Hit::new(to, to, Kind::Cookie) }));
    }
    let to = Close::Cookie.end(view, from, (hold + LOOK).saturating_sub(from))?;
    if view.is_mask(to)? {
        return Ok(None);
    }
    let hit = (to > from && !is_placeholder(view.slice(from, to)))
        .then(|| Hit::new(from, to, Kind::Cookie).with(Tail::Value(Close::Cookie)));
    Ok(hit.map(|hit| Hit { then, ..hit }))
}
