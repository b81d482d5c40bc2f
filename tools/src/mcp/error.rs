//! Why a call of an MCP server has no answer. None of it holds what a server said, an address, or a credential.

use std::fmt;

use toolgate_policies::egress::EgressRefusal;

use super::http::Failure;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The server cannot be reached, and was not sent the call.
    Down,
    /// The group may not connect to where the server is.
    Denied(EgressRefusal),
    /// The call went wrong, and cannot have changed anything.
    Failed,
    /// The session ended under a call that may have changed something; it is not made twice.
    Unknown,
    /// Time ran out.
    TimedOut {
        /// The server may have begun with it.
        sent: bool,
    },
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "the server cannot be reached",
            Self::Denied(_) => "the group may not connect to the server",
            Self::Failed => "the call failed",
            Self::Unknown => "the session ended under the call",
            Self::TimedOut { sent: true } => "no answer in time",
            Self::TimedOut { sent: false } => "it could not be sent in time",
        })
    }
}

impl std::error::Error for CallError {}

/// Why a session did not come about: for logs and listings, in our own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreachable {
    /// The program could not be started.
    Start(std::io::ErrorKind),
    /// It did not greet in time.
    Late,
    /// It left before it had greeted.
    Gone,
    /// HTTP did not bring us there, or brought no greeting back.
    Http(Failure),
    /// It answered the greeting with an error of this code.
    Refused(i32),
    /// It speaks no version of the protocol that we speak.
    Version,
    /// What it said is not the protocol.
    Strange,
}

impl Unreachable {
    /// The rule that keeps the group from connecting there.
    pub(super) const fn denied(&self) -> Option<EgressRefusal> {
        match self {
            Self::Http(Failure::Egress(refusal)) => Some(*refusal),
            _ => None,
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(kind) => write!(f, "it could not be started: {kind}"),
            Self::Late => f.write_str("it did not greet in time"),
            Self::Gone => f.write_str("it left before it had greeted"),
            Self::Http(failure) => failure.fmt(f),
            Self::Refused(code) => write!(f, "it refused the greeting with error {code}"),
            Self::Version => f.write_str("it speaks no version of the protocol that is known here"),
            Self::Strange => f.write_str("it does not speak the protocol"),
        }
    }
}

/// Why an asked server has not answered one request.
#[derive(Clone, Debug)]
pub(super) enum Lost {
    /// The session is over, and the server cannot have taken the request.
    Untaken,
    /// The session is over, and the server may have taken it.
    Taken,
    /// Time ran out.
    Late {
        /// It had been sent, or part of it.
        sent: bool,
    },
    /// The server said no in its own way: an error of this code, with this text.
    Said {
        /// The code of JSON-RPC.
        code: i32,
        /// The server's own words.
        text: String,
    },
    /// The server's front answered with this status instead.
    Status(u16),
    /// What came is not an answer.
    Strange,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untaken | Self::Taken => f.write_str("the session ended"),
            Self::Late { .. } => f.write_str("no answer in time"),
            Self::Said { code, .. } => write!(f, "an answer with error {code}"),
            Self::Status(status) => write!(f, "an answer with status {status}"),
            Self::Strange => f.write_str("an answer that cannot be read"),
        }
    }
}
