//! What is counted under one name: of a budget, a rate, or the places of those that are there at the same time.

use std::sync::Arc;

use jiff::Timestamp;

use crate::counters::{Again, BudgetReading};
use crate::limits::{Limit, What};
use crate::rate::Rate;
use crate::window::{Window, window};

/// The count of one counter.
#[derive(Debug)]
pub(super) enum Account {
    Budget(Budget),
    /// By far the largest, and most scopes have none.
    Rate(Box<Rate>),
    Concurrent(Concurrent),
}

/// What was used in a window, and what is held for calls under way. Holds are not windowed: a call is counted in the window in which it is
/// settled.
#[derive(Debug)]
pub(super) struct Budget {
    window: Window,
    /// What was used before the first ask; `None`: nobody has said so yet.
    base: Option<u64>,
    /// What was used since.
    used: u64,
    held: u64,
}

/// How many are there.
#[derive(Debug)]
pub(super) struct Concurrent {
    held: u64,
}

impl Account {
    /// One of which nothing was taken.
    pub(super) fn open(what: &What, now: Timestamp) -> Self {
        match what {
            What::Budget(_, per, zone) => Self::Budget(Budget { window: window(*per, zone, now), base: None, used: 0, held: 0 }),
            What::RequestRate | What::TokenRate => Self::Rate(Box::new(Rate::new(now))),
            What::Concurrent => Self::Concurrent(Concurrent { held: 0 }),
        }
    }

    /// Begins the window of now, where a budget's is over.
    pub(super) fn roll(&mut self, what: &What, now: Timestamp) {
        if let (Self::Budget(budget), What::Budget(_, per, zone)) = (self, what)
            && budget.window.is_over(now)
        {
            // All that is used in this window is seen: nothing of it was before the first ask.
            (budget.window, budget.base, budget.used) = (window(*per, zone, now), Some(0), 0);
        }
    }

    /// When to come again with an amount that does not fit; `None`: it fits, as nothing always does.
    pub(super) fn refuses(&mut self, amount: u64, most: u64, now: Timestamp) -> Option<Again> {
        let fits = match self {
            Self::Budget(budget) => amount <= budget.room(most),
            Self::Rate(rate) => rate.fits(amount, most, now),
            Self::Concurrent(concurrent) => amount <= most.saturating_sub(concurrent.held),
        };
        if fits || amount == 0 {
            return None;
        }
        Some(match self {
            Self::Budget(budget) => budget.window.end.map_or(Again::Never, Again::At),
            _ if amount > most => Again::Never,
            Self::Rate(rate) => rate.wait(amount, most, now),
            Self::Concurrent(_) => Again::WhenFree,
        })
    }

    /// Takes an amount, whether it fits or not.
    pub(super) fn take(&mut self, amount: u64, now: Timestamp) {
        match self {
            Self::Budget(Budget { held, .. }) | Self::Concurrent(Concurrent { held }) => *held = held.saturating_add(amount),
            Self::Rate(rate) => rate.take(amount, now),
        }
    }

    /// Puts what was used in the place of what was taken at `at`.
    pub(super) fn settle(&mut self, taken: u64, used: u64, at: Timestamp, what: &What, now: Timestamp) {
        match self {
            Self::Budget(budget) => {
                budget.held = budget.held.saturating_sub(taken);
                budget.used = budget.used.saturating_add(used);
            }
            Self::Rate(rate) if *what == What::TokenRate => rate.correct(at, taken, used, now),
            Self::Rate(_) => {}
            Self::Concurrent(concurrent) => concurrent.held = concurrent.held.saturating_sub(taken),
        }
    }

    /// Gives back what was taken at `at`; a request of a request rate was made all the same.
    pub(super) fn give_back(&mut self, taken: u64, at: Timestamp, what: &What) {
        self.settle(taken, 0, at, what, at);
    }

    pub(super) fn as_budget(&mut self) -> Option<&mut Budget> {
        if let Self::Budget(budget) = self { Some(budget) } else { None }
    }

    pub(super) fn as_rate(&mut self) -> Option<&mut Rate> {
        if let Self::Rate(rate) = self { Some(rate) } else { None }
    }
}

impl Budget {
    /// How much more can be taken, where at most `most` may be.
    pub(super) fn room(&self, most: u64) -> u64 {
        most.saturating_sub(self.used()).saturating_sub(self.held)
    }

    /// Whether something is held for calls under way.
    pub(super) fn is_held(&self) -> bool {
        self.held > 0
    }

    /// Since when it does not know what was used.
    pub(super) fn unseeded(&self) -> Option<Timestamp> {
        self.base.is_none().then_some(self.window.start)
    }

    /// Tells it what was used in the window that began then.
    pub(super) fn seed(&mut self, since: Timestamp, used: u64) {
        if self.window.start == since && self.base.is_none() {
            self.base = Some(used);
        }
    }

    pub(super) fn reading(&self, limit: &Arc<Limit>) -> Option<BudgetReading> {
        self.base?;
        Some(BudgetReading { limit: Arc::clone(limit), used: self.used(), held: self.held, resets: self.window.end })
    }

    fn used(&self) -> u64 {
        self.base.unwrap_or(0).saturating_add(self.used)
    }
}

impl Concurrent {
    /// Whether anybody is there.
    pub(super) fn is_held(&self) -> bool {
        self.held > 0
    }
}
