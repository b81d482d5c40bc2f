//! What the statements of both databases have in common: the columns, and how rows are summed up.
//!
//! A sum that is more than a database can hold stays at the most that it can: whoever used that much has used up every budget.

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
pub(super) const AMOUNTS: [(&str, &str); 10] = [
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

/// The columns of a tally's group in its order, then the amounts: from `ledger`, each under its name in `carried`.
pub(super) fn from_ledger() -> String {
    let amounts = AMOUNTS.map(|(name, from_row)| format!("{from_row} AS {name}")).join(", ");
    format!("COALESCE(provider, '') AS provider, model, served, key, COALESCE(tool, '') AS tool, {amounts}")
}

/// The same columns from `carried`.
pub(super) fn from_carried() -> String {
    format!("provider, model, served, key, tool, {}", AMOUNTS.map(|(name, _)| name).join(", "))
}

/// A statement that adds the sums of some rows to those in `carried`.
pub(super) fn carry(rows: &str, sum: fn(&str) -> String) -> String {
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

/// The most that a database can hold.
pub(super) const MOST: i64 = i64::MAX;

fn added(name: &str) -> String {
    format!("{name} = CASE WHEN carried.{name} > {MOST} - excluded.{name} THEN {MOST} ELSE carried.{name} + excluded.{name} END")
}
