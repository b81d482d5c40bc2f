//! The caller's answer, in three states: not begun, streaming, finished. A reply that has begun can only go on or end.
//!
//! The road of a request (`serve`) writes into an [`Outlet`]; the body that the server sends polls that same road. So there is no task and no
//! channel: what a caller does not read is not fetched, all that came together goes out in one write, and a caller that leaves drops the
//! body, the road with it, and with that every call under way.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use toolgate_tools::net::BrokenOff;

use crate::failure::Failure;
use crate::wire::sse::KEEP_ALIVE;

/// The header that names the trace of every answer.
pub const TRACE: HeaderName = HeaderName::from_static("x-toolgate-trace");

/// The header that tells OpenAI's own clients whether to try again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An answer that is whole when its headers are sent.
#[derive(Debug)]
pub struct Whole {
    /// Status, headers and body.
    pub response: Response<Bytes>,
}

impl Whole {
    /// A JSON body under status 200.
    pub fn json(body: impl Into<Bytes>) -> Self {
        let mut response = Response::new(body.into());
        // Room for what every answer carries, so that the map is made once.
        response.headers_mut().reserve(8);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { response }
    }

    /// What a failure looks like before anything was sent.
    pub fn failure(failure: &Failure) -> Self {
        let mut whole = Self::json(failure.body());
        *whole.response.status_mut() = failure.status();
        if let Some(after) = failure.retry_after().and_then(|after| HeaderValue::try_from(after).ok()) {
            whole.response.headers_mut().insert(RETRY_AFTER, after);
        }
        if let Some(should) = failure.should_retry() {
            whole.response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static(if should { "true" } else { "false" }));
        }
        whole
    }

    /// The same, for a client that would try again by itself and must not.
    #[must_use]
    pub fn not_to_be_retried(mut self) -> Self {
        self.response.headers_mut().remove(RETRY_AFTER);
        self.response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        self
    }

    /// The same with more headers.
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.response.headers_mut().extend(headers);
        self
    }
}

/// How the road of a request ends.
pub enum Ended {
    /// With a whole answer; nothing was streamed.
    Whole(Whole),
    /// The stream was written to its end.
    Streamed,
    /// What was being written cannot be finished, and nothing in it could say so: it is broken off.
    Broken,
}

/// Where the road of a streamed request writes.
#[derive(Clone, Default)]
pub struct Outlet(Arc<Mutex<Pipe>>);

#[derive(Default)]
struct Pipe {
    expected: bool,
    begun: bool,
    /// It is no stream of events: nothing may be put in between.
    raw: bool,
    waiting: BytesMut,
    head: HeaderMap,
    /// What stands in the head beside that, by names that nothing else has.
    own: Vec<(HeaderName, HeaderValue)>,
}

/// Room for a few chunks: a stream writes often and little.
const ROOM: usize = 2048;

impl Outlet {
    /// The caller asked for a stream: silence will be filled, and with the first filling its headers go out.
    pub fn expect_stream(&self) {
        self.pipe().expected = true;
    }

    /// What stands in the answer's head, whatever the answer will be.
    pub fn set_head(&self, head: Vec<(HeaderName, HeaderValue)>) {
        self.pipe().own = head;
    }

    /// What stands in it too.
    pub fn add_head(&self, head: HeaderMap) {
        self.pipe().head.extend(head);
    }

    /// From now on the answer is what these headers say, byte for byte as it is written.
    pub fn begin_as(&self, head: HeaderMap) {
        self.add_head(head);
        let mut pipe = self.pipe();
        (pipe.begun, pipe.raw, pipe.expected) = (true, true, false);
    }

    /// Whether it is such an answer.
    pub fn is_raw(&self) -> bool {
        self.pipe().raw
    }

    /// From now on the answer is a stream: its headers may go out.
    pub fn begin(&self) {
        self.pipe().begun = true;
    }

    /// Whether the answer is a stream already.
    pub fn has_begun(&self) -> bool {
        self.pipe().begun
    }

    /// Writes to the stream; beginning it, if it had not begun.
    pub fn write(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut pipe = self.pipe();
        pipe.begun = true;
        if pipe.waiting.capacity() - pipe.waiting.len() < ROOM / 4 {
            pipe.waiting.reserve(ROOM);
        }
        write(&mut pipe.waiting);
    }

    /// How much is waiting to be sent. Whoever writes much looks at this and lets the server send first.
    pub fn waiting(&self) -> usize {
        self.pipe().waiting.len()
    }

    fn put_head(&self, headers: &mut HeaderMap) {
        let mut pipe = self.pipe();
        headers.extend(std::mem::take(&mut pipe.head));
        headers.extend(pipe.own.drain(..));
    }

    fn is_expected(&self) -> bool {
        self.pipe().expected
    }

    fn take(&self) -> Bytes {
        self.pipe().waiting.split().freeze()
    }

    fn pipe(&self) -> MutexGuard<'_, Pipe> {
        // Only a panic between two statements could poison it, and none of them can leave it half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The road of one request: it ends with what the caller gets, after everything was settled and recorded.
pub type Road = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// Drives a road until the answer has begun, and hands over the rest of the driving to the body.
///
/// A stream that says nothing for as long as `keep_alive` says a comment, so that nothing in between takes it for dead.
pub async fn answer(road: Road, outlet: Outlet, trace: HeaderValue, keep_alive: Duration) -> Response<Body> {
    let head = outlet.clone();
    let mut stream = Stream { road: Some(road), outlet, interval: keep_alive, keep_alive: None, is_broken: false };
    let whole = std::future::poll_fn(|cx| stream.poll_begin(cx)).await;
    let mut response = match whole {
        Some(whole) => whole.response.map(Body::whole),
        None => stream_head(Body(State::Stream(stream))),
    };
    head.put_head(response.headers_mut());
    response.headers_mut().insert(TRACE, trace);
    response
}

fn stream_head(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// What the server sends as a body.
pub struct Body(State);

impl Body {
    /// A body that is there already.
    pub fn whole(body: Bytes) -> Self {
        Self(State::Whole(Some(body)))
    }
}

enum State {
    Whole(Option<Bytes>),
    Stream(Stream),
}

/// A stream under way, and the road that writes it.
struct Stream {
    road: Option<Road>,
    outlet: Outlet,
    interval: Duration,
    /// Set when the road first waits.
    keep_alive: Option<KeepAlive>,
    /// The road could not finish what it wrote.
    is_broken: bool,
}

impl Stream {
    /// Ready when the answer has begun: with it, if it is whole.
    fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<Option<Whole>> {
        if let Poll::Ready(ended) = self.poll_road(cx) {
            return Poll::Ready(match ended {
                Ended::Whole(whole) => Some(whole),
                Ended::Streamed => None,
                Ended::Broken => {
                    self.is_broken = true;
                    None
                }
            });
        }
        if self.outlet.has_begun() || self.poll_keep_alive(cx).is_ready() { Poll::Ready(None) } else { Poll::Pending }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let ended = match self.poll_road(cx) {
            Poll::Ready(ended) => {
                self.is_broken |= matches!(ended, Ended::Broken);
                true
            }
            Poll::Pending => false,
        };
        let waiting = self.outlet.take();
        if !waiting.is_empty() {
            if let Some(keep_alive) = &mut self.keep_alive {
                keep_alive.wrote();
            }
            return Poll::Ready(Some(Ok(waiting)));
        }
        if ended {
            return Poll::Ready(std::mem::take(&mut self.is_broken).then_some(Err(BrokenOff)));
        }
        ready!(self.poll_keep_alive(cx));
        Poll::Ready(Some(Ok(self.outlet.take())))
    }

    fn poll_road(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let Some(road) = &mut self.road else { return Poll::Ready(Ended::Streamed) };
        let ended = ready!(road.as_mut().poll(cx));
        self.road = None;
        Poll::Ready(ended)
    }

    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.keep_alive.is_none() && !self.outlet.is_expected() {
            return Poll::Pending;
        }
        let interval = self.interval;
        ready!(self.keep_alive.get_or_insert_with(|| KeepAlive::new(interval)).poll_silence(cx));
        self.outlet.write(|out| out.extend_from_slice(KEEP_ALIVE));
        Poll::Ready(())
    }
}

/// Notices silence. The timer is set once an interval, not once a write.
struct KeepAlive {
    interval: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

impl KeepAlive {
    fn new(interval: Duration) -> Self {
        let last = Instant::now();
        Self { interval, last, timer: Box::pin(tokio::time::sleep_until(last + interval)) }
    }

    fn wrote(&mut self) {
        self.last = Instant::now();
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            let due = self.last + self.interval;
            self.timer.as_mut().reset(if now < due { due } else { now + self.interval });
            if now >= due {
                self.last = now;
                return Poll::Ready(());
            }
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let next = match &mut self.0 {
            State::Whole(body) => body.take().filter(|body| !body.is_empty()).map(Ok),
            State::Stream(stream) => ready!(stream.poll_next(cx)),
        };
        Poll::Ready(next.map(|next| next.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Whole(body) => body.as_ref().is_none_or(Bytes::is_empty),
            State::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
            State::Stream(_) => SizeHint::default(),
        }
    }
}
