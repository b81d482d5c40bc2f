//! The statements that sum rows up. A sum that is more than a database can hold stays at the most that it can: whoever used that much has
//! used up every budget.

use std::sync::LazyLock;

/// What a row is told apart by in `carried`, and how it is had from `ledger`.
const GROUP: [(&str, &str); 6] = [
    ("key", "key"),
    ("end_user", "COALESCE(end_user, '')"),
    ("model", "model"),
    ("served", "served"),
    ("provider", "COALESCE(provider, '')"),
    ("tool", "COALESCE(tool, '')"),
];

/// What is summed up in `carried`, and how it is had from a row of `ledger`.
const AMOUNTS: [(&str, &str); 10] = [
    ("calls", "1"),
    ("requests", "requests"),
    ("input_tokens", "input_tokens"),
    ("cached_tokens", "cached_tokens"),
    ("cache_write_tokens", "cache_write_tokens"),
    ("output_tokens", "output_tokens"),
    ("reasoning_tokens", "reasoning_tokens"),
    ("cost_nano_usd", "COALESCE(cost_nano_usd, 0)"),
    ("unknown_calls", "CASE WHEN cost_nano_usd IS NULL THEN 1 ELSE 0 END"),
    ("estimated_calls", "CASE WHEN estimated THEN 1 ELSE 0 END"),
];

const OLDEST_SQLITE: &str = "WHERE at < ?1 ORDER BY at, id LIMIT ?2";

/// Adds the sums of the oldest rows before ?1, at most ?2 of them, to those in `carried`.
pub(super) static CARRY_SQLITE: LazyLock<String> =
    LazyLock::new(|| carry(&format!("(SELECT * FROM ledger {OLDEST_SQLITE}) WHERE true"), sum_sqlite));

/// Drops the same rows.
pub(super) static DROP_SQLITE: LazyLock<String> =
    LazyLock::new(|| format!("DELETE FROM ledger WHERE (at, id) IN (SELECT at, id FROM ledger {OLDEST_SQLITE})"));

/// The rows from ?1 on, one by one: the group of a [`super::tally::Tally`], then the amounts.
pub(super) static ROWS_SQLITE: LazyLock<String> = LazyLock::new(|| format!("SELECT {} FROM ledger WHERE at >= ?1", selected()));

/// The same, of the end user ?3 of the key ?2.
pub(super) static ROWS_OF_USER_SQLITE: LazyLock<String> =
    LazyLock::new(|| format!("{} AND key = ?2 AND end_user = ?3", *ROWS_SQLITE));

/// The sums of the rows that were dropped, in the same columns.
pub(super) static CARRIED_SQLITE: LazyLock<String> = LazyLock::new(|| format!("SELECT {} FROM carried", selected_carried()));

/// The same, of the end user ?2 of the key ?1.
pub(super) static CARRIED_OF_USER_SQLITE: LazyLock<String> =
    LazyLock::new(|| format!("{} WHERE key = ?1 AND end_user = ?2", *CARRIED_SQLITE));

/// The columns of a tally's group in the order that it has them, then the amounts.
fn selected() -> String {
    let amounts = AMOUNTS.map(|(_, from_row)| from_row).join(", ");
    format!("COALESCE(provider, ''), model, served, key, COALESCE(tool, ''), {amounts}")
}

fn selected_carried() -> String {
    format!("provider, model, served, key, tool, {}", AMOUNTS.map(|(name, _)| name).join(", "))
}

/// Adds the sums of some rows to those in `carried`.
fn carry(rows: &str, sum: fn(&str) -> String) -> String {
    let names: Vec<&str> = GROUP.iter().map(|(name, _)| *name).chain(["newest"]).chain(AMOUNTS.map(|(name, _)| name)).collect();
    let group = GROUP.map(|(_, from_row)| from_row).join(", ");
    let sums = AMOUNTS.map(|(_, from_row)| sum(from_row)).join(", ");
    let added = AMOUNTS.map(|(name, _)| added(name)).join(", ");
    format!(
        "INSERT INTO carried ({}) SELECT {group}, MAX(at), {sums} FROM {rows} GROUP BY {group} ON CONFLICT ({}) DO UPDATE SET {added}, \
         newest = CASE WHEN carried.newest > excluded.newest THEN carried.newest ELSE excluded.newest END",
        names.join(", "),
        GROUP.map(|(name, _)| name).join(", "),
    )
}

const MOST: i64 = i64::MAX;

fn added(name: &str) -> String {
    format!("{name} = CASE WHEN carried.{name} > {MOST} - excluded.{name} THEN {MOST} ELSE carried.{name} + excluded.{name} END")
}

/// SQLite's own sum is an error where it is too large: the halves of the numbers are summed up apart.
fn sum_sqlite(of: &str) -> String {
    let (high, low) = (format!("SUM(({of}) >> 32)"), format!("SUM(({of}) & 4294967295)"));
    format!("CASE WHEN {high} + ({low} >> 32) > 2147483647 THEN {MOST} ELSE ({high} << 32) + {low} END")
}
