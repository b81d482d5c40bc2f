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
    /// The scheme that a word names, in any case.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| scheme.as_str().eq_ignore_ascii_case(word))
    }

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

impl HostPort {
    /// Normalises `host:port`; the port may be left out where there is a default.
    ///
    /// # Errors
    /// What it is not, without the text itself.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, &'static str> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (text, None),
        };
        let port = match port.filter(|port| !port.is_empty()) {
            None => default_port.ok_or("it has no port")?,
            Some(port) => number(port).ok_or("its port is no number from 1 to 65535")?,
        };
        Ok(Self { host: normal_host(host)?, port })
    }

    /// Whether only this machine answers there.
    pub fn is_loopback(&self) -> bool {
        match url::Host::parse(&self.host) {
            Ok(url::Host::Ipv4(address)) => address.is_loopback(),
            Ok(url::Host::Ipv6(address)) => address.is_loopback(),
            Ok(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Err(_) => false,
        }
    }
}

fn number(port: &str) -> Option<u16> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|&port| digits && port > 0)
}

fn normal_host(host: &str) -> Result<String, &'static str> {
    const NO_HOST: &str = "its host is no name and no address (an IPv6 address stands in brackets)";
    let host = host.strip_suffix('.').unwrap_or(host);
    // An asterisk is a legal code point of a host, but here it would be a pattern, and there are none.
    if host.contains('*') {
        return Err("its host is a pattern; each host is named by itself");
    }
    if host.ends_with('.') || host.contains("..") {
        return Err(NO_HOST);
    }
    url::Host::parse(host).map(|host| host.to_string()).map_err(|_| NO_HOST)
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

impl BaseUrl {
    /// Normalises an absolute URL without userinfo, query and fragment.
    ///
    /// # Errors
    /// What is wrong with it, without the text itself.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("it has no scheme; http:// or https://")?;
        let scheme = Scheme::from_word(scheme).ok_or("its scheme is neither http nor https")?;
        if rest.contains(['?', '#']) {
            return Err("it has a query or a fragment");
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err("it carries a user name or a password");
        }
        let address = HostPort::parse(authority, Some(scheme.default_port()))?;
        let path = path.trim_end_matches('/');
        if path.contains(|c: char| !c.is_ascii_graphic()) {
            return Err("its path holds characters that must be percent-encoded");
        }
        Ok(Self { origin: Origin { scheme, address }, path: path.to_owned() })
    }
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
    /// `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, or `unix:/run/toolgate.sock`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return (!path.is_empty()).then(|| Self::Unix(path.into()));
        }
        let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        numeric.as_deref().unwrap_or(text).parse().ok().map(Self::Tcp)
    }

    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spellings_of_one_address_are_equal() {
        for (text, normal) in [
            ("Orders.Internal.:443", "orders.internal:443"),
            ("orders.internal", "orders.internal:443"),
            ("bücher.example:8443", "xn--bcher-kva.example:8443"),
            ("[0:0::1]:80", "[::1]:80"),
            ("[::1]", "[::1]:443"),
            ("127.1:1", "127.0.0.1:1"),
        ] {
            assert_eq!(HostPort::parse(text, Some(443)).map(|address| address.to_string()), Ok(normal.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            ":443",
            "a b:1",
            "a:0",
            "a:65536",
            "a:x",
            "a:+1",
            "a..:1",
            "a..b:1",
            "*.example.org:443",
            "::1:443",
            "a/b:1",
            "u@h:1",
        ] {
            assert!(HostPort::parse(text, Some(443)).is_err(), "{text}");
        }
        assert_eq!(HostPort::parse("a", None), Err("it has no port"));
    }

    #[test]
    fn a_base_url_is_origin_and_path() {
        for (text, origin, path) in
            [("https://API.openai.com/v1/", "https://api.openai.com:443", "/v1"), ("http://[::1]:8080", "http://[::1]:8080", "")]
        {
            let BaseUrl { origin: Origin { scheme, address }, path: seen } = BaseUrl::parse(text).unwrap();
            assert_eq!((format!("{}://{address}", scheme.as_str()).as_str(), seen.as_str()), (origin, path));
        }
        for text in
            ["api.openai.com", "ftp://x/", "https://u:p@x/", "https://x/?a=1", "https://x/#a", "https:///v1", "https://x/a b"]
        {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_listener_is_an_address_or_a_socket_and_knows_whether_it_is_local() {
        for (text, local) in [
            ("127.0.0.1:8080", Some(true)),
            ("localhost:0", Some(true)),
            ("[::1]:8080", Some(true)),
            ("0.0.0.0:8080", Some(false)),
            ("unix:/run/toolgate.sock", Some(true)),
            ("unix:", None),
            ("8080", None),
            ("gateway.example:8080", None),
        ] {
            assert_eq!(Listen::parse(text).map(|listen| listen.is_local()), local, "{text}");
        }
    }
}
