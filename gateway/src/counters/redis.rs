//! The counters that many gateways share, in Redis or Valkey.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_config::secret::Secret;
use toolgate_config::store::OnCounterFailure;
use toolgate_policies::counters::{BudgetReading, Counters, Held, Seed, Taking, Used, Wanted};
use toolgate_policies::limits::Limit;

use super::Unreachable;

/// The counters in a server.
pub struct Redis {}

impl Redis {
    pub(super) fn open(_url: &Secret, _on_failure: OnCounterFailure) -> Result<Self, Unreachable> {
        Err(Unreachable("not there yet".to_owned()))
    }

    pub(super) async fn take(&self, _wanted: &Wanted, _now: Timestamp) -> Result<Taking, Unreachable> {
        Err(Unreachable(String::new()))
    }

    pub(super) async fn seed(&self, _seeds: &[Seed]) -> Result<(), Unreachable> {
        Ok(())
    }

    pub(super) async fn read(&self, _budgets: &[Arc<Limit>], _now: Timestamp) -> Result<Vec<BudgetReading>, Unreachable> {
        Ok(Vec::new())
    }

    pub(super) async fn ping(&self) -> Result<(), Unreachable> {
        Ok(())
    }
}

impl Counters for Redis {
    fn settle(&self, _held: &[Held], _used: &Used, _now: Timestamp) {}

    fn give_back(&self, _held: &[Held]) {}
}
