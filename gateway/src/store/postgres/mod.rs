//! A ledger on a PostgreSQL server: for many gateways.

mod client;
mod open;
mod pauses;
mod pins;
mod read;
mod statements;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use toolgate_config::secret::Secret;

use self::client::Client;
pub(super) use self::read::Reading;
use self::statements::{CARRY, INSERT};
use super::Unusable;
use super::database::{Numbered, Trouble, signed};
use super::text::fitted;

/// Only one gateway at a time drops old rows, and only one makes tables. Numbers of our own, for the server's locks have no names.
const DROPPING: i64 = 0x746f_6f6c_6761_7465;
const OPENING: i64 = DROPPING + 1;

/// Making tables, and waiting for another gateway that does, may take this long.
const PATIENCE_AT_START: Duration = Duration::from_secs(30);

/// The writer's connection to the server.
pub(super) struct Postgres {
    client: Client,
}

impl Postgres {
    /// Connects, and sees that the server takes rows.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn open(url: &Secret, patience: Duration) -> Result<Self, Unusable> {
        let mut client = Client::new(url, PATIENCE_AT_START)?;
        client.ask(open::bring_up_to_date).map_err(|failure| client.refusal(failure))?.map_err(|why| client.unusable(&why))?;
        client.has_patience(patience);
        Ok(Self { client })
    }

    /// What messages call it.
    pub(super) fn name(&self) -> &str {
        self.client.name()
    }

    /// Writes rows in one statement, which is a transaction. Where nobody can tell whether the server has written them, they are written
    /// again: rows that are there already stay as they are.
    pub(super) fn append(&mut self, rows: &[Numbered<'_>]) -> Result<(), Trouble> {
        Ok(self.client.ask(async |connection| append(connection, rows).await)?)
    }

    /// Carries the sums of the oldest rows on, and drops them.
    pub(super) fn carry(&mut self, before: Timestamp, most: usize) -> Result<usize, Trouble> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let dropped = self.client.ask(async |connection| carry(connection, before.as_microsecond(), most).await)?;
        Ok(usize::try_from(dropped).unwrap_or(0))
    }

    /// Leaves the server.
    pub(super) fn close(self) {
        self.client.close();
    }
}

async fn append(connection: &mut PgConnection, rows: &[Numbered<'_>]) -> sqlx::Result<()> {
    let query = sqlx::query(AssertSqlSafe(INSERT.as_str()))
        .bind(column(rows, |n| n.row.at.as_microsecond()))
        .bind(column(rows, |n| n.id))
        .bind(column(rows, |n| n.row.trace.to_string()))
        .bind(column(rows, |n| i64::from(n.row.round)))
        .bind(column(rows, |n| n.row.called().attempt.map(i64::from)))
        .bind(column(rows, |n| fitted(&n.row.key)))
        .bind(column(rows, |n| n.row.user.as_deref().map(fitted)))
        .bind(column(rows, |n| fitted(&n.row.model)))
        .bind(column(rows, |n| fitted(n.row.called().served)))
        .bind(column(rows, |n| n.row.called().provider.map(fitted)))
        .bind(column(rows, |n| n.row.called().upstream_model.map(fitted)))
        .bind(column(rows, |n| n.row.called().tool.map(fitted)))
        .bind(column(rows, |n| signed(n.row.tokens.fresh)))
        .bind(column(rows, |n| signed(n.row.tokens.cached)))
        .bind(column(rows, |n| signed(n.row.tokens.cache_write)))
        .bind(column(rows, |n| signed(n.row.tokens.output)))
        .bind(column(rows, |n| signed(n.row.reasoning)))
        .bind(column(rows, |n| n.row.estimated))
        .bind(column(rows, |n| n.row.cost.map(|cost| signed(cost.0))))
        .bind(column(rows, |n| n.row.reported.map(|cost| signed(cost.0))))
        .bind(column(rows, |n| n.row.outcome))
        .bind(column(rows, |n| i64::from(n.row.requests)));
    query.execute(connection).await.map(|_| ())
}

/// The rows' values of one column.
fn column<'r, T>(rows: &'r [Numbered<'r>], value: impl Fn(&'r Numbered<'r>) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

async fn carry(connection: &mut PgConnection, before: i64, most: i64) -> sqlx::Result<i64> {
    let mut transaction = connection.begin().await?;
    let lock = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(DROPPING);
    if !lock.fetch_one(&mut *transaction).await? {
        return Ok(0);
    }
    let statement = sqlx::query_scalar(AssertSqlSafe(CARRY.as_str())).bind(before).bind(most);
    let dropped = statement.fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(dropped)
}
