//! Reading the database: the server sums up.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row};
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;
use toolgate_config::secret::Secret;

use super::client::Client;
use super::open::found;
use super::pins;
use super::statements::{SUMS, SUMS_OF_USER};
use crate::store::database::{Asked, Trouble, unsigned};
use crate::store::pins::Pin;
use crate::store::{Sum, Unusable};

/// A connection that only reads.
pub(crate) struct Reading {
    client: Client,
}

/// A large ledger takes a while to be summed up.
const LONGEST: Duration = Duration::from_secs(40);

impl Reading {
    /// Connects to a store that is there.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(crate) fn open(url: &Secret) -> Result<Self, Unusable> {
        let mut client = Client::new(url, LONGEST)?;
        let found = client.ask(found).map_err(|failure| client.refusal(failure))?;
        found.to_read().map_err(|why| client.unusable(&why))?;
        Ok(Self { client })
    }

    /// The sums of the rows that are asked for.
    pub(crate) fn sums(&mut self, asked: &Asked) -> Result<Vec<Sum>, Trouble> {
        let rows = self.client.ask(async |connection| sums(connection, asked).await)?;
        let read = rows.iter().map(sum).collect::<sqlx::Result<Vec<Sum>>>();
        read.map_err(|error| Trouble(error.to_string()))
    }

    /// What is known of tools.
    pub(crate) fn pins(&mut self) -> Result<Vec<Pin>, Trouble> {
        let rows = self.client.ask(pins::all)?;
        let read = rows.iter().map(pins::pin).collect::<sqlx::Result<Vec<Pin>>>();
        read.map_err(|error| Trouble(error.to_string()))
    }

    /// The time of the newest row that was dropped.
    pub(crate) fn dropped_until(&mut self) -> Result<Option<Timestamp>, Trouble> {
        let newest = self.client.ask(async |connection| {
            let statement = "SELECT (EXTRACT(EPOCH FROM MAX(newest)) * 1000000)::bigint FROM carried";
            sqlx::query_scalar::<_, Option<i64>>(statement).fetch_one(connection).await
        })?;
        Ok(newest.and_then(|newest| Timestamp::from_microsecond(newest).ok()))
    }
}

async fn sums(connection: &mut PgConnection, asked: &Asked) -> sqlx::Result<Vec<PgRow>> {
    let since = asked.since.map(Timestamp::as_microsecond);
    let query = match &asked.of {
        None => sqlx::query(AssertSqlSafe(SUMS.as_str())).bind(since),
        Some((key, user)) => sqlx::query(AssertSqlSafe(SUMS_OF_USER.as_str())).bind(since).bind(key).bind(user),
    };
    query.fetch_all(connection).await
}

/// The columns of a group, then the amounts.
fn sum(row: &PgRow) -> sqlx::Result<Sum> {
    let name = |column: usize| row.try_get::<String, _>(column);
    let amount = |column: usize| row.try_get(5 + column).map(unsigned);
    Ok(Sum {
        provider: name(0)?,
        model: name(1)?,
        served: name(2)?,
        key: name(3)?,
        tool: name(4)?,
        calls: amount(0)?,
        requests: amount(1)?,
        tokens: Billed { fresh: amount(2)?, cached: amount(3)?, cache_write: amount(4)?, output: amount(5)? },
        reasoning: amount(6)?,
        cost: NanoUsd(amount(7)?),
        unknown: amount(8)?,
        estimated: amount(9)?,
    })
}
