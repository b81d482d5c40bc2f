//! Runs that wait for their callers: kept for an hour, bounded, and found by whoever has the same store. Who may have one is asked each time:
//! a pause is its key's, and its end user's.
//!
//! They have a thread and a connection of their own, which is made with the first of them: no row of the ledger waits for a long transcript,
//! and no caller for a sum of the ledger. Without a store they are kept in the process.

mod desk;
mod memory;

use std::time::Duration;

use jiff::Timestamp;
use toolgate_config::store::StoreUrl;

use self::desk::Desk;
use self::memory::Memory;
use super::text::fitted;
use super::{PATIENCE, Unusable};
use crate::talk::paused::{Digest, Kept, Place};

/// How long a pause is kept.
pub(super) const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The longest state of one, in bytes.
pub const LONGEST: usize = 16 * 1024 * 1024;

/// As many are looked at for one place: its own, and the newest of those that are like it. Some providers count their ids, so that all runs of
/// a key are alike.
pub(super) const LOOKED_AT: usize = 32;

/// How many there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Of one key.
    pub(super) of_key: usize,
    /// The states of all together, in bytes.
    pub(super) bytes: u64,
}

/// In a database.
pub(super) const BOUNDS: Bounds = Bounds { of_key: 1000, bytes: 1024 * 1024 * 1024 };

/// In this process.
const BOUNDS_HERE: Bounds = Bounds { of_key: 1000, bytes: 64 * 1024 * 1024 };

/// Whose a pause is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The key.
    pub(super) key: String,
    /// The end user; empty: nobody.
    pub(super) user: String,
}

impl Owner {
    /// Of a key, and the end user that it acts for.
    pub fn new(key: &str, user: Option<&str>) -> Self {
        Self { key: fitted(key).into_owned(), user: fitted(user.unwrap_or_default()).into_owned() }
    }
}

/// A pause to be kept.
#[derive(Clone, Debug)]
pub struct Pause {
    /// Whose it is.
    pub owner: Owner,
    /// When it began.
    pub at: Timestamp,
    /// What is hidden, in short.
    pub content: Digest,
    /// Where it is found, and what it is.
    pub kept: Kept,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) owner: Owner,
    /// Everything that agrees with one of these in the calls or in the conversation.
    pub(super) places: Vec<Place>,
    /// Nothing from before this time.
    pub(super) since: Timestamp,
}

/// Where pauses are kept.
pub struct Pauses(Where);

enum Where {
    Here(Memory),
    There(Desk),
}

impl Pauses {
    /// Of the store that a configuration names.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn open(url: &StoreUrl) -> Result<Self, Unusable> {
        Ok(Self(match url {
            StoreUrl::None => Where::Here(Memory::new(BOUNDS_HERE)),
            StoreUrl::Sqlite(_) | StoreUrl::Postgres(_) => Where::There(Desk::start(url.clone(), PATIENCE)?),
        }))
    }

    /// Keeps a pause, on the disk when this returns. Whether it could: not where another one of the same owner has its place.
    ///
    /// # Errors
    /// The store cannot be written at the moment.
    pub async fn keep(&self, pause: Pause) -> Result<bool, Unusable> {
        match &self.0 {
            Where::Here(memory) => Ok(memory.keep(pause)),
            Where::There(desk) => desk.keep(pause).await,
        }
    }

    /// What the owner has at these places, and the newest at places that are like them in the calls or in the conversation.
    ///
    /// # Errors
    /// The store cannot be read at the moment.
    pub async fn find(&self, owner: Owner, places: Vec<Place>, now: Timestamp) -> Result<Vec<Kept>, Unusable> {
        let wanted = Wanted { owner, places, since: expired(now) };
        match &self.0 {
            Where::Here(memory) => Ok(memory.find(&wanted)),
            Where::There(desk) => desk.find(wanted).await,
        }
    }

    /// Closes the connection, if there is one.
    pub async fn close(&self) {
        match &self.0 {
            Where::Here(_) => {}
            Where::There(desk) => desk.close(PATIENCE.busy).await,
        }
    }
}

/// What began to wait before this time waits no longer.
pub(super) fn expired(now: Timestamp) -> Timestamp {
    now.checked_sub(LIFETIME).unwrap_or(Timestamp::MIN)
}
