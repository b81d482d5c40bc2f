//! A URL that a model wrote. It is taken apart once, here, and what was taken apart is what is sent: nobody reads the text a second time, so
//! nobody can read it differently. Where readers of URLs are known to disagree, it is refused.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use toolgate_config::address::{BaseUrl, HostPort, Origin, Scheme};

use super::{Addresses, EgressRefusal, Permit, Scope, addresses};

/// The longest text that is looked at, in bytes.
const LONGEST: usize = 16 * 1024;

/// What may not stand in a path or a query as it is. A percent sign is left alone: it may encode something already.
const TARGET: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}').add(b'^').add(b'|').add(b'\\');

/// A URL that may be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    origin: Origin,
    path: String,
    addresses: Addresses,
}

impl Target {
    /// The proof.
    pub const fn permit(&self) -> Permit<'_> {
        Permit { origin: &self.origin, addresses: self.addresses }
    }

    /// Path and query, ASCII, starting with a slash. A fragment is nobody's business but the reader's.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Whether a URL that a model chose is in `scope`. Of one's own sites the first is meant by a text that starts with one slash and not two.
///
/// # Errors
/// The reason, for the log and the metric; the model reads a generic text.
pub fn judge_url(scope: Scope<'_>, text: &str) -> Result<Target, EgressRefusal> {
    if matches!(scope, Scope::None) {
        return Err(EgressRefusal::NoEgress);
    }
    // Some readers drop these, some end at them, some take a backslash for a slash.
    let is_foul = |c: char| c.is_control() || c.is_whitespace() || c == '\\' || c == '\u{feff}' || c == '\u{fffd}';
    if text.len() > LONGEST || text.contains(is_foul) {
        return Err(EgressRefusal::BadUrl);
    }
    match (scope, text.strip_prefix('/')) {
        (Scope::OwnSite([first, ..]), Some(rest)) if !rest.starts_with('/') => Ok(below(first, text)),
        _ => absolute(scope, text),
    }
}

/// A path on a site, below whatever path the site has.
fn below(site: &BaseUrl, path: &str) -> Target {
    // Sites are the operator's own words, but what is asked for there is not.
    let addresses = if super::is_literal(&site.origin.address.host) { Addresses::Any } else { Addresses::Public };
    Target { origin: site.origin.clone(), path: target(&format!("{}{path}", site.path)), addresses }
}

fn absolute(scope: Scope<'_>, text: &str) -> Result<Target, EgressRefusal> {
    let (scheme, rest) = text.split_once(':').ok_or(EgressRefusal::BadUrl)?;
    if !is_scheme(scheme) {
        return Err(EgressRefusal::BadUrl);
    }
    let scheme = Scheme::from_word(scheme).ok_or(EgressRefusal::Scheme)?;
    let rest = rest.strip_prefix("//").ok_or(EgressRefusal::BadUrl)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let address = host_and_port(authority, scheme)?;
    let addresses = addresses(scope, &address, Addresses::Public)?;
    Ok(Target { origin: Origin { scheme, address }, path: target(path), addresses })
}

fn is_scheme(word: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.bytes().all(legal)
}

fn host_and_port(authority: &str, scheme: Scheme) -> Result<HostPort, EgressRefusal> {
    if authority.contains('@') {
        return Err(EgressRefusal::Userinfo);
    }
    let (host, port) = match (authority.starts_with('['), authority.rfind(']')) {
        (true, Some(end)) => authority.split_at(end + 1),
        (true, None) => return Err(EgressRefusal::BadHost),
        (false, _) => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    // An encoded host is decoded by some readers only, and what follows a percent sign in an IPv6 address names a link of this machine.
    if host.is_empty() || host.contains(['%', '*']) || host.contains("..") {
        return Err(EgressRefusal::BadHost);
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => scheme.default_port(),
        None => return Err(EgressRefusal::BadHost),
        Some("") => scheme.default_port(),
        Some(digits) => self::port(digits)?,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    HostPort::parse(&format!("{host}:{port}"), None).map_err(|_| EgressRefusal::BadHost)
}

/// A port as everybody reads it: no sign, no zero in front.
fn port(digits: &str) -> Result<u16, EgressRefusal> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain).ok_or(EgressRefusal::BadPort)
}

/// Path and query as they are sent.
fn target(text: &str) -> String {
    let text = text.split('#').next().unwrap_or_default();
    let slash = if text.starts_with('/') { "" } else { "/" };
    format!("{slash}{}", utf8_percent_encode(text, TARGET))
}

#[cfg(test)]
mod tests;
