//! JSON Web Tokens.

use crate::redact::hit::{Hit, Tail};
use crate::redact::kind::Kind;
use crate::redact::view::{Found, LOOK, View, dotted, token};

/// How many bytes of a header tell what it is, where its end is not in sight: enough for `{"alg":`.
const OPENING: usize = 12;

/// A token whose `eyJ` ends at `end`.
pub(in crate::redact) fn find(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    if !view.is(start, b"eyJ") || !view.word_begins(start) || view.before(start) == Some(b'/') {
        return Ok(None);
    }
    let until = start + LOOK;
    let header = view.run(end, LOOK - 3, token)?;
    let jwt = || Hit::new(start, header, Kind::Jwt).with(Tail::Run(dotted));
    if header >= until {
        return Ok(says_algorithm(view.slice(start, header)).then(jwt));
    }
    if header == end || view.at(header)? != Some(b'.') {
        return Ok(None);
    }
    let payload = view.run(header + 1, until.saturating_sub(header + 1), token)?;
    let is = payload >= until
        || (payload > header + 1 && view.at(payload)? == Some(b'.'))
        || says_algorithm(view.slice(start, header));
    Ok(is.then(jwt))
}

/// Whether the header's first member is one that such headers begin with: base64 of `{"alg`, `{"typ`, `{"kid` and the like.
fn says_algorithm(header: &[u8]) -> bool {
    header.len() >= OPENING && OPENINGS.iter().any(|opening| header.starts_with(opening))
}

const OPENINGS: [&[u8]; 8] =
    [b"eyJhbGci", b"eyJ0eXAi", b"eyJraWQi", b"eyJlbmMi", b"eyJ4NXQi", b"eyJ4NWMi", b"eyJqa3Ui", b"eyJjdHki"];
