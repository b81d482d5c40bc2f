//! The statements for the file.

use std::sync::LazyLock;

use crate::store::statements::{MOST, carry, from_carried, from_ledger};

/// A row, with all its columns. One that is there already stays as it is.
pub(super) const INSERT: &str = "INSERT INTO ledger VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
                                 ?17, ?18, ?19, ?20, ?21, ?22) ON CONFLICT (at, id) DO NOTHING";

const OLDEST: &str = "WHERE at < ?1 ORDER BY at, id LIMIT ?2";

/// Adds the sums of the oldest rows before ?1, at most ?2 of them, to those in `carried`.
pub(super) static CARRY: LazyLock<String> = LazyLock::new(|| carry(&format!("(SELECT * FROM ledger {OLDEST}) WHERE true"), sum));

/// Drops the same rows.
pub(super) static DROP: LazyLock<String> =
    LazyLock::new(|| format!("DELETE FROM ledger WHERE (at, id) IN (SELECT at, id FROM ledger {OLDEST})"));

/// The rows from ?1 on, one by one: the group of a tally, then the amounts.
pub(super) static ROWS: LazyLock<String> = LazyLock::new(|| format!("SELECT {} FROM ledger WHERE at >= ?1", from_ledger()));

/// The same, of the end user ?3 of the key ?2.
pub(in crate::store) static ROWS_OF_USER: LazyLock<String> =
    LazyLock::new(|| format!("{} AND key = ?2 AND end_user = ?3", *ROWS));

/// The sums of the rows that were dropped, in the same columns.
pub(super) static CARRIED: LazyLock<String> = LazyLock::new(|| format!("SELECT {} FROM carried", from_carried()));

/// The same, of the end user ?2 of the key ?1.
pub(super) static CARRIED_OF_USER: LazyLock<String> = LazyLock::new(|| format!("{} WHERE key = ?1 AND end_user = ?2", *CARRIED));

/// SQLite's own sum is an error where it is too large: the halves of the numbers are summed up apart.
fn sum(of: &str) -> String {
    let (high, low) = (format!("SUM(({of}) >> 32)"), format!("SUM(({of}) & 4294967295)"));
    format!("CASE WHEN {high} + ({low} >> 32) > 2147483647 THEN {MOST} ELSE ({high} << 32) + {low} END")
}
