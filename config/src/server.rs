//! `server:`, `auth:`, `enforcement:`, `store.privacy` and `telemetry:`.

use std::path::PathBuf;
use std::time::Duration;

use crate::address::Listen;
use crate::secret::Secret;

/// Listeners, bounds and time limits of the process.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where callers come in.
    pub listen: Listen,
    /// Where operators and Prometheus come in.
    pub admin_listen: Listen,
    /// The bearer that every admin path but the probes asks for; `None` leaves `/-/reload` open, on loopback only.
    pub admin_token: Option<Secret>,
    /// TLS on `listen`.
    pub tls: Option<Tls>,
    /// The longest request body, in bytes.
    pub max_body: usize,
    /// How long a caller may take for its request head.
    pub header_timeout: Duration,
    /// How long a request may take until its answer begins; a plain answer begins when it is complete.
    pub request_timeout: Duration,
    /// Requests in flight; one more gets a 503.
    pub max_concurrent: usize,
    /// How long a drain waits for running requests.
    pub shutdown_grace: Duration,
}

/// A certificate, its key, and who may present client certificates. `check` has read all three files.
#[derive(Clone, Debug)]
pub struct Tls {
    /// PEM chain.
    pub cert: PathBuf,
    /// PEM private key.
    pub key: PathBuf,
    /// PEM bundle; set: a caller must present a certificate that one of these signed.
    pub client_ca: Option<PathBuf>,
}

/// How callers prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// By a key of the file.
    Keys,
    /// Not at all: everybody is `anonymous`.
    None,
    /// Everybody is `anonymous`, and the caller's bearer is the provider's key.
    Passthrough,
}

/// What a broken trust-zone rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// The tool is withheld.
    Enforce,
    /// The tool is offered, and the verdict says `observed`.
    Observe,
}

/// How much of a run is kept in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Privacy {
    /// No trace at all.
    None,
    /// Names, counts and times; no contents.
    Metadata,
    /// Contents after redaction. The default.
    Redacted,
    /// Contents as they were.
    Full,
}

/// Logs.
#[derive(Clone, Debug)]
pub struct Telemetry {
    /// One JSON object a line, or text for people.
    pub log: LogFormat,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line. The default.
    Json,
    /// For people.
    Text,
}
