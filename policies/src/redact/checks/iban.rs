//! International bank account numbers: a country, its length, and the checksum of ISO 7064 (mod 97).

use crate::redact::hit::Hit;
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View};

/// Countries and the length of their numbers.
#[rustfmt::skip]
const COUNTRIES: &[(&[u8; 2], usize)] = &[
    (b"AD", 24), (b"AE", 23), (b"AL", 28), (b"AT", 20), (b"AZ", 28), (b"BA", 20), (b"BE", 16), (b"BG", 22), (b"BH", 22),
    (b"BI", 27), (b"BR", 29), (b"BY", 28), (b"CH", 21), (b"CR", 22), (b"CY", 28), (b"CZ", 24), (b"DE", 22), (b"DJ", 27),
    (b"DK", 18), (b"DO", 28), (b"EE", 20), (b"EG", 29), (b"ES", 24), (b"FI", 18), (b"FK", 18), (b"FO", 18), (b"FR", 27),
    (b"GB", 22), (b"GE", 22), (b"GI", 23), (b"GL", 18), (b"GR", 27), (b"GT", 28), (b"HN", 28), (b"HR", 21), (b"HU", 28),
    (b"IE", 22), (b"IL", 23), (b"IQ", 23), (b"IS", 26), (b"IT", 27), (b"JO", 30), (b"KW", 30), (b"KZ", 20), (b"LB", 28),
    (b"LC", 32), (b"LI", 21), (b"LT", 20), (b"LU", 20), (b"LV", 21), (b"LY", 25), (b"MC", 27), (b"MD", 24), (b"ME", 22),
    (b"MK", 19), (b"MN", 20), (b"MR", 27), (b"MT", 31), (b"MU", 30), (b"NI", 28), (b"NL", 18), (b"NO", 15), (b"OM", 23),
    (b"PK", 24), (b"PL", 28), (b"PS", 29), (b"PT", 25), (b"QA", 29), (b"RO", 24), (b"RS", 22), (b"RU", 33), (b"SA", 24),
    (b"SC", 31), (b"SD", 18), (b"SE", 24), (b"SI", 19), (b"SK", 24), (b"SM", 27), (b"SO", 23), (b"ST", 25), (b"SV", 28),
    (b"TL", 23), (b"TN", 24), (b"TR", 26), (b"UA", 29), (b"VA", 22), (b"VG", 24), (b"XK", 20), (b"YE", 30),
];

/// A number whose first digit, behind the country, stands at `digit`.
pub(in crate::redact) fn find(view: &View<'_>, digit: usize) -> Found<Option<Hit>> {
    let Some(start) = begins(view, digit) else { return Ok(None) };
    let country = view.slice(start, digit).to_ascii_uppercase();
    let Some(&(_, length)) = COUNTRIES.iter().find(|(code, _)| code.as_slice() == country) else { return Ok(None) };
    let small = view.slice(start, start + 1).first().is_some_and(u8::is_ascii_lowercase);
    let (mut sum, mut count, mut place) = (Mod97::default(), 0, digit);
    while count < length - 2 {
        let byte = match view.at(place)? {
            Some(b' ' | b'-') if count % 4 == 2 => {
                place += 1;
                view.at(place)?
            }
            byte => byte,
        };
        match byte {
            Some(byte @ b'0'..=b'9') => sum.add(byte, count),
            Some(byte) if count >= 2 && byte.is_ascii_alphabetic() && byte.is_ascii_lowercase() == small => sum.add(byte, count),
            _ => return Ok(None),
        }
        (count, place) = (count + 1, place + 1);
    }
    let ends = !view.word_goes_on(place)?;
    Ok((ends && sum.is_right(&country)).then(|| Hit::new(start, place, Kind::Iban)))
}

/// Where a number would begin whose two letters end at a place.
pub(in crate::redact) fn begins(view: &View<'_>, place: usize) -> Option<usize> {
    let letters = view.run_back(place, 3, |byte| byte.is_ascii_alphabetic());
    (place - letters == 2 && view.word_begins(letters)).then_some(letters)
}

/// Where a number would begin of which at most two letters stand before a place; the place itself, where there is none.
pub(in crate::redact) fn may_begin(view: &View<'_>, place: usize) -> usize {
    let letters = view.run_back(place, 3, |byte| byte.is_ascii_alphabetic());
    if place - letters <= 2 && view.word_begins(letters) { letters } else { place }
}

/// The rest by 97, of what is behind the check digits first.
#[derive(Default)]
struct Mod97 {
    account: u32,
    check: u32,
}

impl Mod97 {
    fn add(&mut self, byte: u8, count: usize) {
        let rest = if count < 2 { &mut self.check } else { &mut self.account };
        *rest = appended(*rest, byte);
    }

    fn is_right(&self, country: &[u8]) -> bool {
        let rest = country.iter().fold(self.account, |rest, &byte| appended(rest, byte));
        (rest * 100 + self.check) % 97 == 1
    }
}

fn appended(rest: u32, byte: u8) -> u32 {
    match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte.to_ascii_uppercase() - b'A') + 10) % 97,
    }
}
