//! What must outlive the process: the ledger, and the runs that wait for their callers (`pauses`), and what tools of others were when they were first seen (`pins`). Where it is kept is the store's business, a file of one gateway or a server that many share.
//!
//! Rows are handed over in no time (`queue`), and written by one thread, many in one transaction (`pace`, `writer`). Questions have a thread
//! and a connection of their own (`reader`). What the two databases do differently is in `sqlite` and `postgres`, behind `database`.

mod database;
mod keep;
mod pace;
pub mod pauses;
pub mod pins;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
mod reader;
mod row;
mod schema;
mod sqlite;
mod statements;
mod tally;
#[cfg(test)]
mod tests;
mod text;
mod thread;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use toolgate_config::limit::Unit;
use toolgate_config::store::StoreUrl;
use toolgate_policies::counters::Unseeded;
use toolgate_policies::limits::{Scope, What as Counted};

use self::database::{Asked, Reading, Trouble, Writing};
pub use self::keep::keep;
use self::queue::Queue;
use self::reader::Reader;
pub use self::row::{Row, Sum, What};
use self::text::fitted;
use self::writer::{Shared, Writer};

/// The ledger: one row a model call, and one a tool call that has a price.
pub struct Ledger {
    /// `None`: nothing is kept.
    kept: Option<Kept>,
}

struct Kept {
    shared: Arc<Shared>,
    reader: Reader,
}

/// What a ledger says when it is only looked at.
pub struct Spent {
    /// The sums of the rows that were asked for: by provider, model, entry that answered, key and tool.
    pub sums: Vec<Sum>,
    /// Rows up to this time were dropped; only sums without a beginning hold them.
    pub dropped_until: Option<Timestamp>,
}

/// Looks at a ledger, beside the gateways that may write it. `None`: none is kept. It takes a while, and is not for a thread that has a
/// runtime.
///
/// # Errors
/// It is not there, or cannot be read. It is never made.
pub fn look(url: &StoreUrl, since: Option<Timestamp>) -> Result<Option<Spent>, Unusable> {
    let Some(mut reading) = Reading::open(url, PATIENCE.busy)? else { return Ok(None) };
    let unread = |trouble: Trouble| Unusable(format!("the store cannot be read: {}", trouble.0));
    let sums = reading.sums(&Asked { since, of: None }).map_err(unread)?;
    Ok(Some(Spent { sums, dropped_until: reading.dropped_until().map_err(unread)? }))
}

/// A row that was handed over, and is on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Why the store cannot be used: for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

/// How long the store is waited for.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// By whoever waits for a row.
    deadline: Duration,
    /// By the database, for somebody else's lock or a server's answer.
    busy: Duration,
    /// Before a batch that failed is tried again.
    retry: Duration,
    /// At the end, while the store takes no rows.
    closing: Duration,
}

const PATIENCE: Patience = Patience {
    deadline: Duration::from_secs(5),
    busy: Duration::from_secs(3),
    retry: Duration::from_millis(250),
    closing: Duration::from_secs(10),
};

impl Ledger {
    /// Opens the store: its tables are made or brought up to date. It takes a while; no request waits yet.
    ///
    /// # Errors
    /// It is not there, cannot be written, is full, or is of a newer version; nothing is half done.
    pub fn open(url: &StoreUrl, keep: Duration) -> Result<Self, Unusable> {
        Self::open_with(url, keep, PATIENCE)
    }

    fn open_with(url: &StoreUrl, keep: Duration, patience: Patience) -> Result<Self, Unusable> {
        let Some(database) = opened_apart(url.clone(), patience.busy)? else { return Ok(Self { kept: None }) };
        let shared = Arc::new(Shared { queue: Queue::new(patience), keep: Mutex::new(keep), commits: AtomicU64::new(0) });
        let writer = Writer { database, shared: Arc::clone(&shared), patience };
        std::thread::Builder::new().name("ledger writer".to_owned()).spawn(move || writer.run()).map_err(no_thread)?;
        let reader = Reader::start(url.clone(), patience).map_err(no_thread)?;
        Ok(Self { kept: Some(Kept { shared, reader }) })
    }

    /// Hands a row over. It takes no time; [`Ledger::written`] tells when the row is safe.
    pub fn write(&self, row: Row) -> Ticket {
        self.kept.as_ref().map_or(Ticket(0), |kept| kept.shared.queue.push(row))
    }

    /// Waits until the row of this ticket, and with it every earlier one, is on the disk.
    ///
    /// # Errors
    /// The store did not take it in time. It still waits, and is written when the store takes rows again.
    pub async fn written(&self, ticket: Ticket) -> Result<(), Unusable> {
        match &self.kept {
            Some(kept) => kept.shared.queue.written(ticket).await,
            None => Ok(()),
        }
    }

    /// Whether the store takes rows at the moment: nobody is let in to spend what could not be written down.
    ///
    /// # Errors
    /// Why not.
    pub fn is_well(&self) -> Result<(), Unusable> {
        self.kept.as_ref().map_or(Ok(()), |kept| kept.shared.queue.is_well())
    }

    /// What the ledger knows of a budget's window, in the budget's unit.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn used(&self, of: &Unseeded) -> Result<u64, Unusable> {
        let Counted::Budget(unit, ..) = of.limit.id.what else { return Ok(0) };
        let scope = &of.limit.id.scope;
        let user = match scope {
            Scope::User(key, user) => Some((fitted(key.as_str()).into_owned(), fitted(user).into_owned())),
            Scope::Everybody | Scope::Model(_) | Scope::Key(_) => None,
        };
        let since = Some(of.since).filter(|since| *since > Timestamp::MIN);
        let sums = self.sums_of(Asked { since, of: user }).await?;
        let mut used = Sum::default();
        sums.iter().filter(|sum| counts(scope, sum)).for_each(|sum| used.add(sum));
        Ok(match unit {
            Unit::Usd => used.cost.0,
            Unit::Tokens => used.tokens.total(),
            Unit::Requests => used.requests,
        })
    }

    /// The sums of all rows since then, dropped ones included where `since` is `None`: by provider, model, key and tool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sums(&self, since: Option<Timestamp>) -> Result<Vec<Sum>, Unusable> {
        Ok(self.sums_of(Asked { since, of: None }).await?.to_vec())
    }

    /// The sums of what was handed over before.
    async fn sums_of(&self, asked: Asked) -> Result<Arc<[Sum]>, Unusable> {
        let Some(kept) = &self.kept else { return Ok(Arc::new([])) };
        kept.shared.queue.written(kept.shared.queue.last()).await?;
        kept.reader.sums(asked).await
    }

    /// From now on rows are kept this long, one by one; their sums stay.
    pub fn keep(&self, keep: Duration) {
        if let Some(kept) = &self.kept {
            *kept.shared.keep.lock() = keep;
            kept.shared.queue.call();
        }
    }

    /// How many transactions with rows were written.
    pub fn commits(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.shared.commits.load(Ordering::Relaxed))
    }

    /// Writes what is still waiting, and closes the store. A row that comes later is lost.
    pub async fn close(&self) {
        let Some(kept) = &self.kept else { return };
        kept.reader.close(PATIENCE.busy).await;
        kept.shared.queue.begin_to_close();
        kept.shared.queue.ended().await;
    }
}

/// A ledger that nobody has any more ends its threads, with what waits.
impl Drop for Ledger {
    fn drop(&mut self) {
        if let Some(kept) = &self.kept {
            kept.shared.queue.begin_to_close();
        }
    }
}

fn no_thread(error: std::io::Error) -> Unusable {
    Unusable(format!("there is no thread for the store: {error}"))
}

/// Opens the store on a thread that may wait: a database's client may have a runtime of its own, which cannot be within another.
fn opened_apart(url: StoreUrl, patience: Duration) -> Result<Option<Writing>, Unusable> {
    let opening = std::thread::Builder::new().name("ledger opening".to_owned()).spawn(move || Writing::open(&url, patience));
    opening.map_err(no_thread)?.join().unwrap_or_else(|_| Err(Unusable("opening the store has failed".to_owned())))
}

/// Whether a sum is in a scope. Those of an end user were asked for as such.
fn counts(scope: &Scope, sum: &Sum) -> bool {
    match scope {
        Scope::Everybody | Scope::User(..) => true,
        Scope::Model(model) => sum.model == fitted(model.as_str()),
        Scope::Key(key) => sum.key == fitted(key.as_str()),
    }
}
