//! The ledger with real databases.

mod child;
mod house;
mod ledger;
mod sqlite;
