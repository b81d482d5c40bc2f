//! What became of holds, on its way to the server.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;
use toolgate_policies::counters::{Held, Used};
use toolgate_policies::limits::{CounterId, Limit, What};
use toolgate_policies::window::Window;

use super::clock::{Clock, Windows};
use super::keys;
use super::script::{Call, MOST, Script};

const BUDGET: i64 = 0;
const PLACES: i64 = 1;
const RATE: i64 = 2;

/// What became of the holds of one call.
pub(super) struct Told {
    /// When it was told.
    at: Instant,
    lines: Vec<Line>,
}

/// What became of one hold.
struct Line {
    limit: Arc<Limit>,
    change: Change,
}

enum Change {
    /// What was held of a budget is free, and this much was used in a window.
    Used { free: u64, used: u64, window: Window },
    /// Places are free.
    Free(u64),
    /// More was used of a rate than was taken, or less.
    Corrected { at: Timestamp, more: i64 },
}

impl Told {
    /// What is to be told of these holds; `None`: nothing. `used`: nothing where they are given back. Of a rate, what was taken before `since`
    /// was taken elsewhere, and is never given back here.
    pub(super) fn of(held: &[Held], used: &Used, now: Timestamp, since: Timestamp, windows: &mut Windows) -> Option<Self> {
        let lines = held.iter().filter_map(|held| Line::of(held, used, now, windows)).filter(|line| line.says_something(since));
        let lines: Vec<_> = lines.collect();
        (!lines.is_empty()).then(|| Self { at: Instant::now(), lines })
    }

    /// All holds were counted anew since: only what was used is left to be told. `None`: nothing.
    pub(super) fn without_holds(mut self) -> Option<Self> {
        self.lines.retain_mut(Line::forget_hold);
        (!self.lines.is_empty()).then_some(self)
    }

    /// The call that tells it, as the message of this number.
    pub(super) fn call(&self, number: i64, gateway: &str, life: &str, clock: &Clock) -> Call {
        let mut call = Call::new(Script::Settle);
        call.key(keys::counted(gateway));
        call.arguments([number, clock.ago(self.at)]);
        for Line { limit, change } in &self.lines {
            match change {
                Change::Used { free, used, window } => {
                    call.key(keys::used(&limit.id, life));
                    call.key(keys::held(&limit.id));
                    let [start, end] = bounds(window);
                    call.arguments([BUDGET, exact(*free), exact(*used), start, end]);
                }
                Change::Free(places) => {
                    call.key(keys::held(&limit.id));
                    call.arguments([PLACES, exact(*places), 0, 0, 0]);
                }
                Change::Corrected { at, more } => {
                    call.key(keys::rate(&limit.id));
                    call.arguments([RATE, at.as_millisecond(), *more, 0, 0]);
                }
            }
        }
        call
    }
}

impl Line {
    fn of(held: &Held, used: &Used, now: Timestamp, windows: &mut Windows) -> Option<Self> {
        let Held { limit, amount, at } = held;
        let used = used.of(&limit.id.what);
        let change = match &limit.id.what {
            What::Budget(_, per, zone) => Change::Used { free: *amount, used, window: windows.at(*per, zone, now) },
            What::Concurrent => Change::Free(*amount),
            What::TokenRate => Change::Corrected { at: *at, more: exact(used) - exact(*amount) },
            What::RequestRate => return None,
        };
        Some(Self { limit: Arc::clone(limit), change })
    }

    fn says_something(&self, since: Timestamp) -> bool {
        match self.change {
            Change::Used { free, used, .. } => free > 0 || used > 0,
            Change::Free(places) => places > 0,
            Change::Corrected { at, more } => more > 0 || (more < 0 && at >= since),
        }
    }

    /// Whether something is left.
    fn forget_hold(&mut self) -> bool {
        match &mut self.change {
            Change::Used { free, used, .. } => {
                *free = 0;
                *used > 0
            }
            Change::Free(_) => false,
            Change::Corrected { more, .. } => *more > 0,
        }
    }
}

/// When a window begins and ends, in milliseconds; 0: never.
pub(super) fn bounds(window: &Window) -> [i64; 2] {
    [window.start.as_millisecond(), window.end.map_or(0, Timestamp::as_millisecond)]
}

/// A number that a script can count with.
pub(super) fn exact(count: u64) -> i64 {
    i64::try_from(count.min(MOST)).unwrap_or(0)
}

/// How many lines one message holds when many are put together.
const TOGETHER: usize = 256;

/// Puts messages together that wait for a server that has been away for long: of each budget's window one sum, which counts as told with the
/// latest. What rates have to hear is a matter of seconds, and is dropped.
pub(super) fn put_together(all: impl IntoIterator<Item = Told>) -> Vec<Told> {
    let mut latest = None;
    let mut sums: HashMap<(CounterId, Timestamp), Line> = HashMap::new();
    for told in all {
        latest = latest.max(Some(told.at));
        for line in told.lines {
            let Change::Used { used: more @ 1.., window, .. } = line.change else { continue };
            let sum = sums.entry((line.limit.id.clone(), window.start));
            let nothing = || Line { limit: line.limit, change: Change::Used { free: 0, used: 0, window } };
            if let Change::Used { used, .. } = &mut sum.or_insert_with(nothing).change {
                *used = used.saturating_add(more);
            }
        }
    }
    let mut all: Vec<Told> = Vec::new();
    for line in sums.into_values() {
        match all.last_mut().filter(|told| told.lines.len() < TOGETHER) {
            Some(told) => told.lines.push(line),
            None => all.push(Told { at: latest.unwrap_or_else(Instant::now), lines: vec![line] }),
        }
    }
    all
}
