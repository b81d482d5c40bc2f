//! One caller's connection as bytes: what hyper reads and writes, and beside it what hyper does not tell, namely whether the caller is
//! still there while its request is being served, and since when it has been silent.
//!
//! A caller may close its sending side and go on reading; that is no farewell, and its answer is still owed. Another may close for good,
//! which looks the same from here until something is sent to it. So hyper is told to bear half-closed connections, and the judgement is
//! made here, by [`Peer`] and, where that cannot know, by a nudge.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Version;
use parking_lot::Mutex;
use pingora_core::protocols::l4::stream::Stream as L4Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_rustls::server::TlsStream;

use super::peer::{Peer, Whereabouts};

/// Between two requests on one connection.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// A caller that takes nothing of its answer for so long is cut.
const STALLED: Duration = Duration::from_secs(60);
/// What HTTP/2 sends for its own sake is no longer than this; a piece of an answer is.
const LARGEST_SIGN_OF_LIFE: usize = 64;
/// What is read ahead while hyper does not read; more means that the caller sends the next request early.
const READ_AHEAD: usize = 4 * 1024;
/// The longest request head; hyper refuses longer ones, so nothing of them needs to be kept.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// What is kept allocated for a head.
const USUAL_HEAD: usize = 1024;
/// How often a caller that has closed its sending side is asked after: at first soon, then at this pace.
const ASK_AFTER: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// An interim answer, which every HTTP/1.1 client skips. A caller that is gone answers it with a reset.
const NUDGE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How a caller that speaks HTTP/2 without being asked begins.
const HTTP2_BEGINS: &[u8] = b"PRI ";

/// A stream that can tell that it is broken without anything being sent or read.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Whether nothing can be sent any more.
    fn is_broken(&mut self, cx: &mut Context<'_>) -> bool;
}

impl Transport for L4Stream {
    fn is_broken(&mut self, cx: &mut Context<'_>) -> bool {
        // Writing nothing sends nothing, yet the kernel says so if the connection was reset.
        matches!(Pin::new(self).poll_write(cx, &[]), Poll::Ready(Err(_)))
    }
}

impl Transport for TlsStream<L4Stream> {
    fn is_broken(&mut self, cx: &mut Context<'_>) -> bool {
        self.get_mut().0.is_broken(cx)
    }
}

/// What happens on the connection now, and what time it has for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between two requests.
    Idle,
    /// A request head is coming in.
    Head,
    /// A request of HTTP/1 is being served.
    Serving(Version),
    /// HTTP/2, which has its own means for most of this: how many requests are open; `None`: there has been none yet.
    Multiplexed(Option<usize>),
}

/// Which protocol a caller begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// HTTP/1.
    Http1,
    /// HTTP/2.
    Http2,
    /// It has gone without a word.
    Nothing,
}

/// The connection.
pub(super) struct Line<S> {
    stream: S,
    peer: Peer,
    phase: Phase,
    /// Since when the phase lasts; while an answer goes out, since when bytes last moved.
    since: Instant,
    header_timeout: Duration,
    /// Read before hyper asked for it.
    ahead: Vec<u8>,
    /// The head of the next request as it came in.
    head: Vec<u8>,
    /// hyper waits for bytes, and so will see itself when there are no more.
    awaited: bool,
    /// hyper took as many bytes as it had room for: a body is coming in, and it will most likely read on.
    filled: bool,
    /// The caller has closed its sending side.
    ended: bool,
    /// Something of the answer went out.
    begun: bool,
    /// hyper waits until the caller takes more.
    stalled: bool,
    nudged: bool,
    asking: Option<(Pin<Box<Sleep>>, Duration)>,
}

impl<S: Transport> Line<S> {
    /// A connection on which nothing has happened yet. Its first head is due within `header_timeout`.
    pub(super) fn new(stream: S, peer: Peer, header_timeout: Duration) -> Self {
        Self {
            stream,
            peer,
            phase: Phase::Head,
            since: Instant::now(),
            header_timeout,
            ahead: Vec::new(),
            head: Vec::new(),
            awaited: false,
            filled: false,
            ended: false,
            begun: false,
            stalled: false,
            nudged: false,
            asking: None,
        }
    }

    /// Reads until it is clear which protocol the caller begins with.
    pub(super) fn poll_opening(&mut self, cx: &mut Context<'_>) -> Poll<Opening> {
        if matches!(self.phase, Phase::Multiplexed(_)) {
            return Poll::Ready(Opening::Http2);
        }
        loop {
            let known = self.ahead.len().min(HTTP2_BEGINS.len());
            if self.ahead[..known] != HTTP2_BEGINS[..known] {
                return Poll::Ready(Opening::Http1);
            }
            if known == HTTP2_BEGINS.len() {
                self.phase = Phase::Multiplexed(None);
                return Poll::Ready(Opening::Http2);
            }
            match ready!(self.poll_ahead(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(Opening::Nothing),
                Ok(_) => {}
            }
        }
    }

    /// From now on this is an HTTP/2 connection.
    pub(super) fn multiplex(&mut self) {
        self.phase = Phase::Multiplexed(None);
    }

    /// One more request of an HTTP/2 connection is being served.
    pub(super) fn open(&mut self) {
        if let Phase::Multiplexed(open) = &mut self.phase {
            *open.get_or_insert(0) += 1;
        }
    }

    /// A request is being served from now on. Whether its head named two lengths: hyper goes by the chunks and drops the other, but a
    /// request that can be read in two ways is answered by none.
    pub(super) fn begin(&mut self, version: Version, chunked: bool) -> bool {
        let ambiguous = chunked && names_a_length(&self.head);
        self.head.clear();
        self.head.shrink_to(USUAL_HEAD);
        self.phase = Phase::Serving(version);
        (self.begun, self.stalled, self.nudged, self.asking) = (false, false, false, None);
        ambiguous
    }

    /// The answer is complete.
    pub(super) fn finish(&mut self) {
        self.phase = match self.phase {
            Phase::Multiplexed(open) => Phase::Multiplexed(open.map(|open| open.saturating_sub(1))),
            _ => Phase::Idle,
        };
        self.since = Instant::now();
    }

    /// When the caller's patience with us, or ours with it, is over; `None`: there is no limit now.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Head | Phase::Multiplexed(None) => Some(self.since + self.header_timeout),
            Phase::Serving(_) | Phase::Idle if self.stalled => Some(self.since + STALLED),
            Phase::Idle | Phase::Multiplexed(Some(0)) => Some(self.since + KEEP_ALIVE),
            Phase::Serving(_) | Phase::Multiplexed(_) => None,
        }
    }

    /// Waits until the caller of the request that is being served has gone away.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Phase::Serving(version) = self.phase else { return Poll::Pending };
        if std::mem::take(&mut self.filled) {
            // What is read here goes through a small buffer, so hyper goes first.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        while !self.ended {
            if self.awaited || self.ahead.len() >= READ_AHEAD {
                return Poll::Pending;
            }
            match ready!(self.poll_ahead(cx)) {
                Err(_) => return Poll::Ready(()),
                Ok(0) => {}
                // hyper may be waiting for exactly this.
                Ok(_) => cx.waker().wake_by_ref(),
            }
        }
        self.poll_ask(cx, version)
    }

    /// Asks at intervals after a caller that has closed its sending side.
    fn poll_ask(&mut self, cx: &mut Context<'_>, version: Version) -> Poll<()> {
        loop {
            let (timer, pause) = self.asking.get_or_insert_with(|| (Box::pin(sleep(ASK_AFTER.0)), ASK_AFTER.0));
            ready!(timer.as_mut().poll(cx));
            *pause = (*pause * 2).min(ASK_AFTER.1);
            timer.as_mut().reset(Instant::now() + *pause);
            if self.stream.is_broken(cx) {
                return Poll::Ready(());
            }
            match self.peer.whereabouts() {
                Whereabouts::Gone => return Poll::Ready(()),
                Whereabouts::Reading => {}
                Whereabouts::Unknown => self.nudge(cx, version),
            }
        }
    }

    /// Sends what a caller that is there skips, once, and only where nothing of the answer has gone out.
    fn nudge(&mut self, cx: &mut Context<'_>, version: Version) {
        if self.nudged || self.begun || version != Version::HTTP_11 {
            return;
        }
        if let Poll::Ready(Ok(_)) = Pin::new(&mut self.stream).poll_write(cx, NUDGE) {
            self.nudged = true;
            let _ = Pin::new(&mut self.stream).poll_flush(cx);
        }
    }

    /// Reads some bytes into `ahead`; 0: the caller has closed its sending side.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [MaybeUninit::uninit(); READ_AHEAD];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        let bytes = read.filled();
        self.ahead.extend_from_slice(bytes);
        self.ended |= bytes.is_empty();
        Poll::Ready(Ok(bytes.len()))
    }

    /// Reads something and drops it. Whether there may be more.
    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.ahead.clear();
        if self.ended {
            return Poll::Ready(false);
        }
        let read = ready!(self.poll_ahead(cx));
        Poll::Ready(read.is_ok_and(|count| count > 0))
    }

    /// hyper reads: first what is there already.
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(into.remaining());
            into.put_slice(&self.ahead[..count]);
            self.ahead.drain(..count);
        } else if !self.ended {
            let read = Pin::new(&mut self.stream).poll_read(cx, into);
            self.awaited = read.is_pending();
            ready!(read)?;
            self.filled = into.remaining() == 0;
            self.ended |= into.filled().len() == before;
        }
        self.note_read(&into.filled()[before..]);
        Poll::Ready(Ok(()))
    }

    /// Keeps what belongs to the next head.
    fn note_read(&mut self, bytes: &[u8]) {
        if self.phase == Phase::Idle && !bytes.is_empty() {
            self.phase = Phase::Head;
            self.since = Instant::now();
        }
        if self.phase == Phase::Head && self.head.len() < MAX_HEAD {
            self.head.extend_from_slice(bytes);
        }
    }

    /// hyper writes.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let result = write(Pin::new(&mut self.stream), cx);
        self.begun = true;
        match &result {
            Poll::Pending if !self.stalled => (self.stalled, self.since) = (true, Instant::now()),
            Poll::Pending => {}
            Poll::Ready(_) => self.stalled = false,
        }
        // What HTTP/2 still holds of an answer goes out after the answer is complete for us.
        if matches!((self.phase, &result), (Phase::Multiplexed(Some(_)), Poll::Ready(Ok(sent))) if *sent > LARGEST_SIGN_OF_LIFE) {
            self.since = Instant::now();
        }
        result
    }
}

/// Whether a head has a `content-length`.
fn names_a_length(head: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length";
    let lines = head.split(|&byte| byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    let mut names = lines.filter_map(|line| line.split(|&byte| byte == b':').next());
    names.any(|name| name.trim_ascii().eq_ignore_ascii_case(NAME))
}

/// The line as hyper holds it, and as its driver does.
pub(super) struct Shared<S>(Arc<Mutex<Line<S>>>);

impl<S> Shared<S> {
    /// For several holders.
    pub(super) fn new(line: Line<S>) -> Self {
        Self(Arc::new(Mutex::new(line)))
    }

    /// The line itself; never kept over an `await`.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Line<S>) -> T) -> T {
        act(&mut self.0.lock())
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Transport> AsyncRead for Shared<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.with(|line| line.poll_read(cx, into))
    }
}

impl<S: Transport> AsyncWrite for Shared<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|line| line.poll_write(cx, |stream, cx| stream.poll_write(cx, bytes)))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.with(|line| line.poll_write(cx, |stream, cx| stream.poll_write_vectored(cx, slices)))
    }

    fn is_write_vectored(&self) -> bool {
        self.with(|line| line.stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|line| Pin::new(&mut line.stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|line| Pin::new(&mut line.stream).poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_found_in_the_head_alone() {
        let table: [(&[u8], bool); 6] = [
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n", true),
            (b"POST / HTTP/1.1\r\nCONTENT-Length:5\r\ntransfer-encoding: chunked\r\n\r\n", true),
            (b"POST / HTTP/1.1\ncontent-length : 5\n\n", true),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\ncontent-length: 5\r\n", false),
            (b"POST / HTTP/1.1\r\nx-content-length: 5\r\n\r\n", false),
            (b"", false),
        ];
        for (head, found) in table {
            assert_eq!(names_a_length(head), found, "{}", String::from_utf8_lossy(head));
        }
    }
}
