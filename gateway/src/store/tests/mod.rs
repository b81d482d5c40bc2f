//! The ledger with real databases.

mod child;
mod house;
mod ledger;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
mod sqlite;
