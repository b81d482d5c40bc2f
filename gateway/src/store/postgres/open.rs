//! Opening the database: what is in it is looked at before anything is changed.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::OPENING;
use crate::store::schema::{Found, TABLES, VERSION, VERSION_TABLE};

/// From each version to the next.
const MIGRATIONS: [&str; 3] = [
    include_str!("../migrations/postgres/0001_ledger.sql"),
    include_str!("../migrations/postgres/0002_pauses.sql"),
    include_str!("../migrations/postgres/0003_pins.sql"),
];

/// Makes the tables that are missing, and leaves a mark: whoever can write that can write rows. An answer that is an error says why the
/// database is left as it is.
pub(super) async fn bring_up_to_date(connection: &mut PgConnection) -> sqlx::Result<Result<(), String>> {
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(OPENING).execute(&mut *transaction).await?;
    let encoding: String = sqlx::query_scalar("SELECT current_setting('server_encoding')").fetch_one(&mut *transaction).await?;
    if encoding != "UTF8" {
        // It would refuse a row for a name, and with it all rows behind.
        return Ok(Err(format!("has the encoding {encoding}, which cannot hold every name: create it with the encoding UTF8")));
    }
    let found = found(&mut transaction).await?;
    let version = match found.to_write() {
        Ok(version) => version,
        Err(why) => return Ok(Err(why)),
    };
    // Who has the tables already needs no right to make some.
    if found == Found::Nothing {
        let table = format!(
            "CREATE TABLE {VERSION_TABLE} (version bigint PRIMARY KEY, since timestamptz NOT NULL, opened timestamptz NOT NULL)"
        );
        sqlx::raw_sql(AssertSqlSafe(table)).execute(&mut *transaction).await?;
    }
    for (next, migration) in (1i64..).zip(MIGRATIONS).filter(|(next, _)| *next > version) {
        sqlx::raw_sql(migration).execute(&mut *transaction).await?;
        let note = format!("INSERT INTO {VERSION_TABLE} VALUES ($1, now(), now())");
        sqlx::query(AssertSqlSafe(note)).bind(next).execute(&mut *transaction).await?;
    }
    let mark = format!("UPDATE {VERSION_TABLE} SET opened = now() WHERE version = $1");
    sqlx::query(AssertSqlSafe(mark)).bind(VERSION).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(Ok(()))
}

/// What is in the database, as far as the search path of its user goes. Others may have tables there too, but not of our names.
pub(super) async fn found(connection: &mut PgConnection) -> sqlx::Result<Found> {
    let mut is_there = async |name: &str| {
        let table = sqlx::query_scalar::<_, bool>("SELECT to_regclass($1) IS NOT NULL").bind(name.to_owned());
        table.fetch_one(&mut *connection).await
    };
    if is_there(VERSION_TABLE).await? {
        let newest = format!("SELECT COALESCE(MAX(version), 0) FROM {VERSION_TABLE}");
        return sqlx::query_scalar(AssertSqlSafe(newest)).fetch_one(connection).await.map(Found::Version);
    }
    for table in TABLES {
        if is_there(table).await? {
            return Ok(Found::Foreign);
        }
    }
    Ok(Found::Nothing)
}
