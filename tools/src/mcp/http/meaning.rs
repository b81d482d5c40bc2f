//! What an answer's status and form mean.

use std::borrow::Cow;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, StatusCode};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError, StreamableHttpPostResponse};

use super::asked::What;
use super::failure::Failure;
use super::sieve::answer_to;
use crate::net::AnswerBody;

/// The session's name, in both directions.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What a server may call a session at most, in bytes: room for a signed token.
const LONGEST_SESSION: usize = 4096;

/// How much is read of what goes with a refusal, in bytes, and how much of what nobody asked for, so that its connection may serve again.
const LONGEST_ASIDE: usize = 64 * 1024;

/// How long it is read.
const ASIDE: Duration = Duration::from_secs(1);

/// Why there is no answer.
pub(super) type Error = StreamableHttpError<Failure>;

/// What an answer's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Events,
    Other,
}

impl Form {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(CONTENT_TYPE) else { return Self::Json };
        let essence = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let is = |name: &str| essence.eq_ignore_ascii_case(name.as_bytes());
        match () {
            () if is("application/json") || is("application/json-rpc") => Self::Json,
            () if is("text/event-stream") => Self::Events,
            () => Self::Other,
        }
    }
}

/// How the server calls the session, if it does. What it says comes back to it in every request.
pub(super) fn session_of(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(value) = headers.get(SESSION) else { return Ok(None) };
    let is_name = (1..=LONGEST_SESSION).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic);
    match value.to_str() {
        Ok(name) if is_name => Ok(Some(name.to_owned())),
        _ => Err(Failure::Unreadable),
    }
}

/// What becomes of a message that wants nothing. What a server says to it is not read, or only for its connection's sake.
pub(super) async fn settled(status: StatusCode, body: AnswerBody, in_session: bool) -> Result<StreamableHttpPostResponse, Error> {
    if status.is_success() {
        if body.expected().is_some_and(|length| length <= LONGEST_ASIDE as u64) {
            let _ = body.whole(LONGEST_ASIDE, ASIDE).await;
        }
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    Err(if status == StatusCode::NOT_FOUND && in_session { Error::SessionExpired } else { failed(status) })
}

/// Whether what goes with a status may be an answer in the protocol's own words.
pub(super) fn may_explain(status: StatusCode) -> bool {
    let of_http = [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_client_error() && !of_http.contains(&status)
}

/// The error that goes with a refusal, if one does.
pub(super) async fn refusal(body: AnswerBody, id: &RequestId, within: Duration) -> Option<ErrorData> {
    let whole = body.whole(LONGEST_ASIDE, within).await.ok()?;
    match serde_json::from_str(text(&whole).as_ref()) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
        _ => match answer_to(text(&whole).as_ref(), id)? {
            ServerJsonRpcMessage::Error(error) => Some(error.error),
            _ => None,
        },
    }
}

pub(super) fn refused(
    status: StatusCode,
    said: Option<ErrorData>,
    in_session: bool,
    id: &RequestId,
    what: &What,
) -> Result<StreamableHttpPostResponse, Error> {
    let gone = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE)
        || status == StatusCode::BAD_REQUEST && said.as_ref().is_some_and(is_about_the_session);
    if in_session && gone {
        return Err(Error::SessionExpired);
    }
    // Whoever does not know the question is of an older kind, in whatever words it says so.
    let unknown = || ErrorData::invalid_request(format!("status {}", status.as_u16()), None);
    let said = if *what == What::Discovery && may_explain(status) { Some(said.unwrap_or_else(unknown)) } else { said };
    match said {
        Some(error) => Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id.clone())), None)),
        None => Err(failed(status)),
    }
}

/// What common servers say with 400 where the protocol asks for 404. The word alone is not enough: a tool may speak of sessions of its own,
/// and a call that it has made must not be made again.
const NO_SESSION: [&str; 8] = [
    "no valid session",
    "session not found",
    "invalid session",
    "unknown session",
    "session expired",
    "session has expired",
    "session terminated",
    "missing session",
];

fn is_about_the_session(error: &ErrorData) -> bool {
    let said = error.message.to_ascii_lowercase();
    matches!(error.code.0, -32_001 | -32_000) && NO_SESSION.iter().any(|words| said.contains(words))
}

pub(super) fn failed(status: StatusCode) -> Error {
    HttpStatusError::new(status.as_u16(), None).into()
}

pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}
