//! The ledger with real databases.

mod child;
pub(super) mod house;
mod ledger;
mod pauses;
mod pins;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
mod sqlite;
