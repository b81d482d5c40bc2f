//! Outgoing HTTP/1.1: the one place that opens a connection, one pool, one TLS stack. A packed answer is unpacked here; whoever reads one
//! never sees how it came.
//!
//! A connection is driven by the request that uses it: whoever waits for an answer polls the connection itself. There is no task behind a
//! connection, so dropping an answer half-read closes its socket, and nothing goes on unseen. Who may be reached is not decided here.

mod alarm;
mod answer;
mod dial;
mod error;
pub mod headers;
mod link;
mod nudge;
mod outgoing;
mod pool;
mod segments;
#[cfg(test)]
mod tests;
mod unpack;

use std::time::Duration;

use http::Request;
use http::header::HOST;
use toolgate_config::address::Origin;

pub use self::answer::{Answer, AnswerBody};
use self::dial::Dialer;
pub use self::error::NetError;
use self::link::{Link, Lost};
pub use self::outgoing::{BrokenOff, Coming, Outgoing, Source};
use self::pool::Pool;
pub use self::segments::Segments;

/// The client: a pool and a way to dial. One for the whole process, shared.
#[derive(Debug, Default)]
pub struct Net {
    pool: Pool,
    dialer: Dialer,
}

/// How long a request waits before it gives up.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until a connection stands: name, TCP and TLS.
    pub connect: Duration,
    /// From the request's start on a connection to the answer's head.
    pub first_byte: Duration,
}

impl Net {
    /// A client with an empty pool. Root certificates are read at the first TLS connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a request and waits for the head of its answer. The URI is the path and query alone; `host` and the length are set here.
    ///
    /// A pooled connection that turns out to be closed before the request was written costs nothing: the next one is taken. Once
    /// anything was written there is no second try, for only the caller knows whether twice is as good as once.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn send(&self, to: &Origin, request: Request<impl Into<Outgoing>>, patience: Patience) -> Result<Answer, NetError> {
        let mut request = request.map(Into::into);
        let shelf = self.pool.shelf(to);
        request.headers_mut().insert(HOST, shelf.host());
        while let Some(link) = shelf.take() {
            match link.exchange(request, patience.first_byte).await {
                Ok(answer) => return Ok(answer),
                Err(Lost::Unsent(unsent)) => request = *unsent,
                Err(Lost::Failed(error)) => return Err(error),
            }
        }
        // Boxed: dialling is rare, and its state would make every request's future larger.
        let stream = Box::pin(self.dialer.dial(to, patience.connect)).await?;
        let link = Link::new(stream, shelf).await?;
        link.exchange(request, patience.first_byte).await.map_err(Lost::into_error)
    }
}
