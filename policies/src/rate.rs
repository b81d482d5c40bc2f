//! How much was taken in the last 60 seconds: a sliding window, so that no edge between two minutes lets twice the limit through.
//!
//! What was taken is kept in slots of one second, and a slot is forgotten 60 seconds after the last taking in it. So in no 60 seconds is
//! more taken than is allowed; all that is allowed may be taken at once; nobody waits for more than 60 seconds. A clock that goes back is
//! treated as standing still.

use std::time::Duration;

use jiff::Timestamp;

use crate::counters::Again;

/// For how long what was taken counts, in milliseconds.
const SPAN: i64 = 60_000;
/// One more than there are seconds: of the oldest, the later part may still count.
const SLOTS: usize = 61;

/// What was taken in the last 60 seconds. The limit is told with each question, so one that changes keeps what was taken.
#[derive(Clone, Debug)]
pub struct Rate {
    /// The latest moment that was spoken of, in milliseconds since 1970, as all moments here.
    now: i64,
    /// Of all slots together.
    sum: u64,
    /// What was taken in each second.
    amounts: [u32; SLOTS],
    /// The millisecond of the second in which something was last taken; in an empty slot it means nothing.
    latest: [u16; SLOTS],
}

impl Rate {
    /// One from which nothing was taken yet.
    pub fn new(now: Timestamp) -> Self {
        Self { now: now.as_millisecond(), sum: 0, amounts: [0; SLOTS], latest: [0; SLOTS] }
    }

    /// Whether this much can be taken, where at most `most` may be.
    pub fn fits(&mut self, amount: u64, most: u64, now: Timestamp) -> bool {
        self.slide(now);
        amount == 0 || self.sum.saturating_add(amount) <= most
    }

    /// Takes this much, whether it fits or not.
    pub fn take(&mut self, amount: u64, now: Timestamp) {
        self.slide(now);
        self.add(amount, self.now);
    }

    /// At `at`, `to` was used and not `from`. Where more was used, and `at` counts no longer, the rest counts from now on: a call that took
    /// long is not free.
    pub fn correct(&mut self, at: Timestamp, from: u64, to: u64, now: Timestamp) {
        self.slide(now);
        let at = at.as_millisecond().min(self.now);
        if to > from {
            self.add(to - from, if at + SPAN > self.now { at } else { self.now });
        } else if second(at) > second(self.now) - SLOTS as i64 {
            self.subtract(from - to, slot(second(at)));
        }
    }

    /// How long until this much fits, if nobody else takes anything: a minute at most.
    pub fn wait(&mut self, amount: u64, most: u64, now: Timestamp) -> Again {
        if self.fits(amount, most, now) {
            return Again::After(Duration::ZERO);
        }
        if amount > most {
            return Again::Never;
        }
        let mut excess = self.sum.saturating_add(amount) - most;
        let until = self.slots().find_map(|(forgotten, taken)| {
            excess = excess.saturating_sub(taken);
            (excess == 0).then_some(forgotten)
        });
        Again::After(self.until(until.unwrap_or(self.now + SPAN)))
    }

    /// How much is left of `most`.
    pub fn remaining(&mut self, most: u64, now: Timestamp) -> u64 {
        self.slide(now);
        most.saturating_sub(self.sum)
    }

    /// How long until all of it is there again, if nobody else takes anything.
    pub fn reset(&mut self, now: Timestamp) -> Duration {
        self.slide(now);
        let last = self.slots().rev().find(|(_, taken)| *taken > 0);
        last.map_or(Duration::ZERO, |(forgotten, _)| self.until(forgotten))
    }

    /// Whether nothing that was taken counts any more.
    pub fn is_empty(&mut self, now: Timestamp) -> bool {
        self.slide(now);
        self.sum == 0
    }

    /// Forgets what was taken 60 seconds ago, or earlier.
    fn slide(&mut self, now: Timestamp) {
        let (last, now) = (second(self.now), now.as_millisecond().max(self.now));
        self.now = now;
        if self.sum == 0 {
            return;
        }
        let this = second(now);
        for second in (last + 1..=this).take(SLOTS) {
            self.forget(slot(second));
        }
        let oldest = slot(this - 60);
        if i64::from(self.latest[oldest]) <= now.rem_euclid(1000) {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, slot: usize) {
        self.sum -= u64::from(self.amounts[slot]);
        self.amounts[slot] = 0;
    }

    fn add(&mut self, amount: u64, at: i64) {
        let (slot, millisecond) = (slot(second(at)), u16::try_from(at.rem_euclid(1000)).unwrap_or(0));
        let was = self.amounts[slot];
        self.amounts[slot] = was.saturating_add(u32::try_from(amount).unwrap_or(u32::MAX));
        self.sum += u64::from(self.amounts[slot] - was);
        // What stands in an empty slot is of a second long past.
        self.latest[slot] = if was == 0 { millisecond } else { self.latest[slot].max(millisecond) };
    }

    fn subtract(&mut self, amount: u64, slot: usize) {
        let less = u32::try_from(amount).unwrap_or(u32::MAX).min(self.amounts[slot]);
        self.amounts[slot] -= less;
        self.sum -= u64::from(less);
    }

    /// The slots from the oldest on: when each is forgotten, and what was taken in it.
    fn slots(&self) -> impl DoubleEndedIterator<Item = (i64, u64)> {
        let this = second(self.now);
        (this - 60..=this).map(|second| {
            let slot = slot(second);
            (second * 1000 + i64::from(self.latest[slot]) + SPAN, u64::from(self.amounts[slot]))
        })
    }

    fn until(&self, moment: i64) -> Duration {
        Duration::from_millis(u64::try_from(moment - self.now).unwrap_or(0))
    }
}

fn second(at: i64) -> i64 {
    at.div_euclid(1000)
}

/// Where a second is kept.
fn slot(second: i64) -> usize {
    usize::try_from(second.rem_euclid(SLOTS as i64)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
