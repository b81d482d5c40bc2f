//! What is asked of a database, whichever it is: of the connection of the one writer, and of those that only read.
//!
//! Everything here takes its time, and is done on threads of the store's own.

use std::time::Duration;

use jiff::Timestamp;
use toolgate_config::store::StoreUrl;

use super::pauses::{Pause, Wanted};
use super::pins::{Digest, Pin};
#[cfg(feature = "postgres")]
use super::postgres::{self, Postgres};
use super::sqlite::{self, Sqlite};
use super::{Row, Sum, Unusable};
use crate::talk::paused::Kept;

/// What a database says about why it did not do something.
#[derive(Debug)]
pub(super) struct Trouble(pub(super) String);

/// A row and the number that tells it from every other row of the same microsecond: a batch that is written again has the same.
pub(super) struct Numbered<'r> {
    pub(super) id: i64,
    pub(super) row: &'r Row,
}

/// The writer's connection.
pub(super) enum Writing {
    /// A file.
    Sqlite(Box<Sqlite>),
    /// A server.
    #[cfg(feature = "postgres")]
    Postgres(Box<Postgres>),
}

impl Writing {
    /// Opens the store, makes its tables or brings them up to date, and sees that it can be written. `None`: nothing is to be kept.
    ///
    /// # Errors
    /// It cannot be used; nothing was changed.
    pub(super) fn open(url: &StoreUrl, patience: Duration) -> Result<Option<Self>, Unusable> {
        match url {
            StoreUrl::None => Ok(None),
            StoreUrl::Sqlite(path) => Sqlite::open(path, patience).map(|store| Some(Self::Sqlite(Box::new(store)))),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => Postgres::open(url, patience).map(|store| Some(Self::Postgres(Box::new(store)))),
            #[cfg(not(feature = "postgres"))]
            StoreUrl::Postgres(_) => Err(without_postgres()),
        }
    }

    /// What the store is called in messages; never with a password.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Sqlite(store) => store.name(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.name(),
        }
    }

    /// Writes rows, all or none, to where a loss of power does not reach them. Rows that are there already stay as they are.
    pub(super) fn append(&mut self, rows: &[Numbered<'_>]) -> Result<(), Trouble> {
        match self {
            Self::Sqlite(store) => store.append(rows),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.append(rows),
        }
    }

    /// Whether rows are safe, and not yet where they are read best.
    pub(super) fn is_behind(&self) -> bool {
        match self {
            Self::Sqlite(store) => store.is_behind(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => false,
        }
    }

    /// Brings rows that are safe to where they are read best.
    pub(super) fn catch_up(&mut self) -> Result<(), Trouble> {
        match self {
            Self::Sqlite(store) => store.catch_up(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Drops the oldest rows of those before a time, and carries their sums on: all or nothing. Gives how many went.
    pub(super) fn carry(&mut self, before: Timestamp, most: usize) -> Result<usize, Trouble> {
        match self {
            Self::Sqlite(store) => store.carry(before, most),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.carry(before, most),
        }
    }

    /// Keeps pauses, all or none of them, to where a loss of power does not reach them. Of each, whether its place was free.
    pub(super) fn keep_pauses(&mut self, pauses: &[Pause]) -> Result<Vec<bool>, Trouble> {
        match self {
            Self::Sqlite(store) => store.keep_pauses(pauses),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.keep_pauses(pauses),
        }
    }

    /// The pauses that agree with one of the wanted places in the calls or in the conversation.
    pub(super) fn find_pauses(&mut self, wanted: &Wanted) -> Result<Vec<Kept>, Trouble> {
        match self {
            Self::Sqlite(store) => store.find_pauses(wanted),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.find_pauses(wanted),
        }
    }

    /// Drops the oldest pauses of those before a time, and some more where all together are too long. Gives how many went.
    pub(super) fn drop_pauses(&mut self, before: Timestamp, most: usize) -> Result<usize, Trouble> {
        match self {
            Self::Sqlite(store) => store.drop_pauses(before, most),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.drop_pauses(before, most),
        }
    }

    /// Notes the tools that were never seen, and gives for each what holds; `None`: its server has too many.
    pub(super) fn see_pins(&mut self, seen: &[Pin], now: Timestamp) -> Result<Vec<Option<Digest>>, Trouble> {
        match self {
            Self::Sqlite(store) => store.see_pins(seen, now),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.see_pins(seen, now),
        }
    }

    /// Has these hold from now on, all or none of them.
    pub(super) fn accept_pins(&mut self, accepted: &[Pin], now: Timestamp) -> Result<(), Trouble> {
        match self {
            Self::Sqlite(store) => store.accept_pins(accepted, now),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.accept_pins(accepted, now),
        }
    }

    /// Closes the connection.
    pub(super) fn close(self) {
        match self {
            Self::Sqlite(store) => store.close(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.close(),
        }
    }
}

/// Which rows are summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// From this time on; `None`: all, the dropped ones included.
    pub(super) since: Option<Timestamp>,
    /// Only those of this end user of this key.
    pub(super) of: Option<(String, String)>,
}

/// A connection that only reads.
pub(super) enum Reading {
    /// A file.
    Sqlite(sqlite::Reading),
    /// A server.
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::Reading>),
}

impl Reading {
    /// Opens a store that is there. `None`: nothing is kept.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(super) fn open(url: &StoreUrl, patience: Duration) -> Result<Option<Self>, Unusable> {
        match url {
            StoreUrl::None => Ok(None),
            StoreUrl::Sqlite(path) => sqlite::Reading::open(path, patience).map(|store| Some(Self::Sqlite(store))),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => postgres::Reading::open(url).map(|store| Some(Self::Postgres(Box::new(store)))),
            #[cfg(not(feature = "postgres"))]
            StoreUrl::Postgres(_) => Err(without_postgres()),
        }
    }

    /// The sums of the rows that are asked for.
    pub(super) fn sums(&mut self, asked: &Asked) -> Result<Vec<Sum>, Trouble> {
        match self {
            Self::Sqlite(store) => store.sums(asked),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.sums(asked),
        }
    }

    /// What is known of tools.
    pub(super) fn pins(&mut self) -> Result<Vec<Pin>, Trouble> {
        match self {
            Self::Sqlite(store) => store.pins(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.pins(),
        }
    }

    /// The time of the newest row that was dropped.
    pub(super) fn dropped_until(&mut self) -> Result<Option<Timestamp>, Trouble> {
        match self {
            Self::Sqlite(store) => store.dropped_until(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.dropped_until(),
        }
    }
}

#[cfg(not(feature = "postgres"))]
fn without_postgres() -> Unusable {
    Unusable(
        "this toolgate was built without PostgreSQL: use a `sqlite:` store, or a build with the feature `postgres`".to_owned(),
    )
}

/// An amount as databases hold it; what is more stays at the most that they can.
pub(super) fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// An amount of a database.
pub(super) fn unsigned(amount: i64) -> u64 {
    u64::try_from(amount).unwrap_or(0)
}
