//! Money as the road of a request meets it: what the rules of `policies` say is looked up, taken and written down here.
//!
//! Before a call leaves, its worst cost is taken from every limit on its path ([`Tab::reserve`]); when it has ended, what it used takes
//! that place and becomes a row of the ledger ([`Tab::enter`]); before the last byte of the answer leaves, the rows are on the disk
//! ([`Tab::settled`]).

mod rates;
mod tab;

use std::sync::Arc;

use futures_util::future::try_join_all;

use jiff::Timestamp;
use toolgate_config::Config;
use toolgate_policies::budget;
use toolgate_policies::counters::{BudgetReading, Held, Hold, Seed, Taking, Unseeded, Wanted};
use toolgate_policies::limits::{Limit, Limits, What};

pub use self::rates::headers as rate_headers;
pub use self::tab::{Order, Payer, Refused, Tab};
use crate::counters::{Shelf, Unreachable};
use crate::store::{Ledger, Unusable, keep};

/// How often budgets are looked up for one request: once is enough, but the window may roll meanwhile.
const LOOK_UPS: usize = 3;

/// The ledger and the counters.
pub struct Money {
    /// What was spent.
    pub ledger: Ledger,
    shelf: Shelf,
}

/// Why nothing can be counted or written down at the moment: for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed(pub String);

impl From<Unusable> for Closed {
    fn from(Unusable(why): Unusable) -> Self {
        Self(format!("the ledger: {why}"))
    }
}

impl From<Unreachable> for Closed {
    fn from(Unreachable(why): Unreachable) -> Self {
        Self(format!("the counters: {why}"))
    }
}

impl Money {
    /// Opens the store and the counters of this configuration.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn open(config: &Config) -> Result<Self, Closed> {
        let store = &config.store;
        let ledger = Ledger::open(&store.url, keep(config))?;
        Ok(Self { ledger, shelf: Shelf::open(&store.counters, store.on_counter_failure)? })
    }

    /// Whether money can be spent at the moment.
    ///
    /// # Errors
    /// Why not.
    pub async fn ready(&self) -> Result<(), Closed> {
        self.ledger.is_well()?;
        Ok(self.shelf.ping().await?)
    }

    /// Writes down and tells what is still waiting, and closes the store and the counters.
    pub async fn close(&self) {
        self.ledger.close().await;
        self.shelf.close().await;
    }

    /// Looks up what was used of these limits, so that no request has to wait for it, and so that they can be shown.
    ///
    /// # Errors
    /// The store or the counters cannot be used.
    pub async fn look_up(&self, limits: &Limits) -> Result<(), Closed> {
        let budgets: Vec<_> = limits.iter().filter(|limit| is_budget(limit)).cloned().collect();
        drop(self.take(&budget::nothing_of(&budgets)).await?);
        Ok(())
    }

    /// How the budgets among these limits stand.
    ///
    /// # Errors
    /// The store or the counters cannot be used.
    pub async fn read(&self, limits: &[Arc<Limit>]) -> Result<Vec<BudgetReading>, Closed> {
        let budgets: Vec<_> = limits.iter().filter(|limit| is_budget(limit)).cloned().collect();
        if budgets.is_empty() {
            return Ok(Vec::new());
        }
        drop(self.take(&budget::nothing_of(&budgets)).await?);
        Ok(self.shelf.read(&budgets, Timestamp::now()).await?)
    }

    /// A moment of this gateway's by the clock that windows go by, and so the rows of the ledger: they are summed by window.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        self.shelf.time(now)
    }

    /// How many questions this gateway decided alone, because the server of its counters was away.
    pub fn decided_here(&self) -> u64 {
        self.shelf.decided_here()
    }

    /// Takes what is wanted from all limits at once, or from none. A budget that does not know yet what was used in its window is told so
    /// from the ledger first.
    async fn take(&self, wanted: &Wanted) -> Result<Taking, Closed> {
        if wanted.claims.is_empty() {
            return Ok(Taking::nothing(wanted));
        }
        for _ in 0..LOOK_UPS {
            match self.shelf.take(wanted, Timestamp::now()).await? {
                Taking::Unseeded(budgets) => self.seed(budgets).await?,
                taking => return Ok(taking),
            }
        }
        Err(Closed("the budgets did not learn what was used of them".to_owned()))
    }

    async fn seed(&self, budgets: Vec<Unseeded>) -> Result<(), Closed> {
        // Side by side: those who ask the ledger the same share an answer.
        let look_ups = budgets.into_iter().map(async |of| Ok::<_, Unusable>(Seed { used: self.ledger.used(&of).await?, of }));
        Ok(self.shelf.seed(&try_join_all(look_ups).await?).await?)
    }

    /// A hold of nothing, by which what was used is counted all the same.
    fn nothing_of(&self, wanted: &Wanted) -> Hold {
        let at = Timestamp::now();
        self.hold(wanted.claims.iter().map(|claim| Held { limit: Arc::clone(&claim.limit), amount: 0, at }).collect())
    }

    fn hold(&self, held: Vec<Held>) -> Hold {
        Hold::new(self.shelf.port(), held)
    }
}

fn is_budget(limit: &Limit) -> bool {
    matches!(limit.id.what, What::Budget(..))
}
