//! What of a server's messages goes on to the session, and what does not. We declare no capability, so little of what a server may send is
//! meant for us, and none of it may pile up.

use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::super::wire;
use super::failure::Failure;

/// How many of a server's own requests may wait for our reply. We have nothing to say but that we are there, so nobody needs more.
const MOST_ASKED: usize = 32;

/// What of a server's messages is heard.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    asked: AtomicUsize,
}

impl Sieve {
    /// A session has begun: what was asked in another is nobody's concern.
    pub(super) fn begin(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }

    /// A reply to one of the server's requests is on its way.
    pub(super) fn replied(&self) {
        let _ = self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |asked| asked.checked_sub(1));
    }

    /// The message as the session may read it. On a stream that is for the answer to one request, `id`, no other answer is heard.
    pub(super) fn pass(&self, text: String, id: Option<&RequestId>) -> Passed {
        match Kind::of(&text) {
            None => Passed::Unreadable,
            Some(Kind::Answer(answered)) => match answer(&text, answered, id) {
                Answer::Another => Passed::Nothing,
                Answer::AsItIs(message) if wire::is_packed(&message) => {
                    Passed::Answer(serde_json::to_string(&message).unwrap_or_default())
                }
                Answer::AsItIs(_) => Passed::Answer(text),
                Answer::Instead(message) => Passed::Answer(serde_json::to_string(&message).unwrap_or_default()),
            },
            Some(Kind::Request) if self.asked.fetch_add(1, Ordering::Relaxed) < MOST_ASKED => Passed::Other(text),
            Some(Kind::Request) => {
                self.replied();
                Passed::Nothing
            }
            Some(Kind::Chatter) => Passed::Nothing,
            Some(Kind::Notification) => Passed::Other(text),
        }
    }
}

/// The answer to one request, where that is all that a text is; `None`: it is something else.
pub(super) fn answer_to(text: &str, id: &RequestId) -> Option<ServerJsonRpcMessage> {
    let Kind::Answer(answered) = Kind::of(text)? else { return None };
    match answer(text, answered, Some(id)) {
        Answer::Another => None,
        Answer::AsItIs(message) | Answer::Instead(message) => Some(message),
    }
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// It answers a request of ours.
    Answer(String),
    /// It is something else that the session needs.
    Other(String),
    /// Nobody needs it.
    Nothing,
    /// It is no message.
    Unreadable,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// To the request of this id, if it has one.
    Answer(Option<RequestId>),
    Request,
    Notification,
    /// A notification that nobody here listens to.
    Chatter,
}

#[derive(Deserialize)]
struct Outline<'m> {
    method: Option<String>,
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl Kind {
    fn of(text: &str) -> Option<Self> {
        let outline: Outline<'_> = serde_json::from_str(text).ok()?;
        match (outline.method.as_deref(), outline.id) {
            (None, None) if outline.result.is_none() && outline.error.is_none() => None,
            (None, id) => Some(Self::Answer(id.and_then(|id| serde_json::from_str(id.get()).ok()))),
            (Some(_), Some(_)) => Some(Self::Request),
            (Some("notifications/progress" | "notifications/message" | "notifications/resources/updated"), None) => {
                Some(Self::Chatter)
            }
            (Some(_), None) => Some(Self::Notification),
        }
    }
}

enum Answer {
    AsItIs(ServerJsonRpcMessage),
    /// What stands in its place.
    Instead(ServerJsonRpcMessage),
    /// To another request.
    Another,
}

/// An answer that the session could not read would be skipped by it, and whoever waits for it would wait in vain. An error without an id is
/// about the one request that there is.
fn answer(text: &str, answered: Option<RequestId>, id: Option<&RequestId>) -> Answer {
    if let (Some(answered), Some(id)) = (&answered, id)
        && answered.to_string() != id.to_string()
    {
        return Answer::Another;
    }
    match (wire::decode(text), answered.as_ref().or(id)) {
        (Ok(ServerJsonRpcMessage::Error(error)), Some(id)) if error.id.is_none() => {
            Answer::Instead(ServerJsonRpcMessage::error(error.error, Some(id.clone())))
        }
        (Ok(message), _) => Answer::AsItIs(message),
        (Err(_), id) => Answer::Instead(ServerJsonRpcMessage::error(Failure::Unreadable.in_place(), id.cloned())),
    }
}

/// The message that stands in the place of the answer to a request.
pub(super) fn in_place(failure: Failure, id: &RequestId) -> String {
    serde_json::to_string(&ServerJsonRpcMessage::error(failure.in_place(), Some(id.clone()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_session_needs_goes_on() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "answer"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#, "answer"),
            (r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#, "answer"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "other"),
            (r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, "other"),
            (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#, "nothing"),
            (r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#, "nothing"),
            ("", "unreadable"),
            ("ping", "unreadable"),
            ("{}", "unreadable"),
            ("[]", "unreadable"),
            (r#"{"id":1,"id":2}"#, "unreadable"),
        ];
        for (text, expected) in table {
            let (word, kept) = match Sieve::default().pass(text.to_owned(), None) {
                Passed::Answer(kept) => ("answer", kept),
                Passed::Other(kept) => ("other", kept),
                Passed::Nothing => ("nothing", text.to_owned()),
                Passed::Unreadable => ("unreadable", text.to_owned()),
            };
            assert_eq!((word, kept.as_str()), (expected, text));
        }
    }

    #[test]
    fn an_answer_that_is_none_becomes_an_error_of_the_same_id() {
        let broken = [
            r#"{"jsonrpc":"2.0","id":"7","error":"SECRET"}"#,
            r#"{"jsonrpc":"1.0","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","error":{"code":99999999999,"message":"SECRET"}}"#,
        ];
        for text in broken {
            let Passed::Answer(instead) = Sieve::default().pass(text.to_owned(), None) else { panic!("{text}") };
            assert!(instead.contains(r#""id":"7""#) && !instead.contains("SECRET"), "{instead}");
        }
    }

    #[test]
    fn a_flood_of_questions_is_heard_only_as_far_as_it_is_answered() {
        let sieve = Sieve::default();
        let ask = || sieve.pass(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(), None) != Passed::Nothing;
        assert_eq!((0..1000).filter(|_| ask()).count(), MOST_ASKED);
        sieve.replied();
        assert_eq!((0..1000).filter(|_| ask()).count(), 1);
        sieve.begin();
        sieve.replied();
        assert_eq!((0..1000).filter(|_| ask()).count(), MOST_ASKED);
    }

    #[test]
    fn an_answer_is_known_by_its_id_and_an_error_without_one_is_the_only_requests() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Some(true)),
            (r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, Some(true)),
            (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#, Some(false)),
            (r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#, Some(false)),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, None),
            ("[]", None),
        ];
        for (text, expected) in table {
            let answer = answer_to(text, &RequestId::Number(7));
            let is_result = answer.map(|answer| matches!(answer, ServerJsonRpcMessage::Response(_)));
            assert_eq!(is_result, expected, "{text}");
        }
        let sieve = Sieve::default();
        let other = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#.to_owned();
        assert_eq!(sieve.pass(other.clone(), Some(&RequestId::Number(7))), Passed::Nothing);
        assert_eq!(sieve.pass(other.clone(), None), Passed::Answer(other));
    }
}
