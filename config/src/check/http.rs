//! `tools[].http`: where a request goes, and which of its places a model's arguments may fill.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::template::{Bit, bits, template};
use crate::address::{HostPort, Origin, Scheme};
use crate::group::Group;
use crate::place::{Faults, Place};
use crate::raw::{self, At, advice};
use crate::schema::Schema;
use crate::template::Template;
use crate::tool::{Body, HttpMethod, HttpWork};

pub(super) fn work(raw: &raw::Http, parameters: Option<&Schema>, group: Option<&Group>, faults: &mut Faults) -> Option<HttpWork> {
    let url = url(raw, parameters, group, faults);
    let more = query(raw, parameters, faults);
    let headers = headers(raw, parameters, faults);
    let method = *raw.method.value()?;
    let body = body(raw, method, faults);
    let select = select(raw, faults);
    let Url { origin, path, mut query } = url?;
    query.extend(more?);
    Some(HttpWork { method, origin, path, query, headers: headers?, body: body?, errors: *raw.errors.value()?, select: select? })
}

struct Url {
    origin: Origin,
    path: Template,
    query: Vec<(String, Template)>,
}

fn url(raw: &raw::Http, parameters: Option<&Schema>, group: Option<&Group>, faults: &mut Faults) -> Option<Url> {
    let At { value, place } = raw.url.get()?;
    let url = faults.take(place, bits(value).map_err(str::to_owned).and_then(split_url))?;
    for holes in std::iter::once(&url.path).chain(url.query.iter().map(|(_, value)| value)) {
        parameters_exist(holes, parameters, place, faults);
    }
    in_egress(&url.origin.address, group, place, faults);
    Some(url)
}

fn in_egress(address: &HostPort, group: Option<&Group>, place: &Place, faults: &mut Faults) {
    let Some(group) = group else { return };
    let declared: Vec<_> = group.egress.iter().map(|entry| entry.address.to_string()).collect();
    let name = &group.name;
    if declared.is_empty() {
        faults
            .add(place, format!("the group `{name}` has no `egress`, so that its tools reach nobody; this one needs {address}"));
    } else if !group.egress.iter().any(|entry| entry.address == *address) {
        faults.add(place, format!("{address} is not in the `egress` of the group `{name}`; allowed: {}", declared.join(", ")));
    }
}

fn parameters_exist(holes: &Template, parameters: Option<&Schema>, place: &Place, faults: &mut Faults) {
    let Some(schema) = parameters else { return };
    let properties = schema.value().get("properties").and_then(|properties| properties.as_object());
    let known: Vec<&str> = properties.into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
    for name in holes.parameters().filter(|name| !known.contains(name)) {
        faults.add(place, format!("`{{{name}}}` is no property of `parameters`; {}", advice(name, known.iter().copied())));
    }
}

fn split_url(bits: Vec<Bit>) -> Result<Url, String> {
    let (origin, rest) = split_origin(bits)?;
    let (path, query) = cut_query(rest);
    if path.iter().any(|bit| matches!(bit, Bit::Written(text) | Bit::Filled(text) if text.contains('#'))) {
        return Err("a URL of a tool has no fragment".to_owned());
    }
    let query = query
        .into_iter()
        .flat_map(|query| cut_all(query, '&'))
        .filter(|pair| !pair.is_empty())
        .map(pair)
        .collect::<Result<_, _>>()?;
    Ok(Url { origin, path: template(path.into_iter().map(encoded)), query })
}

const WHERE_TO: &str = "scheme, host and port hold no parameter: where a request goes is not the model's business";

/// Takes scheme, host and port off the front. The rest begins with a slash.
fn split_origin(bits: Vec<Bit>) -> Result<(Origin, Vec<Bit>), String> {
    let mut front = String::new();
    let mut bits = bits.into_iter();
    let mut rest = Vec::new();
    let mut ended = false;
    for bit in bits.by_ref() {
        let (text, wrap): (String, fn(String) -> Bit) = match bit {
            Bit::Written(text) => (text, Bit::Written),
            Bit::Filled(text) => (text, Bit::Filled),
            Bit::Parameter(_) => return Err(WHERE_TO.to_owned()),
        };
        let before = front.len();
        front.push_str(&text);
        let Some(authority) = front.find("://").map(|at| at + 3) else { continue };
        if let Some(end) = front[authority..].find(['/', '\\', '?', '#']).map(|at| at + authority) {
            // Everything before this piece is still the authority, so that the end lies within it.
            rest.push(wrap(text[end.saturating_sub(before)..].to_owned()));
            front.truncate(end);
            ended = true;
            break;
        }
    }
    let _ = ended;
    rest.extend(bits);
    if !matches!(rest.first(), Some(Bit::Written(text) | Bit::Filled(text)) if text.starts_with('/')) {
        rest.insert(0, Bit::Written("/".to_owned()));
    }
    Ok((origin(&front)?, rest))
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

/// Cuts at the first question mark. What was filled in is URL text up to there; behind it, it is a value.
fn cut_query(bits: Vec<Bit>) -> (Vec<Bit>, Option<Vec<Bit>>) {
    let at = bits.iter().position(|bit| matches!(bit, Bit::Written(text) | Bit::Filled(text) if text.contains('?')));
    let Some(at) = at else { return (bits, None) };
    let mut path = bits;
    let mut query = path.split_off(at + 1);
    if let Some(Bit::Written(text) | Bit::Filled(text)) = path.pop()
        && let Some((before, after)) = text.split_once('?')
    {
        path.push(Bit::Written(before.to_owned()));
        query.insert(0, Bit::Written(after.to_owned()));
    }
    (path, Some(query))
}

/// Cuts at each separator that is written.
fn cut_all(bits: Vec<Bit>, separator: char) -> Vec<Vec<Bit>> {
    let mut all = vec![Vec::new()];
    let mut push = |bit: Bit, next: bool| {
        if next {
            all.push(Vec::new());
        }
        if let Some(last) = all.last_mut().filter(|_| bit != Bit::Written(String::new())) {
            last.push(bit);
        }
    };
    for bit in bits {
        match bit {
            Bit::Written(text) => {
                text.split(separator).enumerate().for_each(|(at, part)| push(Bit::Written(part.to_owned()), at > 0))
            }
            other => push(other, false),
        }
    }
    all
}

/// A pair of the URL's query, decoded: it is encoded again when it is filled.
fn pair(bits: Vec<Bit>) -> Result<(String, Template), String> {
    let mut sides = cut_all(bits, '=').into_iter();
    let name = decoded(sides.next().unwrap_or_default())?;
    // Further equals signs belong to the value.
    let value = sides.reduce(|mut value, more| {
        value.push(Bit::Written("=".to_owned()));
        value.extend(more);
        value
    });
    let name = template(name);
    if name.parameters().next().is_some() {
        return Err("the name of a query pair holds no parameter".to_owned());
    }
    Ok((whole(name), template(decoded(value.unwrap_or_default())?)))
}

fn whole(template: Template) -> String {
    template
        .parts
        .into_iter()
        .map(|part| match part {
            crate::template::Part::Text(text) | crate::template::Part::Parameter(text) => text,
        })
        .collect()
}

fn decoded(bits: Vec<Bit>) -> Result<Vec<Bit>, String> {
    let decode = |bit| match bit {
        Bit::Written(text) if text.contains('#') => Err("a URL of a tool has no fragment".to_owned()),
        Bit::Written(text) => percent_decode_str(&text.replace('+', " "))
            .decode_utf8()
            .map(|text| Bit::Written(text.into_owned()))
            .map_err(|_| "the query is not UTF-8".to_owned()),
        other => Ok(other),
    };
    bits.into_iter().map(decode).collect()
}

fn query(raw: &raw::Http, parameters: Option<&Schema>, faults: &mut Faults) -> Option<Vec<(String, Template)>> {
    let read = |(name, value): &(At<String>, At<raw::shape::Scalar>)| {
        let holes = template(faults.take(&value.place, bits(&value.value.0))?);
        parameters_exist(&holes, parameters, &value.place, faults);
        Some((name.value.clone(), holes))
    };
    raw.query.value()?.0.iter().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn headers(raw: &raw::Http, parameters: Option<&Schema>, faults: &mut Faults) -> Option<Vec<(String, Template)>> {
    let named = &raw.headers.value()?.0;
    let lower = named.iter().map(|(name, _)| (name.value.to_ascii_lowercase(), &name.place));
    super::unique(lower, "two headers of one name", faults);
    let read = |(name, value): &(At<String>, At<raw::shape::Scalar>)| {
        let legal = faults.take(&name.place, header_name(&name.value));
        let holes = template(faults.take(&value.place, bits(&value.value.0))?);
        parameters_exist(&holes, parameters, &value.place, faults);
        if holes.parts.iter().any(|part| matches!(part, crate::template::Part::Text(text) if text.chars().any(is_illegal))) {
            faults.add(&value.place, "a header's value holds no line break and no other control character");
        }
        Some((legal?, holes))
    };
    named.iter().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn is_illegal(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// Headers that belong to the connection.
const NOT_HEADERS: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

fn header_name(written: &str) -> Result<String, String> {
    let name = written.to_ascii_lowercase();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err("this is no header name; allowed: letters, digits, `-`, `_` and the like".to_owned());
    }
    if NOT_HEADERS.contains(&name.as_str()) || name.starts_with("x-toolgate-") {
        return Err(format!("the gateway sets this header itself; never allowed here: {}, x-toolgate-*", NOT_HEADERS.join(", ")));
    }
    Ok(name)
}

fn body(raw: &raw::Http, method: HttpMethod, faults: &mut Faults) -> Option<Body> {
    let written = raw.body.optional()?;
    match (method, written) {
        (HttpMethod::Get | HttpMethod::Head, Some(At { value: Body::Json, place })) => {
            faults.add(place, format!("{} has no body; allowed: none", method.as_str()));
            None
        }
        (_, Some(at)) => Some(at.value),
        (HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch, None) => Some(Body::Json),
        (HttpMethod::Get | HttpMethod::Head | HttpMethod::Delete, None) => Some(Body::None),
    }
}

fn select(raw: &raw::Http, faults: &mut Faults) -> Option<Option<String>> {
    let Some(At { value, place }) = raw.select.optional()? else { return Some(None) };
    let pointer = value.whole();
    let tilde = |rest: &str| rest.starts_with(['0', '1']);
    if !(pointer.is_empty() || pointer.starts_with('/')) || !pointer.split('~').skip(1).all(tilde) {
        faults.add(
            place,
            format!(
                "`{}` is no JSON pointer; allowed: `/data`, `/items/0` (`~` is written `~0`, a slash in a name `~1`)",
                value.written
            ),
        );
        return None;
    }
    Some(Some(pointer.into_owned()))
}
