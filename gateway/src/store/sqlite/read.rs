//! Reading the file: sums, row by row. The file is read as it is at the first row, whatever is written meanwhile.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Params, Row};
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;

use super::statements::{CARRIED, CARRIED_OF_USER, ROWS, ROWS_OF_USER};
use super::{name, open};
use crate::store::database::{Asked, Trouble, unsigned};
use crate::store::tally::Tally;
use crate::store::{Sum, Unusable};

/// A connection that only reads.
pub(crate) struct Reading {
    connection: Connection,
}

impl Reading {
    /// Opens a file that is there.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(crate) fn open(path: &Path, patience: Duration) -> Result<Self, Unusable> {
        let connection = open::open_to_read(path, patience).map_err(|refusal| refusal.of(&name(path)))?;
        Ok(Self { connection })
    }

    /// The sums of the rows that are asked for.
    pub(crate) fn sums(&mut self, asked: &Asked) -> Result<Vec<Sum>, Trouble> {
        let since = asked.since.map_or(i64::MIN, Timestamp::as_microsecond);
        let mut tally = Tally::default();
        // One view for both statements: rows that are carried on in between would be counted twice, or never.
        let view = self.connection.transaction()?;
        match &asked.of {
            None => add(&view, &ROWS, [since], &mut tally)?,
            Some((key, user)) => add(&view, &ROWS_OF_USER, (since, key, user), &mut tally)?,
        }
        match &asked.of {
            _ if asked.since.is_some() => {}
            None => add(&view, &CARRIED, [], &mut tally)?,
            Some((key, user)) => add(&view, &CARRIED_OF_USER, (key, user), &mut tally)?,
        }
        Ok(tally.into_sums())
    }

    /// The time of the newest row that was dropped.
    pub(crate) fn dropped_until(&mut self) -> Result<Option<Timestamp>, Trouble> {
        let newest: Option<i64> = self.connection.query_row("SELECT MAX(newest) FROM carried", [], |row| row.get(0))?;
        Ok(newest.and_then(|newest| Timestamp::from_microsecond(newest).ok()))
    }
}

fn add(view: &Connection, statement: &str, parameters: impl Params, tally: &mut Tally) -> Result<(), Trouble> {
    let mut statement = view.prepare_cached(statement)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        let mut group = [""; 5];
        for (column, name) in group.iter_mut().enumerate() {
            *name = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
        }
        tally.add(group, &amounts(row)?);
    }
    Ok(())
}

/// The columns behind those of the group.
fn amounts(row: &Row<'_>) -> rusqlite::Result<Sum> {
    let amount = |column: usize| row.get(5 + column).map(unsigned);
    Ok(Sum {
        calls: amount(0)?,
        requests: amount(1)?,
        tokens: Billed { fresh: amount(2)?, cached: amount(3)?, cache_write: amount(4)?, output: amount(5)? },
        reasoning: amount(6)?,
        cost: NanoUsd(amount(7)?),
        unknown: amount(8)?,
        estimated: amount(9)?,
        ..Sum::default()
    })
}
