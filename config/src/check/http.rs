//! `tools[].http`: where a request goes, and which of its places a model's arguments may fill.

use super::template::{bits, template};
use super::url::{self, Url};
use crate::address::HostPort;
use crate::group::Group;
use crate::place::{Faults, Place};
use crate::raw::{self, At, advice};
use crate::schema::Schema;
use crate::template::{Part, Template};
use crate::tool::{Body, HttpMethod, HttpWork};

/// Whom a tool may reach: the group, and its egress as it is written, for a fault to list.
pub(super) struct Reach<'a> {
    pub(super) group: &'a Group,
    pub(super) written: Vec<&'a str>,
}

pub(super) fn work(
    raw: &raw::Http,
    parameters: Option<&Schema>,
    reach: Option<&Reach<'_>>,
    faults: &mut Faults,
) -> Option<HttpWork> {
    let url = url(raw, parameters, reach, faults);
    let more = query(raw, parameters, faults);
    let headers = headers(raw, parameters, faults);
    let select = select(raw, faults);
    let method = *raw.method.value()?;
    let body = body(raw, method, faults);
    let Url { origin, path, mut query } = url?;
    query.extend(more?);
    Some(HttpWork {
        method,
        origin,
        path,
        query,
        headers: headers?,
        lists: Vec::new(),
        body: body?,
        body_argument: None,
        errors: *raw.errors.value()?,
        select: select?,
    })
}

fn url(raw: &raw::Http, parameters: Option<&Schema>, reach: Option<&Reach<'_>>, faults: &mut Faults) -> Option<Url> {
    let At { value, place } = raw.url.get()?;
    let url = faults.take(place, bits(value).map_err(str::to_owned).and_then(url::split))?;
    for holes in std::iter::once(&url.path).chain(url.query.iter().map(|(_, value)| value)) {
        parameters_exist(holes, parameters, place, faults);
    }
    let shown = shown(value, &url.origin.address);
    if let Some(why) = reach.and_then(|reach| out_of_reach(&url.origin.address, &shown, reach)) {
        faults.add(place, why);
    }
    Some(url)
}

/// An address as a fault names it; one from the environment is not printed.
pub(super) fn shown(written: &raw::Text, address: &HostPort) -> String {
    if written.is_literal() { address.to_string() } else { "the address".to_owned() }
}

pub(super) fn out_of_reach(address: &HostPort, shown: &str, Reach { group, written }: &Reach<'_>) -> Option<String> {
    let name = &group.name;
    if group.egress.is_empty() {
        return Some(format!("the group `{name}` has no `egress`, so that its tools reach nobody; this one needs {shown}"));
    }
    let declared = group.egress.iter().any(|entry| entry.address == *address);
    (!declared).then(|| format!("{shown} is not in the `egress` of the group `{name}`; allowed: {}", written.join(", ")))
}

fn parameters_exist(holes: &Template, parameters: Option<&Schema>, place: &Place, faults: &mut Faults) {
    let Some(schema) = parameters else { return };
    let properties = schema.value().get("properties").and_then(|properties| properties.as_object());
    let known: Vec<&str> = properties.into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
    for name in holes.parameters().filter(|name| !known.contains(name)) {
        faults.add(place, format!("`{{{name}}}` is no property of `parameters`; {}", advice(name, known.iter().copied())));
    }
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
    super::unique(lower, |name| format!("two headers of one name, `{name}`"), faults);
    let read = |(name, value): &(At<String>, At<raw::shape::Scalar>)| {
        let legal = faults.take(&name.place, header_name(&name.value));
        let holes = template(faults.take(&value.place, bits(&value.value.0))?);
        parameters_exist(&holes, parameters, &value.place, faults);
        if holes.parts.iter().any(|part| matches!(part, Part::Text(text) if text.chars().any(is_illegal))) {
            faults.add(&value.place, "a header's value holds no line break and no other control character");
        }
        Some((legal?, holes))
    };
    named.iter().map(read).collect::<Vec<_>>().into_iter().collect()
}

pub(super) fn is_illegal(c: char) -> bool {
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

pub(super) fn header_name(written: &str) -> Result<String, String> {
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
