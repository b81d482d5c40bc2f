//! From a template and arguments to a request. What a model sends is data: it fills one segment, one value, one header, and can become
//! nothing else.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::value::RawValue;
use toolgate_config::template::{Part, Template};
use toolgate_config::tool::{Body, HttpMethod, HttpWork, Lists};
use toolgate_policies::egress::Credentials;

use crate::arguments::{Arguments, as_text};
use crate::net::{Segments, headers};

/// All but the characters that are nothing but themselves anywhere in a URL.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What may not stand in a path as the operator wrote it. A percent sign is theirs.
const WRITTEN: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

/// The longest path and query, in bytes.
const LONGEST_TARGET: usize = 32 * 1024;

/// The longest header value, in bytes.
const LONGEST_HEADER: usize = 8 * 1024;

/// Why arguments do not make a request, for the model. What it sent is not repeated.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit<'w> {
    /// A part of the path is left out.
    Missing(&'w str),
    /// A segment of the path would be empty, or mean another one.
    Segment,
    /// Path and query are too long.
    Target,
    /// A value cannot stand in a header.
    Header(&'w str),
}

impl fmt::Display for Unfit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "`{name}` is missing"),
            Self::Segment => f.write_str("a value that becomes part of a path may not be empty, `.` or `..`"),
            Self::Target => f.write_str("the values are too long"),
            Self::Header(name) => write!(f, "a value for the header `{name}` may only be visible ASCII, and not too long"),
        }
    }
}

/// The request that a call means. `host` is set where it is sent.
pub(super) fn build<'w>(work: &'w HttpWork, arguments: &Arguments) -> Result<Request<Segments>, Unfit<'w>> {
    let mut target = path(&work.path, arguments)?;
    query(&mut target, work, arguments);
    if target.len() > LONGEST_TARGET {
        return Err(Unfit::Target);
    }
    let body = body(work, arguments);
    let mut request = Request::new(body.map_or_else(Segments::none, |json| Segments::from(Bytes::from(json))));
    *request.method_mut() = method(work.method);
    *request.uri_mut() = target.parse().map_err(|_| Unfit::Target)?;
    *request.headers_mut() = all_headers(work, arguments)?;
    Ok(request)
}

/// Whether what a model fills into the URL or a header holds a credential: in one value, in the values of one place together, or encoded once
/// more. What the operator wrote may hold one, and the body is where a login's tool takes it.
pub(super) fn leaks(work: &HttpWork, arguments: &Arguments, credentials: &Credentials) -> bool {
    let queried = work.query.iter().map(|(_, template)| template);
    let mut templates = [&work.path].into_iter().chain(queried).chain(work.headers.iter().map(|(_, template)| template));
    let is_one = |text: &str| credentials.are_in(text) || credentials.are_in(&percent_decode_str(text).decode_utf8_lossy());
    templates.any(|template| {
        let values: Vec<_> = template.parameters().filter_map(|name| text_of(arguments, name)).collect();
        values.iter().any(|value| is_one(value)) || values.len() > 1 && is_one(&values.concat())
    })
}

fn method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Head => Method::HEAD,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
    }
}

/// The path. Each segment is looked at when it is complete, so that two values next to each other cannot make one that neither is alone.
fn path<'w>(template: &'w Template, arguments: &Arguments) -> Result<String, Unfit<'w>> {
    let mut path = String::new();
    let mut filled = false;
    for part in &template.parts {
        match part {
            Part::Parameter(name) => {
                let value = text_of(arguments, name).ok_or(Unfit::Missing(name))?;
                path.extend(utf8_percent_encode(&value, VALUE));
                filled = true;
            }
            Part::Text(text) => {
                for (at, piece) in text.split('/').enumerate() {
                    if at > 0 {
                        check_segment(&path, filled)?;
                        filled = false;
                        path.push('/');
                    }
                    path.extend(utf8_percent_encode(piece, WRITTEN));
                }
            }
        }
    }
    check_segment(&path, filled)?;
    Ok(path)
}

/// Many readers of a path take an encoded dot for a dot, so a dot segment cannot be sent as data, in whatever spelling.
fn check_segment<'w>(path: &str, filled: bool) -> Result<(), Unfit<'w>> {
    let last = path.rsplit('/').next().unwrap_or_default();
    let plain = last.replace("%2e", ".").replace("%2E", ".");
    if filled && matches!(plain.as_str(), "" | "." | "..") { Err(Unfit::Segment) } else { Ok(()) }
}

/// Appends the pairs that have all they need.
fn query(target: &mut String, work: &HttpWork, arguments: &Arguments) {
    let mut separator = '?';
    for (name, template) in &work.query {
        for value in values(template, work, arguments) {
            target.push(separator);
            target.extend(utf8_percent_encode(name, VALUE));
            target.push('=');
            target.extend(utf8_percent_encode(&value, VALUE));
            separator = '&';
        }
    }
}

/// What a pair's template gives: nothing where a value is left out, several where it is a list that is written so.
fn values(template: &Template, work: &HttpWork, arguments: &Arguments) -> Vec<String> {
    let list = match template.parts.as_slice() {
        [Part::Parameter(name)] => work.lists.iter().find(|(list, _)| list == name).map(|(_, lists)| (name, *lists)),
        _ => None,
    };
    let items = list.and_then(|(name, lists)| Some((items_of(arguments, name)?, lists)));
    match items {
        Some((items, Lists::Repeated)) => items,
        Some((items, Lists::Commas)) if !items.is_empty() => vec![items.join(",")],
        Some((_, Lists::Commas)) => Vec::new(),
        None => fill(template, arguments).into_iter().collect(),
    }
}

/// The values of a list; `None`: it is none.
fn items_of(arguments: &Arguments, name: &str) -> Option<Vec<String>> {
    let items: Vec<&RawValue> = serde_json::from_str(arguments.member(name)?.get()).ok()?;
    Some(items.into_iter().filter_map(as_text).map(Cow::into_owned).collect())
}

fn all_headers<'w>(work: &'w HttpWork, arguments: &Arguments) -> Result<HeaderMap, Unfit<'w>> {
    let mut headers = HeaderMap::with_capacity(work.headers.len() + 4);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.5"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("toolgate/", env!("CARGO_PKG_VERSION"))));
    if has_body(work, arguments) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, template) in &work.headers {
        let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unfit::Header(name))?;
        if let Some(value) = fill(template, arguments) {
            let plain = template.parameters().all(|parameter| is_one_line(arguments, parameter));
            headers.insert(field, plain.then(|| header_value(&value)).flatten().ok_or(Unfit::Header(name))?);
        }
    }
    // How the request is framed, and for whom it is, is never a header's business.
    headers::strip_hop_by_hop(&mut headers);
    headers.remove(HOST);
    headers.remove(CONTENT_LENGTH);
    let announced = matches!(work.method, HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch);
    if announced && !has_body(work, arguments) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    Ok(headers)
}

fn has_body(work: &HttpWork, arguments: &Arguments) -> bool {
    work.body == Body::Json && work.body_argument.as_ref().is_none_or(|whole| arguments.member(whole).is_some())
}

/// Whether what the model sends is nothing but visible ASCII. What the operator wrote beside it has been checked.
fn is_one_line(arguments: &Arguments, name: &str) -> bool {
    text_of(arguments, name).is_some_and(|value| value.bytes().all(|byte| matches!(byte, b' '..=b'~')))
}

/// A header's value. It may be a credential, so it never prints.
fn header_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok().filter(|value| value.len() <= LONGEST_HEADER)?;
    value.set_sensitive(true);
    Some(value)
}

/// The members that no template uses, digits as written.
fn body(work: &HttpWork, arguments: &Arguments) -> Option<String> {
    if work.body == Body::None {
        return None;
    }
    if let Some(whole) = &work.body_argument {
        return arguments.member(whole).map(|raw| raw.get().to_owned());
    }
    let queried = work.query.iter().map(|(_, template)| template);
    let templates = [&work.path].into_iter().chain(queried).chain(work.headers.iter().map(|(_, template)| template));
    let used: HashSet<&str> = templates.flat_map(Template::parameters).collect();
    let mut json = String::from("{");
    for (name, raw) in arguments.members().filter(|(name, _)| !used.contains(name)) {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&serde_json::Value::from(name).to_string());
        json.push(':');
        json.push_str(raw.get());
    }
    json.push('}');
    Some(json)
}

/// A template's text; `None` where a value is left out.
fn fill(template: &Template, arguments: &Arguments) -> Option<String> {
    let mut filled = String::new();
    for part in &template.parts {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Parameter(name) => filled.push_str(&text_of(arguments, name)?),
        }
    }
    Some(filled)
}

/// An argument as text; `None` where it is left out or `null`.
fn text_of<'a>(arguments: &'a Arguments, name: &str) -> Option<Cow<'a, str>> {
    arguments.member(name).and_then(as_text)
}

#[cfg(test)]
mod tests {
    use toolgate_config::address::{HostPort, Origin, Scheme};
    use toolgate_config::tool::Errors;

    use super::*;

    /// A template in the notation of the file.
    fn template(text: &str) -> Template {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap();
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Parameter(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Template { parts }
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, Template)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), template(value))).collect()
    }

    fn work(method: HttpMethod, path: &str, query: &[(&str, &str)], headers: &[(&str, &str)]) -> HttpWork {
        let address = HostPort { host: "t.internal".to_owned(), port: 80 };
        let with_body = matches!(method, HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch);
        HttpWork {
            lists: Vec::new(),
            body_argument: None,
            method,
            origin: Origin { scheme: Scheme::Http, address },
            path: template(path),
            query: pairs(query),
            headers: pairs(headers),
            body: if with_body { Body::Json } else { Body::None },
            errors: Errors::Generic,
            select: None,
        }
    }

    fn target(path: &str, query: &[(&str, &str)], arguments: &str) -> Result<String, String> {
        let work = work(HttpMethod::Get, path, query, &[]);
        let arguments = Arguments::parse(arguments).unwrap();
        build(&work, &arguments).map(|request| request.uri().to_string()).map_err(|unfit| unfit.to_string())
    }

    #[test]
    fn a_list_stands_in_the_query_as_its_api_has_it() {
        let table = [
            (r#"{"a":["x y",1.50,null,true],"b":["p","q,r"]}"#, "/l?a=x%20y&a=1.50&a=true&b=p%2Cq%2Cr"),
            (r#"{"a":[],"b":[]}"#, "/l"),
            (r#"{"a":"alone","b":null}"#, "/l?a=alone"),
        ];
        for (arguments, expected) in table {
            let mut work = work(HttpMethod::Get, "/l", &[("a", "{a}"), ("b", "{b}")], &[]);
            work.lists = vec![("a".to_owned(), Lists::Repeated), ("b".to_owned(), Lists::Commas)];
            let request = build(&work, &Arguments::parse(arguments).unwrap()).unwrap();
            assert_eq!(request.uri().to_string(), expected, "{arguments}");
        }
    }

    #[test]
    fn one_argument_may_be_the_whole_body() {
        for (arguments, body, kind) in [(r#"{"body":[ 1.10 ]}"#, Some("[ 1.10 ]"), Some("application/json")), ("{}", None, None)]
        {
            let mut work = work(HttpMethod::Put, "/", &[], &[]);
            work.body_argument = Some("body".to_owned());
            let arguments = Arguments::parse(arguments).unwrap();
            assert_eq!(super::body(&work, &arguments).as_deref(), body);
            let headers = all_headers(&work, &arguments).unwrap();
            assert_eq!(headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()), kind);
            assert_eq!(headers.contains_key(CONTENT_LENGTH), body.is_none(), "that there is no body is said");
        }
    }

    #[test]
    fn a_path_value_is_one_segment() {
        let table = [
            (r#"{"id":"A-1000"}"#, "/v1/orders/A-1000"),
            (r#"{"id":"a/b"}"#, "/v1/orders/a%2Fb"),
            (r#"{"id":"../admin"}"#, "/v1/orders/..%2Fadmin"),
            (r#"{"id":"a?b=c&d"}"#, "/v1/orders/a%3Fb%3Dc%26d"),
            (r#"{"id":"a#b"}"#, "/v1/orders/a%23b"),
            (r#"{"id":"100%"}"#, "/v1/orders/100%25"),
            (r#"{"id":"%2e%2e"}"#, "/v1/orders/%252e%252e"),
            (r#"{"id":"a;b\\c:d@e"}"#, "/v1/orders/a%3Bb%5Cc%3Ad%40e"),
            (r#"{"id":"x y\r\nHost: evil"}"#, "/v1/orders/x%20y%0D%0AHost%3A%20evil"),
            (r#"{"id":"\u0000"}"#, "/v1/orders/%00"),
            (r#"{"id":"日本"}"#, "/v1/orders/%E6%97%A5%E6%9C%AC"),
            (r#"{"id":"..."}"#, "/v1/orders/..."),
            (r#"{"id":12.50}"#, "/v1/orders/12.50"),
            (r#"{"id":true}"#, "/v1/orders/true"),
            (r#"{"id":{ "a": [1] }}"#, "/v1/orders/%7B%22a%22%3A%5B1%5D%7D"),
        ];
        for (arguments, expected) in table {
            assert_eq!(target("/v1/orders/{id}", &[], arguments).as_deref(), Ok(expected), "{arguments}");
        }
    }

    #[test]
    fn a_path_value_cannot_be_a_step_to_another_resource() {
        let dots = Unfit::Segment.to_string();
        let table = [
            ("/o/{id}", r#"{"id":"."}"#),
            ("/o/{id}", r#"{"id":".."}"#),
            ("/o/{id}/x", r#"{"id":".."}"#),
            ("/o/{id}", r#"{"id":""}"#),
            ("/o/{id}{rest}", r#"{"id":".","rest":"."}"#),
            ("/o/.{id}", r#"{"id":"."}"#),
            ("/o/%2e{id}", r#"{"id":"."}"#),
            ("/o/{id}.", r#"{"id":""}"#),
        ];
        for (path, arguments) in table {
            assert_eq!(target(path, &[], arguments), Err(dots.clone()), "{path} {arguments}");
        }
    }

    #[test]
    fn what_the_operator_wrote_stays() {
        let table = [
            ("/", "{}", "/"),
            ("/a//b/", "{}", "/a//b/"),
            ("/a%20b/{id}.json", r#"{"id":"x"}"#, "/a%20b/x.json"),
            ("/a b/ü", "{}", "/a%20b/%C3%BC"),
            ("/o-{id}/{id}", r#"{"id":"x"}"#, "/o-x/x"),
        ];
        for (path, arguments, expected) in table {
            assert_eq!(target(path, &[], arguments).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn a_path_value_that_is_left_out_is_named() {
        for arguments in ["{}", r#"{"id":null}"#] {
            assert_eq!(target("/o/{id}", &[], arguments), Err("`id` is missing".to_owned()), "{arguments}");
        }
    }

    #[test]
    fn a_query_value_is_one_value_and_none_is_no_pair() {
        let query = [("q", "{q}"), ("fixed", "a b"), ("x[]", "{from}-{to}")];
        let table = [
            ("{}", "/s?fixed=a%20b"),
            (r#"{"q":"a&b=c+d e#f"}"#, "/s?q=a%26b%3Dc%2Bd%20e%23f&fixed=a%20b"),
            (r#"{"q":""}"#, "/s?q=&fixed=a%20b"),
            (r#"{"q":null,"from":1}"#, "/s?fixed=a%20b"),
            (r#"{"from":1,"to":2.0}"#, "/s?fixed=a%20b&x%5B%5D=1-2.0"),
            (r#"{"q":["a", 1]}"#, "/s?q=%5B%22a%22%2C1%5D&fixed=a%20b"),
        ];
        for (arguments, expected) in table {
            assert_eq!(target("/s", &query, arguments).as_deref(), Ok(expected), "{arguments}");
        }
    }

    #[test]
    fn a_target_has_an_end() {
        let long = |bytes: usize| format!(r#"{{"id":"{}"}}"#, "x".repeat(bytes));
        assert!(target("/{id}", &[], &long(LONGEST_TARGET - 1)).is_ok());
        assert_eq!(target("/{id}", &[], &long(LONGEST_TARGET)), Err(Unfit::Target.to_string()));
    }

    #[test]
    fn a_header_value_cannot_leave_its_line() {
        let work = work(HttpMethod::Get, "/", &[], &[("x-note", "né: {note}"), ("authorization", "Bearer s3cret")]);
        let build = |arguments: &str| build(&work, &Arguments::parse(arguments).unwrap());
        let table = [
            (r#"{"note":"hello ~!"}"#, Some("né: hello ~!")),
            (r#"{"note":42}"#, Some("né: 42")),
            (r#"{"note":"a\r\nX-Admin: 1"}"#, None),
            (r#"{"note":"a\nb"}"#, None),
            (r#"{"note":"a\u0000b"}"#, None),
            (r#"{"note":"a\tb"}"#, None),
            (r#"{"note":"a\u007fb"}"#, None),
            (r#"{"note":"é"}"#, None),
        ];
        for (arguments, expected) in table {
            match (build(arguments), expected) {
                (Ok(request), Some(value)) => assert_eq!(request.headers()["x-note"].as_bytes(), value.as_bytes(), "{arguments}"),
                (Err(unfit), None) => assert_eq!(unfit, Unfit::Header("x-note"), "{arguments}"),
                (built, expected) => panic!("{arguments}: {built:?}, not {expected:?}"),
            }
        }
        let long = format!(r#"{{"note":"{}"}}"#, "x".repeat(LONGEST_HEADER));
        assert_eq!(build(&long).unwrap_err(), Unfit::Header("x-note"));
        let without = build("{}").unwrap();
        assert!(!without.headers().contains_key("x-note"));
        assert!(!format!("{without:?}").contains("s3cret"));
    }

    #[test]
    fn only_declared_headers_are_sent_beside_our_own() {
        let declared = [
            ("x-a", "1"),
            ("accept", "text/csv"),
            ("host", "evil"),
            ("content-length", "9"),
            ("transfer-encoding", "chunked"),
            ("connection", "x-a"),
        ];
        let work = work(HttpMethod::Post, "/", &[], &declared);
        let request = build(&work, &Arguments::parse("{}").unwrap()).unwrap();
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        // The connection header is not ours to send, and it names `x-a` as one that goes no further.
        assert_eq!(names, ["accept", "content-type", "user-agent"]);
        assert_eq!(request.headers()["accept"], "text/csv");
        assert!(request.headers()["user-agent"].to_str().unwrap().starts_with("toolgate/0."));
    }

    #[test]
    fn the_body_is_what_no_template_uses() {
        let query = [("q", "{q}")];
        let headers = [("x-h", "{h}")];
        let table = [
            (r#"{"id":"1"}"#, "{}"),
            (r#"{"id":"1","q":"2","h":"3"}"#, "{}"),
            (
                r#"{"big":12345678901234567890.10,"id":"1","o":{ "k" : null },"é\"":[1E2]}"#,
                r#"{"big":12345678901234567890.10,"o":{ "k" : null },"é\"":[1E2]}"#,
            ),
        ];
        let post = work(HttpMethod::Post, "/{id}", &query, &headers);
        for (arguments, expected) in table {
            assert_eq!(body(&post, &Arguments::parse(arguments).unwrap()).as_deref(), Some(expected));
        }
        let get = work(HttpMethod::Get, "/", &[], &[]);
        assert_eq!(body(&get, &Arguments::parse(r#"{"a":1}"#).unwrap()), None);
    }

    #[test]
    fn a_write_without_a_body_says_so() {
        let table = [
            (HttpMethod::Post, true),
            (HttpMethod::Put, true),
            (HttpMethod::Patch, true),
            (HttpMethod::Delete, false),
            (HttpMethod::Get, false),
            (HttpMethod::Head, false),
        ];
        for (method, says) in table {
            let work = HttpWork { body: Body::None, ..work(method, "/", &[], &[]) };
            let request = build(&work, &Arguments::parse("{}").unwrap()).unwrap();
            assert_eq!(
                request.headers().get(CONTENT_LENGTH).map(HeaderValue::as_bytes),
                says.then_some(b"0".as_slice()),
                "{method:?}"
            );
            assert_eq!(request.method().as_str(), method.as_str());
        }
    }
}
