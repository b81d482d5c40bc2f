//! Pauses on the server.

use std::sync::LazyLock;

use jiff::Timestamp;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row};

use super::statements::time;
use super::{DROPPING, Postgres};
use crate::store::database::{Trouble, signed};
use crate::store::pauses::{BOUNDS, LOOKED_AT, Pause, Wanted, expired};
use crate::talk::paused::{Digest, Kept, Place};

/// Writes a pause where there is none, or the same, or one that waits no longer.
static KEEP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO pauses (key, end_user, calls, conversation, at, content, bytes, state) VALUES ($1, $2, $3, $4, {}, $6, $7, $8) \
         ON CONFLICT (key, end_user, calls, conversation) DO UPDATE \
         SET at = excluded.at, content = excluded.content, bytes = excluded.bytes, state = excluded.state \
         WHERE pauses.content = excluded.content OR pauses.at < {}",
        time("$5::bigint"),
        time("$9::bigint"),
    )
});

static FIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT calls, conversation, state FROM pauses WHERE key = $1 AND end_user = $2 \
         AND (calls = ANY($3) OR conversation = ANY($4)) AND at >= {} \
         ORDER BY (calls, conversation) IN (SELECT * FROM unnest($3::bytea[], $4::bytea[])) DESC, at DESC LIMIT $6",
        time("$5::bigint"),
    )
});

/// Drops the oldest of a key, all but so many.
const BOUND_KEY: &str =
    "DELETE FROM pauses WHERE key = $1 AND at <= (SELECT at FROM pauses WHERE key = $1 ORDER BY at DESC LIMIT 1 OFFSET $2)";

static DROP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM pauses WHERE (key, end_user, calls, conversation) IN \
         (SELECT key, end_user, calls, conversation FROM pauses WHERE at < {} ORDER BY at LIMIT $2)",
        time("$1::bigint"),
    )
});

/// The same, whatever their age.
const DROP_OLDEST: &str = "DELETE FROM pauses WHERE (key, end_user, calls, conversation) IN \
                           (SELECT key, end_user, calls, conversation FROM pauses ORDER BY at LIMIT $1)";

impl Postgres {
    /// Keeps pauses in one transaction. Of each, whether its place was free.
    pub(in crate::store) fn keep_pauses(&mut self, pauses: &[Pause]) -> Result<Vec<bool>, Trouble> {
        Ok(self.client.ask(async |connection| keep_all(connection, pauses).await)?)
    }

    /// The pauses that are at these places, or alike.
    pub(in crate::store) fn find_pauses(&mut self, wanted: &Wanted) -> Result<Vec<Kept>, Trouble> {
        let rows = self.client.ask(async |connection| find(connection, wanted).await)?;
        let kept = rows.iter().map(kept).collect::<sqlx::Result<Vec<Kept>>>();
        kept.map_err(|error| Trouble(error.to_string()))
    }

    /// Drops some pauses that began before a time, and those that are too many.
    pub(in crate::store) fn drop_pauses(&mut self, before: Timestamp, most: usize) -> Result<usize, Trouble> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let dropped = self.client.ask(async |connection| drop_old(connection, before.as_microsecond(), most).await)?;
        Ok(usize::try_from(dropped).unwrap_or(0))
    }
}

async fn keep_all(connection: &mut PgConnection, pauses: &[Pause]) -> sqlx::Result<Vec<bool>> {
    let mut transaction = connection.begin().await?;
    let mut were_free = Vec::with_capacity(pauses.len());
    for pause in pauses {
        were_free.push(keep(&mut transaction, pause).await?);
    }
    transaction.commit().await?;
    Ok(were_free)
}

async fn keep(connection: &mut PgConnection, pause: &Pause) -> sqlx::Result<bool> {
    let Pause { owner, at, content, kept } = pause;
    let written = sqlx::query(AssertSqlSafe(KEEP.as_str()))
        .bind(&owner.key)
        .bind(&owner.user)
        .bind(&kept.place.calls[..])
        .bind(&kept.place.before[..])
        .bind(at.as_microsecond())
        .bind(&content[..])
        .bind(signed(kept.state.as_ref().map_or(0, String::len) as u64))
        .bind(kept.state.as_deref())
        .bind(expired(*at).as_microsecond())
        .execute(&mut *connection)
        .await?;
    let bound = sqlx::query(BOUND_KEY).bind(&owner.key).bind(signed(BOUNDS.of_key as u64));
    bound.execute(connection).await?;
    Ok(written.rows_affected() > 0)
}

async fn find(connection: &mut PgConnection, wanted: &Wanted) -> sqlx::Result<Vec<PgRow>> {
    let digests = |of: fn(&Place) -> &Digest| wanted.places.iter().map(|place| of(place).to_vec()).collect::<Vec<_>>();
    let query = sqlx::query(AssertSqlSafe(FIND.as_str()))
        .bind(&wanted.owner.key)
        .bind(&wanted.owner.user)
        .bind(digests(|place| &place.calls))
        .bind(digests(|place| &place.before))
        .bind(wanted.since.as_microsecond())
        .bind(signed((LOOKED_AT * wanted.places.len()) as u64));
    query.fetch_all(connection).await
}

fn kept(row: &PgRow) -> sqlx::Result<Kept> {
    let digest = |column: usize| {
        let bytes: &[u8] = row.try_get(column)?;
        Digest::try_from(bytes).map_err(|error| sqlx::Error::Decode(error.into()))
    };
    Ok(Kept { place: Place { calls: digest(0)?, before: digest(1)? }, state: row.try_get(2)? })
}

async fn drop_old(connection: &mut PgConnection, before: i64, most: i64) -> sqlx::Result<u64> {
    let mut transaction = connection.begin().await?;
    let lock = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(DROPPING);
    if !lock.fetch_one(&mut *transaction).await? {
        return Ok(0);
    }
    let old = sqlx::query(AssertSqlSafe(DROP.as_str())).bind(before).bind(most);
    let mut dropped = old.execute(&mut *transaction).await?.rows_affected();
    let bytes: i64 =
        sqlx::query_scalar("SELECT COALESCE(SUM(bytes), 0)::bigint FROM pauses").fetch_one(&mut *transaction).await?;
    if bytes > signed(BOUNDS.bytes) {
        dropped += sqlx::query(DROP_OLDEST).bind(most).execute(&mut *transaction).await?.rows_affected();
    }
    transaction.commit().await?;
    Ok(dropped)
}
