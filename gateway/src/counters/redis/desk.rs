//! What requests and the courier share: the questions and messages that wait for the server, and what this gateway holds.
//!
//! A hold belongs to the gateway, not to the place where it is counted. When the server goes away the gateway's own counters take the holds
//! over, and when it is back, it does; so each can be given back here, wherever it was taken.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_config::store::OnCounterFailure;
use toolgate_policies::counters::memory::Memory;
use toolgate_policies::counters::{BudgetReading, Counters, Held, Seed, Taking, Used, Wanted};
use toolgate_policies::limits::{CounterId, Limit, What};

use super::ask::{Ask, Sown};
use super::clock::{Clock, Windows};
use super::told::{Told, put_together};
use crate::counters::Unreachable;

/// How many messages, and how many questions, go at once.
const BATCH: usize = 128;
/// As many messages wait for a server that is away before they are put together.
const WAITING: usize = 4096;
/// As many budgets may wait for their seeds.
const UNSEEDED: usize = 16_384;

/// Where questions and messages are laid down.
pub(super) struct Desk {
    /// The server's clock.
    pub clock: Clock,
    /// Wakes the courier.
    pub wake: Notify,
    on_failure: OnCounterFailure,
    state: Mutex<State>,
    decided_here: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Why the server is away; `None`: it is there.
    away: Option<Unreachable>,
    asks: VecDeque<Ask>,
    told: VecDeque<Told>,
    /// What this gateway holds of budgets and places, wherever that is counted.
    holds: HashMap<CounterId, Holding>,
    /// What is counted here while the server is away.
    local: Option<Local>,
    /// From when on what was taken of rates was taken under this gateway's present name.
    since: Option<Timestamp>,
    /// When budgets were opened that wait for their seeds.
    opened: HashMap<CounterId, (Timestamp, i64)>,
    windows: Windows,
    closing: bool,
}

struct Holding {
    limit: Arc<Limit>,
    amount: u64,
}

struct Local {
    counters: Memory,
    /// What was taken of rates up to here was taken in the server.
    since: Timestamp,
}

/// What waits for the server.
#[derive(Default)]
pub(super) struct Work {
    pub told: Vec<Told>,
    pub asks: Vec<Ask>,
}

/// Why there was nothing to wait for.
pub(super) enum Refused {
    /// The server is away, and nobody is let in without it.
    Away(Unreachable),
    /// The server is away, and the gateway counts for itself.
    Local,
}

impl Desk {
    /// An empty one.
    pub(super) fn new(clock: Clock, on_failure: OnCounterFailure) -> Self {
        Self { clock, wake: Notify::new(), on_failure, state: Mutex::default(), decided_here: AtomicU64::new(0) }
    }

    /// Lays a question down.
    pub(super) fn ask(&self, ask: Ask) -> Result<(), Refused> {
        let mut state = self.state.lock();
        match &state.away {
            Some(why) if state.local.is_none() => return Err(Refused::Away(why.clone())),
            Some(_) => return Err(Refused::Local),
            None => state.asks.push_back(ask),
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Lays down what became of holds; without `used`, they are given back.
    pub(super) fn tell(&self, held: &[Held], used: Option<(&Used, Timestamp)>) {
        let now = used.map_or_else(|| self.latest(), |(_, now)| self.clock.there(now));
        let mut state = self.state.lock();
        state.release(held);
        let State { windows, since, told, local, .. } = &mut *state;
        let nothing = Used::default();
        let used = used.map(|(used, _)| used);
        told.extend(Told::of(held, used.unwrap_or(&nothing), now, since.unwrap_or(Timestamp::MAX), windows));
        if let Some(local) = local {
            local.tell(held, used, now);
        }
        if state.away.is_some() && state.told.len() > WAITING {
            let all = std::mem::take(&mut state.told);
            state.told = put_together(all).into();
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Takes from the gateway's own counters; `None`: it is not on its own.
    pub(super) fn take_here(&self, wanted: &Wanted, now: Timestamp) -> Option<Taking> {
        let mut state = self.state.lock();
        let taking = state.local.as_ref()?.counters.take(wanted, self.clock.there(now));
        if let Taking::Taken(taken) = &taking {
            state.hold(&taken.held);
        }
        // A look at the budgets decides nothing.
        if wanted.claims.iter().any(|claim| claim.amount(wanted.output) > 0) {
            self.decided_here.fetch_add(1, Ordering::Relaxed);
        }
        Some(taking)
    }

    /// Tells the gateway's own counters what was used; whether it is on its own.
    pub(super) fn seed_here(&self, seeds: &[Seed]) -> bool {
        let state = self.state.lock();
        state.local.as_ref().inspect(|local| local.counters.seed(seeds)).is_some()
    }

    /// How budgets stand in the gateway's own counters; `None`: it is not on its own.
    pub(super) fn read_here(&self, budgets: &[Arc<Limit>], now: Timestamp) -> Option<Vec<BudgetReading>> {
        let state = self.state.lock();
        Some(state.local.as_ref()?.counters.read(budgets, self.clock.there(now)))
    }

    /// How many questions the gateway has decided on its own.
    pub(super) fn decided_here(&self) -> u64 {
        self.decided_here.load(Ordering::Relaxed)
    }

    /// A budget was opened, and waits for its seed.
    pub(super) fn opened(&self, id: &CounterId, since: Timestamp, opened: i64) {
        let mut state = self.state.lock();
        if state.opened.len() >= UNSEEDED {
            // Whoever waited for so long asks again.
            state.opened.clear();
        }
        state.opened.insert(id.clone(), (since, opened));
    }

    /// The seeds that were asked for.
    pub(super) fn sown(&self, seeds: &[Seed]) -> Vec<Sown> {
        let mut state = self.state.lock();
        let sown = seeds.iter().filter_map(|Seed { of, used }| {
            let id = &of.limit.id;
            let (_, opened) = state.opened.remove(id).filter(|(since, _)| *since == of.since)?;
            Some(Sown { id: id.clone(), since: of.since, opened, used: *used })
        });
        sown.collect()
    }

    /// This was taken.
    pub(super) fn hold(&self, held: &[Held]) {
        self.state.lock().hold(held);
    }

    /// What is to be sent now.
    pub(super) fn work(&self) -> Work {
        let mut state = self.state.lock();
        let told = state.told.len().min(BATCH);
        let mut work = Work { told: state.told.drain(..told).collect(), asks: Vec::new() };
        // A question comes after all that was told before it.
        if state.told.is_empty() {
            let asks = state.asks.len().min(BATCH);
            work.asks.extend(state.asks.drain(..asks).filter(Ask::is_wanted));
        }
        work
    }

    /// What was not done is still to be done, and before all else.
    pub(super) fn put_back(&self, work: Work) {
        let mut state = self.state.lock();
        for told in work.told.into_iter().rev() {
            state.told.push_front(told);
        }
        for ask in work.asks.into_iter().rev() {
            state.asks.push_front(ask);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Whether there is something to send.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.told.is_empty() && state.asks.is_empty()
    }

    /// How many messages wait.
    pub(super) fn untold(&self) -> usize {
        self.state.lock().told.len()
    }

    /// The server is about to count anew what this gateway holds, as it is at this moment: none of the messages that wait has to tell of it
    /// again. Questions wait for the server from now on.
    pub(super) fn count_anew(&self) -> Vec<(Arc<Limit>, u64)> {
        let mut state = self.state.lock();
        state.away = None;
        state.since = None;
        let told = std::mem::take(&mut state.told);
        state.told = told.into_iter().filter_map(Told::without_holds).collect();
        state.holds.values().map(|holding| (Arc::clone(&holding.limit), holding.amount)).collect()
    }

    /// The server counts from now on; whether the gateway was on its own until then.
    pub(super) fn come_back(&self, now: i64) -> bool {
        self.clock.hear_anew(now);
        let mut state = self.state.lock();
        state.since = Timestamp::from_microsecond(now).ok();
        state.local.take().is_some()
    }

    /// The server is away, and whoever waits for it need not.
    pub(super) fn go_away(&self, why: Unreachable) {
        let since = self.latest();
        let mut state = self.state.lock();
        if self.on_failure == OnCounterFailure::Local && state.local.is_none() {
            let counters = Memory::default();
            counters.take_over(&state.held(since));
            state.local = Some(Local { counters, since });
        }
        state.away = Some(why);
        state.asks.clear();
    }

    /// Why the server is away.
    pub(super) fn away(&self) -> Option<Unreachable> {
        self.state.lock().away.clone()
    }

    /// Whether the gateway counts for itself.
    #[cfg(test)]
    pub(super) fn is_alone(&self) -> bool {
        self.state.lock().local.is_some()
    }

    /// The courier shall deliver what there is, and go.
    pub(super) fn close(&self) {
        self.state.lock().closing = true;
        self.wake.notify_one();
    }

    /// Whether it shall.
    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    /// The latest that is known of the server's time.
    fn latest(&self) -> Timestamp {
        Timestamp::from_microsecond(self.clock.latest()).unwrap_or_default()
    }
}

impl Counters for Desk {
    fn settle(&self, held: &[Held], used: &Used, now: Timestamp) {
        self.tell(held, Some((used, now)));
    }

    fn give_back(&self, held: &[Held]) {
        self.tell(held, None);
    }
}

impl State {
    fn hold(&mut self, held: &[Held]) {
        for Held { limit, amount, .. } in held.iter().filter(|held| is_held(&held.limit) && held.amount > 0) {
            let new = || Holding { limit: Arc::clone(limit), amount: 0 };
            let holding = self.holds.entry(limit.id.clone()).or_insert_with(new);
            holding.amount = holding.amount.saturating_add(*amount);
        }
    }

    fn release(&mut self, held: &[Held]) {
        for Held { limit, amount, .. } in held {
            if let Some(holding) = self.holds.get_mut(&limit.id) {
                holding.amount = holding.amount.saturating_sub(*amount);
                if holding.amount == 0 {
                    self.holds.remove(&limit.id);
                }
            }
        }
    }

    fn held(&self, at: Timestamp) -> Vec<Held> {
        let held = |holding: &Holding| Held { limit: Arc::clone(&holding.limit), amount: holding.amount, at };
        self.holds.values().map(held).collect()
    }
}

impl Local {
    fn tell(&self, held: &[Held], used: Option<&Used>, now: Timestamp) {
        let of_here = |held: &&Held| is_held(&held.limit) || held.at > self.since;
        let held: Vec<_> = held.iter().filter(of_here).cloned().collect();
        match used {
            Some(used) => self.counters.settle(&held, used, now),
            None => self.counters.give_back(&held),
        }
    }
}

/// Whether what is taken of it is held until it is given back: a rate forgets by itself.
fn is_held(limit: &Limit) -> bool {
    matches!(limit.id.what, What::Budget(..) | What::Concurrent)
}
