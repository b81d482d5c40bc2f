//! Pins in the file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Sqlite;
use crate::store::database::{Trouble, unsigned};
use crate::store::pins::{Digest, MOST_OF_SERVER, Pin};

/// Notes a tool that was never seen.
const NOTE: &str = "INSERT INTO pins VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";

const COUNT: &str = "SELECT COUNT(*) FROM pins WHERE server = ?1";

const FIND: &str = "SELECT digest FROM pins WHERE server = ?1 AND tool = ?2";

const ACCEPT: &str = "INSERT INTO pins VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (server, tool) DO UPDATE \
                      SET digest = excluded.digest, definition = excluded.definition, at = excluded.at";

const ALL: &str = "SELECT server, tool, digest, definition FROM pins";

impl Sqlite {
    /// Notes those that were never seen, and gives what holds for each.
    pub(in crate::store) fn see_pins(&self, seen: &[Pin], now: Timestamp) -> Result<Vec<Option<Digest>>, Trouble> {
        let mut counts = HashMap::new();
        self.in_transaction(|connection| seen.iter().map(|pin| see(connection, pin, &mut counts, now)).collect())
    }

    /// Has these hold from now on.
    pub(in crate::store) fn accept_pins(&self, accepted: &[Pin], now: Timestamp) -> Result<(), Trouble> {
        self.in_transaction(|connection| {
            let mut statement = connection.prepare_cached(ACCEPT)?;
            accepted.iter().try_for_each(|pin| {
                let Pin { server, tool, digest, definition } = pin;
                statement.execute(params![server, tool, digest, definition, now.as_microsecond()]).map(drop)
            })
        })
    }
}

/// `counts`: how many tools of a server are noted, as far as that was asked already.
fn see<'p>(
    connection: &Connection,
    pin: &'p Pin,
    counts: &mut HashMap<&'p str, u64>,
    now: Timestamp,
) -> rusqlite::Result<Option<Digest>> {
    let Pin { server, tool, digest, definition } = pin;
    let known = connection.prepare_cached(FIND)?.query_row(params![server, tool], |row| row.get(0)).optional()?;
    if known.is_some() {
        return Ok(known);
    }
    let count = match counts.entry(server) {
        Entry::Occupied(count) => count.into_mut(),
        Entry::Vacant(none) => {
            none.insert(connection.prepare_cached(COUNT)?.query_row([server], |row| row.get(0)).map(unsigned)?)
        }
    };
    if *count >= MOST_OF_SERVER as u64 {
        return Ok(None);
    }
    connection.prepare_cached(NOTE)?.execute(params![server, tool, digest, definition, now.as_microsecond()])?;
    *count += 1;
    Ok(Some(*digest))
}

/// Every pin of a file.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Pin>> {
    connection.prepare(ALL)?.query_map([], pin)?.collect()
}

fn pin(row: &Row<'_>) -> rusqlite::Result<Pin> {
    Ok(Pin { server: row.get(0)?, tool: row.get(1)?, digest: row.get(2)?, definition: row.get(3)? })
}
