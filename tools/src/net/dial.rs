//! From an origin to a connected stream: name, addresses that may be had, TCP, TLS. No environment variable is asked for a proxy.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use toolgate_config::address::{HostPort, Origin, Scheme};
use toolgate_policies::egress::{Addresses, EgressRefusal, judge_address};

use super::error::NetError;
use super::resolve::{Resolver, bare};

/// Opens connections.
#[derive(Default)]
pub(super) struct Dialer {
    resolver: Resolver,
    tls: OnceCell<TlsConnector>,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialer")
    }
}

impl Dialer {
    /// A connection to an origin, at an address that it may have.
    pub(super) async fn dial(&self, to: &Origin, allowed: Addresses, within: Duration) -> Result<Stream, NetError> {
        let deadline = Instant::now() + within;
        timeout_at(deadline, self.dial_until(to, allowed, deadline)).await.unwrap_or(Err(NetError::ConnectTimeout))
    }

    async fn dial_until(&self, to: &Origin, allowed: Addresses, deadline: Instant) -> Result<Stream, NetError> {
        let addresses = self.judged(&to.address, allowed).await?;
        let tcp = connect(&addresses, deadline).await?;
        // Requests are written whole; waiting for more would only delay them.
        tcp.set_nodelay(true).map_err(|error| NetError::Connect(error.kind()))?;
        match to.scheme {
            Scheme::Http => Ok(Stream::Plain(tcp)),
            Scheme::Https => self.encrypt(&to.address, tcp).await.map(|tls| Stream::Tls(Box::new(tls))),
        }
    }

    /// The addresses of a host, asked for once: what is connected to is what was judged. One that the host may not have refuses them all: a
    /// name with a public and a private address is waiting for us to take the other one.
    async fn judged(&self, to: &HostPort, allowed: Addresses) -> Result<SmallVec<[SocketAddr; 4]>, NetError> {
        let unresolved = match allowed {
            Addresses::Public => NetError::Refused(EgressRefusal::Unresolved),
            Addresses::Any | Addresses::Named => NetError::Resolve,
        };
        let found = self.resolver.addresses(&to.host).await.ok_or(unresolved)?;
        found.iter().try_for_each(|address| judge_address(*address, allowed)).map_err(NetError::Refused)?;
        Ok(found.into_iter().map(|address| self.way(SocketAddr::new(address, to.port))).collect())
    }

    #[cfg(not(test))]
    fn way(&self, address: SocketAddr) -> SocketAddr {
        address
    }

    /// Tests connect to the addresses of the world, and meet their own servers.
    #[cfg(test)]
    fn way(&self, address: SocketAddr) -> SocketAddr {
        match &self.resolver {
            Resolver::System(_) => address,
            Resolver::Table(table) => table.way(address),
        }
    }

    async fn encrypt(&self, to: &HostPort, tcp: TcpStream) -> Result<TlsStream<TcpStream>, NetError> {
        let connector = self.tls.get_or_try_init(system_roots).await?;
        let name = ServerName::try_from(bare(&to.host).to_owned()).map_err(|_| NetError::Tls)?;
        connector.connect(name, tcp).await.map_err(|_| NetError::Tls)
    }

    /// Trusts these authorities and no others.
    #[cfg(test)]
    pub(super) fn trusting(roots: RootCertStore) -> Self {
        Self { tls: OnceCell::new_with(connector(roots).ok()), resolver: Resolver::default() }
    }

    /// Takes names from a table.
    #[cfg(test)]
    pub(super) fn asking(self, table: super::table::Table) -> Self {
        Self { resolver: Resolver::Table(table), ..self }
    }

    /// The table.
    #[cfg(test)]
    pub(super) fn table(&self) -> &super::table::Table {
        match &self.resolver {
            Resolver::Table(table) => table,
            Resolver::System(_) => panic!("no table"),
        }
    }
}

/// The first address that answers. Each gets its share of the time that is left, so that one that swallows everything does not take it all.
#[expect(clippy::disallowed_methods, reason = "this is the place through which everything leaves")]
async fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, NetError> {
    let mut last = NetError::Resolve;
    for (tried, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let others = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let until = now + deadline.saturating_duration_since(now) / others;
        last = match timeout_at(until, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => NetError::Connect(error.kind()),
            Err(_) => NetError::ConnectTimeout,
        };
    }
    Err(last)
}

/// The authorities that this machine trusts. They are read in a thread of their own: that takes milliseconds.
#[expect(clippy::disallowed_methods, reason = "the first TLS connection waits for it, and it ends by itself")]
async fn system_roots() -> Result<TlsConnector, NetError> {
    let load = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().unwrap_or_default());
        roots
    };
    let roots = tokio::task::spawn_blocking(load).await.map_err(|_| NetError::Tls)?;
    if roots.is_empty() {
        tracing::warn!("no root certificates were found, so no TLS server can be trusted");
        return Err(NetError::Tls);
    }
    connector(roots)
}

fn connector(roots: RootCertStore) -> Result<TlsConnector, NetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = versions.map_err(|_| NetError::Tls)?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A connected stream.
#[derive(Debug)]
pub(super) enum Stream {
    /// As it is.
    Plain(TcpStream),
    /// Encrypted; boxed, for its state is large and most streams of a busy gateway are plain.
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Self::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Self::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, into))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, from))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, from))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
