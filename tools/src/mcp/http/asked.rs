//! What a message of ours wants, and how long that may take.

use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use toolgate_config::mcp::McpServer;

/// How much later than whoever waits for a call its transport gives up, so that it is the one who waits that says so.
const SLACK: Duration = Duration::from_secs(1);

/// What a message wants.
#[derive(Debug)]
pub(super) enum Asked {
    /// An answer.
    Answer { id: RequestId, what: What },
    /// Nothing: it tells something.
    Nothing,
    /// Nothing: it answers a request of the server's.
    NothingReplying,
}

/// What an answer is wanted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Whether a session may begin.
    Beginning,
    /// What the server speaks.
    Discovery,
    /// The call of a tool.
    Call,
    /// Something that may be asked twice.
    Question,
}

impl Asked {
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Self {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let what = match &request.request {
                    ClientRequest::InitializeRequest(_) => What::Beginning,
                    ClientRequest::DiscoverRequest(_) => What::Discovery,
                    ClientRequest::CallToolRequest(_) => What::Call,
                    _ => What::Question,
                };
                Self::Answer { id: request.id.clone(), what }
            }
            ClientJsonRpcMessage::Notification(_) => Self::Nothing,
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => Self::NothingReplying,
        }
    }

    pub(super) fn begins(&self) -> bool {
        matches!(self, Self::Answer { what: What::Beginning, .. })
    }

    pub(super) fn may_be_sent_twice(&self) -> bool {
        !matches!(self, Self::Answer { what: What::Call, .. })
    }

    /// How long the head of the answer, or all of it where it is one piece, may take to come.
    pub(super) fn within(&self, limits: Limits) -> Duration {
        match self {
            Self::Answer { what: What::Call, .. } => limits.call,
            _ => limits.question,
        }
    }
}

/// How long answers may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// To what is no call.
    question: Duration,
    /// To a call: it has its own limit, set by whoever waits for it, and this is longer than any.
    call: Duration,
}

impl Limits {
    pub(super) fn of(server: &McpServer) -> Self {
        let rules = server.only.iter().flatten().map(|(_, rule)| rule).chain([&server.rule]);
        let call = rules.map(|rule| rule.timeout).fold(server.timeout, Duration::max) + SLACK;
        Self { question: server.timeout, call }
    }
}
