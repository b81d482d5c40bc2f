//! Counting what is used: the port behind which the counters are, and what goes through it.
//!
//! A request *takes* from all counters on its path at once, or from none. What it took is a [`Hold`]: it is *settled* with what was really
//! used, or, dropped, given back whole. The counters of one process are in [`memory`]; those that many gateways share are the gateway's.

pub mod memory;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use toolgate_config::limit::Unit;

use crate::limits::{Limit, What};

/// What a request wants from one counter: `fixed`, and `each` for every token of output that it may come to. Both are in thousandths of the
/// limit's unit (pico-dollars where it counts nano-dollars), so that the sum is rounded once, as a cost is: a budget for exactly a hundred
/// such calls has room for a hundred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The counter and its limit.
    pub limit: Arc<Limit>,
    /// Whatever the output.
    pub fixed: u64,
    /// For each token of output.
    pub each: u64,
    /// Taken even where it does not fit: a run under way is not refused by a rate.
    pub forced: bool,
    /// Whether what is fixed is only roughly known, and so must fit more than once; see [`Wanted::margin`].
    pub rough: bool,
}

impl Claim {
    /// How much this is with `output` tokens of output, in the limit's unit, rounded half up.
    pub fn amount(&self, output: u64) -> u64 {
        self.amount_with(output, 1)
    }

    /// How much room there must be for it. What is roughly known must fit `margin` times.
    pub fn must_fit(&self, output: u64, margin: u64) -> u64 {
        self.amount_with(output, if self.rough { margin.max(1) } else { 1 })
    }

    fn amount_with(&self, output: u64, times: u64) -> u64 {
        let fixed = u128::from(self.fixed) * u128::from(times);
        let each = u128::from(self.each) * u128::from(output);
        u64::try_from(fixed.saturating_add(each).saturating_add(500) / 1000).unwrap_or(u64::MAX)
    }

    /// The most output with which it is no more than `room`. With none at all it can still be more: where `fixed` alone is.
    pub fn output_within(&self, room: u64) -> u64 {
        let thousandths = (u128::from(room) * 1000 + 499).saturating_sub(u128::from(self.fixed));
        thousandths.checked_div(u128::from(self.each)).map_or(u64::MAX, |output| u64::try_from(output).unwrap_or(u64::MAX))
    }
}

/// What a request wants, of all counters at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// From each counter, and from none twice; in the order of the path. A claim to nothing is never in the way.
    pub claims: Vec<Claim>,
    /// The tokens of output that it may come to.
    pub output: u64,
    /// The fewest tokens of output that are of use: where `output` does not fit into a budget, what fits is taken, but not less than this.
    /// The same as `output`: it is not lowered.
    pub least_output: u64,
    /// How many times what is fixed of a rough claim must fit, so many requests may hold too much at the same time: then nobody is refused
    /// because somebody else was counted roughly. 1: once.
    pub margin: u64,
}

/// What came of asking.
#[derive(Debug)]
pub enum Taking {
    /// All of it was taken.
    Taken(Taken),
    /// Nothing was taken.
    Denied(Denied),
    /// Nothing was taken, for these budgets do not know yet what was used in their windows: look it up, [`Seed`] them, and ask again.
    Unseeded(Vec<Unseeded>),
}

impl Taking {
    /// What comes of wanting nothing: no counter is asked.
    pub fn nothing(wanted: &Wanted) -> Self {
        Self::Taken(Taken { held: Vec::new(), output: wanted.output, rates: Vec::new() })
    }
}

/// What was taken.
#[derive(Debug)]
pub struct Taken {
    /// From each counter, in the order of the claims.
    pub held: Vec<Held>,
    /// The tokens of output that fit: no more than were wanted.
    pub output: u64,
    /// How the rates on the path stand, this request included.
    pub rates: Vec<RateReading>,
}

/// What was taken from one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The counter.
    pub limit: Arc<Limit>,
    /// How much.
    pub amount: u64,
    /// When.
    pub at: Timestamp,
}

/// Why nothing was taken.
#[derive(Clone, Debug)]
pub struct Denied {
    /// The limit in the way: the first on the path.
    pub limit: Arc<Limit>,
    /// When to come again; where several rates are in the way, when none of them is any more.
    pub again: Again,
    /// A more exact count could still fit: the amount was rough.
    pub was_rough: bool,
    /// How the rates on the path stand.
    pub rates: Vec<RateReading>,
}

/// When what was refused would fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// When the budget's window ends.
    At(Timestamp),
    /// After this long, if nobody else comes in between.
    After(Duration),
    /// When another request has ended.
    WhenFree,
    /// Never: it is more than a whole rate, or the budget's window has no end.
    Never,
}

impl Again {
    /// After as long as it takes where two rates are in the way: who comes when the first would let it in must not be told to wait anew.
    #[must_use]
    pub fn or_later(self, other: Self) -> Self {
        match (self, other) {
            (Self::After(one), Self::After(other)) => Self::After(one.max(other)),
            _ => self,
        }
    }
}

/// How a rate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateReading {
    /// The rate: [`What::RequestRate`] or [`What::TokenRate`].
    pub limit: Arc<Limit>,
    /// How much is left.
    pub remaining: u64,
    /// How long until all of it is there again, if nobody comes in between.
    pub reset: Duration,
}

/// A budget that does not know what was used in its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseeded {
    /// The budget.
    pub limit: Arc<Limit>,
    /// When its window began; the least that there is, for one without a beginning.
    pub since: Timestamp,
}

/// What was used in a budget's window before it was first asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Which.
    pub of: Unseeded,
    /// In the limit's unit.
    pub used: u64,
}

/// How a budget stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetReading {
    /// The budget.
    pub limit: Arc<Limit>,
    /// What was used in its window.
    pub used: u64,
    /// What is held for calls under way.
    pub held: u64,
    /// When its window ends; `None`: never.
    pub resets: Option<Timestamp>,
}

/// What was really used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// In nano-dollars.
    pub usd: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Requests.
    pub requests: u64,
}

impl Used {
    /// How much of it a limit counts.
    pub fn of(&self, what: &What) -> u64 {
        match what {
            What::Budget(Unit::Usd, ..) => self.usd,
            What::Budget(Unit::Tokens, ..) | What::TokenRate => self.tokens,
            What::Budget(Unit::Requests, ..) => self.requests,
            What::RequestRate | What::Concurrent => 0,
        }
    }
}

/// The counters, as a hold sees them. Both ways back take no time and never fail: what cannot be told to a server at once is told later.
pub trait Counters: Send + Sync {
    /// What was held is given back, and what was used is counted: in a budget of the window that `now` is in, in a rate of the time when it
    /// was taken.
    fn settle(&self, held: &[Held], used: &Used, now: Timestamp);

    /// What was held is given back, as if it had never been asked for; save that a request of a request rate stays counted.
    fn give_back(&self, held: &[Held]);
}

/// What a request holds. Dropping it gives everything back, and does nothing else.
pub struct Hold {
    counters: Arc<dyn Counters>,
    held: Vec<Held>,
}

impl Hold {
    /// What was taken from these counters.
    pub fn new(counters: Arc<dyn Counters>, held: Vec<Held>) -> Self {
        Self { counters, held }
    }

    /// Whether it holds something of this limit's counter.
    pub fn covers(&self, limit: &Limit) -> bool {
        self.held.iter().any(|held| held.limit.id == limit.id)
    }

    /// Two holds: of those that the test picks, and of the others.
    #[must_use]
    pub fn split(mut self, picks: impl Fn(&What) -> bool) -> (Self, Self) {
        let (picked, others) = std::mem::take(&mut self.held).into_iter().partition(|held| picks(&held.limit.id.what));
        (Self::new(Arc::clone(&self.counters), picked), Self::new(Arc::clone(&self.counters), others))
    }

    /// Puts what was used in its place.
    pub fn settle(mut self, used: &Used, now: Timestamp) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.counters.settle(&held, used, now);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            self.counters.give_back(&self.held);
        }
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.held).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::{CounterId, Scope};

    proptest! {
        #[test]
        fn the_output_within_a_room_is_the_most_that_is(fixed in 0..100_000_u64, each in 0..5_000_u64, room in 0..200_u64) {
            let id = CounterId { scope: Scope::Everybody, what: What::TokenRate };
            let claim = Claim { limit: Arc::new(Limit::new(id, 0)), fixed, each, forced: false, rough: false };
            let output = claim.output_within(room);
            prop_assert!(claim.amount(output) <= room || claim.amount(0) > room);
            prop_assert!(output == u64::MAX || claim.amount(output + 1) > room);
        }
    }
}
