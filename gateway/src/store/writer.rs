//! The one writer: takes all rows that wait, writes them together, and tells those who wait for them. Between batches it drops old rows.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::database::{Numbered, Trouble, Writing};
use super::pace::Pace;
use super::pauses::expired;
use super::queue::{Next, Queue};
use super::{Patience, Row, Unusable};

/// The most rows of one transaction.
const MOST_AT_ONCE: usize = 1024;
/// As many old rows are dropped at once: few enough that rows that come meanwhile hardly wait.
const DROPPED_AT_ONCE: usize = 500;
/// And as many pauses, which are longer.
const PAUSES_AT_ONCE: usize = 50;
/// Between two such steps.
const BETWEEN_STEPS: Duration = Duration::from_millis(50);
/// After this much silence rows that are safe are brought to where they are read best.
const BEHIND_AT_MOST: Duration = Duration::from_millis(50);
/// Between two looks whether rows have become old.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60);

/// The writer.
pub(super) struct Writer {
    pub(super) database: Writing,
    pub(super) shared: Arc<Shared>,
    pub(super) patience: Patience,
}

/// What the writer and the ledger share.
pub(super) struct Shared {
    /// The rows on their way.
    pub(super) queue: Queue,
    /// How long rows are kept.
    pub(super) keep: Mutex<Duration>,
    /// How many transactions with rows were written.
    pub(super) commits: std::sync::atomic::AtomicU64,
}

impl Writer {
    /// Writes until the queue is closed.
    pub(super) fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.shared));
        let gateway = gateway();
        let mut pace = Pace::default();
        let mut rows = Vec::new();
        let mut look = Instant::now();
        loop {
            let due = if self.database.is_behind() { look.min(Instant::now() + BEHIND_AT_MOST) } else { look };
            match self.shared.queue.take(&mut rows, &mut pace, due) {
                Next::Write => {
                    self.write(&mut rows, gateway);
                    pace.written(Instant::now());
                }
                Next::Chore => {
                    self.catch_up();
                    look = Instant::now();
                }
                Next::End => break,
            }
            if look <= Instant::now() {
                look = Instant::now() + self.drop_old();
            }
        }
        self.database.close();
    }

    /// Writes rows in as few transactions as are allowed.
    fn write(&mut self, rows: &mut Vec<Row>, gateway: i64) {
        let mut left = rows.len();
        for batch in rows.chunks(MOST_AT_ONCE) {
            let first = self.shared.queue.done() + 1;
            let numbered: Vec<Numbered<'_>> =
                (first..).zip(batch).map(|(ticket, row)| Numbered { id: gateway | (ticket & LOW) as i64, row }).collect();
            if !self.persist(&numbered) {
                break;
            }
            left -= batch.len();
            self.shared.queue.reached(batch.len(), left > 0);
        }
        rows.clear();
        rows.shrink_to(MOST_AT_ONCE);
    }

    /// Writes a batch, as often as it takes. `false`: the store was closed, and there is no more time.
    fn persist(&mut self, batch: &[Numbered<'_>]) -> bool {
        loop {
            match self.database.append(batch) {
                Ok(()) => break,
                Err(trouble) => self.note(&trouble),
            }
            if !self.shared.queue.pause(self.patience.retry) {
                tracing::error!(
                    store = self.database.name(),
                    rows = batch.len(),
                    "the gateway ends; these rows are in no ledger"
                );
                return false;
            }
        }
        self.shared.commits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.note_success();
        true
    }

    /// Brings rows that are safe already to where they are read best. Where that fails nobody is let in until it succeeds.
    fn catch_up(&mut self) {
        if !self.database.is_behind() {
            return;
        }
        match self.database.catch_up() {
            Ok(()) => self.note_success(),
            Err(trouble) => self.note(&trouble),
        }
    }

    fn note_success(&self) {
        if self.shared.queue.set_trouble(None).is_some() {
            tracing::info!(store = self.database.name(), "the store takes rows again; none was lost");
        }
    }

    fn note(&self, trouble: &Trouble) {
        let sentence = Unusable(format!("the store {} does not take rows: {}", self.database.name(), trouble.0));
        if self.shared.queue.set_trouble(Some(sentence)).is_none() {
            tracing::error!(store = self.database.name(), reason = trouble.0, "the store does not take rows; they wait");
        }
    }

    /// Drops some of the rows that are older than they are kept. Gives when to look again.
    fn drop_old(&mut self) -> Duration {
        let keep = *self.shared.keep.lock();
        let Ok(before) = Timestamp::now().checked_sub(keep) else { return BETWEEN_LOOKS };
        let pauses = self.database.drop_pauses(expired(Timestamp::now()), PAUSES_AT_ONCE);
        match pauses.and_then(|pauses| Ok((self.database.carry(before, DROPPED_AT_ONCE)?, pauses))) {
            Ok((DROPPED_AT_ONCE.., _) | (_, PAUSES_AT_ONCE..)) => BETWEEN_STEPS,
            Ok(_) => BETWEEN_LOOKS,
            Err(trouble) => {
                tracing::warn!(store = self.database.name(), reason = trouble.0, "old rows could not be dropped; they stay");
                BETWEEN_LOOKS
            }
        }
    }
}

/// The part of a row's number that is its ticket's. A gateway has written this many rows before it gives one again, with another time.
const LOW: u64 = u32::MAX as u64;

/// The part of a row's number that is this gateway's: a positive one, of chance.
fn gateway() -> i64 {
    (RandomState::new().hash_one("gateway") & (u64::MAX >> 1) & !LOW).cast_signed()
}

/// However the writer ends, nobody waits for it any longer.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.queue.end();
    }
}
