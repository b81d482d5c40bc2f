//! The sockets that the gateway listens on: bound before anything else starts, or taken over from the process that runs already.
//!
//! They are bound here and given to the listener library as descriptors, so that a port that is taken is a sentence and an exit code, and
//! not a task that tries again for half a minute.

use std::collections::HashSet;
use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pingora_core::listeners::{L4BufferSettings, ListenerConfig, TcpSocketOptions};
use pingora_core::protocols::TcpKeepalive;
use pingora_core::server::Fds;
use toolgate_config::address::Listen;

/// Owner and group may connect to a unix socket; who else, the folder's permissions decide.
const SOCKET_MODE: u32 = 0o660;

/// One address and, in the library's table, the socket that is bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// With the port that it really has.
    Tcp(std::net::SocketAddr),
    /// By its path.
    Unix(PathBuf),
}

impl Bound {
    /// Binds an address, unless the table has a socket for it from the process before.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn bind(listen: &Listen, fds: &mut Fds) -> Result<Self, String> {
        let inherited = fds.get(&key_of(listen)).is_some();
        let bound = match listen {
            Listen::Tcp(address) if inherited => Ok(Self::Tcp(*address)),
            Listen::Unix(path) if inherited => Ok(Self::Unix(path.clone())),
            Listen::Tcp(address) => bind_tcp(*address, fds),
            Listen::Unix(path) => bind_unix(path, fds),
        };
        bound.map_err(|error| format!("cannot listen on {}: {}", key_of(listen), why(&error)))
    }

    /// Where others find it.
    pub(super) fn address(&self) -> Listen {
        match self {
            Self::Tcp(address) => Listen::Tcp(*address),
            Self::Unix(path) => Listen::Unix(path.clone()),
        }
    }

    /// What the library is told.
    pub(super) fn endpoint(&self) -> ListenerConfig {
        // hyper has its own buffers; a second pair would only cost memory and copies.
        let plain = L4BufferSettings::unbuffered();
        match self {
            Self::Tcp(address) => {
                let mut options = TcpSocketOptions::default();
                options.tcp_keepalive = Some(keepalive());
                ListenerConfig::tcp(address.to_string()).tcp_socket_options(options).l4_buffer(plain)
            }
            Self::Unix(path) => {
                ListenerConfig::uds(path.to_string_lossy()).permissions(Permissions::from_mode(SOCKET_MODE)).l4_buffer(plain)
            }
        }
    }

    /// Removes what a process leaves behind that nobody took over from.
    pub(super) fn remove(&self) {
        if let Self::Unix(path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Closes inherited sockets that the configuration no longer names: nobody would accept from them.
pub(super) fn close_others(fds: &mut Fds, wanted: &[&Listen]) {
    let wanted: HashSet<String> = wanted.iter().map(|listen| key_of(listen)).collect();
    for closed in fds.close_unclaimed(&wanted) {
        tracing::info!(address = closed, "the process before listened there, this one does not");
    }
}

/// How the library's table names an address.
fn key_of(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => path.to_string_lossy().into_owned(),
    }
}

fn bind_tcp(address: std::net::SocketAddr, fds: &mut Fds) -> io::Result<Bound> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    fds.add(address.to_string(), listener.into_raw_fd());
    Ok(Bound::Tcp(address))
}

fn bind_unix(path: &Path, fds: &mut Fds) -> io::Result<Bound> {
    remove_stale(path)?;
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    fds.add(path.to_string_lossy().into_owned(), listener.into_raw_fd());
    Ok(Bound::Unix(path.to_owned()))
}

/// Removes the socket of a process that ended without doing so. What is not a socket, or is in use, stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ErrorKind::AddrInUse.into()),
        Err(_) => std::fs::remove_file(path),
    }
}

/// A caller that vanished, or closed for good without another byte from us, is noticed within about two minutes.
fn keepalive() -> TcpKeepalive {
    TcpKeepalive { idle: Duration::from_secs(60), interval: Duration::from_secs(15), count: 4, user_timeout: Duration::ZERO }
}

/// The operator's words for what usually happens.
fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "the address is in use".to_owned(),
        ErrorKind::AddrNotAvailable => "this machine does not have the address".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
