//! Addresses of the Internet. Those that are nobody's (loopback, unspecified, masks of nets) stay, and so do versions.

use crate::redact::hit::Hit;
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View, digit, hex};

/// A version 4 address whose first digit stands at `start`.
pub(in crate::redact) fn four(view: &View<'_>, start: usize) -> Found<Option<Hit>> {
    if matches!(view.left(start, 2), [before, b'.'] if before.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let Some((end, octets)) = octets(view, start)? else { return Ok(None) };
    let goes_on = view.word_goes_on(end)? || view.is_decimal(end)?;
    let nobodys = matches!(octets, [127, ..] | [0, 0, 0, 0] | [255, ..]);
    Ok((!goes_on && !nobodys && !is_version(view, start)).then(|| Hit::new(start, end, Kind::Ip)))
}

fn octets(view: &View<'_>, start: usize) -> Found<Option<(usize, [u8; 4])>> {
    let (mut octets, mut place) = ([0; 4], start);
    for (at, octet) in octets.iter_mut().enumerate() {
        if at > 0 {
            if view.at(place)? != Some(b'.') {
                return Ok(None);
            }
            place += 1;
        }
        let end = view.run(place, 4, digit)?;
        let text = view.slice(place, end);
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u8>().ok());
        match number {
            Some(number) if text.len() == 1 || !text.starts_with(b"0") => *octet = number,
            _ => return Ok(None),
        }
        place = end;
    }
    Ok(Some((place, octets)))
}

/// Whether what stands before says that four numbers are a version: `v`, `version: "`, `Chrome/`, `==`, `name-`.
fn is_version(view: &View<'_>, start: usize) -> bool {
    let left = view.left(start, 32);
    let sign = left
        .iter()
        .rposition(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'\n' | b'.' | b','))
        .map_or(0, |last| last + 1);
    let (before, signs) = left.split_at_checked(sign).unwrap_or_default();
    let word = before.rsplit(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    let joined = !before.is_empty() && (signs == b"/" || signs == b"-" || signs == b"_") && !word.eq_ignore_ascii_case(b"ip");
    view.is_of_version()
        || joined
        || signs.ends_with(b"==")
        || signs.ends_with(b"~=")
        || signs.ends_with(b">=")
        || signs.ends_with(b"<=")
        || signs.ends_with(b"^")
        || VERSIONS.iter().any(|version| word.eq_ignore_ascii_case(version))
}

const VERSIONS: [&[u8]; 14] = [
    b"v",
    b"ver",
    b"version",
    b"versions",
    b"release",
    b"build",
    b"rev",
    b"revision",
    b"section",
    b"chapter",
    b"clause",
    b"oid",
    b"firmware",
    b"driver",
];

/// A version 6 address, one of whose colons stands at `colon`, the first one.
pub(in crate::redact) fn six(view: &View<'_>, colon: usize) -> Found<Option<Hit>> {
    let start = may_begin(view, colon);
    if view.before(start).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'.' | b'_' | b'-'))
        || !view.at(colon + 1)?.is_some_and(|byte| hex(byte) || byte == b':')
    {
        return Ok(None);
    }
    let (mut place, mut groups, mut gap, mut wide) = (start, 0, false, false);
    loop {
        let end = view.run(place, 5, hex)?;
        let length = end - place;
        if length > 4 {
            return Ok(None);
        }
        let embedded = if groups > 0 && length > 0 && view.at(end)? == Some(b'.') { octets(view, place)? } else { None };
        if let Some((end, _)) = embedded {
            (place, groups) = (end, groups + 2);
            break;
        }
        (groups, wide) = (groups + usize::from(length > 0), wide || length > 2);
        place = end;
        if view.at(place)? != Some(b':') || groups > 7 {
            break;
        }
        if view.at(place + 1)? == Some(b':') {
            if gap {
                return Ok(None);
            }
            (gap, place) = (true, place + 2);
            if !view.at(place)?.is_some_and(hex) {
                break;
            }
        } else if view.at(place + 1)?.is_some_and(hex) {
            place += 1;
        } else {
            break;
        }
    }
    let colon = view.at(place)? == Some(b':') && (view.word_goes_on(place + 1)? || view.at(place + 1)? == Some(b':'));
    let goes_on = colon || view.word_goes_on(place)?;
    let text = view.slice(start, place);
    let is = if gap { (1..8).contains(&groups) && is_known(text, groups) } else { groups == 8 && wide };
    Ok((!goes_on && is).then(|| Hit::new(start, place, Kind::Ip)))
}

/// Where a version 6 address would begin whose first group ends at a place.
pub(in crate::redact) fn may_begin(view: &View<'_>, place: usize) -> usize {
    let start = view.run_back(place, 5, hex);
    if place - start > 4 { place } else { start }
}

/// What has a gap looks like paths of names in programs as well: `a::b`.
fn is_known(text: &[u8], groups: usize) -> bool {
    let first = text.split(|&byte| byte == b':').next().unwrap_or_default().to_ascii_lowercase();
    let global = first.len() == 4 && matches!(first.first(), Some(b'2' | b'3'));
    let local = first.len() == 4
        && (first.starts_with(b"fe") || first.starts_with(b"fc") || first.starts_with(b"fd") || first.starts_with(b"ff"));
    let mapped = text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"::ffff:")) || text.starts_with(b"64:ff9b::");
    let digits = text.iter().any(u8::is_ascii_digit);
    digits && (global || (local && groups >= 2) || mapped || groups >= 4)
}
