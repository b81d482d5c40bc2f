//! What can go wrong between us and a server. None of it holds an address, a header or a byte that was sent.

use std::fmt;
use std::io;

use toolgate_policies::egress::EgressRefusal;

/// Why there is no answer, or no more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetError {
    /// The name has no address.
    Resolve,
    /// Whoever asks may not go there.
    Refused(EgressRefusal),
    /// No address took the connection.
    Connect(io::ErrorKind),
    /// The TLS handshake failed, or there are no root certificates.
    Tls,
    /// There was no connection in time.
    ConnectTimeout,
    /// There was no answer in time.
    FirstByteTimeout,
    /// The answer stood still for too long.
    IdleTimeout,
    /// The connection ended before the answer began.
    Closed,
    /// The connection ended before the answer did.
    Cut,
    /// The answer is longer than the caller takes.
    TooLarge,
    /// What came is not HTTP, or says two things at once.
    Protocol,
    /// The answer is packed in a way that is not known, or not as it says.
    Packing,
}

impl NetError {
    /// Whether time ran out.
    pub const fn is_timeout(self) -> bool {
        matches!(self, Self::ConnectTimeout | Self::FirstByteTimeout | Self::IdleTimeout)
    }

    /// Whether there never was a connection, so that nothing can have been sent.
    pub const fn is_connect(self) -> bool {
        matches!(self, Self::Resolve | Self::Refused(_) | Self::Connect(_) | Self::Tls | Self::ConnectTimeout)
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "the name could not be resolved",
            Self::Refused(refusal) => return write!(f, "it may not be reached: {}", refusal.as_str()),
            Self::Connect(kind) => return write!(f, "no connection: {kind}"),
            Self::Tls => "the TLS handshake failed",
            Self::ConnectTimeout => "no connection in time",
            Self::FirstByteTimeout => "no answer in time",
            Self::IdleTimeout => "the answer stood still for too long",
            Self::Closed => "the connection ended before an answer",
            Self::Cut => "the answer was cut",
            Self::TooLarge => "the answer is too large",
            Self::Protocol => "the answer is not valid HTTP",
            Self::Packing => "the answer cannot be unpacked",
        })
    }
}

impl std::error::Error for NetError {}
