//! A stream of messages over an answer's body: what of it the session reads, and how it ends. It never ends in an error: what can be taken
//! up again is taken up after a pause, however it broke off, and a request whose answer cannot come any more gets an error in its place.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::stream::{self, BoxStream, StreamExt};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use tokio::time::{Instant, timeout_at};

use super::client::Inner;
use super::events::{Event, Reader, TooLarge};
use super::failure::Failure;
use super::sieve::{self, Passed};
use super::{LONGEST_MESSAGE, LONGEST_SILENCE, LONGEST_WAIT, pause};
use crate::net::AnswerBody;

/// What the session reads.
pub(super) type Messages = BoxStream<'static, Result<Sse, SseError>>;

/// What a stream is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The answer to one request, and what belongs to it.
    Answer(RequestId),
    /// Whatever the server has to say, or the rest of a stream that had broken off.
    Listening,
}

/// The messages of a body, until `until` where that is given.
pub(super) fn messages(inner: Arc<Inner>, body: AnswerBody, purpose: Purpose, until: Option<Instant>) -> Messages {
    let stream = Stream {
        inner,
        body,
        purpose,
        until,
        reader: Reader::new(LONGEST_MESSAGE),
        piece: Bytes::new(),
        resumable: false,
        retry: None,
        progress: Progress::Silent,
    };
    stream::unfold(stream, |stream| async { stream.next().await.map(|(event, stream)| (Ok(event), stream)) }).boxed()
}

struct Stream {
    inner: Arc<Inner>,
    body: AnswerBody,
    purpose: Purpose,
    until: Option<Instant>,
    reader: Reader,
    piece: Bytes,
    /// There was an event with an id.
    resumable: bool,
    /// What the server last asked us to wait for.
    retry: Option<Duration>,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing has come that anybody needs.
    Silent,
    /// Something has.
    Heard,
    /// The answer has.
    Answered,
    /// There is nothing more.
    Over,
}

impl Stream {
    async fn next(mut self) -> Option<(Sse, Self)> {
        while self.progress != Progress::Over {
            let passed = match self.read() {
                Ok(Some(event)) => self.pass(event),
                Ok(None) => match self.chunk().await {
                    Some(piece) => {
                        self.piece = piece;
                        None
                    }
                    None => self.end(Failure::Cut),
                },
                Err(TooLarge) => self.end(Failure::TooLarge),
            };
            if let Some(sse) = passed {
                return Some((sse, self));
            }
        }
        None
    }

    /// The next event of what has come.
    fn read(&mut self) -> Result<Option<Event>, TooLarge> {
        let mut rest = &self.piece[..];
        let read = self.reader.read(&mut rest);
        let taken = self.piece.len() - rest.len();
        self.piece.advance(taken);
        read
    }

    /// What comes next; `None`: nothing more, whyever.
    async fn chunk(&mut self) -> Option<Bytes> {
        let idle = match self.purpose {
            // Whoever waits for it knows when to stop.
            Purpose::Answer(_) => LONGEST_WAIT,
            Purpose::Listening => LONGEST_SILENCE,
        };
        let chunk = self.body.chunk(idle);
        let outcome = match self.until {
            Some(until) => timeout_at(until, chunk).await.ok()?,
            None => chunk.await,
        };
        outcome.ok().flatten()
    }

    /// What the session gets of an event.
    fn pass(&mut self, event: Event) -> Option<Sse> {
        self.resumable |= event.id.is_some();
        self.retry = event.retry.or(self.retry);
        let data = event.data.filter(|data| !event.other && !data.is_empty()).and_then(|data| self.sift(data));
        let sse = Sse { event: None, data, id: event.id, retry: event.retry.map(milliseconds) };
        (sse != Sse::default()).then_some(sse)
    }

    fn sift(&mut self, data: String) -> Option<String> {
        let id = match &self.purpose {
            Purpose::Answer(id) => Some(id),
            Purpose::Listening => None,
        };
        // What looks like a message and is none was meant to be the answer; what does not is a server's small talk.
        let meant = data.starts_with(['{', '[']);
        let (text, progress) = match (self.inner.sieve.pass(data, id), id) {
            (Passed::Answer(text), _) => (text, Progress::Answered),
            (Passed::Other(text), _) => (text, Progress::Heard),
            (Passed::Unreadable, Some(id)) if meant => (sieve::in_place(Failure::Unreadable, id), Progress::Answered),
            (Passed::Nothing | Passed::Unreadable, _) => return None,
        };
        if self.progress != Progress::Answered {
            self.progress = progress;
        }
        Some(text)
    }

    /// The last thing that the session gets: the error in an answer's place, or how long to wait before it asks again.
    fn end(&mut self, why: Failure) -> Option<Sse> {
        let progress = std::mem::replace(&mut self.progress, Progress::Over);
        if progress == Progress::Answered && matches!(self.purpose, Purpose::Answer(_)) {
            return None;
        }
        if let Purpose::Answer(id) = &self.purpose
            && (why == Failure::TooLarge || !self.resumable)
        {
            return Some(Sse { data: Some(sieve::in_place(why, id)), ..Sse::default() });
        }
        let useless = progress == Progress::Silent || why == Failure::TooLarge;
        let before = self.inner.came_to_nothing(useless);
        let wait = self.retry.max((before > 0).then(|| pause(before)));
        wait.map(|wait| Sse { retry: Some(milliseconds(wait)), ..Sse::default() })
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
