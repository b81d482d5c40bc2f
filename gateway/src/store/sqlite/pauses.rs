//! Pauses in the file.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::Sqlite;
use crate::store::database::{Trouble, signed};
use crate::store::pauses::{BOUNDS, LOOKED_AT, Pause, Wanted, expired};
use crate::talk::paused::{Kept, Place};

/// Writes a pause where there is none, or the same, or one that waits no longer.
const KEEP: &str = "INSERT INTO pauses VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
                    ON CONFLICT (key, end_user, calls, conversation) DO UPDATE \
                    SET at = excluded.at, content = excluded.content, bytes = excluded.bytes, state = excluded.state \
                    WHERE content = excluded.content OR at < ?9";

const FIND: &str = "SELECT calls, conversation, state FROM pauses \
                    WHERE key = ?1 AND end_user = ?2 AND (calls = ?3 OR conversation = ?4) AND at >= ?5 \
                    ORDER BY calls = ?3 AND conversation = ?4 DESC, at DESC LIMIT ?6";

/// Drops the oldest of a key, all but so many.
const BOUND_KEY: &str =
    "DELETE FROM pauses WHERE rowid IN (SELECT rowid FROM pauses WHERE key = ?1 ORDER BY at DESC LIMIT -1 OFFSET ?2)";

const DROP: &str = "DELETE FROM pauses WHERE rowid IN (SELECT rowid FROM pauses WHERE at < ?1 ORDER BY at LIMIT ?2)";

impl Sqlite {
    /// Keeps pauses in one transaction. Of each, whether its place was free.
    pub(in crate::store) fn keep_pauses(&self, pauses: &[Pause]) -> Result<Vec<bool>, Trouble> {
        self.in_transaction(|connection| pauses.iter().map(|pause| keep(connection, pause)).collect())
    }

    /// The pauses that are at these places, or alike.
    pub(in crate::store) fn find_pauses(&self, wanted: &Wanted) -> Result<Vec<Kept>, Trouble> {
        let mut statement = self.connection.prepare_cached(FIND)?;
        let mut found: Vec<Kept> = Vec::new();
        for place in &wanted.places {
            let (owner, since) = (&wanted.owner, wanted.since.as_microsecond());
            let rows = statement
                .query_map(params![owner.key, owner.user, place.calls, place.before, since, signed(LOOKED_AT as u64)], kept)?;
            for row in rows {
                let kept = row?;
                if found.iter().all(|other| other.place != kept.place) {
                    found.push(kept);
                }
            }
        }
        Ok(found)
    }

    /// Drops some pauses that began before a time, and those that are too many.
    pub(in crate::store) fn drop_pauses(&self, before: Timestamp, most: usize) -> Result<usize, Trouble> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.in_transaction(|connection| {
            let dropped = connection.prepare_cached(DROP)?.execute(params![before.as_microsecond(), most])?;
            let bytes: i64 = connection.query_row("SELECT COALESCE(SUM(bytes), 0) FROM pauses", [], |row| row.get(0))?;
            if bytes <= signed(BOUNDS.bytes) {
                return Ok(dropped);
            }
            Ok(dropped + connection.prepare_cached(DROP)?.execute(params![i64::MAX, most])?)
        })
    }
}

fn keep(connection: &Connection, pause: &Pause) -> rusqlite::Result<bool> {
    let Pause { owner, at, content, kept } = pause;
    let bytes = kept.state.as_ref().map_or(0, String::len);
    let written = connection.prepare_cached(KEEP)?.execute(params![
        owner.key,
        owner.user,
        kept.place.calls,
        kept.place.before,
        at.as_microsecond(),
        content,
        signed(bytes as u64),
        kept.state,
        expired(*at).as_microsecond(),
    ])?;
    connection.prepare_cached(BOUND_KEY)?.execute(params![owner.key, signed(BOUNDS.of_key as u64)])?;
    Ok(written > 0)
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    Ok(Kept { place: Place { calls: row.get(0)?, before: row.get(1)? }, state: row.get(2)? })
}
