//! Logins before the address of a server, in the form of Go's drivers: `user:password@tcp(host:port)/database`.

use crate::redact::hit::Hit;
use crate::redact::kind::Kind;
use crate::redact::view::{Found, View};

/// The longest password, in bytes.
pub(in crate::redact) const PASSWORD: usize = 64;

/// A password before the `@` at `at`.
pub(in crate::redact) fn find(view: &View<'_>, at: usize) -> Found<Option<Hit>> {
    let from = begins(view, at);
    let masked = view.slice(from, at).is_empty() || view.before(at).is_none();
    Ok((!masked).then(|| Hit::new(from, at, Kind::Password)))
}

/// `user/password@` as Oracle's tools have it, behind what says that it is one.
pub(in crate::redact) fn oracle(view: &View<'_>, end: usize) -> Found<Option<Hit>> {
    let slash = view.run(end, 32, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#'))?;
    if slash == end || view.at(slash)? != Some(b'/') {
        return Ok(None);
    }
    let to = view.run(slash + 1, PASSWORD, |byte| in_login(byte) && byte != b'@' && byte != b'[')?;
    let is = to > slash + 1 && view.at(to)? == Some(b'@');
    Ok(is.then(|| Hit::new(slash + 1, to, Kind::Password)))
}

/// What a login is made of.
pub(in crate::redact) fn in_login(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>') || !byte.is_ascii()
}

/// Where the password would begin of a login that ends at a place; the place itself, where there is none.
pub(in crate::redact) fn begins(view: &View<'_>, place: usize) -> usize {
    let from = view.run_back(place, PASSWORD + 1, in_login);
    let login = view.slice(from, place);
    // The last colon: which one that is changes only when another comes.
    match login.iter().rposition(|&byte| byte == b':') {
        Some(colon)
            if colon > 0
                && !login.get(colon + 1..).is_some_and(|rest| rest.starts_with(b"/"))
                && login.get(colon - 1).is_some_and(u8::is_ascii_alphanumeric) =>
        {
            from + colon + 1
        }
        _ => place,
    }
}
