//! A ledger in a file: for one gateway, and for two while one hands over to the other.
//!
//! The file has a write-ahead log, which is brought to the disk at every commit. Readers and the writer do not wait for each other. Under load
//! rows are safe in a `journal` first.

mod column;
mod journal;
mod line;
mod open;
mod pauses;
mod pins;
mod read;
mod statements;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, params};

use self::journal::Journal;
use self::line::Line;
pub(super) use self::read::Reading;
#[cfg(test)]
pub(super) use self::statements::ROWS_OF_USER;
use self::statements::{CARRY, DROP, INSERT};
use super::Unusable;
use super::database::{Numbered, Trouble};

/// As many rows that come together are a load: they go into the journal first.
const LOAD: usize = 8;
/// As many rows of the journal are brought into the table together: more make whoever comes meanwhile wait, and save little.
const MOST_BESIDE: usize = 2048;

/// The writer's connection to the file.
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    name: String,
    /// Its rows are not in the table.
    journal: Option<Journal>,
}

impl Sqlite {
    /// Opens the file, or makes it, sees that it can be written, and brings in what another gateway left beside it.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn open(path: &Path, patience: Duration) -> Result<Self, Unusable> {
        let name = name(path);
        let connection = open::open(path, patience).map_err(|refusal| refusal.of(&name))?;
        let opened = Self { connection, path: path.to_owned(), name, journal: None };
        let brought = journal::bring_in(path, |lines| opened.insert(lines));
        brought.map_err(|trouble: Trouble| {
            Unusable(format!("the store {} does not take what was left beside it: {}", opened.name, trouble.0))
        })?;
        Ok(opened)
    }

    /// What messages call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes rows safe, all or none: in the table or, where many come together, in the journal.
    pub(super) fn append(&mut self, rows: &[Numbered<'_>]) -> Result<(), Trouble> {
        if rows.len() >= LOAD && self.append_beside(rows) {
            return Ok(());
        }
        let mut lines = self.beside()?;
        lines.extend(rows.iter().map(Line::of));
        self.insert(&lines)?;
        drop(lines);
        self.none_beside();
        Ok(())
    }

    /// Whether rows are in the journal alone.
    pub(super) fn is_behind(&self) -> bool {
        self.count_beside() > 0
    }

    /// Brings the rows of the journal into the table.
    pub(super) fn catch_up(&mut self) -> Result<(), Trouble> {
        if self.is_behind() {
            self.insert(&self.beside()?)?;
            self.none_beside();
        }
        Ok(())
    }

    /// Puts rows into the journal. `false`: it has no room, or is of no use; the table takes them.
    fn append_beside(&mut self, rows: &[Numbered<'_>]) -> bool {
        if self.count_beside() + rows.len() > MOST_BESIDE {
            return false;
        }
        if self.journal.is_none() {
            self.journal = Journal::open(&self.path).inspect_err(|error| self.note(error)).ok();
        }
        let Some(journal) = &mut self.journal else { return false };
        journal.append(rows).unwrap_or_else(|error| {
            self.note(&error);
            false
        })
    }

    fn note(&self, error: &std::io::Error) {
        tracing::warn!(store = self.name, %error, "the ledger's journal takes no rows; they go straight into the ledger");
    }

    fn count_beside(&self) -> usize {
        self.journal.as_ref().map_or(0, Journal::count)
    }

    fn beside(&self) -> std::io::Result<Vec<Line<'_>>> {
        self.journal.as_ref().map_or(Ok(Vec::new()), Journal::rows)
    }

    fn none_beside(&mut self) {
        if let Some(mut journal) = self.journal.take() {
            match journal.begin_again() {
                Ok(()) => self.journal = Some(journal),
                Err(_) => journal.remove(),
            }
        }
    }

    /// Puts rows into the table in one transaction.
    fn insert(&self, lines: &[Line<'_>]) -> Result<(), Trouble> {
        self.in_transaction(|connection| {
            let mut insert = connection.prepare_cached(INSERT)?;
            lines.iter().try_for_each(|line| line.insert(&mut insert))
        })
    }

    /// Carries the sums of the oldest rows on, and drops them.
    pub(super) fn carry(&self, before: Timestamp, most: usize) -> Result<usize, Trouble> {
        let (before, most) = (before.as_microsecond(), i64::try_from(most).unwrap_or(i64::MAX));
        self.in_transaction(|connection| {
            connection.prepare_cached(&CARRY)?.execute(params![before, most])?;
            connection.prepare_cached(&DROP)?.execute(params![before, most])
        })
    }

    /// Does something wholly or not at all. The statements around it are kept, for they are needed with every batch.
    fn in_transaction<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Trouble> {
        let run = |statement| self.connection.prepare_cached(statement)?.execute([]);
        run("BEGIN IMMEDIATE")?;
        let done = work(&self.connection).and_then(|value| run("COMMIT").map(|_| value));
        if done.is_err() && !self.connection.is_autocommit() {
            // What went wrong before is what is told.
            let _ = run("ROLLBACK");
        }
        Ok(done?)
    }

    /// Closes the file, with everything in it and nothing beside it.
    pub(super) fn close(mut self) {
        if let Err(trouble) = self.catch_up() {
            let reason = trouble.0;
            return tracing::warn!(
                store = self.name,
                reason,
                "rows stay in the ledger's journal; the next gateway brings them in"
            );
        }
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
        let checkpoint = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) =
            checkpoint.map_err(Trouble::from).and_then(|()| self.connection.close().map_err(|(_, error)| error.into()))
        {
            tracing::warn!(store = self.name, reason = error.0, "the ledger's log stays beside its file; nothing is lost");
        }
    }

    /// The connection, for tests that get in its way.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// What messages call a file.
fn name(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self(match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "there is no room left on its disk".to_owned(),
            Some(ErrorCode::ReadOnly) => "it cannot be written: it is read-only".to_owned(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program keeps it locked".to_owned(),
            Some(ErrorCode::NotADatabase) => "it is not a SQLite database".to_owned(),
            Some(ErrorCode::DatabaseCorrupt) => format!("it is damaged ({error})"),
            _ => error.to_string(),
        })
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self(format!("its journal cannot be used: {error}"))
    }
}
