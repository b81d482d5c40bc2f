//! One connection and its codec. Whoever holds it drives it: the codec's future and what it delivers are polled by the same task, so what
//! it delivers needs no wake-up of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::alarm::Alarm;
use super::answer::{Answer, AnswerBody, Packing};
use super::dial::Stream;
use super::error::NetError;
use super::nudge::Nudge;
use super::outgoing::{Outgoing, Pulse};
use super::pool::Shelf;

/// The longest head of an answer, in bytes.
const LONGEST_HEAD: usize = 32 * 1024;

/// The most that is read at once, in bytes.
const LARGEST_READ: usize = 32 * 1024;

/// A connection to one origin.
#[derive(Debug)]
pub(super) struct Link {
    /// `None` once it has ended. Dropping it closes the socket, and hands back a request that it has not begun to write.
    codec: Option<Connection<TokioIo<Stream>, Outgoing>>,
    sender: SendRequest<Outgoing>,
    nudge: Nudge,
    alarm: Alarm,
    /// Where it goes back to; `None` while it is there, so that a pool that is dropped closes its connections.
    shelf: Option<Arc<Shelf>>,
    used_before: bool,
}

/// Why an exchange has no answer.
pub(super) enum Lost {
    /// The connection was closed before anything was written: the request is as it was.
    Unsent(Box<Request<Outgoing>>),
    /// It failed.
    Failed(NetError),
}

impl Lost {
    /// The error of a request for which there is no other connection.
    pub(super) fn into_error(self) -> NetError {
        match self {
            Self::Unsent(_) => NetError::Closed,
            Self::Failed(error) => error,
        }
    }
}

impl Link {
    /// Puts the codec on a fresh connection.
    pub(super) async fn new(stream: Stream, shelf: Arc<Shelf>) -> Result<Box<Self>, NetError> {
        let mut builder = Builder::new();
        builder.writev(true).max_buf_size(LARGEST_READ).max_header_size(LONGEST_HEAD);
        let (sender, codec) = builder.handshake(TokioIo::new(stream)).await.map_err(|_| NetError::Protocol)?;
        Ok(Box::new(Self {
            codec: Some(codec),
            sender,
            nudge: Nudge::new(),
            alarm: Alarm::new(),
            shelf: Some(shelf),
            used_before: false,
        }))
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn exchange(mut self: Box<Self>, request: Request<Outgoing>, within: Duration) -> Result<Answer, Lost> {
        self.alarm.set(Instant::now() + within);
        let (pulse, mut beats) = (request.body().pulse(), 0);
        let mut reply = std::pin::pin!(self.sender.try_send_request(request));
        let outcome = std::future::poll_fn(|cx| {
            self.drive(cx);
            match reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => self.poll_patience(within, pulse.as_deref(), &mut beats, cx).map(|()| None),
            }
        });
        match outcome.await {
            None => Err(Lost::Failed(NetError::FirstByteTimeout)),
            Some(Ok(response)) => self.answer(response).map_err(Lost::Failed),
            Some(Err(mut error)) => Err(match error.take_message() {
                Some(request) => Lost::Unsent(Box::new(request)),
                None => Lost::Failed(self.cause(&error.into_error())),
            }),
        }
    }

    /// Ready when the server has been silent for too long. While it is still taking a body, or the body's sender is the one who is slow, its
    /// time has not begun.
    fn poll_patience(&mut self, within: Duration, pulse: Option<&Pulse>, beats: &mut u64, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.poll(cx));
            if !pulse.is_some_and(|pulse| pulse.has_moved(beats)) {
                return Poll::Ready(());
            }
            self.alarm.set(Instant::now() + within);
        }
    }

    /// Lets the connection read and write what it can.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        let cx = &mut self.nudge.towards(cx.waker());
        let ended = self.codec.as_mut().is_some_and(|codec| Pin::new(codec).poll(cx).is_ready());
        if ended {
            self.codec = None;
        }
    }

    /// Takes a frame out of a body that this connection delivers into. A body never wakes anyone: who waits for it drives its connection.
    pub(super) fn take(&self, body: &mut Incoming) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.nudge.hushed(|| Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())))
    }

    /// Whether the connection has ended.
    pub(super) fn ended(&self) -> bool {
        self.codec.is_none()
    }

    /// The alarm of whoever waits on this connection.
    pub(super) fn alarm(&mut self) -> &mut Alarm {
        &mut self.alarm
    }

    /// Goes back to its shelf, if it is ready for another request; is closed otherwise.
    pub(super) fn give_back(mut self: Box<Self>) {
        // This also forgets the finished task, whose memory would stay with the connection.
        self.drive(&mut Context::from_waker(Waker::noop()));
        if self.ended() || !self.sender.is_ready() {
            return;
        }
        self.alarm.forget();
        self.used_before = true;
        if let Some(shelf) = self.shelf.take() {
            shelf.keep(self);
        }
    }

    /// Comes from its shelf.
    pub(super) fn taken_from(&mut self, shelf: &Arc<Shelf>) {
        self.shelf = Some(Arc::clone(shelf));
    }

    fn answer(self: Box<Self>, response: Response<Incoming>) -> Result<Answer, NetError> {
        let (mut head, body) = response.into_parts();
        if !well_framed(&head) {
            return Err(NetError::Protocol);
        }
        let body = AnswerBody::new(self, body, Packing::of(&mut head.headers));
        Ok(Answer { head, body })
    }

    fn cause(&self, error: &hyper::Error) -> NetError {
        if error.is_parse() || error.is_parse_too_large() || error.is_user() {
            return NetError::Protocol;
        }
        if let Some(shelf) = self.shelf.as_ref().filter(|_| self.used_before) {
            shelf.clear();
        }
        NetError::Closed
    }
}

/// Whether an answer says in exactly one way where it ends. One that says it twice, or in a coding that we have not asked for, may be read
/// differently by someone else on the way. A change of protocol was never asked for either.
fn well_framed(head: &http::response::Parts) -> bool {
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    let framed = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked") && !head.headers.contains_key(CONTENT_LENGTH),
        (Some(_), Some(_)) => false,
    };
    framed && head.status != StatusCode::SWITCHING_PROTOCOLS
}
