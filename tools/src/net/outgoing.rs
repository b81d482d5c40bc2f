//! What a request carries: bytes that are all there, or a body that still comes from somewhere else while it is sent. The first is what nearly
//! every request has, and pays nothing for the second.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::segments::Segments;

/// A request's body. Small by itself, as its segments are.
#[derive(Debug)]
pub enum Outgoing {
    /// It is all there.
    Whole(Segments),
    /// It comes piece by piece.
    Coming(Coming),
}

/// Where a body comes from. It is asked for the next piece when the last one has been taken, so that a slow server slows down its sender.
pub trait Source: Send {
    /// The next piece; `None`: that was all.
    ///
    /// # Errors
    /// There will be no more, and it was not all: the request is broken off.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>>;

    /// How many bytes are still to come, where that is known.
    fn remaining(&self) -> Option<u64>;
}

/// A body did not come whole. Why is known to whoever brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body was broken off")
    }
}

impl std::error::Error for BrokenOff {}

impl From<Infallible> for BrokenOff {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A body that comes piece by piece.
pub struct Coming {
    source: Box<dyn Source>,
    pulse: Arc<Pulse>,
}

impl Coming {
    /// From there.
    pub fn from(source: Box<dyn Source>) -> Self {
        Self { source, pulse: Arc::default() }
    }
}

impl fmt::Debug for Coming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coming")
    }
}

/// Tells whether a body moves, for whoever would take the silence of a server that is still being written to for slowness.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    beats: AtomicU64,
    starved: AtomicBool,
}

impl Pulse {
    /// Whether something moved since the count of beats was `seen`, or the next piece is not the server's to wait for. `seen` is brought up
    /// to date.
    pub(super) fn has_moved(&self, seen: &mut u64) -> bool {
        let beats = self.beats.load(Ordering::Relaxed);
        let moved = std::mem::replace(seen, beats) != beats;
        moved || self.starved.load(Ordering::Relaxed)
    }
}

impl Outgoing {
    /// The pulse of a body that comes.
    pub(super) fn pulse(&self) -> Option<Arc<Pulse>> {
        match self {
            Self::Whole(_) => None,
            Self::Coming(coming) => Some(Arc::clone(&coming.pulse)),
        }
    }
}

impl From<Segments> for Outgoing {
    fn from(segments: Segments) -> Self {
        Self::Whole(segments)
    }
}

impl From<Bytes> for Outgoing {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes.into())
    }
}

impl Body for Outgoing {
    type Data = Segments;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Segments>, BrokenOff>>> {
        match self.get_mut() {
            Self::Whole(segments) => Pin::new(segments).poll_frame(cx).map_err(BrokenOff::from),
            Self::Coming(coming) => coming.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(segments) => segments.is_end_stream(),
            Self::Coming(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(segments) => segments.size_hint(),
            Self::Coming(coming) => coming.source.remaining().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

impl Coming {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Segments>, BrokenOff>>> {
        let polled = self.source.poll_piece(cx);
        self.pulse.starved.store(polled.is_pending(), Ordering::Relaxed);
        let piece = ready!(polled);
        self.pulse.beats.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(piece.map(|piece| piece.map(|bytes| Frame::data(bytes.into()))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::time::Duration;

    use http::{Method, Request};
    use tokio::time::{Sleep, sleep};

    use super::super::{Net, NetError, Patience};
    use super::*;
    use crate::scripted::{Event, Server, Step::*, answer};

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(60);

    /// Gives its pieces, the last one first, each after a pause; a piece that is `None` breaks off.
    struct Scripted {
        pieces: Vec<Option<&'static str>>,
        length: Option<u64>,
        pause: Duration,
        waiting: Option<Pin<Box<Sleep>>>,
    }

    impl Source for Scripted {
        fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
            let pause = self.pause;
            ready!(self.waiting.get_or_insert_with(|| Box::pin(sleep(pause))).as_mut().poll(cx));
            self.waiting = None;
            Poll::Ready(self.pieces.pop().map(|piece| piece.map(Bytes::from).ok_or(BrokenOff)))
        }

        fn remaining(&self) -> Option<u64> {
            self.length
        }
    }

    fn request(pieces: &[Option<&'static str>], length: Option<u64>, pause: Duration) -> Request<Outgoing> {
        let pieces = pieces.iter().rev().copied().collect();
        let source = Scripted { pieces, length, pause, waiting: None };
        let mut request = Request::new(Outgoing::Coming(Coming::from(Box::new(source))));
        *request.method_mut() = Method::POST;
        request
    }

    fn patience(first_byte: Duration) -> Patience {
        Patience { connect: LONG, first_byte }
    }

    #[test]
    fn what_seldom_is_there_takes_no_room() {
        assert_eq!(size_of::<Outgoing>(), size_of::<Segments>());
    }

    #[tokio::test]
    async fn a_body_that_comes_is_framed_by_what_is_known_of_it() {
        let table = [
            (Some(4), "content-length: 4\r\n\r\nabcd"),
            (None, "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"),
        ];
        for (length, expected) in table {
            let mut server = Server::start([vec![Hear, answer("done")]]).await;
            let post = request(&[Some("ab"), Some("cd")], length, Duration::ZERO);
            let answer = Net::new().send(&server.origin, post, patience(LONG)).await.unwrap();
            assert_eq!(answer.body.whole(10, LONG).await.as_deref(), Ok(&b"done"[..]));
            let heard = server.heard().await;
            assert!(heard.ends_with(expected), "{heard}");
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_ends_the_connection() {
        for length in [Some(9), None] {
            let mut server = Server::start([vec![HearHead, Stay]]).await;
            let post = request(&[Some("ab"), None], length, SHORT);
            let sent = Net::new().send(&server.origin, post, patience(LONG)).await;
            assert_eq!(sent.map(|_| ()), Err(NetError::Protocol));
            assert_eq!(server.event().await, Event::Left);
        }
    }

    #[tokio::test]
    async fn a_server_that_is_still_being_written_to_is_not_late() {
        let server = Server::start([vec![Hear, answer("done")]]).await;
        // In all it takes longer than the patience, and each piece does too.
        let post = request(&[Some("a"), Some("b"), Some("c")], None, SHORT * 3);
        assert!(Net::new().send(&server.origin, post, patience(SHORT)).await.is_ok());
        let server = Server::start([vec![Hear, Stay]]).await;
        let post = request(&[Some("a"), Some("b")], None, SHORT);
        let sent = Net::new().send(&server.origin, post, patience(SHORT)).await;
        assert_eq!(sent.map(|_| ()), Err(NetError::FirstByteTimeout), "afterwards it is");
    }

    #[tokio::test]
    async fn an_answer_that_comes_before_the_body_is_over_is_an_answer() {
        let said = "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
        let server = Server::start([vec![HearHead, Say(said.into()), Stay]]).await;
        let post = request(&[Some("a"); 1000], None, SHORT);
        let answer = Net::new().send(&server.origin, post, patience(LONG)).await.unwrap();
        assert_eq!(answer.head.status, 413);
        assert_eq!(answer.body.whole(10, LONG).await.as_deref(), Ok(&b"no"[..]));
    }
}
