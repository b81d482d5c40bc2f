//! Reading the file: sums, row by row. The file is read as it is at the first row, whatever is written meanwhile; the journals beside it before
//! that, so that a row which goes from the one to the other is seen, and a row that is in both is seen once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Params, Row};
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;

use super::journal::Contents;
use super::line::Line;
use super::statements::{CARRIED, CARRIED_OF_USER, ROWS, ROWS_OF_USER};
use super::{journal, name, open, pins};
use crate::store::database::{Asked, Trouble, unsigned};
use crate::store::pins::Pin;
use crate::store::tally::Tally;
use crate::store::{Sum, Unusable};

/// A connection that only reads.
pub(crate) struct Reading {
    connection: Connection,
    path: PathBuf,
}

impl Reading {
    /// Opens a file that is there.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(crate) fn open(path: &Path, patience: Duration) -> Result<Self, Unusable> {
        let connection = open::open_to_read(path, patience).map_err(|refusal| refusal.of(&name(path)))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// The sums of the rows that are asked for.
    pub(crate) fn sums(&mut self, asked: &Asked) -> Result<Vec<Sum>, Trouble> {
        let since = asked.since.map_or(i64::MIN, Timestamp::as_microsecond);
        let mut tally = Tally::default();
        let journals = journal::all_beside(&self.path)?;
        let beside = journals.iter().map(Contents::rows).collect::<std::io::Result<Vec<_>>>()?;
        // One view for both statements: rows that are carried on in between would be counted twice, or never.
        let view = self.connection.transaction()?;
        match &asked.of {
            None => add(&view, &ROWS, [since], &mut tally)?,
            Some((key, user)) => add(&view, &ROWS_OF_USER, (since, key, user), &mut tally)?,
        }
        for line in beside.iter().flatten().filter(|line| line.at >= since && is_of(line, asked)) {
            if !is_in(&view, line)? {
                tally.add(line.group(), &line.amounts());
            }
        }
        match &asked.of {
            _ if asked.since.is_some() => {}
            None => add(&view, &CARRIED, [], &mut tally)?,
            Some((key, user)) => add(&view, &CARRIED_OF_USER, (key, user), &mut tally)?,
        }
        Ok(tally.into_sums())
    }

    /// What is known of tools.
    pub(crate) fn pins(&mut self) -> Result<Vec<Pin>, Trouble> {
        Ok(pins::all(&self.connection)?)
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

fn is_of(line: &Line<'_>, asked: &Asked) -> bool {
    asked.of.as_ref().is_none_or(|(key, user)| line.key == *key && line.end_user.as_deref() == Some(user))
}

fn is_in(view: &Connection, line: &Line<'_>) -> Result<bool, Trouble> {
    let mut statement = view.prepare_cached("SELECT 1 FROM ledger WHERE at = ?1 AND id = ?2")?;
    Ok(statement.exists((line.at, line.id))?)
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
