//! Every way in which a request can fail: whose fault it is, its status, its code, and its two sentences: one for the caller, one for the
//! log. Each answer to a failure is made here and nowhere else.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use toolgate_policies::counters::Again;
use toolgate_policies::gate::Refused;
use toolgate_policies::limits::What;

use crate::money::{self, Closed};
use crate::wire::history::Id;

/// What went wrong. No variant holds a provider's key, its address, or a body of its that was not cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request's head cannot be read, or is too long: which 4xx says so.
    Unreadable(StatusCode),
    /// The body is not JSON: why.
    InvalidJson(String),
    /// The body is JSON, but no object.
    NotAnObject,
    /// A field, and what is wrong with it.
    InvalidRequest(&'static str, String),
    /// A tool of the caller's has the name of one that the gateway offers.
    ToolNameConflict(String),
    /// Turned away at the door.
    Refused(Refused),
    /// No such path, or nothing of this name that the caller may see.
    NotFound,
    /// The body is longer than this many bytes.
    BodyTooLarge(usize),
    /// The body did not come whole.
    BodyCut,
    /// Too many requests at once.
    Overloaded,
    /// The process is about to end.
    ShuttingDown,
    /// A rate is in the way: which, and when to come again.
    RateLimited(String, Again),
    /// A budget is in the way: which, and when it resets.
    BudgetExhausted(String, Again),
    /// A budget in USD is on the path, and nobody knows what the model of this name would cost.
    Unpriced(String),
    /// The ledger or the counters cannot be used: for the log, why.
    Closed(String),
    /// The provider said no to the request as it stands.
    UpstreamRefused {
        /// 400, 413 or 422.
        status: StatusCode,
        /// The provider's sentence, cleaned.
        message: String,
        /// The provider's own code.
        code: Option<String>,
        /// The field that it names.
        param: Option<String>,
    },
    /// The provider's own rate limit, and when it says to come again.
    UpstreamRateLimited(Option<String>),
    /// The provider failed: for the log, how.
    Upstream(String),
    /// The provider kept failing and was not asked: after this it is worth a try.
    UpstreamResting(Duration),
    /// The provider did not answer in time: for the log, which limit.
    UpstreamTimeout(&'static str),
    /// A fault of ours: for the log, where.
    Internal(&'static str),
}

/// What a failure is to a caller.
struct Row {
    status: u16,
    kind: &'static str,
    code: String,
    param: Option<String>,
    message: String,
}

impl Failure {
    /// The status that the caller gets.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.row().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The word for traces, logs and callers.
    pub fn code(&self) -> String {
        self.row().code
    }

    /// When to come again, in whole seconds or as the provider put it.
    pub fn retry_after(&self) -> Option<String> {
        match self {
            Self::UpstreamRateLimited(after) => after.clone(),
            Self::RateLimited(_, again) => seconds_until(*again),
            Self::UpstreamResting(again) => seconds_until(Again::After(*again)),
            Self::Closed(_) => Some("5".to_owned()),
            Self::Overloaded => Some("1".to_owned()),
            Self::ShuttingDown => Some("2".to_owned()),
            _ => None,
        }
    }

    /// Whether a client may try again by itself; `None`: it knows that from the status.
    pub fn should_retry(&self) -> Option<bool> {
        match self {
            Self::BudgetExhausted(..) | Self::RateLimited(_, Again::Never) => Some(false),
            _ => None,
        }
    }

    /// What a provider says where it refuses a prompt because it is longer than the model's window. That is told by OpenAI's code for it, or by
    /// what others say.
    pub fn about_length(&self) -> Option<&str> {
        const SAID: [&str; 7] = [
            "context length",
            "context window",
            "context size",
            "context_length",
            "prompt is too long",
            "maximum number of tokens",
            "maximum context",
        ];
        let Self::UpstreamRefused { message, code, .. } = self else { return None };
        let lower = message.to_ascii_lowercase();
        let is_about_it = code.as_deref() == Some("context_length_exceeded") || SAID.iter().any(|words| lower.contains(words));
        is_about_it.then_some(message)
    }

    /// The same, with what a provider said in it as `hide` leaves it.
    #[must_use]
    pub fn hiding(&self, mut hide: impl FnMut(&str) -> String) -> Self {
        match self {
            Self::UpstreamRefused { status, message, code, param } => Self::UpstreamRefused {
                status: *status,
                message: hide(message),
                code: code.as_deref().map(&mut hide),
                param: param.as_deref().map(&mut hide),
            },
            other => other.clone(),
        }
    }

    /// The body of the answer: OpenAI's error object.
    pub fn body(&self) -> String {
        let Row { kind, code, param, message, .. } = self.row();
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } }).to_string()
    }

    /// The sentence for the log. It may name what a caller need not know, and never holds a secret.
    pub fn for_log(&self) -> String {
        match self {
            Self::Upstream(how) => how.clone(),
            Self::UpstreamResting(_) => "the provider kept failing, and is not asked for a while".to_owned(),
            Self::UpstreamTimeout(limit) => format!("the provider was slower than its {limit}"),
            Self::Internal(place) => format!("a fault of ours in {place}"),
            Self::Closed(why) => why.clone(),
            other => other.row().message,
        }
    }

    /// The table: status, type, code, field, and the sentence for the caller.
    fn row(&self) -> Row {
        let row = |status, kind, code: &str, message: &str| Row {
            status,
            kind,
            code: code.to_owned(),
            param: None,
            message: message.to_owned(),
        };
        let invalid = |code, message: &str| row(400, "invalid_request_error", code, message);
        match self {
            Self::Unreadable(status) => {
                let why = "The head of the request cannot be read, or is too long.";
                row(status.as_u16(), "invalid_request_error", "invalid_request", why)
            }
            Self::InvalidJson(why) => invalid("invalid_json", &format!("The request body is not valid JSON: {why}.")),
            Self::NotAnObject => invalid("invalid_request", "The request body is not a JSON object."),
            Self::InvalidRequest(field, why) => {
                Row { param: Some((*field).to_owned()), ..invalid("invalid_request", &format!("`{field}` {why}.")) }
            }
            Self::ToolNameConflict(name) => {
                let why = format!(
                    "`tools` names {}, which is also a tool that this model is offered here: rename it, or leave that one out with the header x-toolgate-tools.",
                    Id(name)
                );
                Row { param: Some("tools".to_owned()), ..invalid("tool_name_conflict", &why) }
            }
            Self::Refused(refused) => refused_row(*refused),
            Self::NotFound => row(404, "invalid_request_error", "not_found", "There is nothing here."),
            Self::BodyTooLarge(most) => {
                row(413, "invalid_request_error", "body_too_large", &format!("The request body is longer than {most} bytes."))
            }
            Self::BodyCut => invalid("invalid_request", "The request body ended early."),
            Self::Overloaded => row(503, "server_error", "overloaded", "Too many requests are under way; try again shortly."),
            Self::ShuttingDown => row(503, "server_error", "shutting_down", "The gateway is shutting down; try again shortly."),
            Self::RateLimited(which, again) => {
                let again = seconds_until(*again).map_or_else(
                    || "this request is larger than the whole limit".to_owned(),
                    |seconds| format!("try again in {seconds} s"),
                );
                row(429, "rate_limit_error", "rate_limit_exceeded", &format!("Rate limit reached: {which}; {again}."))
            }
            Self::BudgetExhausted(which, again) => {
                let resets = match again {
                    Again::At(moment) => format!("it resets at {moment}"),
                    Again::After(_) | Again::WhenFree | Again::Never => "it does not reset".to_owned(),
                };
                let message = format!("The budget of {which} has no room left for this request; {resets}.");
                row(429, "insufficient_quota", "insufficient_quota", &message)
            }
            Self::Unpriced(model) => {
                let message =
                    format!("The price of the model `{model}` is not known, and a budget in USD applies to this request.");
                let refused = row(403, "permission_error", "model_not_allowed", &message);
                Row { param: Some("model".to_owned()), ..refused }
            }
            Self::Closed(_) => {
                row(503, "server_error", "overloaded", "What is spent cannot be recorded at the moment; try again shortly.")
            }
            Self::UpstreamRefused { status, message, code, param } => Row {
                status: status.as_u16(),
                param: param.clone(),
                ..invalid(code.as_deref().unwrap_or("upstream_invalid_request"), message)
            },
            Self::UpstreamRateLimited(_) => row(
                429,
                "rate_limit_error",
                "upstream_rate_limited",
                "The model's provider is limiting requests; try again later.",
            ),
            Self::Upstream(_) | Self::UpstreamResting(_) => {
                row(502, "upstream_error", "upstream_error", "The model's provider failed to answer.")
            }
            Self::UpstreamTimeout(_) => {
                row(504, "upstream_error", "upstream_timeout", "The model's provider did not answer in time.")
            }
            Self::Internal(_) => {
                row(500, "server_error", "internal_error", "The gateway failed; the trace id names this request.")
            }
        }
    }
}

/// At least that long, in whole seconds.
fn seconds_until(again: Again) -> Option<String> {
    let seconds = match again {
        Again::After(wait) => wait.as_secs() + u64::from(wait.subsec_nanos() > 0),
        // Nobody knows when another request ends.
        Again::WhenFree => 1,
        Again::At(_) | Again::Never => return None,
    };
    Some(seconds.max(1).to_string())
}

fn refused_row(refused: Refused) -> Row {
    let (status, kind, code, message) = match refused {
        Refused::UnknownKey => (401, "authentication_error", "invalid_api_key", "The API key is missing or not valid."),
        Refused::UserNotAllowed => (403, "permission_error", "user_not_allowed", "This key may not act for an end user."),
        Refused::ModelNotAllowed => (403, "permission_error", "model_not_allowed", "This key may not use that model."),
        Refused::ModelNotFound => (404, "invalid_request_error", "model_not_found", "There is no model of that name."),
    };
    let param = match refused {
        Refused::UnknownKey => None,
        Refused::UserNotAllowed => Some("x-toolgate-user".to_owned()),
        Refused::ModelNotAllowed | Refused::ModelNotFound => Some("model".to_owned()),
    };
    Row { status, kind, code: code.to_owned(), param, message: message.to_owned() }
}

impl Failure {
    /// What the limits say of a request for the model of this name.
    pub fn of_money(refused: money::Refused, model: &str) -> Self {
        match refused {
            money::Refused::By(denied) => match denied.limit.id.what {
                What::Budget(..) => Self::BudgetExhausted(denied.limit.described(), denied.again),
                What::RequestRate | What::TokenRate | What::Concurrent => {
                    Self::RateLimited(denied.limit.described(), denied.again)
                }
            },
            money::Refused::Unpriced => Self::Unpriced(model.to_owned()),
            money::Refused::Closed(Closed(why)) => Self::Closed(why),
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<crate::wire::history::Break> for Failure {
    fn from(fault: crate::wire::history::Break) -> Self {
        Self::InvalidRequest("messages", format!("cannot be sent on: {fault}"))
    }
}

impl From<crate::wire::request::BadRequest> for Failure {
    fn from(bad: crate::wire::request::BadRequest) -> Self {
        use crate::wire::request::BadRequest;
        match bad {
            BadRequest::Json(why) => Self::InvalidJson(why),
            BadRequest::NotAnObject => Self::NotAnObject,
            BadRequest::Member(field, why) => Self::InvalidRequest(field, why.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_prompt_that_is_too_long_is_told_from_other_faults() {
        let table = [
            (Some("context_length_exceeded"), "Too much.", true),
            (None, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", true),
            (Some("400"), "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", true),
            (None, "prompt is too long: 210000 tokens > 200000 maximum", true),
            (None, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", true),
            (None, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", true),
            (Some("invalid_value"), "max_tokens is too large.", false),
            (None, "Invalid schema for function 'f'.", false),
        ];
        for (code, message, expected) in table {
            let (status, code) = (StatusCode::BAD_REQUEST, code.map(str::to_owned));
            let failure = Failure::UpstreamRefused { status, message: message.to_owned(), code, param: None };
            assert_eq!(failure.about_length(), expected.then_some(message), "{message}");
        }
        assert_eq!(Failure::Upstream("prompt is too long".to_owned()).about_length(), None);
    }

    #[test]
    fn each_failure_has_its_status_type_and_code() {
        let table = [
            (Failure::InvalidJson("x".into()), 400, "invalid_request_error", "invalid_json"),
            (Failure::Unreadable(StatusCode::URI_TOO_LONG), 414, "invalid_request_error", "invalid_request"),
            (Failure::NotAnObject, 400, "invalid_request_error", "invalid_request"),
            (Failure::InvalidRequest("model", "is required".into()), 400, "invalid_request_error", "invalid_request"),
            (Failure::ToolNameConflict("t".into()), 400, "invalid_request_error", "tool_name_conflict"),
            (Failure::Refused(Refused::UnknownKey), 401, "authentication_error", "invalid_api_key"),
            (Failure::Refused(Refused::ModelNotAllowed), 403, "permission_error", "model_not_allowed"),
            (Failure::Refused(Refused::UserNotAllowed), 403, "permission_error", "user_not_allowed"),
            (Failure::Refused(Refused::ModelNotFound), 404, "invalid_request_error", "model_not_found"),
            (Failure::NotFound, 404, "invalid_request_error", "not_found"),
            (Failure::BodyTooLarge(9), 413, "invalid_request_error", "body_too_large"),
            (Failure::UpstreamRateLimited(None), 429, "rate_limit_error", "upstream_rate_limited"),
            (Failure::Upstream("x".into()), 502, "upstream_error", "upstream_error"),
            (Failure::UpstreamResting(Duration::from_secs(30)), 502, "upstream_error", "upstream_error"),
            (Failure::Overloaded, 503, "server_error", "overloaded"),
            (Failure::RateLimited("requests per minute".into(), Again::Never), 429, "rate_limit_error", "rate_limit_exceeded"),
            (Failure::BudgetExhausted("x".into(), Again::Never), 429, "insufficient_quota", "insufficient_quota"),
            (Failure::Unpriced("m".into()), 403, "permission_error", "model_not_allowed"),
            (Failure::Closed("x".into()), 503, "server_error", "overloaded"),
            (Failure::ShuttingDown, 503, "server_error", "shutting_down"),
            (Failure::UpstreamTimeout("first_byte_timeout"), 504, "upstream_error", "upstream_timeout"),
            (Failure::Internal("x"), 500, "server_error", "internal_error"),
        ];
        for (failure, status, kind, code) in table {
            let body: Value = serde_json::from_str(&failure.body()).unwrap();
            let seen = (failure.status().as_u16(), body["error"]["type"].as_str(), body["error"]["code"].as_str());
            assert_eq!(seen, (status, Some(kind), Some(code)));
            assert!(body["error"]["message"].as_str().is_some_and(|message| message.ends_with('.')));
        }
    }

    #[test]
    fn a_field_is_named_as_the_param() {
        let body: Value = serde_json::from_str(&Failure::InvalidRequest("messages", "is required".into()).body()).unwrap();
        assert_eq!(body["error"]["param"], "messages");
        let body: Value = serde_json::from_str(&Failure::NotFound.body()).unwrap();
        assert_eq!(body["error"]["param"], Value::Null);
    }
}
