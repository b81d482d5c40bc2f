//! Where a caller is that has closed its sending side: still reading, or gone for good.
//!
//! TCP says the same in both cases, so this asks the kernel, which knows the other end when it is on this machine. Of any other it does
//! not know, and says so.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use pingora_core::protocols::GetSocketDigest;
use pingora_core::protocols::l4::stream::Stream as L4Stream;

/// The two ends of a connection.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    /// Over TCP.
    Tcp {
        /// Their end.
        caller: SocketAddr,
        /// Our end.
        here: SocketAddr,
    },
    /// Over a unix socket. One that is closed for good is broken at once, so there is nothing to ask.
    Unix,
}

/// Where a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// It holds its socket open, so it waits for its answer.
    Reading,
    /// Nobody holds its socket any more.
    Gone,
    /// Not on this machine.
    Unknown,
}

impl Peer {
    /// The ends of a connection that was just accepted.
    pub(super) fn of(stream: &L4Stream) -> Self {
        let ends = stream.get_socket_digest().and_then(|digest| {
            let caller = *digest.peer_addr()?.as_inet()?;
            Some((caller, *digest.local_addr()?.as_inet()?))
        });
        ends.map_or(Self::Unix, |(caller, here)| Self::Tcp { caller, here })
    }

    /// Looks its socket up in the kernel's tables.
    pub(super) fn whereabouts(&self) -> Whereabouts {
        let Self::Tcp { caller, here } = self else { return Whereabouts::Reading };
        let table = |path| std::fs::read_to_string(path).unwrap_or_default();
        let found = find(&table("/proc/self/net/tcp"), &ends_of(caller, here, short))
            .or_else(|| find(&table("/proc/self/net/tcp6"), &ends_of(caller, here, long)));
        match found {
            Some(whereabouts) => whereabouts,
            // A socket of this machine that is in no table is over.
            None if caller.ip().to_canonical().is_loopback() => Whereabouts::Gone,
            None => Whereabouts::Unknown,
        }
    }
}

/// What a table says of the socket whose two ends, seen from there, read like this.
fn find(table: &str, ends: &str) -> Option<Whereabouts> {
    let line = table.lines().find(|line| line.contains(ends))?;
    // The inode is the tenth column; a socket that no process holds has none.
    let inode = line.split_ascii_whitespace().nth(9)?;
    Some(if inode == "0" { Whereabouts::Gone } else { Whereabouts::Reading })
}

/// Both ends as the tables write them: the owner's first.
fn ends_of(caller: &SocketAddr, here: &SocketAddr, form: fn(IpAddr) -> String) -> String {
    format!(" {}:{:04X} {}:{:04X} ", form(caller.ip()), caller.port(), form(here.ip()), here.port())
}

/// An address in the table of IPv4: one word in the machine's byte order. One that is not IPv4 is found nowhere in it.
fn short(ip: IpAddr) -> String {
    match ip.to_canonical() {
        IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
        IpAddr::V6(_) => "-".to_owned(),
    }
}

/// An address in the table of IPv6, where an IPv4 one is written as mapped: four words in the machine's byte order.
fn long(ip: IpAddr) -> String {
    let ip: Ipv6Addr = match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let octets = ip.octets();
    let (words, _) = octets.as_chunks::<4>();
    words.iter().fold(String::with_capacity(32), |mut text, word| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:08X}", u32::from_ne_bytes(*word));
        text
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    /// What is known of a client at `address` after it has done `act` to its socket.
    #[expect(clippy::disallowed_methods, reason = "a client of this test's own listener")]
    fn after(address: &str, act: impl FnOnce(TcpStream) -> Option<TcpStream>) -> Whereabouts {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, caller) = listener.accept().unwrap();
        let _kept = act(client);
        // Only after the end has come is there anything to ask.
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        // The end can come a moment before the socket is let go.
        std::thread::yield_now();
        let peer = Peer::Tcp { caller, here: stream.local_addr().unwrap() };
        peer.whereabouts()
    }

    #[test]
    fn one_that_only_stopped_sending_is_told_from_one_that_left() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let stopped = after(address, |client| {
                client.shutdown(Shutdown::Write).unwrap();
                Some(client)
            });
            assert_eq!(stopped, Whereabouts::Reading, "{address}");
            assert_eq!(after(address, |_| None), Whereabouts::Gone, "{address}");
        }
    }

    #[test]
    fn of_another_machine_nothing_is_known() {
        let far = |text: &str| text.parse().unwrap();
        let peer = Peer::Tcp { caller: far("192.0.2.1:4711"), here: far("192.0.2.2:8080") };
        assert_eq!(peer.whereabouts(), Whereabouts::Unknown);
    }
}
