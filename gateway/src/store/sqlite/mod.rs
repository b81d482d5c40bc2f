//! A ledger in a file: for one gateway, and for two while one hands over to the other.
//!
//! The file has a write-ahead log, which is brought to the disk at every commit. Readers and the writer do not wait for each other.

mod open;
mod pauses;
mod read;
mod statements;

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, ErrorCode, params};

pub(super) use self::read::Reading;
#[cfg(test)]
pub(super) use self::statements::ROWS_OF_USER;
use self::statements::{CARRY, DROP, INSERT};
use super::Unusable;
use super::database::{Numbered, Trouble, signed};
use super::text::fitted;

/// The writer's connection to the file.
pub(super) struct Sqlite {
    connection: Connection,
    name: String,
}

impl Sqlite {
    /// Opens the file, or makes it, and sees that it can be written.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn open(path: &Path, patience: Duration) -> Result<Self, Unusable> {
        let name = name(path);
        let connection = open::open(path, patience).map_err(|refusal| refusal.of(&name))?;
        Ok(Self { connection, name })
    }

    /// What messages call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Writes rows in one transaction.
    pub(super) fn append(&self, rows: &[Numbered<'_>]) -> Result<(), Trouble> {
        self.in_transaction(|connection| {
            let mut insert = connection.prepare_cached(INSERT)?;
            rows.iter().try_for_each(|row| append(&mut insert, row))
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
    pub(super) fn close(self) {
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

fn append(insert: &mut CachedStatement<'_>, numbered: &Numbered<'_>) -> rusqlite::Result<()> {
    let row = numbered.row;
    let called = row.called();
    insert.execute(params![
        row.at.as_microsecond(),
        numbered.id,
        row.trace.hex(&mut [0; 32]),
        row.round,
        called.attempt,
        fitted(&row.key),
        row.user.as_deref().map(fitted),
        fitted(&row.model),
        fitted(called.served),
        called.provider.map(fitted),
        called.upstream_model.map(fitted),
        called.tool.map(fitted),
        signed(row.tokens.fresh),
        signed(row.tokens.cached),
        signed(row.tokens.cache_write),
        signed(row.tokens.output),
        signed(row.reasoning),
        row.estimated,
        row.cost.map(|cost| signed(cost.0)),
        row.reported.map(|cost| signed(cost.0)),
        row.outcome,
        row.requests,
    ])?;
    Ok(())
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
