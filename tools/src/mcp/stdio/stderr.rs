//! What a server says beside the protocol: logged, in few and short lines, without the credentials that we gave it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::time::Instant;
use toolgate_config::names::ServerName;
use toolgate_config::secret::Secret;

use super::super::cleaner::Cleaner;
use super::quota::Quota;
use crate::bound;

/// The longest line that is logged, in bytes.
const LONGEST: usize = 1024;

/// A shorter value is no credential, and would be found everywhere.
const SHORTEST_SECRET: usize = 6;

/// Where a server's lines go.
#[derive(Clone, Debug)]
pub(super) struct Log(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    server: ServerName,
    given: Vec<Secret>,
    cleaner: Cleaner,
    quota: Mutex<Quota>,
}

impl Log {
    /// For this server, which was given these values.
    pub(super) fn new<'s>(server: &ServerName, cleaner: &Cleaner, given: impl Iterator<Item = &'s Secret>) -> Self {
        let mut given: Vec<Secret> = given.filter(|value| value.expose().len() >= SHORTEST_SECRET).cloned().collect();
        // One may be part of another.
        given.sort_by_key(|value| std::cmp::Reverse(value.expose().len()));
        Self(Arc::new(Inside { server: server.clone(), given, cleaner: cleaner.clone(), quota: Mutex::default() }))
    }

    /// Logs all that is written there, until its end.
    pub(super) async fn follow(self, stderr: ChildStderr) {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        while let Ok(bytes) = reader.fill_buf().await {
            let read = bytes.len();
            if read == 0 {
                break;
            }
            for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                // What comes after the longest line that is logged is passed over. Room for a credential that would be cut.
                let room = (2 * LONGEST).saturating_sub(line.len());
                line.extend_from_slice(piece.get(..room).unwrap_or(piece));
                if piece.ends_with(b"\n") {
                    self.say("standard error", &String::from_utf8_lossy(&line));
                    line.clear();
                }
            }
            reader.consume(read);
        }
        self.say("standard error", &String::from_utf8_lossy(&line));
        let kept_back = self.quota(|quota| quota.kept_back());
        if kept_back > 0 {
            tracing::info!(server = self.0.server.as_str(), lines = kept_back, "a server said more than is logged");
        }
    }

    /// Logs one line that was found there.
    pub(super) fn say(&self, found: &'static str, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let Some(kept_back) = self.quota(|quota| quota.take(Instant::now())) else { return };
        let line = bound::word(&self.masked(line), LONGEST);
        tracing::info!(server = self.0.server.as_str(), found, line, lines_before = kept_back, "a server said something");
    }

    fn quota<T>(&self, ask: impl FnOnce(&mut Quota) -> T) -> T {
        ask(&mut self.0.quota.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn masked(&self, line: &str) -> String {
        let masked = self.0.given.iter().fold(line.to_owned(), |line, value| line.replace(value.expose(), "***"));
        self.0.cleaner.clean(&masked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_was_given_is_not_logged() {
        let given = [Secret::new("tok-12345"), Secret::new("tok-12345-and-more"), Secret::new("en")];
        let log = Log::new(&ServerName::new("s"), &Cleaner::default(), given.iter());
        assert_eq!(log.masked("open tok-12345-and-more with tok-12345 when"), "open *** with *** when");
        assert!(!log.masked("Authorization: Bearer abcdefghij0123456789").contains("abcdefghij"));
    }
}
