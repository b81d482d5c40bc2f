//! A form with a file, on its way from a caller to a provider. It is read up to its field `model`, so that it is known what is asked for; from
//! there on it is not kept, but goes through while it comes, as fast as the slower of the two sides takes it.
//!
//! Some clients send the file first. What comes before `model` then waits: a megabyte in memory, more in a file without a name. What is wrong
//! with a form may show only when most of it was sent; the provider's call is broken off then, and the failure is kept here for the caller.

mod spool;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::{Sleep, sleep};
use toolgate_tools::net::{BrokenOff, Coming, Outgoing, Source};

use self::spool::Spool;
use crate::failure::Failure;
use crate::intake::next_frame;
use crate::tokens::made;
use crate::wire::form::{Form, Malformed, Piece, boundary};

/// How much of a form waits in memory for its `model`, in bytes.
const MOST_IN_MEMORY: usize = 1024 * 1024;

/// How a form may come.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most bytes.
    pub most: usize,
    /// The longest pause of its sender.
    pub patience: Duration,
}

/// A form under way.
pub struct Upload {
    content_type: HeaderValue,
    model: String,
    /// How long it says that it is.
    declared: Option<u64>,
    bounds: Bounds,
    /// The tokens of a form that has gone out whole; nothing before.
    tokens: Arc<AtomicU64>,
    flow: Arc<Mutex<Flow>>,
}

impl Upload {
    /// Reads a form up to its `model`.
    ///
    /// # Errors
    /// [`Failure::BodyTooLarge`], [`Failure::BodyCut`], or what is wrong with the form.
    pub async fn open(headers: &HeaderMap, incoming: Incoming, bounds: Bounds) -> Result<Self, Failure> {
        let content_type = only(headers).ok_or(NO_FORM).map_err(failure)?;
        let form = Form::new(boundary(content_type.as_bytes()).ok_or(NO_FORM).map_err(failure)?);
        let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if declared.is_some_and(|length| length > bounds.most as u64) {
            return Err(Failure::BodyTooLarge(bounds.most));
        }
        let mut flow = Flow::new(incoming, form, bounds);
        let model = flow.read_to_model().await?;
        let tokens = Arc::default();
        Ok(Self { content_type: content_type.clone(), model, declared, bounds, tokens, flow: Arc::new(Mutex::new(flow)) })
    }

    /// Its `model`.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Its media type, which holds its boundary.
    pub fn content_type(&self) -> &HeaderValue {
        &self.content_type
    }

    /// How many tokens it may come to, going by the length that it may have.
    pub fn most_tokens(&self) -> u64 {
        made::heard(self.declared.unwrap_or(self.bounds.most as u64))
    }

    /// How many tokens it came to: nothing while it has not gone out whole.
    pub fn tokens(&self) -> &Arc<AtomicU64> {
        &self.tokens
    }

    /// Whether some of it is gone: it cannot be sent again.
    pub fn has_begun(&self) -> bool {
        self.flow.lock().has_begun
    }

    /// What is wrong with it, as far as that has shown.
    pub fn failure(&self) -> Option<Failure> {
        self.flow.lock().failure.clone()
    }

    /// It as a body, with the provider's own name for the model in it. As long as nothing was taken, another such body is as good.
    pub fn body(&self, upstream_model: &str) -> Outgoing {
        let length = self.declared.map(|length| length - self.model.len() as u64 + upstream_model.len() as u64);
        let feed =
            Feed { flow: Arc::clone(&self.flow), model: upstream_model.to_owned(), length, tokens: Arc::clone(&self.tokens) };
        Outgoing::Coming(Coming::from(Box::new(feed)))
    }
}

const NO_FORM: Malformed = Malformed("content-type", "must be `multipart/form-data` with one boundary");

fn failure(Malformed(field, why): Malformed) -> Failure {
    Failure::InvalidRequest(field, why.to_owned())
}

/// The media type, where there is exactly one.
fn only(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut all = headers.get_all(CONTENT_TYPE).iter();
    all.next().filter(|_| all.next().is_none())
}

/// What has come of a form and is not yet taken, and where more comes from.
struct Flow {
    incoming: Incoming,
    form: Form,
    bounds: Bounds,
    received: usize,
    /// The beginning of what waits, where it is much.
    spool: Option<Spool>,
    /// The rest of what waits.
    pieces: VecDeque<Piece>,
    has_begun: bool,
    is_over: bool,
    failure: Option<Failure>,
    /// How long the sender may pause; set while it does.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Flow {
    fn new(incoming: Incoming, form: Form, bounds: Bounds) -> Self {
        Self {
            incoming,
            form,
            bounds,
            received: 0,
            spool: None,
            pieces: VecDeque::new(),
            has_begun: false,
            is_over: false,
            failure: None,
            pause: None,
        }
    }

    async fn read_to_model(&mut self) -> Result<String, Failure> {
        let mut waiting = 0;
        loop {
            let from = self.pieces.len();
            let frame = next_frame(&mut self.incoming, self.bounds.patience).await?;
            self.take(frame)?;
            for piece in self.pieces.range(from..) {
                match piece {
                    Piece::Model(name) => return Ok(name.clone()),
                    Piece::Bytes(bytes) => waiting += bytes.len(),
                }
            }
            if waiting > MOST_IN_MEMORY {
                self.spill().await?;
                waiting = 0;
            }
        }
    }

    async fn spill(&mut self) -> Result<(), Failure> {
        let bytes = self.pieces.drain(..).filter_map(|piece| if let Piece::Bytes(bytes) = piece { Some(bytes) } else { None });
        let kept = Spool::append(self.spool.take(), bytes.collect()).await;
        let no_place = |error| {
            tracing::warn!(%error, "there is no place for a form whose `model` comes late");
            let why = "comes behind a file that is too long to be kept until then: put it before the file";
            Failure::InvalidRequest("model", why.to_owned())
        };
        self.spool = Some(kept.map_err(no_place)?);
        Ok(())
    }

    /// Takes what has come; `None`: that was all.
    fn take(&mut self, frame: Option<Frame<Bytes>>) -> Result<(), Failure> {
        let Some(frame) = frame else {
            self.is_over = true;
            return self.form.end().map_err(failure);
        };
        let Ok(bytes) = frame.into_data() else { return Ok(()) };
        self.received += bytes.len();
        if self.received > self.bounds.most {
            return Err(Failure::BodyTooLarge(self.bounds.most));
        }
        self.form.feed(bytes, &mut |piece| self.pieces.push_back(piece)).map_err(failure)?;
        // Whoever knows the length does not ask for more after it; what is not whole must show before the last of it is gone.
        self.is_over = self.incoming.is_end_stream();
        if self.is_over { self.form.end().map_err(failure) } else { Ok(()) }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BrokenOff>>> {
        self.has_begun = true;
        loop {
            if self.failure.is_some() {
                return Poll::Ready(Some(Err(BrokenOff)));
            }
            if let Some(spool) = &mut self.spool {
                match ready!(spool.poll_read(cx)) {
                    Ok(Some(bytes)) => return Poll::Ready(Some(Ok(Piece::Bytes(bytes)))),
                    Ok(None) => self.spool = None,
                    Err(_) => self.failure = Some(Failure::Internal("a form that was kept")),
                }
            } else if let Some(piece) = self.pieces.pop_front() {
                return Poll::Ready(Some(Ok(piece)));
            } else if self.is_over {
                return Poll::Ready(None);
            } else {
                let taken = ready!(self.poll_frame(cx)).and_then(|frame| self.take(frame));
                self.failure = taken.err();
            }
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Failure>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
            self.pause = None;
            return Poll::Ready(frame.transpose().map_err(|_| Failure::BodyCut));
        }
        let patience = self.bounds.patience;
        ready!(self.pause.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(cx));
        Poll::Ready(Err(Failure::BodyCut))
    }
}

/// A form as the body of one request.
struct Feed {
    flow: Arc<Mutex<Flow>>,
    model: String,
    length: Option<u64>,
    tokens: Arc<AtomicU64>,
}

impl Source for Feed {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut flow = self.flow.lock();
        let piece = ready!(flow.poll_piece(cx));
        if flow.is_over && flow.pieces.is_empty() && flow.spool.is_none() {
            self.tokens.store(made::heard(flow.received as u64), Ordering::Relaxed);
        }
        Poll::Ready(piece.map(|piece| {
            piece.map(|piece| match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Model(_) => Bytes::copy_from_slice(self.model.as_bytes()),
            })
        }))
    }

    fn remaining(&self) -> Option<u64> {
        self.length
    }
}
