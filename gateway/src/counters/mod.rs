//! The counters of rates and budgets, wherever they are: in this process, or in a server that many gateways share.
//!
//! What a hold used is settled when its row is on its way to the ledger. A server that has forgotten a budget gets what was used from there, and
//! what it is told later is taken to be in there, if it happened some seconds before that.

#[cfg(feature = "redis")]
mod redis;

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_config::store::{CountersUrl, OnCounterFailure};
use toolgate_policies::counters::memory::Memory;
use toolgate_policies::counters::{BudgetReading, Counters, Seed, Taking, Wanted};
use toolgate_policies::limits::Limit;

/// The counters.
pub enum Shelf {
    /// Of this process.
    Memory(Arc<Memory>),
    /// Of many gateways.
    #[cfg(feature = "redis")]
    Redis(Arc<redis::Redis>),
}

/// The server of the counters cannot be reached, and nobody is let in without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable(pub String);

impl Shelf {
    /// Opens the counters. Those of many gateways have a thread of their own, which talks to their server: it ends with [`Shelf::close`], or
    /// when the shelf is dropped. It takes a while to reach the server; no request waits yet.
    ///
    /// # Errors
    /// The server cannot be reached.
    #[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "one process does not fail itself"))]
    pub fn open(url: &CountersUrl, on_failure: OnCounterFailure) -> Result<Self, Unreachable> {
        match url {
            CountersUrl::Memory => Ok(Self::Memory(Arc::default())),
            #[cfg(feature = "redis")]
            CountersUrl::Redis(url) => redis::Redis::open(url, on_failure).map(Arc::new).map(Self::Redis),
            #[cfg(not(feature = "redis"))]
            CountersUrl::Redis(_) => Err(Unreachable("this build has no Redis".to_owned())),
        }
    }

    /// Takes what is wanted, from all counters or from none. `now` is the time by this gateway's clock.
    ///
    /// # Errors
    /// [`Unreachable`].
    pub async fn take(&self, wanted: &Wanted, now: Timestamp) -> Result<Taking, Unreachable> {
        match self {
            Self::Memory(memory) => Ok(memory.take(wanted, now)),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.take(wanted, now).await,
        }
    }

    /// Tells budgets what was used in their windows before they were first asked.
    ///
    /// # Errors
    /// [`Unreachable`].
    pub async fn seed(&self, seeds: &[Seed]) -> Result<(), Unreachable> {
        match self {
            Self::Memory(memory) => {
                memory.seed(seeds);
                Ok(())
            }
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.seed(seeds).await,
        }
    }

    /// How these budgets stand; those that nobody has asked yet are left out.
    ///
    /// # Errors
    /// [`Unreachable`].
    pub async fn read(&self, budgets: &[Arc<Limit>], now: Timestamp) -> Result<Vec<BudgetReading>, Unreachable> {
        match self {
            Self::Memory(memory) => Ok(memory.read(budgets, now)),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.read(budgets, now).await,
        }
    }

    /// Whether the counters can be reached.
    ///
    /// # Errors
    /// Why not.
    pub async fn ping(&self) -> Result<(), Unreachable> {
        match self {
            Self::Memory(_) => Ok(()),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.ping().await,
        }
    }

    /// The counters as a hold sees them.
    pub fn port(&self) -> Arc<dyn Counters> {
        match self {
            Self::Memory(memory) => Arc::clone(memory) as Arc<dyn Counters>,
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.port(),
        }
    }

    /// How many questions were decided by this gateway alone, because the server of the counters was away.
    pub fn decided_here(&self) -> u64 {
        match self {
            Self::Memory(_) => 0,
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.decided_here(),
        }
    }

    /// The time by the clock that windows and rates go by, at a moment of this gateway's: the server's, where many gateways count together.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Memory(_) => now,
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.there(now),
        }
    }

    /// Tells what is still to be told, and takes leave: what this gateway held is free at once, and nothing that it used is forgotten. Holds have
    /// to be settled before.
    pub async fn close(&self) {
        match self {
            Self::Memory(_) => {}
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.close().await,
        }
    }
}
