//! The URL of a tool, taken apart: origin, path, query pairs. What was filled in from outside is URL text up to the query; in a query that
//! is written in the file it is a value, so that a credential with an ampersand in it stays one.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::template::{Bit, template};
use crate::address::{HostPort, Origin, Scheme};
use crate::template::Template;

/// A URL with holes, none of them in the origin.
pub(super) struct Url {
    pub(super) origin: Origin,
    /// Percent-encoded but for its holes; starts with a slash.
    pub(super) path: Template,
    /// Decoded: they are encoded again when they are filled.
    pub(super) query: Vec<(String, Template)>,
}

/// Takes a URL apart.
///
/// # Errors
/// What is wrong with it, without any of its text.
pub(super) fn split(bits: Vec<Bit>) -> Result<Url, String> {
    let (origin, rest) = split_origin(bits)?;
    let (path, query) = cut_query(rest);
    if path.iter().any(|bit| matches!(bit, Bit::Written(text) | Bit::Filled(text) if text.contains('#'))) {
        return Err(FRAGMENT.to_owned());
    }
    let pairs = cut_all(query, '&').into_iter().filter(|pair| !pair.is_empty());
    Ok(Url { origin, path: template(path.into_iter().map(encoded)), query: pairs.map(pair).collect::<Result<_, _>>()? })
}

const FRAGMENT: &str = "the URL of a tool has no fragment";

const WHERE_TO: &str = "scheme, host and port hold no parameter: where a request goes is not the model's business";

/// Takes a URL without holes apart: its origin, and the rest as it is written.
///
/// # Errors
/// What is wrong with it, without any of its text.
pub(super) fn whole(text: &str) -> Result<(Origin, &str), String> {
    let (front, rest) = text.split_at(end_of_origin(text).unwrap_or(text.len()));
    if rest.contains('#') {
        return Err(FRAGMENT.to_owned());
    }
    if rest.contains(|c: char| !c.is_ascii_graphic()) {
        return Err("its path holds characters that must be percent-encoded".to_owned());
    }
    Ok((origin(front)?, rest))
}

/// Takes scheme, host and port off the front. The rest begins with a slash.
fn split_origin(bits: Vec<Bit>) -> Result<(Origin, Vec<Bit>), String> {
    let mut front = String::new();
    let mut bits = bits.into_iter();
    while let Some(bit) = bits.next() {
        let (text, again): (_, fn(String) -> Bit) = match bit {
            Bit::Written(text) => (text, Bit::Written),
            Bit::Filled(text) => (text, Bit::Filled),
            Bit::Parameter(_) => return Err(WHERE_TO.to_owned()),
        };
        front.push_str(&text);
        if let Some(end) = end_of_origin(&front) {
            let rest = front.split_off(end);
            let slash = (!rest.starts_with('/')).then(|| Bit::Written("/".to_owned()));
            return Ok((origin(&front)?, slash.into_iter().chain([again(rest)]).chain(bits).collect()));
        }
    }
    Ok((origin(&front)?, vec![Bit::Written("/".to_owned())]))
}

fn end_of_origin(front: &str) -> Option<usize> {
    let authority = front.find("://")? + 3;
    front[authority..].find(['/', '?', '#']).map(|at| authority + at)
}

fn origin(front: &str) -> Result<Origin, String> {
    let (scheme, authority) = front.split_once("://").ok_or("the URL has no scheme; allowed: http://, https://")?;
    let scheme = Scheme::from_word(scheme).ok_or("the scheme is not allowed; allowed: http, https")?;
    if authority.contains('@') {
        return Err("the URL carries a user name or a password; a credential goes into `headers`".to_owned());
    }
    let address = HostPort::parse(authority, Some(scheme.default_port())).map_err(|why| format!("this is no address: {why}"))?;
    Ok(Origin { scheme, address })
}

/// What a path may not hold as it is. A percent sign is left alone: the operator may have encoded something.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}').add(b'^').add(b'|').add(b'\\');

fn encoded(bit: Bit) -> Bit {
    match bit {
        Bit::Written(text) | Bit::Filled(text) => Bit::Written(utf8_percent_encode(&text, PATH).to_string()),
        hole @ Bit::Parameter(_) => hole,
    }
}

/// Cuts at the first question mark.
fn cut_query(mut path: Vec<Bit>) -> (Vec<Bit>, Vec<Bit>) {
    let at = path.iter().position(|bit| matches!(bit, Bit::Written(text) | Bit::Filled(text) if text.contains('?')));
    let Some(at) = at else { return (path, Vec::new()) };
    let mut query = path.split_off(at + 1);
    if let Some(Bit::Written(text) | Bit::Filled(text)) = path.pop()
        && let Some((before, after)) = text.split_once('?')
    {
        path.push(Bit::Written(before.to_owned()));
        query.insert(0, Bit::Written(after.to_owned()));
    }
    (path, query)
}

/// Cuts at each separator that is written.
fn cut_all(bits: Vec<Bit>, separator: char) -> Vec<Vec<Bit>> {
    let mut all = Vec::new();
    let mut last = Vec::new();
    for bit in bits {
        let Bit::Written(text) = bit else {
            last.push(bit);
            continue;
        };
        for (at, part) in text.split(separator).enumerate() {
            if at > 0 {
                all.push(std::mem::take(&mut last));
            }
            if !part.is_empty() {
                last.push(Bit::Written(part.to_owned()));
            }
        }
    }
    all.push(last);
    all
}

/// A pair of the query. Equals signs after the first belong to the value.
fn pair(bits: Vec<Bit>) -> Result<(String, Template), String> {
    let mut sides = cut_all(bits, '=').into_iter();
    let name = decoded(sides.next().unwrap_or_default())?;
    let value = sides.reduce(|value, more| value.into_iter().chain([Bit::Written("=".to_owned())]).chain(more).collect());
    let name = name.into_iter().map(|bit| match bit {
        Bit::Written(text) | Bit::Filled(text) => Ok(text),
        Bit::Parameter(_) => Err("the name of a query pair holds no parameter"),
    });
    Ok((name.collect::<Result<_, _>>()?, template(decoded(value.unwrap_or_default())?)))
}

fn decoded(bits: Vec<Bit>) -> Result<Vec<Bit>, String> {
    let decode = |bit| match bit {
        Bit::Written(text) if text.contains('#') => Err(FRAGMENT.to_owned()),
        Bit::Written(text) => percent_decode_str(&text.replace('+', " "))
            .decode_utf8()
            .map(|text| Bit::Written(text.into_owned()))
            .map_err(|_| "the query is not UTF-8".to_owned()),
        other => Ok(other),
    };
    bits.into_iter().map(decode).collect()
}
