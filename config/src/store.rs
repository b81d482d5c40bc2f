//! `store:`: where what must not be lost is kept, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use crate::secret::Secret;
use crate::server::Privacy;

/// Where things are kept.
#[derive(Clone, Debug)]
pub struct Store {
    /// The ledger's database.
    pub url: StoreUrl,
    /// Where rates and budgets are counted.
    pub counters: CountersUrl,
    /// What happens to a request when its counters cannot be reached.
    pub on_counter_failure: OnCounterFailure,
    /// How much of a run is kept in its trace.
    pub privacy: Privacy,
    /// How long traces are kept.
    pub keep_traces: Duration,
    /// How long rows of the ledger are kept one by one; their sums stay.
    pub keep_ledger: Duration,
}

/// The ledger's database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file of one gateway.
    Sqlite(PathBuf),
    /// A server that many gateways share; the whole URL, which may hold a password.
    Postgres(Secret),
    /// Nothing is kept: no ledger, and so no budgets.
    None,
}

/// Where rates and budgets are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountersUrl {
    /// In this process.
    Memory,
    /// In a server that many gateways share; the whole URL, which may hold a password.
    Redis(Secret),
}

/// What happens to a request when its counters cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCounterFailure {
    /// It is refused.
    Refuse,
    /// Each gateway counts for itself.
    Local,
}
