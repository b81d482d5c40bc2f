//! What the API's errors mean: `{"error": {"code", "message", "status", "details"}}`, alone or in a list of one.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::super::openai::{self, Hidden};
use crate::failure::Failure;

/// What an answer that is no success means.
pub(in super::super) fn explain(status: StatusCode, headers: &HeaderMap, body: &Bytes, hidden: Hidden<'_>) -> Failure {
    let error = error_of(body);
    if status == StatusCode::BAD_REQUEST && is_the_operators(&error) {
        return Failure::Upstream("the provider refused the key, the account or its place with status 400".to_owned());
    }
    match openai::explain(status, headers, body, hidden) {
        Failure::UpstreamRateLimited(None) => Failure::UpstreamRateLimited(retry_delay(&error)),
        // The API's own code is a word; its number says the status again.
        Failure::UpstreamRefused { status, message, code, param } => {
            Failure::UpstreamRefused { status, message, code: word(&error).or(code), param }
        }
        other => other,
    }
}

fn word(error: &Value) -> Option<String> {
    let status = error.get("status").and_then(Value::as_str)?;
    let is_plain = status.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_plain && status.len() <= 64).then(|| status.to_owned())
}

/// What an error inside a stream, or under a status of success, means.
pub(in super::super) fn explain_inside(body: &[u8], hidden: Hidden<'_>) -> Failure {
    let error = error_of(body);
    let is_limit = error.get("code").and_then(Value::as_u64) == Some(429);
    if is_limit || error.get("status").is_some_and(|status| status == "RESOURCE_EXHAUSTED") {
        return Failure::UpstreamRateLimited(retry_delay(&error));
    }
    if error.is_null() {
        return Failure::Upstream("the model's answer ended in a call of a tool that its provider could not read".to_owned());
    }
    openai::explain_inside(body, hidden)
}

fn error_of(body: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(first) = value.get_mut(0) {
        value = first.take();
    }
    value.get_mut("error").map(Value::take).unwrap_or_default()
}

/// A bad key, an account that is not paid for and a country that is not served are told as faults of the request. They are the operator's.
fn is_the_operators(error: &Value) -> bool {
    let says = |name: &str, words: &[&str]| {
        error.get(name).and_then(Value::as_str).is_some_and(|text| words.iter().any(|word| text.contains(word)))
    };
    let has_reason = details(error).any(|detail| detail.get("reason").is_some_and(|reason| reason == "API_KEY_INVALID"));
    has_reason
        || says("message", &["API key not valid", "API key expired", "API Key not found"])
        || says("status", &["FAILED_PRECONDITION"])
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// `"12.5s"` in a `RetryInfo`, as whole seconds, rounded up.
fn retry_delay(error: &Value) -> Option<String> {
    let delay = details(error).find_map(|detail| detail.get("retryDelay").and_then(Value::as_str))?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then(|| format!("{:.0}", seconds.ceil()))
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderValue, RETRY_AFTER};

    use super::*;

    const NOBODY: Hidden<'_> = Hidden { key: None, host: "generativelanguage.googleapis.com" };

    fn explained(code: u16, headers: &HeaderMap, body: &str) -> Failure {
        explain(StatusCode::from_u16(code).unwrap(), headers, &Bytes::copy_from_slice(body.as_bytes()), NOBODY)
    }

    #[test]
    fn a_bad_key_is_no_fault_of_the_callers() {
        let bodies = [
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
            r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
            r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
        ];
        for body in bodies {
            assert_eq!(explained(400, &HeaderMap::new(), body).status().as_u16(), 502, "{body}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_sentence_and_its_code() {
        let body = r#"[{"error":{"code":400,"message":"Invalid value at 'contents'","status":"INVALID_ARGUMENT"}}]"#;
        let none = HeaderMap::new();
        let Failure::UpstreamRefused { message, code, .. } = explained(400, &none, body) else { panic!() };
        assert_eq!((message.as_str(), code.as_deref()), ("Invalid value at 'contents'", Some("INVALID_ARGUMENT")));
        let Failure::UpstreamRefused { code, .. } = explained(400, &none, "<html>") else { panic!() };
        assert_eq!(code, None);
        for code in [401, 403, 404, 500, 503] {
            assert_eq!(explained(code, &none, body).status().as_u16(), 502, "{code}");
        }
    }

    #[test]
    fn case_34_the_delay_of_a_rate_limit_is_kept() {
        let body = |delay: &str| {
            format!(
                r#"{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{{"@type":"type.googleapis.com/google.rpc.QuotaFailure"}},{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}]}}}}"#
            )
        };
        let table = [("30s", Some("30")), ("1.2s", Some("2")), ("0s", Some("0")), ("soon", None), ("-1s", None), ("infs", None)];
        for (delay, after) in table {
            let expected = Failure::UpstreamRateLimited(after.map(str::to_owned));
            assert_eq!(explained(429, &HeaderMap::new(), &body(delay)), expected, "{delay}");
            assert_eq!(explain_inside(body(delay).as_bytes(), NOBODY), expected, "{delay}");
        }
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
        assert_eq!(explained(429, &headers, &body("30s")), Failure::UpstreamRateLimited(Some("7".to_owned())));
        assert_eq!(explain_inside(br#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, NOBODY).status().as_u16(), 502);
        assert_eq!(
            explain_inside(br#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#, NOBODY).status().as_u16(),
            502
        );
    }
}
