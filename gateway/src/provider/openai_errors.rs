//! What an error of a provider means: for all who speak OpenAI's dialect, and for those whose errors look like its.
//!
//! No provider keeps to one form. An error is an object, a list of one, a text, a page of HTML or nothing; it stands under `error`, under
//! `detail` with a list of what is wrong, or in the answer that it broke off. What of it a caller reads is cleaned first.

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::Value;
use toolgate_config::secret::Secret;

use crate::failure::Failure;

/// The longest sentence of a provider's that a caller reads, in characters.
const LONGEST_MESSAGE: usize = 500;

/// OpenAI's own, finer than the usual one.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// What no caller may read of a provider.
#[derive(Clone, Copy)]
pub(super) struct Hidden<'p> {
    /// Its key.
    pub(super) key: Option<&'p Secret>,
    /// Its host, in lower case.
    pub(super) host: &'p str,
}

/// What an answer that is no success means.
pub(super) fn explain(status: StatusCode, headers: &HeaderMap, body: &Bytes, hidden: Hidden<'_>) -> Failure {
    match status.as_u16() {
        429 => Failure::UpstreamRateLimited(retry_after(headers)),
        400 | 413 | 422 => refused(status, &error_of(body), hidden),
        _ => Failure::Upstream(format!("the provider answered with status {}", status.as_u16())),
    }
}

/// What an error inside a stream, or under a status of success, means. Where it names a status, it is read as if it had that.
pub(super) fn explain_inside(body: &[u8], hidden: Hidden<'_>) -> Failure {
    let error = error_of(body);
    let number = ["code", "status", "status_code"].into_iter().find_map(|key| error.get(key).and_then(Value::as_u64));
    let words = ["code", "type"].map(|key| error.get(key).and_then(Value::as_str).unwrap_or_default());
    match number {
        Some(429) => Failure::UpstreamRateLimited(None),
        _ if words.iter().any(|word| word.contains("rate_limit")) => Failure::UpstreamRateLimited(None),
        Some(400) => refused(StatusCode::BAD_REQUEST, &error, hidden),
        Some(413) => refused(StatusCode::PAYLOAD_TOO_LARGE, &error, hidden),
        Some(422) => refused(StatusCode::UNPROCESSABLE_ENTITY, &error, hidden),
        _ => Failure::Upstream("the provider reported an error in its answer".to_owned()),
    }
}

/// When a provider says to come again; milliseconds, where it says only those, as whole seconds.
fn retry_after(headers: &HeaderMap) -> Option<String> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let millis = || text(&RETRY_AFTER_MS)?.trim().parse::<u64>().ok();
    text(&RETRY_AFTER).map(str::to_owned).or_else(|| Some(millis()?.div_ceil(1000).max(1).to_string()))
}

fn refused(status: StatusCode, error: &Value, hidden: Hidden<'_>) -> Failure {
    let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let message = message(error).map(|message| cleaned(&message, hidden)).filter(|message| !message.is_empty());
    Failure::UpstreamRefused {
        status,
        message: message.unwrap_or_else(|| "The model's provider refused the request.".to_owned()),
        code: text("code").map(|code| cleaned(code, hidden)),
        param: text("param").map(|param| cleaned(param, hidden)).or_else(|| place(error)),
    }
}

/// The sentence of an error. One that only says that another provider failed gives way to what that one said.
fn message(error: &Value) -> Option<String> {
    let inner = error.pointer("/metadata/raw").and_then(Value::as_str).map(|raw| error_of(raw.as_bytes()));
    let inner = inner.filter(Value::is_object).and_then(|inner| message(&inner));
    let text = error.get("message").or_else(|| error.get("msg")).or(Some(error)).and_then(Value::as_str);
    let text = text.filter(|text| !text.is_empty()).map(|text| match place(error) {
        Some(place) => format!("{place}: {text}"),
        None => text.to_owned(),
    });
    inner.or(text)
}

/// The field that a checker of requests names by its path, without the `body` that all of them begin with.
fn place(error: &Value) -> Option<String> {
    let steps = error.get("loc")?.as_array()?.iter().filter(|step| *step != "body");
    let steps: Vec<String> = steps.map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned)).collect();
    (!steps.is_empty()).then(|| steps.join("."))
}

/// The error in a body, whatever it is wrapped in: an object, a list of one, a text, or nothing that can be read.
fn error_of(body: &[u8]) -> Value {
    unwrapped(serde_json::from_slice(body).unwrap_or_default(), 0)
}

/// The places where the error itself was seen, each inside of what stands there before it.
const WRAPPERS: [&str; 6] = ["/0", "/error", "/detail", "/message/detail", "/x_groq/error", "/choices/0/error"];

fn unwrapped(mut value: Value, depth: u8) -> Value {
    if ["message", "msg"].into_iter().any(|name| value.get(name).is_some_and(Value::is_string)) {
        return value;
    }
    let inner = WRAPPERS.into_iter().find_map(|place| value.pointer_mut(place).filter(|inner| !inner.is_null()).map(Value::take));
    match inner {
        Some(inner) if depth < 4 => unwrapped(inner, depth + 1),
        Some(inner) => inner,
        None => value,
    }
}

/// A provider's sentence without keys, addresses, names of accounts and control characters, and not too long.
fn cleaned(message: &str, hidden: Hidden<'_>) -> String {
    let without_key = match hidden.key.map(Secret::expose).filter(|key| key.len() >= 4) {
        Some(key) => message.replace(key, "***"),
        None => message.to_owned(),
    };
    let words = without_key.split_whitespace().map(|word| if gives_away(word, hidden.host) { "***" } else { word });
    let text = words.collect::<Vec<_>>().join(" ");
    text.chars().filter(|character| !character.is_control()).take(LONGEST_MESSAGE).collect()
}

/// How keys begin, and the names of accounts, with the fewest characters after that which make it one. Providers mask keys themselves
/// (`sk-ab***yz`), which still says more than it must.
const TELLING: [(&str, usize); 13] = [
    ("sk-", 6),
    ("gsk_", 6),
    ("xai-", 6),
    ("AIza", 6),
    ("tg-", 6),
    ("org-", 0),
    ("org_", 0),
    ("proj-", 4),
    ("proj_", 4),
    ("user-", 12),
    ("acct_", 4),
    ("account_", 8),
    ("wrkspc_", 2),
];

/// Whether a word looks like a key, an address or an account.
fn gives_away(word: &str, host: &str) -> bool {
    let is_mail = word.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && domain.contains('.'));
    let is_address = word.contains("://") || word.to_ascii_lowercase().contains(host) || names_an_ip(word);
    is_mail || is_address || TELLING.into_iter().any(|(prefix, least)| holds(word, prefix, least))
}

/// Whether a word holds this beginning, at a beginning, and so many characters of a name behind it.
fn holds(word: &str, prefix: &str, least: usize) -> bool {
    let is_name = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '*' | '.');
    word.match_indices(prefix).any(|(at, _)| {
        let begins = !word[..at].ends_with(|character: char| character.is_ascii_alphanumeric());
        begins && word[at + prefix.len()..].chars().take_while(|character| is_name(*character)).count() > least
    })
}

/// Whether a word is the address of a host, with a port or without.
fn names_an_ip(word: &str) -> bool {
    let word = word.trim_matches(|character: char| !character.is_ascii_alphanumeric() && !matches!(character, '[' | ']' | ':'));
    let word = word.trim_end_matches(':');
    let host = word.rsplit_once(':').map_or(word, |(host, port)| if port.parse::<u16>().is_ok() { host } else { word });
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<std::net::Ipv4Addr>().is_ok() || (host.contains("::") && host.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOBODY: Hidden<'static> = Hidden { key: None, host: "llm.internal" };

    /// Status, message, code and field of what a caller reads.
    fn read(failure: &Failure) -> (u16, String, String, String) {
        let body: Value = serde_json::from_str(&failure.body()).unwrap();
        let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
        (failure.status().as_u16(), text("message"), text("code"), text("param"))
    }

    #[test]
    fn errors_are_read_in_every_wrapping_and_cleaned() {
        let (refused, no_code) = ("The model's provider refused the request.", "upstream_invalid_request");
        let table = [
            (
                r#"{"error":{"message":"too long","code":"context_length_exceeded","param":"messages"}}"#,
                "too long",
                "context_length_exceeded",
                "messages",
            ),
            (
                r#"{"error":{"message":"bad key SECRET-CANARY at https://x.test/v1","code":400}}"#,
                "bad key *** at ***",
                no_code,
                "",
            ),
            (r#"{"error":{"message":"no model at LLM.internal:8000, try later"}}"#, "no model at *** try later", no_code, ""),
            (r#"{"error":"plain"}"#, "plain", no_code, ""),
            (r#"{"error":""}"#, refused, no_code, ""),
            (r#""a bare text""#, "a bare text", no_code, ""),
            (r#"[{"error":{"message":"in a list"}}]"#, "in a list", no_code, ""),
            (r#"{"detail":"fast api"}"#, "fast api", no_code, ""),
            (
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"user","name"],"msg":"Extra inputs are not permitted","input":"secret"}]}"#,
                "messages.2.user.name: Extra inputs are not permitted",
                no_code,
                "messages.2.user.name",
            ),
            (
                r#"{"object":"error","message":{"detail":[{"loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","code":null}"#,
                "top_k: Extra inputs are not permitted",
                no_code,
                "top_k",
            ),
            (
                r#"{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}"#,
                "Unexpected role 'user' after role 'tool'",
                "3230",
                "",
            ),
            (
                r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"max_tokens is too large\"}}","provider_name":"P"}}}"#,
                "max_tokens is too large",
                no_code,
                "",
            ),
            (
                r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"<html>upstream</html>"}}}"#,
                "Provider returned error",
                no_code,
                "",
            ),
            (r#"{"message":"bare"}"#, "bare", no_code, ""),
            (
                r#"{"error":{"message":"Incorrect API key provided: sk-abcdefgh1234."}}"#,
                "Incorrect API key provided: ***",
                no_code,
                "",
            ),
            ("<html>no</html>", refused, no_code, ""),
            ("[]", refused, no_code, ""),
            ("null", refused, no_code, ""),
            ("", refused, no_code, ""),
        ];
        let key = Secret::new("SECRET-CANARY");
        let hidden = Hidden { key: Some(&key), ..NOBODY };
        for (body, message, code, param) in table {
            let failure = explain(StatusCode::BAD_REQUEST, &HeaderMap::new(), &Bytes::from_static(body.as_bytes()), hidden);
            assert_eq!(read(&failure), (400, message.to_owned(), code.to_owned(), param.to_owned()), "{body}");
        }
    }

    #[test]
    fn a_sentence_names_no_key_no_address_and_no_account() {
        let hidden = [
            "sk-proj-abcdefgh",
            "(sk-or-v1-0123456789)",
            "key=gsk_abcdefgh",
            "`org_01hxyz`",
            "org-AbC123",
            "proj_12345",
            "user-0123456789abcdef",
            "admin@shop.example",
            "10.0.0.5:8000",
            "10.0.0.5:",
            "(192.168.1.1)",
            "[::1]:80",
            "https://api.example/v1",
            "http://u:p@llm.internal",
        ];
        for word in hidden {
            assert!(gives_away(word, "llm.internal"), "{word}");
        }
        let plain = [
            "risk-free",
            "user-defined",
            "reorganise",
            "task-specific-x",
            "1.5.2",
            "8.5",
            "12:30:45",
            "@here",
            "messages[0].content",
            "std::fmt",
        ];
        for word in plain {
            assert!(!gives_away(word, "llm.internal"), "{word}");
        }
        let body =
            r#"{"error":{"message":"Request too large for model `m` in organization `org_01h` service tier `on_demand`"}}"#;
        let failure = explain(StatusCode::PAYLOAD_TOO_LARGE, &HeaderMap::new(), &Bytes::from_static(body.as_bytes()), NOBODY);
        let message = "Request too large for model `m` in organization *** service tier `on_demand`";
        assert_eq!(read(&failure), (413, message.to_owned(), "upstream_invalid_request".to_owned(), String::new()));
    }

    #[test]
    fn a_status_says_what_failed() {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("30"))]);
        let explain = |status| explain(StatusCode::from_u16(status).unwrap(), &headers, &Bytes::new(), NOBODY);
        assert_eq!(explain(429), Failure::UpstreamRateLimited(Some("30".to_owned())));
        for status in [301, 401, 402, 403, 404, 408, 409, 498, 500, 503, 529] {
            assert_eq!(explain(status).status().as_u16(), 502, "{status}");
        }
        for status in [400, 413, 422] {
            assert_eq!(explain(status).status().as_u16(), status);
        }
    }

    #[test]
    fn when_to_come_again_is_kept_in_either_form() {
        let table = [
            (Some("30"), None, Some("30")),
            (Some("Sun, 06 Nov 1994 08:49:37 GMT"), Some("7"), Some("Sun, 06 Nov 1994 08:49:37 GMT")),
            (None, Some("7660"), Some("8")),
            (None, Some("7000"), Some("7")),
            (None, Some("0"), Some("1")),
            (None, Some("soon"), None),
            (None, Some("-5"), None),
            (None, None, None),
        ];
        for (seconds, millis, expected) in table {
            let values = [(RETRY_AFTER, seconds), (RETRY_AFTER_MS, millis)];
            let headers = values.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::from_static(value?)))).collect();
            let failure = explain(StatusCode::TOO_MANY_REQUESTS, &headers, &Bytes::new(), NOBODY);
            assert_eq!(failure.retry_after().as_deref(), expected, "{seconds:?} {millis:?}");
        }
    }

    #[test]
    fn an_error_inside_an_answer_has_the_status_that_it_names() {
        let table = [
            (r#"{"error":{"code":429,"message":"slow down"}}"#, 429),
            (r#"{"error":{"type":"rate_limit_error"}}"#, 429),
            (r#"{"error":{"message":"overloaded"}}"#, 502),
            (r#"{"error":{"message":"no credit","code":402}}"#, 502),
            (r#"{"error":{"message":"gone","code":503}}"#, 502),
            (r#"{"error":{"message":"too long","code":400}}"#, 400),
            (r#"{"error":{"message":"bad tool","status_code":422}}"#, 422),
            (r#"{"choices":[{"error":{"code":429,"message":"slow"},"finish_reason":"error"}]}"#, 429),
            (r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#, 502),
            (r#"{"x_groq":{"id":"r","error":"over capacity"}}"#, 502),
            ("overloaded", 502),
            ("", 502),
        ];
        for (body, status) in table {
            assert_eq!(explain_inside(body.as_bytes(), NOBODY).status().as_u16(), status, "{body}");
        }
    }
}
