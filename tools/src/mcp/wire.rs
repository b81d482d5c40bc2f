//! What passes between us and a server as bytes, where `rmcp` would change it: the arguments of a call go out as the model wrote them, and
//! the result of one comes in as the server wrote it, digit for digit. `rmcp` carries both without looking.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorData, GetExtensions, JsonRpcMessage, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerResult,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::arguments::compact;

/// What goes along with a request of ours, unseen by `rmcp`: its arguments as written, and how far it has come.
#[derive(Clone, Debug)]
pub(super) struct Ticket(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    arguments: Option<Box<RawValue>>,
    stage: AtomicU16,
}

/// How far a request has come. An HTTP status stands for itself.
const WAITING: u16 = 0;
const BEGUN: u16 = 1;
const ABANDONED: u16 = 2;
const UNTAKEN: u16 = 3;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing of it has been written, or the server certainly did not take it.
    Untaken,
    /// It was written, or part of it.
    Begun,
    /// It was answered with this HTTP status, and nothing else.
    Answered(u16),
}

impl Ticket {
    /// For a request without arguments of its own.
    pub(super) fn plain() -> Self {
        Self::new(None)
    }

    /// For a call with these arguments, a JSON object.
    ///
    /// # Errors
    /// It is no JSON.
    pub(super) fn with(arguments: &str) -> Result<Self, serde_json::Error> {
        // A message is a line: blanks between tokens go, the tokens stay.
        RawValue::from_string(compact(arguments)).map(|arguments| Self::new(Some(arguments)))
    }

    fn new(arguments: Option<Box<RawValue>>) -> Self {
        Self(Arc::new(Inside { arguments, stage: AtomicU16::new(WAITING) }))
    }

    /// How far it has come.
    pub(super) fn stage(&self) -> Stage {
        match self.0.stage.load(Ordering::Acquire) {
            WAITING | ABANDONED | UNTAKEN => Stage::Untaken,
            BEGUN => Stage::Begun,
            status => Stage::Answered(status),
        }
    }

    /// Nobody waits for it any more. Whether nothing of it has been written: then nothing of it will be.
    pub(super) fn abandon(&self) -> bool {
        self.0.stage.compare_exchange(WAITING, ABANDONED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The transport is about to write it, or to write it again where it was refused; `false`: it must not.
    fn begin(&self) -> bool {
        let begun = |stage| matches!(stage, WAITING | UNTAKEN).then_some(BEGUN);
        self.0.stage.fetch_update(Ordering::AcqRel, Ordering::Acquire, begun).is_ok()
    }

    /// Whether it was written before, and certainly not taken.
    pub(super) fn was_refused(&self) -> bool {
        self.0.stage.load(Ordering::Acquire) == UNTAKEN
    }

    /// The transport knows that the server did not take what it was to write: there was no connection, or no such session.
    pub(super) fn untaken(&self) {
        self.0.stage.store(UNTAKEN, Ordering::Release);
    }

    /// The server's front answered with this status and nothing that belongs to the protocol.
    pub(super) fn answered(&self, status: u16) {
        self.0.stage.store(status.max(100), Ordering::Release);
    }
}

/// The ticket of a request that carries one.
pub(super) fn ticket(message: &ClientJsonRpcMessage) -> Option<&Ticket> {
    match message {
        JsonRpcMessage::Request(request) => request.request.extensions().get::<Ticket>(),
        _ => None,
    }
}

/// Why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsendable {
    /// Nobody waits for its answer any more.
    Abandoned,
    /// It cannot be written as JSON.
    Encoding,
}

/// The message as JSON in one line, without its end. From here on it counts as sent.
///
/// # Errors
/// See [`Unsendable`].
pub(super) fn encode(message: &ClientJsonRpcMessage) -> Result<Vec<u8>, Unsendable> {
    let ticket = ticket(message);
    let json = match (message, ticket.and_then(|ticket| ticket.0.arguments.as_deref())) {
        (JsonRpcMessage::Request(request), Some(arguments)) => match &request.request {
            ClientRequest::CallToolRequest(call) => serde_json::to_vec(&RawCall {
                jsonrpc: "2.0",
                id: &request.id,
                method: "tools/call",
                params: RawParams { meta: call.extensions.get::<RequestMetaObject>(), name: &call.params.name, arguments },
            }),
            _ => serde_json::to_vec(message),
        },
        _ => serde_json::to_vec(message),
    };
    let json = json.map_err(|_| Unsendable::Encoding)?;
    match ticket.is_none_or(Ticket::begin) {
        true => Ok(json),
        false => Err(Unsendable::Abandoned),
    }
}

#[derive(Serialize)]
struct RawCall<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    method: &'static str,
    params: RawParams<'a>,
}

#[derive(Serialize)]
struct RawParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RequestMetaObject>,
    name: &'a str,
    arguments: &'a RawValue,
}

/// Reads one message. The result of a call is handed on as the text that came; an answer that cannot be read becomes an error under its own
/// id, so that whoever waits for it hears of it.
///
/// # Errors
/// It is no message.
pub(super) fn decode(json: &str) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    let envelope = serde_json::from_str::<Envelope<'_>>(json);
    if let Ok(Envelope { id: Some(id), method: None, result: Some(result) }) = envelope {
        if serde_json::from_str::<Shape>(result.get()).is_ok_and(|shape| shape.is_of_a_call()) {
            return Ok(ServerJsonRpcMessage::response(packed(result), id));
        }
        let unread = || ServerJsonRpcMessage::error(ErrorData::internal_error("unreadable", None), Some(id));
        return Ok(serde_json::from_str(json).unwrap_or_else(|_| unread()));
    }
    serde_json::from_str(json)
}

fn packed(result: &RawValue) -> ServerResult {
    ServerResult::CustomResult(CustomResult(Value::String(result.get().to_owned())))
}

/// Whether [`decode`] has kept a result as the text that came.
pub(super) fn is_packed(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Response(response) if matches!(&response.result, ServerResult::CustomResult(CustomResult(Value::String(_)))))
}

/// The result of a call as JSON: as it came, if [`decode`] has read it.
pub(super) fn unpacked(result: ServerResult) -> Result<String, serde_json::Error> {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(json))) => Ok(json),
        other => serde_json::to_string(&other),
    }
}

#[derive(Deserialize)]
struct Envelope<'t> {
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
    #[serde(borrow)]
    result: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct Shape {
    content: Option<IgnoredAny>,
    #[serde(rename = "structuredContent", default, deserialize_with = "present")]
    structured: bool,
    #[serde(rename = "isError")]
    is_error: Option<IgnoredAny>,
}

impl Shape {
    /// No other result that we ask for has one of these.
    fn is_of_a_call(&self) -> bool {
        self.content.is_some() || self.structured || self.is_error.is_some()
    }
}

/// `null` is a value here.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(from).map(|_| true)
}
