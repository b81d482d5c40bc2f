//! One connection from its first byte to its last: TLS, then HTTP/1.1 or HTTP/2 by hyper, request by request.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::TRANSFER_ENCODING;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use pingora_core::apps::ServerApp;
use pingora_core::protocols::Stream;
use pingora_core::protocols::l4::stream::Stream as L4Stream;
use pingora_core::server::ShutdownWatch;
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until, timeout, timeout_at};
use tokio_rustls::Accept;
use tracing::debug;

use super::connections::Connections;
use super::line::{Line, MAX_HEAD, Opening, Shared, Transport};
use super::peer::Peer;
use super::tls::Certificates;
use super::wording::Worded;

/// Requests that one HTTP/2 connection may have open.
const MAX_STREAMS: u32 = 256;
/// How often an HTTP/2 caller is asked whether it is there, and how long it may take to say so.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// How long the rest of a body is read that nobody wants, and how long its sender may pause meanwhile.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_PAUSE: Duration = Duration::from_millis(500);
/// hyper's buffer for a connection of HTTP/1, each way.
const MAX_BUFFER: usize = 128 * 1024;

/// Who answers the requests of a listener. It has an answer to everything.
pub trait Answer: Send + Sync + 'static {
    /// What is sent back.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static;

    /// Answers a request. When the caller goes away, the future or the body is dropped.
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>> + Send + 'static;

    /// Answers a request that can be read in two ways. Nothing of it is acted upon.
    fn ambiguous(&self) -> Response<Self::Body>;

    /// Answers a head that cannot be read, with the status that says why.
    fn unreadable(status: StatusCode) -> Response<Bytes>;

    /// How long a request head may take.
    fn header_timeout(&self) -> Duration;
}

/// A listener's side of its connections.
pub(super) struct Reception<A> {
    pub(super) answer: Arc<A>,
    pub(super) tls: Option<Arc<Certificates>>,
    pub(super) connections: Arc<Connections>,
}

#[async_trait]
impl<A: Answer> ServerApp for Reception<A> {
    async fn process_new(self: &Arc<Self>, stream: Stream, _shutdown: &ShutdownWatch) -> Option<Stream> {
        // The listener hands over plain sockets only. TLS is done here, where its time can be bounded and its faults can be told.
        let stream = stream.into_any().downcast::<L4Stream>().ok()?;
        let reception = Arc::clone(self);
        // The library's task has room for a handshake of its own, ten times what a connection needs here. That it ends is seen to by
        // `Connections`.
        tokio::spawn(async move { reception.welcome(*stream).await });
        None
    }
}

impl<A: Answer> Reception<A> {
    async fn welcome(&self, stream: L4Stream) {
        let peer = Peer::of(&stream);
        let patience = self.answer.header_timeout();
        match &self.tls {
            None => self.receive(Shared::new(Line::new(stream, peer, patience))).await,
            Some(tls) => Box::pin(self.shake_hands(tls.acceptor().accept(stream), peer, patience)).await,
        }
    }

    async fn shake_hands(&self, handshake: Accept<L4Stream>, peer: Peer, patience: Duration) {
        match timeout(patience, handshake).await {
            Ok(Ok(stream)) => {
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let mut line = Line::new(stream, peer, patience);
                if http2 {
                    line.multiplex();
                }
                self.receive(Shared::new(line)).await;
            }
            Ok(Err(error)) => debug!(%error, ?peer, "no TLS came about"),
            Err(_) => debug!(?peer, "no TLS came about in time"),
        }
    }

    /// Serves a connection until it closes. What a connection does not need yet, or not at all, is boxed: many are idle.
    async fn receive<S: Transport>(&self, line: Shared<S>) {
        let opening = opening_of(&line).await;
        let open = self.connections.enter();
        match opening {
            Some(Opening::Http1) => {
                let end = self.http1(line.clone()).await;
                drop(open);
                if matches!(end, End::Closed(_)) {
                    linger(&line).await;
                }
            }
            Some(Opening::Http2) => Box::pin(self.http2(line)).await,
            Some(Opening::Nothing) | None => {}
        }
    }

    async fn http1<S: Transport>(&self, line: Shared<S>) -> End {
        let service = service_fn(|request: Request<Incoming>| {
            let chunked = request.headers().contains_key(TRANSFER_ENCODING);
            let ambiguous = line.with(|line| line.begin(request.version(), chunked));
            let serving = Serving(line.clone());
            let answer = Arc::clone(&self.answer);
            async move {
                let response = if ambiguous { answer.ambiguous() } else { Box::pin(answer.answer(request)).await };
                Ok::<_, Infallible>(response.map(|body| Served { body, _serving: serving }))
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            // Both are judged by the line, which can tell a caller that waits from one that is gone, and one that is idle from a slow one.
            .half_close(true)
            .header_read_timeout(None)
            .keep_alive(!self.connections.is_closing())
            .max_header_size(MAX_HEAD)
            .max_buf_size(MAX_BUFFER);
        let io = TokioIo::new(Worded::new(line.clone(), A::unreadable));
        self.drive(Box::pin(http.serve_connection(io, service)), &line).await
    }

    async fn http2<S: Transport>(&self, line: Shared<S>) {
        let service = service_fn(|request| {
            line.with(Line::open);
            let serving = Serving(line.clone());
            let answer = Arc::clone(&self.answer);
            async move { Ok::<_, Infallible>(answer.answer(request).await.map(|body| Served { body, _serving: serving })) }
        });
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEAD as u32)
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1);
        self.drive(Box::pin(http.serve_connection(TokioIo::new(line.clone()), service)), &line).await;
    }

    /// Drives a connection until it closes, its caller goes away, or its time is up. Dropping it drops the requests it serves.
    async fn drive<S: Transport>(&self, mut connection: Pin<Box<impl Closing>>, line: &Shared<S>) -> End {
        let mut told = pin!(self.connections.told());
        let mut timer = pin!(sleep_until(line.with(|line| line.deadline()).unwrap_or_else(far)));
        // Once is enough: the task that is woken is always this one.
        let _ = poll_fn(|cx| Poll::Ready(told.as_mut().poll(cx))).await;
        let mut is_closing = false;
        let end = poll_fn(|cx| {
            let mut polled = connection.as_mut().poll(cx);
            // hyper drops a connection that is closed before it has read anything, so it reads first.
            if polled.is_pending() && !is_closing && self.connections.is_closing() {
                is_closing = true;
                connection.as_mut().close();
                polled = connection.as_mut().poll(cx);
            }
            if let Poll::Ready(end) = polled {
                return Poll::Ready(End::Closed(end));
            }
            let look = poll_fn(|cx| {
                line.with(|line| match line.poll_gone(cx) {
                    Poll::Ready(()) => Poll::Ready(End::Gone),
                    Poll::Pending => poll_deadline(timer.as_mut(), line.deadline(), cx),
                })
            });
            // A request that never pauses uses up the task's share; whether its caller is there must be seen all the same.
            pin!(unconstrained(look)).poll(cx)
        })
        .await;
        debug!(?end, "a connection ended");
        end
    }
}

/// A caller that was answered before it had sent its whole body is still sending, and where a socket is closed with something unread in it,
/// its system throws the answer away. So the rest is read, for a while, and dropped.
async fn linger<S: Transport>(line: &Shared<S>) {
    let end = Instant::now() + LINGER;
    loop {
        let pause = (Instant::now() + LINGER_PAUSE).min(end);
        let more = timeout_at(pause, poll_fn(|cx| line.with(|line| line.poll_discard(cx)))).await;
        if more != Ok(true) {
            return;
        }
    }
}

/// How a connection ended.
#[derive(Debug)]
#[expect(dead_code, reason = "for the log")]
enum End {
    /// In the way of HTTP.
    Closed(hyper::Result<()>),
    /// The caller of a request left.
    Gone,
    /// The caller took too long.
    Slow,
}

/// Waits for a deadline that may have moved. One that moves away is looked at when the timer fires: setting the timer anew for each
/// request would cost more.
fn poll_deadline(mut timer: Pin<&mut Sleep>, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<End> {
    if let Some(sooner) = deadline.filter(|&deadline| deadline < timer.deadline()) {
        timer.as_mut().reset(sooner);
    }
    while timer.as_mut().poll(cx).is_ready() {
        let deadline = deadline.unwrap_or_else(far);
        if deadline <= Instant::now() {
            return Poll::Ready(End::Slow);
        }
        timer.as_mut().reset(deadline);
    }
    Poll::Pending
}

/// Which protocol the caller begins with; `None`: it did not say in time.
async fn opening_of<S: Transport>(line: &Shared<S>) -> Option<Opening> {
    let deadline = line.with(|line| line.deadline()).unwrap_or_else(far);
    timeout_at(deadline, poll_fn(|cx| line.with(|line| line.poll_opening(cx)))).await.ok()
}

/// A time that does not come.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(24 * 60 * 60)
}

/// A connection that can be told to finish what it does and close.
trait Closing: Future<Output = hyper::Result<()>> {
    fn close(self: Pin<&mut Self>);
}

impl<S, V, B> Closing for http1::Connection<TokioIo<Worded<S>>, V>
where
    S: Transport,
    V: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S, V, B> Closing for http2::Connection<TokioIo<Shared<S>>, V, TokioExecutor>
where
    S: Transport,
    V: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send + 'static>,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// The line serves a request until this is dropped.
struct Serving<S: Transport>(Shared<S>);

impl<S: Transport> Drop for Serving<S> {
    fn drop(&mut self) {
        self.0.with(Line::finish);
    }
}

/// An answer's body; with it goes the time in which the caller is asked after.
struct Served<B, S: Transport> {
    body: B,
    _serving: Serving<S>,
}

impl<B: Body + Unpin, S: Transport> Body for Served<B, S> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
