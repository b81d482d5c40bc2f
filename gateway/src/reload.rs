//! Reading the configuration again, on a signal, on request, and when its file has changed: checked whole, then swapped whole.
//!
//! A file with faults leaves the old configuration in force; the faults are logged, counted, and told to whoever asked.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, sleep};
use toolgate_config::place::Fault;
use toolgate_config::server::{Server, Tls};
use toolgate_config::{Config, check};
use tracing::{error, info, warn};

use crate::gateway::Gateway;
use crate::telemetry::metrics::ReloadOutcome;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An editor may write a file in several steps.
const SETTLE: Duration = Duration::from_millis(100);

/// Reads the configuration again.
pub struct Reloader {
    gateway: Arc<Gateway>,
    file: PathBuf,
    /// What was read last; holding it is the right to reload.
    read: Mutex<Seen>,
}

impl Reloader {
    /// For the file from which the configuration in force was read.
    pub fn new(gateway: Arc<Gateway>, file: PathBuf) -> Self {
        let read = Mutex::new(Seen::now(&files_of(&gateway.config(), &file)));
        Self { gateway, file, read }
    }

    /// Puts the file as it is now in force.
    ///
    /// # Errors
    /// Every fault; the old configuration stays.
    pub async fn reload(&self) -> Result<(), Vec<Fault>> {
        let mut read = self.read.lock().await;
        self.reload_noting(&mut read).await
    }

    /// Reloads on SIGHUP and whenever a file has changed, for as long as it is polled.
    pub async fn watch(self: Arc<Self>) {
        let mut hangup = match signal(SignalKind::hangup()) {
            Ok(hangup) => hangup,
            Err(error) => return error!(%error, "no signal can be received; the configuration is not watched"),
        };
        let mut clock = interval(LOOK_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Who asked by a signal or by a change reads the outcome in the log.
            tokio::select! {
                _ = hangup.recv() => drop(self.reload().await),
                _ = clock.tick() => self.reload_if_changed().await,
            }
        }
    }

    async fn reload_if_changed(&self) {
        let mut read = self.read.lock().await;
        let files = files_of(&self.gateway.config(), &self.file);
        if Stamp::all(&files) == read.stamps {
            return;
        }
        let settled = settled(&files).await;
        let same = settled.contents == read.contents;
        *read = settled;
        if !same {
            drop(self.reload_noting(&mut read).await);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "waited for here; reading and checking files must not keep probes waiting")]
    async fn reload_noting(&self, read: &mut Seen) -> Result<(), Vec<Fault>> {
        let (old, file) = (self.gateway.config(), self.file.clone());
        // Looked at before it is read: a change in between is found at the next look.
        *read = Seen::now(&files_of(&old, &file));
        let loaded = spawn_blocking(move || check::load(&file)).await;
        match loaded.unwrap_or_else(|_| Err(Vec::new())) {
            Ok(new) => {
                self.accept(&old, new);
                Ok(())
            }
            Err(faults) => {
                self.refuse(&faults);
                Err(faults)
            }
        }
    }

    fn accept(&self, old: &Config, new: Config) {
        let waiting = needs_restart(old, &new);
        self.gateway.replace(new);
        self.gateway.metrics.reload(ReloadOutcome::Ok);
        info!(file = %self.file.display(), "the configuration was read again and is in force");
        if !waiting.is_empty() {
            warn!(keys = waiting.join(", "), "these have changed and need a restart");
        }
    }

    fn refuse(&self, faults: &[Fault]) {
        self.gateway.metrics.reload(ReloadOutcome::Refused);
        error!(file = %self.file.display(), faults = faults.len(), "the configuration was refused; the old one stays in force");
        for fault in faults {
            error!("{fault}");
        }
    }
}

/// What a running process cannot change: what it has bound, and how its log was begun.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let (a, b): (&Server, &Server) = (&old.server, &new.server);
    let files = |tls: &Option<Tls>| tls.as_ref().map(|tls| (tls.cert.clone(), tls.key.clone(), tls.client_ca.clone()));
    let keys = [
        ("server.listen", a.listen != b.listen),
        ("server.admin_listen", a.admin_listen != b.admin_listen),
        ("server.tls", files(&a.tls) != files(&b.tls)),
        ("telemetry.log", old.telemetry.log != new.telemetry.log),
    ];
    keys.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
}

/// The files whose change is a reason to read again.
fn files_of(config: &Config, file: &Path) -> Vec<PathBuf> {
    std::iter::once(file.to_owned()).chain(config.watched.iter().cloned()).collect()
}

/// Looks until two looks see the same.
async fn settled(files: &[PathBuf]) -> Seen {
    let mut last = Seen::now(files);
    loop {
        sleep(SETTLE).await;
        let now = Seen::now(files);
        if now == last {
            return now;
        }
        last = now;
    }
}

/// What files looked like.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stamps: Vec<Option<Stamp>>,
    contents: Vec<u8>,
}

impl Seen {
    fn now(files: &[PathBuf]) -> Self {
        let stamps = Stamp::all(files);
        let contents = files.iter().flat_map(|file| fs::read(file).map(hash).unwrap_or_default()).collect();
        Self { stamps, contents }
    }
}

fn hash(contents: Vec<u8>) -> Vec<u8> {
    digest(&SHA256, &contents).as_ref().to_vec()
}

/// What changes when a file does, and costs little to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    length: u64,
    inode: u64,
}

impl Stamp {
    /// One for each file that is there.
    fn all(files: &[PathBuf]) -> Vec<Option<Self>> {
        files.iter().map(|file| fs::metadata(file).ok().map(|found| Self::of(&found))).collect()
    }

    fn of(found: &fs::Metadata) -> Self {
        Self { modified: (found.mtime(), found.mtime_nsec()), length: found.len(), inode: found.ino() }
    }
}
