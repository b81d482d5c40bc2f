//! Pins on the server.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row};

use super::Postgres;
use super::statements::time;
use crate::store::database::{Trouble, signed};
use crate::store::pins::{Digest, MOST_OF_SERVER, Pin};

/// Notes the tools that were never seen, unless their server has too many.
static NOTE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO pins (server, tool, digest, definition, at) SELECT seen.server, seen.tool, seen.digest, seen.definition, {} \
         FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS seen (server, tool, digest, definition) \
         WHERE (SELECT COUNT(*) FROM pins WHERE pins.server = seen.server) < $6 ON CONFLICT DO NOTHING",
        time("$5::bigint"),
    )
});

const FIND: &str = "SELECT server, tool, digest, '' FROM pins WHERE server = ANY($1)";

static ACCEPT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO pins (server, tool, digest, definition, at) VALUES ($1, $2, $3, $4, {}) ON CONFLICT (server, tool) DO UPDATE \
         SET digest = excluded.digest, definition = excluded.definition, at = excluded.at",
        time("$5::bigint"),
    )
});

const ALL: &str = "SELECT server, tool, digest, definition FROM pins";

impl Postgres {
    /// Notes those that were never seen, and gives what holds for each.
    pub(in crate::store) fn see_pins(&mut self, seen: &[Pin], now: Timestamp) -> Result<Vec<Option<Digest>>, Trouble> {
        let rows = self.client.ask(async |connection| see(connection, seen, now.as_microsecond()).await)?;
        let known = rows.iter().map(pin).collect::<sqlx::Result<Vec<Pin>>>().map_err(|error| Trouble(error.to_string()))?;
        let known: HashMap<_, _> = known.iter().map(|pin| ((&pin.server, &pin.tool), pin.digest)).collect();
        Ok(seen.iter().map(|pin| known.get(&(&pin.server, &pin.tool)).copied()).collect())
    }

    /// Has these hold from now on.
    pub(in crate::store) fn accept_pins(&mut self, accepted: &[Pin], now: Timestamp) -> Result<(), Trouble> {
        Ok(self.client.ask(async |connection| accept(connection, accepted, now.as_microsecond()).await)?)
    }
}

async fn see(connection: &mut PgConnection, seen: &[Pin], now: i64) -> sqlx::Result<Vec<PgRow>> {
    let column = |of: fn(&Pin) -> &str| seen.iter().map(|pin| of(pin).to_owned()).collect::<Vec<_>>();
    let servers = column(|pin| &pin.server);
    let mut distinct = servers.clone();
    distinct.dedup();
    let note = sqlx::query(AssertSqlSafe(NOTE.as_str()))
        .bind(&servers)
        .bind(column(|pin| &pin.tool))
        .bind(seen.iter().map(|pin| pin.digest.to_vec()).collect::<Vec<_>>())
        .bind(column(|pin| &pin.definition))
        .bind(now)
        .bind(signed(MOST_OF_SERVER as u64));
    note.execute(&mut *connection).await?;
    sqlx::query(FIND).bind(&distinct).fetch_all(connection).await
}

async fn accept(connection: &mut PgConnection, accepted: &[Pin], now: i64) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    for Pin { server, tool, digest, definition } in accepted {
        let statement = sqlx::query(AssertSqlSafe(ACCEPT.as_str())).bind(server).bind(tool).bind(&digest[..]);
        statement.bind(definition).bind(now).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

/// Every pin of a server.
pub(super) async fn all(connection: &mut PgConnection) -> sqlx::Result<Vec<PgRow>> {
    sqlx::query(ALL).fetch_all(connection).await
}

/// One of them.
pub(super) fn pin(row: &PgRow) -> sqlx::Result<Pin> {
    let bytes: &[u8] = row.try_get(2)?;
    let digest = Digest::try_from(bytes).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Pin { server: row.try_get(0)?, tool: row.try_get(1)?, digest, definition: row.try_get(3)? })
}
