//! Reading the configuration again, on a signal, on request, and when its file has changed: checked whole, then swapped whole.
//!
//! A file with faults leaves the old configuration in force; the faults are logged, counted, and told to whoever asked.

use std::collections::BTreeMap;
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
use toolgate_config::address::Listen;
use toolgate_config::place::Fault;
use toolgate_config::server::LogFormat;
use toolgate_config::store::{CountersUrl, OnCounterFailure, Store, StoreUrl};
use toolgate_config::{Config, check};
use tracing::{error, info, warn};

use crate::gateway::Gateway;
use crate::money::Closed;
use crate::server::Certificates;
use crate::store::keep;
use crate::telemetry::metrics::ReloadOutcome;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An editor may write a file in several steps.
const SETTLE: Duration = Duration::from_millis(100);

/// Reads the configuration again.
pub struct Reloader {
    gateway: Arc<Gateway>,
    file: PathBuf,
    certificates: Option<Arc<Certificates>>,
    started: Fixed,
    /// What was read last; holding it is the right to reload.
    read: Mutex<Seen>,
}

impl Reloader {
    /// For the file from which the configuration in force was read.
    pub fn new(gateway: Arc<Gateway>, file: PathBuf, certificates: Option<Arc<Certificates>>) -> Self {
        let config = gateway.config();
        let read = Mutex::new(Seen::now(&files_of(&config, &file)));
        Self { gateway, file, certificates, started: Fixed::of(&config), read }
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
        let files = self.files();
        if !read.differs_in_stamp(&files) {
            return;
        }
        let settled = settled(&files).await;
        let same = settled.same_contents(&read);
        *read = settled;
        if !same {
            drop(self.reload_noting(&mut read).await);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "waited for here; reading and checking files must not keep probes waiting")]
    async fn reload_noting(&self, read: &mut Seen) -> Result<(), Vec<Fault>> {
        // Looked at before it is read: a change in between is found at the next look.
        *read = Seen::now(&self.files());
        let file = self.file.clone();
        let loaded = spawn_blocking(move || check::load(&file)).await;
        match loaded.unwrap_or_else(|_| Err(Vec::new())) {
            Ok(new) => {
                self.accept(new).await;
                read.follow(&self.files());
                Ok(())
            }
            Err(faults) => {
                self.refuse(&faults);
                Err(faults)
            }
        }
    }

    /// The files whose change is a reason to read again.
    fn files(&self) -> Vec<PathBuf> {
        files_of(&self.gateway.config(), &self.file)
    }

    async fn accept(&self, new: Config) {
        let waiting = self.started.changed_in(&new);
        self.renew_certificates(&new);
        self.gateway.money.ledger.keep(keep(&new));
        self.gateway.found.put_in_force(&self.gateway, new).await;
        self.gateway.metrics.reload(ReloadOutcome::Ok);
        info!(file = %self.file.display(), "the configuration was read again and is in force");
        if !waiting.is_empty() {
            warn!(keys = waiting.join(", "), "these have changed and need a restart");
        }
        // A budget that is new looks up what was used before somebody waits for it. Where it cannot, the first request tries again.
        if let Err(Closed(why)) = self.gateway.money.look_up(&self.gateway.in_force().limits).await {
            warn!(why, "what was used of the budgets cannot be looked up yet");
        }
    }

    fn renew_certificates(&self, new: &Config) {
        if let (Some(certificates), Some(tls)) = (&self.certificates, &new.server.tls)
            && let Err(why) = certificates.renew(tls)
        {
            error!(why, "the certificates cannot be used; those in force stay");
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
struct Fixed {
    listen: Listen,
    admin_listen: Listen,
    tls: bool,
    log: LogFormat,
    store: StoreUrl,
    counters: CountersUrl,
    on_counter_failure: OnCounterFailure,
}

impl Fixed {
    fn of(config: &Config) -> Self {
        let server = &config.server;
        let (listen, admin_listen) = (server.listen.clone(), server.admin_listen.clone());
        let Store { url: store, counters, on_counter_failure, .. } = config.store.clone();
        Self { listen, admin_listen, tls: server.tls.is_some(), log: config.telemetry.log, store, counters, on_counter_failure }
    }

    /// The keys that another configuration has otherwise.
    fn changed_in(&self, config: &Config) -> Vec<&'static str> {
        let new = Self::of(config);
        let keys = [
            ("server.listen", self.listen != new.listen),
            ("server.admin_listen", self.admin_listen != new.admin_listen),
            ("server.tls", self.tls != new.tls),
            ("telemetry.log", self.log != new.log),
            ("store.url", self.store != new.store),
            ("store.counters", self.counters != new.counters),
            ("store.on_counter_failure", self.on_counter_failure != new.on_counter_failure),
        ];
        keys.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
    }
}

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
struct Seen(BTreeMap<PathBuf, Look>);

impl Seen {
    fn now(files: &[PathBuf]) -> Self {
        Self(files.iter().map(|file| (file.clone(), Look::at(file))).collect())
    }

    /// From now on these are looked at. Of those that were before, the earlier look stands.
    fn follow(&mut self, files: &[PathBuf]) {
        let looks = files.iter().map(|file| (file.clone(), self.0.remove(file).unwrap_or_else(|| Look::at(file)))).collect();
        self.0 = looks;
    }

    /// Whether it is worth reading the files.
    fn differs_in_stamp(&self, files: &[PathBuf]) -> bool {
        files.iter().any(|file| self.0.get(file).and_then(|look| look.stamp) != Stamp::at(file))
    }

    fn same_contents(&self, other: &Self) -> bool {
        let contents = |seen: &Self| seen.0.iter().map(|(file, look)| (file.clone(), look.digest.clone())).collect::<Vec<_>>();
        contents(self) == contents(other)
    }
}

/// What one file looked like; a file that is not there looks like nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    stamp: Option<Stamp>,
    digest: Option<Vec<u8>>,
}

impl Look {
    fn at(file: &Path) -> Self {
        let digest = fs::read(file).ok().map(|contents| digest(&SHA256, &contents).as_ref().to_vec());
        Self { stamp: Stamp::at(file), digest }
    }
}

/// What changes when a file does, and costs little to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    length: u64,
    inode: u64,
}

impl Stamp {
    fn at(file: &Path) -> Option<Self> {
        let found = fs::metadata(file).ok()?;
        Some(Self { modified: (found.mtime(), found.mtime_nsec()), length: found.len(), inode: found.ino() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of its own, gone with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("toolgate-{}-{name}", std::process::id()));
            fs::write(&path, "a").unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_that_is_written_anew_with_what_it_held_is_no_change() {
        let file = Scratch::new("anew");
        let files = [file.0.clone()];
        let before = Seen::now(&files);
        assert!(!before.differs_in_stamp(&files));
        fs::remove_file(&file.0).unwrap();
        assert!(before.differs_in_stamp(&files), "a file that is gone is a change");
        fs::write(&file.0, "a").unwrap();
        assert!(Seen::now(&files).same_contents(&before));
        fs::write(&file.0, "b").unwrap();
        assert!(!Seen::now(&files).same_contents(&before));
    }

    #[test]
    fn a_change_while_the_file_is_read_is_not_overlooked() {
        let (file, new) = (Scratch::new("main"), Scratch::new("new"));
        let mut seen = Seen::now(std::slice::from_ref(&file.0));
        fs::write(&file.0, "longer").unwrap();
        let files = [file.0.clone(), new.0.clone()];
        seen.follow(&files);
        assert!(seen.differs_in_stamp(&files));
        assert!(!seen.differs_in_stamp(&files[1..]));
    }
}
