//! The ledger, read from where it lies: each row as a mapping from column to value, in the order of their times. What is true is 1, as SQLite
//! has it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

use crate::metrics;
use crate::services::Database;

/// The column of a row's cost in billionths of a dollar; null: not known.
pub const COST: &str = "cost_nano_usd";
/// The column of the run that a row belongs to.
pub const TRACE: &str = "trace";

/// Every row of a SQLite file; none where there is no file.
///
/// # Errors
/// It is no ledger.
pub fn rows_of_file(path: &Path) -> Result<Vec<Value>, String> {
    if path.is_file() { read(path).map_err(|error| format!("{}: {error}", path.display())) } else { Ok(Vec::new()) }
}

fn read(path: &Path) -> rusqlite::Result<Vec<Value>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let mut statement = connection.prepare("SELECT * FROM ledger ORDER BY at, id")?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let row = |row: &rusqlite::Row<'_>| {
        let members = names.iter().enumerate().map(|(at, name)| Ok((name.clone(), value(row.get_ref(at)?))));
        members.collect::<rusqlite::Result<Map<String, Value>>>().map(Value::Object)
    };
    statement.query_map([], row)?.collect()
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Every row of a database.
///
/// # Errors
/// It has no ledger.
pub async fn rows_of_database(database: &Database) -> Result<Vec<Value>, String> {
    let query = "SELECT coalesce(json_agg(row ORDER BY row.at, row.id), '[]')::text FROM ledger row";
    let text: String = sqlx::query_scalar(query).fetch_one(&mut database.connect().await).await.map_err(|e| e.to_string())?;
    let mut rows: Vec<Value> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    for value in rows.iter_mut().filter_map(Value::as_object_mut).flat_map(|row| row.values_mut()) {
        if let Value::Bool(is_so) = value {
            *value = json!(u8::from(*is_so));
        }
    }
    Ok(rows)
}

/// Nobody tells another sum than the ledger: neither the metrics, nor the callers, who were told `costs` by trace.
///
/// # Errors
/// Somebody does.
pub fn adds_up(rows: &[Value], text: &str, costs: &BTreeMap<String, String>) -> Result<(), String> {
    let cost = |row: &Value| row[COST].as_u64().unwrap_or(0);
    let (written, counted) = (rows.iter().map(cost).sum::<u64>(), spent(text));
    if written != counted {
        return Err(format!("the ledger comes to {}, the metrics to {}", decimal(written), decimal(counted)));
    }
    for (trace, told) in costs {
        let of_run = decimal(rows.iter().filter(|row| row[TRACE] == **trace).map(cost).sum());
        if *told != of_run {
            return Err(format!("the run {trace}: the ledger comes to {of_run}, its caller was told {told}"));
        }
    }
    Ok(())
}

/// What the metrics say was spent, in billionths of a dollar.
pub fn spent(text: &str) -> u64 {
    let all = metrics::parse(text);
    all.iter().filter(|(series, _)| series.starts_with("toolgate_spend_usd_total")).map(|(_, usd)| nano_usd(*usd)).sum()
}

/// Dollars in billionths. A double holds them exactly up to nine million dollars.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an amount is small and not negative")]
pub fn nano_usd(usd: f64) -> u64 {
    (usd * 1e9).round() as u64
}

/// Billionths of a dollar as a plain decimal of dollars.
pub fn decimal(nano: u64) -> String {
    let text = format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{decimal, nano_usd};

    #[test]
    fn amounts_are_plain_decimals() {
        for (nano, text) in [(0, "0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (20_000_000_000, "20")] {
            assert_eq!(decimal(nano), text);
            assert_eq!(nano_usd(text.parse().unwrap()), nano);
        }
    }
}
