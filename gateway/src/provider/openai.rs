//! OpenAI's dialect, and that of everything compatible with it.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use toolgate_config::secret::Secret;
use toolgate_tools::net::Segments;

use super::{Encoded, Unsupported};
use crate::failure::Failure;
use crate::targets::Target;

/// The caller's headers that go on. It is a list of what may, not of what may not: an unknown header may hold a credential.
const FORWARDED: [HeaderName; 4] = [
    USER_AGENT,
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("x-client-request-id"),
    HeaderName::from_static("accept-language"),
];

/// Those that belong to the account behind the caller's own bearer, and so go on with it alone.
const FORWARDED_WITH_BEARER: [HeaderName; 2] =
    [HeaderName::from_static("openai-organization"), HeaderName::from_static("openai-project")];

/// The provider's headers that reach the caller. Cookies and account names are not among them.
const PASSED_ON: [HeaderName; 3] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("openai-processing-ms"),
    HeaderName::from_static("openai-version"),
];

/// The longest sentence of a provider's that a caller reads, in characters.
const LONGEST_MESSAGE: usize = 500;

/// The request goes on as it is.
pub(super) fn encode(target: &Target, path: &str, body: &Segments) -> Result<Encoded, Unsupported> {
    Ok(Encoded { path: format!("{}{path}", target.provider.base_url.path), body: body.clone() })
}

pub(super) fn headers(key: Option<&Secret>, own_bearer: bool, caller: &HeaderMap, stream: bool) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    copy(&FORWARDED, caller, &mut headers);
    if own_bearer {
        copy(&FORWARDED_WITH_BEARER, caller, &mut headers);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(if stream { "text/event-stream" } else { "application/json" }));
    if let Some(mut bearer) = key.and_then(|key| HeaderValue::try_from(format!("Bearer {}", key.expose())).ok()) {
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    headers
}

pub(super) fn passed_on(answer: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    copy(&PASSED_ON, answer, &mut headers);
    headers
}

fn copy(names: &[HeaderName], from: &HeaderMap, to: &mut HeaderMap) {
    for name in names {
        if let Some(value) = from.get(name) {
            to.insert(name.clone(), value.clone());
        }
    }
}

/// What no caller may read of a provider.
#[derive(Clone, Copy)]
pub(super) struct Hidden<'p> {
    /// Its key.
    pub(super) key: Option<&'p Secret>,
    /// Its host, in lower case.
    pub(super) host: &'p str,
}

pub(super) fn explain(status: StatusCode, headers: &HeaderMap, body: &Bytes, hidden: Hidden<'_>) -> Failure {
    match status.as_u16() {
        429 => Failure::UpstreamRateLimited(headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()).map(str::to_owned)),
        400 | 413 | 422 => refused(status, body, hidden),
        _ => Failure::Upstream(format!("the provider answered with status {}", status.as_u16())),
    }
}

pub(super) fn explain_inside(body: &[u8]) -> Failure {
    let error = error_of(body);
    let number = error.get("code").and_then(Value::as_u64).or_else(|| error.get("status").and_then(Value::as_u64));
    let words = ["code", "type"].map(|key| error.get(key).and_then(Value::as_str).unwrap_or_default());
    if number == Some(429) || words.iter().any(|word| word.contains("rate_limit")) {
        return Failure::UpstreamRateLimited(None);
    }
    Failure::Upstream("the provider reported an error in its answer".to_owned())
}

fn refused(status: StatusCode, body: &[u8], hidden: Hidden<'_>) -> Failure {
    let error = error_of(body);
    let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let message = text("message").or(error.as_str()).map(|message| cleaned(message, hidden));
    Failure::UpstreamRefused {
        status,
        message: message.unwrap_or_else(|| "The model's provider refused the request.".to_owned()),
        code: text("code").map(|code| cleaned(code, hidden)),
        param: text("param").map(|param| cleaned(param, hidden)),
    }
}

/// The error in a body, whatever it is wrapped in: an object, a list of one, a bare string, or nothing that can be read.
fn error_of(body: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(first) = value.get_mut(0) {
        value = first.take();
    }
    for wrapper in ["error", "detail"] {
        if let Some(inner) = value.get_mut(wrapper).filter(|inner| !inner.is_null()) {
            return inner.take();
        }
    }
    value
}

/// A provider's sentence without keys, addresses and control characters, and not too long.
fn cleaned(message: &str, hidden: Hidden<'_>) -> String {
    let without_key = match hidden.key.map(Secret::expose).filter(|key| key.len() >= 4) {
        Some(key) => message.replace(key, "***"),
        None => message.to_owned(),
    };
    let words = without_key.split_whitespace().map(|word| if gives_away(word, hidden.host) { "***" } else { word });
    let text = words.collect::<Vec<_>>().join(" ");
    text.chars().filter(|character| !character.is_control()).take(LONGEST_MESSAGE).collect()
}

/// Whether a word looks like a key or an address. Providers mask keys themselves (`sk-ab***yz`), which still says more than it must.
fn gives_away(word: &str, host: &str) -> bool {
    let is_address = word.contains("://") || word.to_ascii_lowercase().contains(host);
    let word = word.trim_start_matches(|character: char| !character.is_ascii_alphanumeric());
    let is_key =
        ["sk-", "gsk_", "xai-", "AIza", "tg-"].iter().any(|prefix| word.starts_with(prefix) && word.len() > prefix.len() + 6);
    is_key || is_address || word.starts_with("org-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_in_every_wrapping_and_cleaned() {
        let key = Secret::new("SECRET-CANARY");
        let hidden = Hidden { key: Some(&key), host: "llm.internal" };
        let table = [
            (
                r#"{"error":{"message":"too long","code":"context_length_exceeded","param":"messages"}}"#,
                "too long",
                Some("context_length_exceeded"),
            ),
            (r#"{"error":{"message":"bad key SECRET-CANARY at https://x.test/v1","code":400}}"#, "bad key *** at ***", None),
            (r#"{"error":{"message":"no model at LLM.internal:8000, try later"}}"#, "no model at *** try later", None),
            (r#"{"error":"plain"}"#, "plain", None),
            (r#"[{"error":{"message":"in a list"}}]"#, "in a list", None),
            (r#"{"detail":"fast api"}"#, "fast api", None),
            (r#"{"message":"bare"}"#, "bare", None),
            (r#"{"error":{"message":"Incorrect API key provided: sk-abcdefgh1234."}}"#, "Incorrect API key provided: ***", None),
            ("<html>no</html>", "The model's provider refused the request.", None),
            ("", "The model's provider refused the request.", None),
        ];
        for (body, message, code) in table {
            let failure = explain(StatusCode::BAD_REQUEST, &HeaderMap::new(), &Bytes::from_static(body.as_bytes()), hidden);
            let Failure::UpstreamRefused { message: seen, code: seen_code, .. } = failure else { panic!("{body}") };
            assert_eq!((seen.as_str(), seen_code.as_deref()), (message, code), "{body}");
        }
    }

    #[test]
    fn a_status_says_what_failed() {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("30"))]);
        let explain = |status| {
            explain(StatusCode::from_u16(status).unwrap(), &headers, &Bytes::new(), Hidden { key: None, host: "llm.internal" })
        };
        assert_eq!(explain(429), Failure::UpstreamRateLimited(Some("30".to_owned())));
        for status in [301, 401, 403, 404, 409, 500, 503] {
            assert_eq!(explain(status).status().as_u16(), 502, "{status}");
        }
        for status in [400, 413, 422] {
            assert_eq!(explain(status).status().as_u16(), status);
        }
    }

    #[test]
    fn a_rate_limit_inside_a_stream_is_one() {
        assert_eq!(explain_inside(br#"{"error":{"code":429,"message":"slow down"}}"#).status().as_u16(), 429);
        assert_eq!(explain_inside(br#"{"error":{"type":"rate_limit_error"}}"#).status().as_u16(), 429);
        assert_eq!(explain_inside(br#"{"error":{"message":"overloaded"}}"#).status().as_u16(), 502);
    }

    #[test]
    fn case_41_no_credential_of_the_callers_goes_on() {
        let caller = HeaderMap::from_iter([
            (AUTHORIZATION, HeaderValue::from_static("Bearer CANARY")),
            (HeaderName::from_static("x-api-key"), HeaderValue::from_static("CANARY")),
            (HeaderName::from_static("cookie"), HeaderValue::from_static("s=CANARY")),
            (HeaderName::from_static("openai-organization"), HeaderValue::from_static("CANARY")),
            (HeaderName::from_static("x-toolgate-user"), HeaderValue::from_static("CANARY")),
            (USER_AGENT, HeaderValue::from_static("app/1")),
        ]);
        let sent = headers(Some(&Secret::new("own")), false, &caller, false);
        assert!(sent.values().all(|value| value != "CANARY" && value != "Bearer CANARY" && value != "s=CANARY"));
        assert_eq!((sent[AUTHORIZATION].to_str().unwrap(), sent[USER_AGENT].to_str().unwrap()), ("Bearer own", "app/1"));
    }
}
