//! Why a server has no answer for us. None of it holds a word of what the server said.

use std::error::Error;
use std::fmt;

use http::StatusCode;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use toolgate_policies::egress::EgressRefusal;

use crate::net::NetError;

/// The code of an error of our own that stands for an answer that was cut off. Servers' own codes of this range are for what they define,
/// and none of them is this one; a server that sends it all the same has only its own call taken for lost.
const CUT: ErrorCode = ErrorCode(-32_095);

/// The same for an answer that came and was none.
const UNREADABLE: ErrorCode = ErrorCode(-32_096);

/// The same for an answer that was longer than is read.
const TOO_LARGE: ErrorCode = ErrorCode(-32_097);

/// What the SDK says, under a general code, where a new session was begun while an answer was still to come in the old one.
const SESSION_BEGUN_ANEW: &str = "streamable HTTP session was re-initialized before the response arrived";

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mcp) enum Failure {
    /// The operator does not let the server's group connect there.
    Egress(EgressRefusal),
    /// It could not be asked, or its answer did not come whole.
    Net(NetError),
    /// It answered with this status and nothing that counts.
    Status(u16),
    /// The session is over, and a new one was over too.
    SessionOver,
    /// A new session was begun while the answer was still to come.
    SessionBegunAnew,
    /// The answer was cut off, and cannot be had again.
    Cut,
    /// What came is no answer.
    Unreadable,
    /// It is longer than is read.
    TooLarge,
    /// Time was over.
    Late,
}

impl Failure {
    /// Whether the server may have done what it was asked to, as far as can be known.
    pub(in crate::mcp) fn may_have_acted(self) -> bool {
        match self {
            Self::Egress(_) | Self::SessionOver => false,
            Self::Net(error) => !error.is_connect(),
            Self::Status(status) => status >= 500,
            Self::SessionBegunAnew | Self::Cut | Self::Unreadable | Self::TooLarge | Self::Late => true,
        }
    }

    /// Whether something has come that was to be the answer: asking again would bring the same.
    pub(in crate::mcp) fn is_an_answer(self) -> bool {
        matches!(self, Self::Unreadable | Self::TooLarge)
    }

    /// What is told of an error that the transport gave; `None`: it is somebody else's.
    pub(in crate::mcp) fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<StreamableHttpError<Self>>() {
                return Some(Self::of_transport(error));
            }
            next = match error.downcast_ref::<ClientInitializeError>() {
                Some(ClientInitializeError::TransportError { error, .. }) => Some(error.error.as_ref()),
                _ => error.source(),
            };
        }
        None
    }

    /// What is told of an error that stands in an answer's place; `None`: the server itself says it.
    pub(in crate::mcp) fn of_answer(error: &ErrorData) -> Option<Self> {
        match error.code {
            CUT => Some(Self::Cut),
            UNREADABLE => Some(Self::Unreadable),
            TOO_LARGE => Some(Self::TooLarge),
            ErrorCode::INTERNAL_ERROR if error.message == SESSION_BEGUN_ANEW => Some(Self::SessionBegunAnew),
            _ => None,
        }
    }

    /// The error that stands in an answer's place.
    pub(super) fn in_place(self) -> ErrorData {
        let code = match self {
            Self::Cut => CUT,
            Self::TooLarge => TOO_LARGE,
            _ => UNREADABLE,
        };
        ErrorData::new(code, self.to_string(), None)
    }

    fn of_transport(error: &StreamableHttpError<Self>) -> Self {
        match error {
            StreamableHttpError::Client(failure) => *failure,
            StreamableHttpError::HttpStatus(error) => Self::Status(error.status),
            StreamableHttpError::SessionExpired => Self::SessionOver,
            StreamableHttpError::SessionRecoveryTimeout | StreamableHttpError::ControlRequestTimeout => Self::Late,
            StreamableHttpError::ResponseBodyTooLarge { .. } => Self::TooLarge,
            StreamableHttpError::ServerDoesNotSupportSse => Self::Status(StatusCode::METHOD_NOT_ALLOWED.as_u16()),
            StreamableHttpError::UnexpectedServerResponse(_) | StreamableHttpError::Deserialize(_) => Self::Unreadable,
            _ => Self::Cut,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Egress(refusal) => return write!(f, "the group may not connect there: {}", refusal.as_str()),
            Self::Net(error) => return error.fmt(f),
            Self::Status(status) => return write!(f, "status {status}"),
            Self::SessionOver => "the session is over, and so is the one after it",
            Self::SessionBegunAnew => "a new session was begun before the answer came",
            Self::Cut => "the answer was cut",
            Self::Unreadable => "what came is no answer",
            Self::TooLarge => "the answer is too large",
            Self::Late => "no answer in time",
        })
    }
}

impl Error for Failure {}

impl From<NetError> for Failure {
    fn from(error: NetError) -> Self {
        match error {
            NetError::TooLarge => Self::TooLarge,
            NetError::Refused(refusal) => Self::Egress(refusal),
            other => Self::Net(other),
        }
    }
}

impl From<Failure> for StreamableHttpError<Failure> {
    fn from(failure: Failure) -> Self {
        Self::Client(failure)
    }
}
