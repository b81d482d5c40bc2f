//! Outgoing HTTP/1.1: the one place that opens a connection, one pool, one TLS stack. A packed answer is unpacked here; whoever reads one
//! never sees how it came.
//!
//! A connection is driven by the request that uses it: whoever waits for an answer polls the connection itself. There is no task behind a
//! connection, so dropping an answer half-read closes its socket, and nothing goes on unseen. Who may be reached is not decided here but by
//! [`toolgate_policies::egress`], which is asked about every address before it is connected to.

mod alarm;
mod answer;
mod dial;
mod error;
pub mod headers;
#[cfg(test)]
mod judged;
mod link;
mod nudge;
mod outgoing;
mod pool;
mod resolve;
mod segments;
#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;
mod unpack;

use std::future::Future;
use std::time::Duration;

use http::Request;
use http::header::HOST;
use toolgate_config::address::Origin;
use toolgate_policies::egress::{Addresses, Permit};

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

    /// Sends a request to a provider and waits for the head of its answer. The URI is the path and query alone; `host` and the length are set
    /// here. Whatever is sent for a tool goes by [`Self::send_permitted`].
    ///
    /// A pooled connection that turns out to be closed before the request was written costs nothing: the next one is taken. Once
    /// anything was written there is no second try, for only the caller knows whether twice is as good as once.
    ///
    /// # Errors
    /// See [`NetError`].
    pub fn send<'n>(
        &'n self,
        to: &'n Origin,
        request: Request<impl Into<Outgoing>>,
        patience: Patience,
    ) -> impl Future<Output = Result<Answer, NetError>> + Send {
        self.exchange(to, Addresses::Any, request.map(Into::into), patience)
    }

    /// Sends a request for a tool, to where it was permitted to go, and waits for the head of its answer: as [`Self::send`] does, but to no
    /// address that the permit does not cover. Redirects are answers like any other.
    ///
    /// # Errors
    /// See [`NetError`]; [`NetError::Refused`] where the host turns out to be somewhere else.
    pub fn send_permitted<'n>(
        &'n self,
        permit: Permit<'n>,
        request: Request<impl Into<Outgoing>>,
        patience: Patience,
    ) -> impl Future<Output = Result<Answer, NetError>> + Send {
        self.exchange(permit.origin(), permit.addresses(), request.map(Into::into), patience)
    }

    async fn exchange(
        &self,
        to: &Origin,
        allowed: Addresses,
        mut request: Request<Outgoing>,
        patience: Patience,
    ) -> Result<Answer, NetError> {
        let shelf = self.pool.shelf(to, allowed);
        request.headers_mut().insert(HOST, shelf.host());
        while let Some(link) = shelf.take() {
            match link.exchange(request, patience.first_byte).await {
                Ok(answer) => return Ok(answer),
                Err(Lost::Unsent(unsent)) => request = *unsent,
                Err(Lost::Failed(error)) => return Err(error),
            }
        }
        // Boxed: dialling is rare, and its state would make every request's future larger.
        let stream = Box::pin(self.dialer.dial(to, allowed, patience.connect)).await?;
        let link = Link::new(stream, shelf).await?;
        link.exchange(request, patience.first_byte).await.map_err(Lost::into_error)
    }
}
