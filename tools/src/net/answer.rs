//! An answer: its head, and its body as it comes.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::response::Parts;
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::error::NetError;
use super::link::Link;
use super::unpack::{self, Unpacker};

/// An answer whose head has come.
#[derive(Debug)]
pub struct Answer {
    /// Status and headers, as they came; but of a body that came packed, only what is true of it unpacked.
    pub head: Parts,
    /// What follows.
    pub body: AnswerBody,
}

/// The body of an answer. Read to its end, its connection serves the next request; dropped before, its connection is closed.
#[derive(Debug)]
pub struct AnswerBody {
    /// `None` once the body is over, well or badly.
    link: Option<Box<Link>>,
    incoming: Incoming,
    packing: Packing,
    /// Whether the alarm is set for the wait that is going on. A wait ends with a chunk, not with the call that waits for it, so that
    /// someone who looks in between does not give a silent server more time.
    waiting: bool,
}

/// What was done to a body before it was sent.
#[derive(Debug)]
pub(super) enum Packing {
    /// Nothing.
    None,
    /// Something that can be undone.
    Known(Box<Unpacker>),
    /// Something that nobody here knows.
    Unknown,
}

impl Packing {
    /// What the headers of an answer say. Those that are not true of its unpacked body are removed.
    pub(super) fn of(headers: &mut HeaderMap) -> Self {
        let packing = match Unpacker::of(headers) {
            Ok(None) => return Self::None,
            Ok(Some(unpacker)) => Self::Known(Box::new(unpacker)),
            Err(unpack::Unknown) => Self::Unknown,
        };
        unpack::relabel(headers);
        packing
    }
}

impl AnswerBody {
    pub(super) fn new(link: Box<Link>, incoming: Incoming, packing: Packing) -> Self {
        let mut body = Self { link: Some(link), incoming, packing, waiting: false };
        if body.incoming.is_end_stream() {
            body.packing = Packing::None;
            body.give_back();
        }
        body
    }

    /// How long the body is going to be, where its head says so.
    pub fn expected(&self) -> Option<u64> {
        self.incoming.size_hint().exact().filter(|_| matches!(self.packing, Packing::None))
    }

    /// The next piece, never empty; `None` at a clean end. `idle` is counted from when it was first waited for. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// [`NetError::IdleTimeout`], or as [`AnswerBody::poll_chunk`]; after any there is nothing more.
    pub async fn chunk(&mut self, idle: Duration) -> Result<Option<Bytes>, NetError> {
        std::future::poll_fn(|cx| match self.poll_chunk(cx) {
            Poll::Pending => self.poll_idle(cx, idle),
            ready => ready,
        })
        .await
    }

    /// The next piece if there is one; otherwise the task is woken when there may be. For taking all that has come without waiting.
    ///
    /// # Errors
    /// [`NetError::Cut`]; of a packed body also [`NetError::Packing`], and [`NetError::TooLarge`] where it is one that only floods.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, NetError>> {
        loop {
            if let Some(outcome) = self.unpacked() {
                return Poll::Ready(outcome.or_else(|error| self.fail(error)));
            }
            let received = ready!(self.poll_received(cx))?;
            let Packing::Known(unpacker) = &mut self.packing else { return Poll::Ready(Ok(received)) };
            let taken = match received {
                Some(packed) => unpacker.feed(packed),
                None if unpacker.is_whole() => return Poll::Ready(Ok(None)),
                None => Err(NetError::Cut),
            };
            if let Err(error) = taken {
                return Poll::Ready(self.fail(error));
            }
        }
    }

    /// What can be unpacked of what has come; `None`: nothing, until more has come.
    fn unpacked(&mut self) -> Option<Result<Option<Bytes>, NetError>> {
        match &mut self.packing {
            Packing::None => None,
            Packing::Known(unpacker) => unpacker.next().transpose().map(|piece| piece.map(Some)),
            Packing::Unknown => Some(Err(NetError::Packing)),
        }
    }

    /// The next piece as it came.
    fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, NetError>> {
        let mut driven = false;
        loop {
            let Some(link) = &mut self.link else { return Poll::Ready(Ok(None)) };
            match link.take(&mut self.incoming) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) {
                        self.waiting = false;
                        // The last byte of an announced length: nobody has to ask once more for the connection to go back.
                        if self.incoming.is_end_stream() {
                            self.give_back();
                        }
                        return Poll::Ready(Ok(Some(data)));
                    }
                    driven = false;
                }
                Poll::Ready(None) => {
                    self.give_back();
                    return Poll::Ready(Ok(None));
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(self.fail(NetError::Cut)),
                Poll::Pending if link.ended() => return Poll::Ready(self.fail(NetError::Cut)),
                Poll::Pending if driven => return Poll::Pending,
                Poll::Pending => {
                    link.drive(cx);
                    driven = true;
                }
            }
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`AnswerBody::chunk`]; [`NetError::TooLarge`] if it is longer than `limit` bytes.
    pub async fn whole(mut self, limit: usize, idle: Duration) -> Result<Bytes, NetError> {
        if self.expected().is_some_and(|length| length > limit as u64) {
            return Err(NetError::TooLarge);
        }
        let Some(first) = self.chunk(idle).await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk(idle).await? else { return bounded(first, limit) };
        let mut all = BytesMut::from(first);
        let mut next = Some(second);
        while let Some(piece) = next {
            if all.len() + piece.len() > limit {
                return Err(NetError::TooLarge);
            }
            all.extend_from_slice(&piece);
            next = self.chunk(idle).await?;
        }
        Ok(all.freeze())
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>, idle: Duration) -> Poll<Result<Option<Bytes>, NetError>> {
        let Some(link) = &mut self.link else { return Poll::Ready(Ok(None)) };
        if !self.waiting {
            self.waiting = true;
            link.alarm().set(Instant::now() + idle);
        }
        match link.alarm().poll(cx) {
            Poll::Ready(()) => Poll::Ready(self.fail(NetError::IdleTimeout)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn give_back(&mut self) {
        if let Some(link) = self.link.take() {
            link.give_back();
        }
    }

    fn fail(&mut self, error: NetError) -> Result<Option<Bytes>, NetError> {
        (self.link, self.packing) = (None, Packing::None);
        Err(error)
    }
}

fn bounded(all: Bytes, limit: usize) -> Result<Bytes, NetError> {
    if all.len() > limit { Err(NetError::TooLarge) } else { Ok(all) }
}
