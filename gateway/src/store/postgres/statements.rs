//! The statements for the server.

use std::sync::LazyLock;

use crate::store::statements::{AMOUNTS, MOST, carry, from_carried, from_ledger};

/// The columns of a row, and what is sent for each.
const COLUMNS: [(&str, &str); 22] = [
    ("at", "bigint"),
    ("id", "bigint"),
    ("trace", "text"),
    ("round", "bigint"),
    ("attempt", "bigint"),
    ("key", "text"),
    ("end_user", "text"),
    ("model", "text"),
    ("served", "text"),
    ("provider", "text"),
    ("upstream_model", "text"),
    ("tool", "text"),
    ("input_tokens", "bigint"),
    ("cached_tokens", "bigint"),
    ("cache_write_tokens", "bigint"),
    ("output_tokens", "bigint"),
    ("reasoning_tokens", "bigint"),
    ("estimated", "boolean"),
    ("cost_nano_usd", "bigint"),
    ("reported_nano_usd", "bigint"),
    ("outcome", "text"),
    ("requests", "bigint"),
];

/// Rows, an array for each column. Those that are there already stay as they are.
pub(super) static INSERT: LazyLock<String> = LazyLock::new(|| {
    let names = COLUMNS.map(|(name, _)| name).join(", ");
    let arrays: Vec<String> = (1..).zip(COLUMNS).map(|(place, (_, kind))| format!("${place}::{kind}[]")).collect();
    let values = COLUMNS.map(|(name, _)| if name == "at" { time("sent.at") } else { format!("sent.{name}") }).join(", ");
    let arrays = arrays.join(", ");
    format!(
        "INSERT INTO ledger ({names}) SELECT {values} FROM UNNEST({arrays}) AS sent ({names}) ON CONFLICT (at, id) DO NOTHING"
    )
});

/// Adds the sums of the oldest rows before $1, at most $2 of them, to those in `carried`, and drops them. Gives how many that were.
pub(super) static CARRY: LazyLock<String> = LazyLock::new(|| {
    let oldest = format!("SELECT at, id FROM ledger WHERE at < {} ORDER BY at, id LIMIT $2", time("$1::bigint"));
    let carry = carry("gone", sum);
    format!(
        "WITH gone AS (DELETE FROM ledger WHERE (at, id) IN ({oldest}) RETURNING *), carry AS ({carry}) SELECT COUNT(*) FROM gone"
    )
});

/// The sums of the rows from $1 on, of all and of the dropped ones where it is NULL: a group, then the amounts.
pub(super) static SUMS: LazyLock<String> = LazyLock::new(|| sums(""));

/// The same, of the end user $3 of the key $2.
pub(super) static SUMS_OF_USER: LazyLock<String> = LazyLock::new(|| sums(" AND key = $2 AND end_user = $3"));

fn sums(of: &str) -> String {
    let amounts = AMOUNTS.map(|(name, _)| sum(name)).join(", ");
    let since = format!("COALESCE({}, '-infinity')", time("$1::bigint"));
    format!(
        "SELECT provider, model, served, key, tool, {amounts} FROM (SELECT {} FROM ledger WHERE at >= {since}{of} UNION ALL \
         SELECT {} FROM carried WHERE $1::bigint IS NULL{of}) AS counted GROUP BY provider, model, served, key, tool",
        from_ledger(),
        from_carried(),
    )
}

/// A time of so many microseconds since 1970, exactly.
pub(super) fn time(micros: &str) -> String {
    format!("'epoch'::timestamptz + {micros} * '1 microsecond'::interval")
}

fn sum(of: &str) -> String {
    format!("LEAST(SUM({of}), {MOST})::bigint")
}
