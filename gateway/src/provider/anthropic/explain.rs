//! What Anthropic's errors mean: `{"type":"error","error":{"type","message"}}`, under a status or inside a stream.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::super::openai::{self, Hidden};
use crate::failure::Failure;

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    error: Option<Error>,
}

#[derive(Default, Deserialize)]
struct Error {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

/// An answer that is no success.
pub(in super::super) fn explain(status: StatusCode, headers: &HeaderMap, body: &Bytes, hidden: Hidden<'_>) -> Failure {
    let error = error_of(body);
    if error.is_about_the_account() {
        return Failure::Upstream(format!("the provider answered with status {}, about its account", status.as_u16()));
    }
    match openai::explain(status, headers, body, hidden) {
        Failure::UpstreamRefused { status, message, code, param } => Failure::UpstreamRefused {
            status,
            // The header of a credential that no caller has sent.
            message: message.replace("x-api-key", "***"),
            code: error.code().map(str::to_owned).or(code),
            param,
        },
        failure => failure,
    }
}

/// An error inside a stream, or under a status of success.
pub(in super::super) fn explain_inside(body: &[u8], hidden: Hidden<'_>) -> Failure {
    match error_of(body).kind.as_str() {
        "rate_limit_error" => Failure::UpstreamRateLimited(None),
        "overloaded_error" => Failure::Upstream("the provider reported in its answer that it is overloaded".to_owned()),
        _ => openai::explain_inside(body, hidden),
    }
}

impl Error {
    /// The API says with a 400 that nobody has paid; that is no fault of the request's.
    fn is_about_the_account(&self) -> bool {
        self.kind == "billing_error" || self.message.contains("credit balance")
    }

    /// What went wrong as a word that clients know. The API itself has none but the kind of the error.
    fn code(&self) -> Option<&'static str> {
        let too_long = ["prompt is too long", "exceed context limit", "exceeds the context window"];
        match self.kind.as_str() {
            "request_too_large" => Some("request_too_large"),
            _ if too_long.iter().any(|words| self.message.contains(words)) => Some("context_length_exceeded"),
            _ => None,
        }
    }
}

fn error_of(body: &[u8]) -> Error {
    serde_json::from_slice::<Body>(body).ok().and_then(|body| body.error).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::RETRY_AFTER;
    use toolgate_config::secret::Secret;

    use super::*;

    const NOBODY: Hidden<'_> = Hidden { key: None, host: "api.anthropic.com" };

    fn explained(status: u16, kind: &str, message: &str) -> Failure {
        let key = Secret::new("sk-ant-CANARY-1");
        let hidden = Hidden { key: Some(&key), host: "api.anthropic.com" };
        let body = serde_json::json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("30"))]);
        explain(StatusCode::from_u16(status).unwrap(), &headers, &Bytes::from(body.to_string()), hidden)
    }

    #[test]
    fn a_refusal_keeps_its_sentence_and_says_what_clients_know() {
        let table = [
            (400, "invalid_request_error", "max_tokens: Field required", "max_tokens: Field required", None),
            (
                400,
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
                "prompt is too long: 210000 tokens > 200000 maximum",
                Some("context_length_exceeded"),
            ),
            (
                413,
                "request_too_large",
                "Request exceeds the maximum size",
                "Request exceeds the maximum size",
                Some("request_too_large"),
            ),
            (
                400,
                "invalid_request_error",
                "invalid x-api-key sk-ant-CANARY-1 for org-0123456789 in wrkspc_012 at https://api.anthropic.com/v1",
                "invalid *** *** for *** in *** at ***",
                None,
            ),
        ];
        for (status, kind, said, message, code) in table {
            let Failure::UpstreamRefused { status: seen, message: text, code: word, .. } = explained(status, kind, said) else {
                panic!("{said}")
            };
            assert_eq!((seen.as_u16(), text.as_str(), word.as_deref()), (status, message, code));
        }
    }

    #[test]
    fn what_is_no_fault_of_the_request_is_none_of_the_callers() {
        let balance = "Your credit balance is too low to access the Anthropic API";
        let table = [
            (400, "invalid_request_error", balance, 502),
            (402, "billing_error", "pay", 502),
            (401, "authentication_error", "invalid x-api-key", 502),
            (403, "permission_error", "no", 502),
            (404, "not_found_error", "model: claude-x", 502),
            (429, "rate_limit_error", "slow down", 429),
            (500, "api_error", "oh", 502),
            (529, "overloaded_error", "Overloaded", 502),
        ];
        for (status, kind, message, expected) in table {
            let failure = explained(status, kind, message);
            assert_eq!(failure.status().as_u16(), expected, "{status} {kind}");
            assert!(!failure.for_log().contains("balance") && !failure.body().contains("x-api-key"));
        }
        assert_eq!(explained(429, "rate_limit_error", "").retry_after().as_deref(), Some("30"));
    }

    #[test]
    fn an_error_inside_a_stream_has_its_status_too() {
        let inside = |kind: &str| {
            let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"m"}}}}"#);
            explain_inside(body.as_bytes(), NOBODY).status().as_u16()
        };
        assert_eq!(inside("rate_limit_error"), 429);
        for kind in ["overloaded_error", "api_error", "invalid_request_error", "something"] {
            assert_eq!(inside(kind), 502, "{kind}");
        }
        assert_eq!(explain_inside(b"<html>", NOBODY).status().as_u16(), 502);
    }
}
