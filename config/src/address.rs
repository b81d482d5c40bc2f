//! Addresses after normalisation: two spellings of one address are equal here, so that a rule compares them once and for all.

use std::fmt;

/// `http` or `https`; nothing else is ever dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP, default port 80.
    Http,
    /// HTTP over TLS, default port 443.
    Https,
}

impl Scheme {
    /// The scheme as a URL has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL without one means.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A host and a port, normalised: lower case, no trailing dot, IDNA, an IPv6 address in brackets, the port always there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// A registered name, an IPv4 address, or an IPv6 address in brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Where a connection goes: the key of a connection pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// With or without TLS.
    pub scheme: Scheme,
    /// To whom.
    pub address: HostPort,
}

impl Origin {
    /// The value of the `host` header: the port only where the scheme does not imply it.
    pub fn authority(&self) -> String {
        if self.address.port == self.scheme.default_port() { self.address.host.clone() } else { self.address.to_string() }
    }
}

/// An origin and the path prefix below it, without a trailing slash: `https://api.openai.com` and `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    /// Scheme, host and port.
    pub origin: Origin,
    /// Empty, or starting with a slash and not ending with one.
    pub path: String,
}

/// Where the gateway listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `127.0.0.1:8080`.
    Tcp(std::net::SocketAddr),
    /// `unix:/run/toolgate.sock`.
    Unix(std::path::PathBuf),
}

impl Listen {
    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}
