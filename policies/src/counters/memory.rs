//! The counters of one process, behind one lock: a request takes from all that it wants, or from none, and what two requests see is never
//! the same room twice.

mod account;
mod accounts;

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use smallvec::SmallVec;

use self::accounts::{Accounts, Place};
use super::{Again, BudgetReading, Claim, Counters, Denied, Held, RateReading, Seed, Taken, Taking, Unseeded, Used, Wanted};
use crate::limits::Limit;

/// Every counter of one process. A counter is there from when it is first asked for. Those that are of no use are forgotten when there are
/// too many; a budget among them asks for a [`Seed`] again.
#[derive(Default)]
pub struct Memory {
    accounts: Mutex<Accounts>,
}

/// Where the accounts of some claims are.
type Places = SmallVec<[Place; 8]>;

impl Memory {
    /// Takes what is wanted, from all counters or from none.
    pub fn take(&self, wanted: &Wanted, now: Timestamp) -> Taking {
        let mut accounts = self.accounts.lock();
        let now = accounts.tick(now);
        accounts.tidy();
        let places = wanted.claims.iter().map(|claim| accounts.find_or_open(&claim.limit)).collect();
        Asked { accounts: &mut accounts, wanted, places, now }.take()
    }

    /// Holds what was taken elsewhere, whether it fits or not: it will be settled here.
    pub fn take_over(&self, held: &[Held]) {
        let mut accounts = self.accounts.lock();
        for Held { limit, amount, at } in held {
            let now = accounts.tick(*at);
            let place = accounts.find_or_open(limit);
            accounts[place].take(*amount, now);
        }
    }

    /// Tells budgets what was used in their windows before they were first asked. Of a window that is over, or a second time, it changes
    /// nothing.
    pub fn seed(&self, seeds: &[Seed]) {
        let mut accounts = self.accounts.lock();
        for seed in seeds {
            let Some(place) = accounts.find(&seed.of.limit) else { continue };
            if let Some(budget) = accounts[place].as_budget() {
                budget.seed(seed.of.since, seed.used);
            }
        }
    }

    /// How these budgets stand; those that nobody has asked, or that wait for their seed, are left out.
    pub fn read(&self, budgets: &[Arc<Limit>], now: Timestamp) -> Vec<BudgetReading> {
        let mut accounts = self.accounts.lock();
        let now = accounts.tick(now);
        let mut reading = |limit: &Arc<Limit>| {
            let place = accounts.find(limit)?;
            accounts[place].roll(&limit.id.what, now);
            accounts[place].as_budget()?.reading(limit)
        };
        budgets.iter().filter_map(&mut reading).collect()
    }
}

impl Counters for Memory {
    fn settle(&self, held: &[Held], used: &Used, now: Timestamp) {
        let mut accounts = self.accounts.lock();
        let now = accounts.tick(now);
        for Held { limit, amount, at } in held {
            let what = &limit.id.what;
            // An account that is gone comes back: what is not counted here might not be in its seed.
            let place = accounts.find_or_open(limit);
            accounts[place].roll(what, now);
            accounts[place].settle(*amount, used.of(what), *at, what, now);
        }
    }

    fn give_back(&self, held: &[Held]) {
        let mut accounts = self.accounts.lock();
        for Held { limit, amount, at } in held {
            if let Some(place) = accounts.find(limit) {
                accounts[place].give_back(*amount, *at, &limit.id.what);
            }
        }
    }
}

/// One request at the counters.
struct Asked<'a> {
    accounts: &'a mut Accounts,
    wanted: &'a Wanted,
    places: Places,
    now: Timestamp,
}

impl Asked<'_> {
    fn take(mut self) -> Taking {
        let unseeded = self.unseeded();
        if !unseeded.is_empty() {
            return Taking::Unseeded(unseeded);
        }
        let output = self.output();
        match self.in_the_way(output) {
            Some(denied) => Taking::Denied(denied),
            None => Taking::Taken(self.taken(output)),
        }
    }

    /// The budgets that do not know what was used in their windows. All windows are those of now afterwards.
    fn unseeded(&mut self) -> Vec<Unseeded> {
        let mut unseeded = Vec::new();
        for (claim, place) in self.wanted.claims.iter().zip(&self.places) {
            let account = &mut self.accounts[*place];
            account.roll(&claim.limit.id.what, self.now);
            if let Some(since) = account.as_budget().and_then(|budget| budget.unseeded()) {
                unseeded.push(Unseeded { limit: Arc::clone(&claim.limit), since });
            }
        }
        unseeded
    }

    /// The most tokens of output that fit into every budget; where that is too few to be of use, the fewest that are.
    fn output(&mut self) -> u64 {
        let mut output = self.wanted.output;
        for (claim, place) in self.wanted.claims.iter().zip(&self.places) {
            if !claim.forced
                && !claim.rough
                && let Some(budget) = self.accounts[*place].as_budget()
            {
                output = output.min(claim.output_within(budget.room(claim.limit.most)));
            }
        }
        output.max(self.wanted.least_output.min(self.wanted.output))
    }

    /// The first claim that does not fit, and when none is in the way.
    fn in_the_way(&mut self, output: u64) -> Option<Denied> {
        let mut first: Option<(&Claim, Place, Again)> = None;
        for (claim, place) in self.wanted.claims.iter().zip(&self.places).filter(|(claim, _)| !claim.forced) {
            let amount = self.must_fit(claim, output);
            if let Some(again) = self.accounts[*place].refuses(amount, claim.limit.most, self.now) {
                first = Some(first.map_or((claim, *place, again), |(claim, at, sooner)| (claim, at, sooner.or_later(again))));
            }
        }
        let (claim, place, again) = first?;
        let was_rough = claim.rough && self.may_fit(claim, place);
        Some(Denied { limit: Arc::clone(&claim.limit), again, was_rough, rates: self.rates() })
    }

    /// Whether anything fits at all, be the prompt as short as it may: else it need not be counted, which takes time.
    fn may_fit(&mut self, claim: &Claim, place: Place) -> bool {
        let least = Claim { fixed: 0, ..claim.clone() }.amount(self.wanted.least_output).max(1);
        self.accounts[place].refuses(least, claim.limit.most, self.now).is_none()
    }

    /// How much room there must be for a claim. What is roughly known is not lowered: first it is counted exactly.
    fn must_fit(&self, claim: &Claim, output: u64) -> u64 {
        let output = if claim.rough { self.wanted.output } else { output };
        claim.must_fit(output, self.wanted.margin)
    }

    fn taken(mut self, output: u64) -> Taken {
        let mut held = Vec::with_capacity(self.wanted.claims.len());
        for (claim, place) in self.wanted.claims.iter().zip(&self.places) {
            let amount = claim.amount(output);
            self.accounts[*place].take(amount, self.now);
            held.push(Held { limit: Arc::clone(&claim.limit), amount, at: self.now });
        }
        Taken { held, output, rates: self.rates() }
    }

    fn rates(&mut self) -> Vec<RateReading> {
        let mut rates = Vec::new();
        for (claim, place) in self.wanted.claims.iter().zip(&self.places) {
            if let Some(rate) = self.accounts[*place].as_rate() {
                let limit = Arc::clone(&claim.limit);
                let (remaining, reset) = (rate.remaining(limit.most, self.now), rate.reset(self.now));
                rates.push(RateReading { limit, remaining, reset });
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests;
