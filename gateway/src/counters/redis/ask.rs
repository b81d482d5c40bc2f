//! What requests ask the server, and what its answers mean.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;
use toolgate_policies::counters::{Again, BudgetReading, Claim, Denied, Held, RateReading, Taken, Taking, Unseeded, Wanted};
use toolgate_policies::limits::{CounterId, Limit, What};

use super::clock::{Clock, Windows};
use super::desk::Desk;
use super::keys;
use super::script::{Call, MOST, Script};
use super::told::{bounds, exact};

const BUDGET: i64 = 0;
const PLACES: i64 = 1;
const RATE: i64 = 2;

/// How often a question whose windows were not those of the server's time is asked again.
const TRIES: u8 = 4;

/// A question, and where its answer goes. One that is dropped without may be asked anew.
pub(super) enum Ask {
    /// Take what is wanted.
    Take(Take),
    /// Know what was used.
    Seed { seeds: Vec<Sown>, reply: oneshot::Sender<()> },
    /// Say how budgets stand.
    Read { budgets: Vec<Arc<Limit>>, now: Timestamp, reply: oneshot::Sender<Vec<BudgetReading>> },
    /// Be there.
    Ping { reply: oneshot::Sender<()> },
}

/// A taking.
pub(super) struct Take {
    /// What is wanted.
    pub wanted: Wanted,
    /// The time by this gateway's clock…
    pub now: Timestamp,
    /// …at this moment.
    pub since: Instant,
    /// How often it was asked.
    pub tries: u8,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Offer>,
}

/// What was used in a budget's window before it was opened at `opened`, in milliseconds since 1970.
pub(super) struct Sown {
    pub id: CounterId,
    pub since: Timestamp,
    pub opened: i64,
    pub used: u64,
}

/// What was taken, until somebody takes it over: a caller that has left meanwhile holds nothing.
pub(super) struct Offer {
    taking: Option<Taking>,
    desk: Arc<Desk>,
}

impl Offer {
    /// Takes it over.
    pub(super) fn accept(mut self) -> Option<Taking> {
        self.taking.take()
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(Taking::Taken(taken)) = &self.taking {
            self.desk.tell(&taken.held, None);
        }
    }
}

/// What an answer needs to be understood.
pub(super) struct Heard<'a> {
    /// Where things are written down.
    pub desk: &'a Arc<Desk>,
    /// The windows of the server's time.
    pub windows: &'a mut Windows,
    /// When the question was sent, and when the answer came.
    pub between: [Instant; 2],
}

impl Ask {
    /// Whether somebody still waits for the answer.
    pub(super) fn is_wanted(&self) -> bool {
        match self {
            Self::Take(take) => !take.reply.is_closed(),
            Self::Seed { .. } => true,
            Self::Read { reply, .. } => !reply.is_closed(),
            Self::Ping { reply } => !reply.is_closed(),
        }
    }

    /// The call that asks it.
    pub(super) fn call(&self, life: &str, clock: &Clock, windows: &mut Windows) -> Call {
        match self {
            Self::Take(take) => take.call(life, clock, windows),
            Self::Seed { seeds, .. } => {
                let mut call = Call::new(Script::Seed);
                for seed in seeds {
                    call.key(keys::used(&seed.id, life));
                    call.arguments([seed.since.as_millisecond(), seed.opened, exact(seed.used)]);
                }
                call
            }
            Self::Read { budgets, now, .. } => {
                let mut call = Call::new(Script::Read);
                for limit in budgets {
                    call.key(keys::used(&limit.id, life));
                    call.key(keys::held(&limit.id));
                    call.arguments([start(limit, windows, clock.there(*now))]);
                }
                call
            }
            Self::Ping { .. } => Call::new(Script::Renew),
        }
    }

    /// Gives the answer to whoever asked, or the question back, which is to be asked once more.
    pub(super) fn answer(self, numbers: &[i64], heard: &mut Heard<'_>) -> Option<Self> {
        match self {
            Self::Take(take) => return take.answer(numbers, heard).map(Self::Take),
            Self::Seed { reply, .. } | Self::Ping { reply } => drop(reply.send(())),
            Self::Read { budgets, now, reply } => {
                let now = heard.desk.clock.there(now);
                let standings = numbers.get(2..).unwrap_or_default().chunks_exact(2);
                let readings = budgets.iter().zip(standings).filter_map(|(limit, standing)| {
                    let used = u64::try_from(standing[0]).ok()?;
                    let held = u64::try_from(standing[1]).unwrap_or(0);
                    Some(BudgetReading { limit: Arc::clone(limit), used, held, resets: end(limit, heard.windows, now) })
                });
                drop(reply.send(readings.collect()));
            }
        }
        None
    }
}

impl Take {
    fn call(&self, life: &str, clock: &Clock, windows: &mut Windows) -> Call {
        let now = clock.there(self.now);
        let mut call = Call::new(Script::Take);
        let Wanted { claims, output, least_output, margin } = &self.wanted;
        call.arguments([tokens(*output), tokens(*least_output), exact((*margin).max(1))]);
        for claim in claims {
            let id = &claim.limit.id;
            let (kind, window) = match &id.what {
                What::Budget(_, per, zone) => {
                    call.key(keys::used(id, life));
                    call.key(keys::held(id));
                    (BUDGET, bounds(&windows.at(*per, zone, now)))
                }
                What::Concurrent => {
                    call.key(keys::held(id));
                    (PLACES, [0; 2])
                }
                What::RequestRate | What::TokenRate => {
                    call.key(keys::rate(id));
                    (RATE, [0; 2])
                }
            };
            call.arguments([kind, exact(claim.limit.most)]);
            call.arguments([exact(claim.fixed / 1000), exact(claim.fixed % 1000)]);
            call.arguments([exact(claim.each / 1000), exact(claim.each % 1000)]);
            call.arguments([claim.forced.into(), claim.rough.into()]);
            call.arguments(window);
        }
        call
    }

    fn answer(mut self, numbers: &[i64], heard: &mut Heard<'_>) -> Option<Self> {
        let [came, there, rest @ ..] = numbers else { return None };
        heard.desk.clock.learn(self.now, self.since, heard.between, *there);
        let at = Timestamp::from_microsecond(*there).unwrap_or(self.now);
        let taking = match came {
            0 => Taking::Taken(self.taken(rest, at)),
            1 => Taking::Denied(self.denied(rest, heard.windows, at)?),
            2 => Taking::Unseeded(self.unseeded(rest, heard, at)),
            _ => {
                self.tries += 1;
                return (self.tries < TRIES).then_some(self);
            }
        };
        if let Taking::Taken(taken) = &taking {
            heard.desk.hold(&taken.held);
        }
        // Whoever has left gives it back by not taking it over.
        drop(self.reply.send(Offer { taking: Some(taking), desk: Arc::clone(heard.desk) }));
        None
    }

    fn taken(&self, rest: &[i64], at: Timestamp) -> Taken {
        let output = rest.first().map_or(0, |output| count(*output));
        // It is not told how much more than this was wanted.
        let output = if output == count(tokens(self.wanted.output)) { self.wanted.output } else { output };
        let held = |claim: &Claim| {
            let amount = claim.amount(count(tokens(output))).min(MOST);
            Held { limit: Arc::clone(&claim.limit), amount, at }
        };
        let held = self.wanted.claims.iter().map(held).collect();
        Taken { held, output, rates: self.rates(rest.get(1..).unwrap_or_default()) }
    }

    fn denied(&self, rest: &[i64], windows: &mut Windows, at: Timestamp) -> Option<Denied> {
        let [index, wait, may_fit, rates @ ..] = rest else { return None };
        let claim = self.wanted.claims.get(usize::try_from(*index).ok()?)?;
        let again = match &claim.limit.id.what {
            What::Budget(..) => end(&claim.limit, windows, at).map_or(Again::Never, Again::At),
            _ if *wait < 0 => Again::Never,
            What::RequestRate | What::TokenRate => Again::After(Duration::from_millis(count(*wait))),
            What::Concurrent => Again::WhenFree,
        };
        Some(Denied { limit: Arc::clone(&claim.limit), again, was_rough: claim.rough && *may_fit == 1, rates: self.rates(rates) })
    }

    fn unseeded(&self, rest: &[i64], heard: &mut Heard<'_>, at: Timestamp) -> Vec<Unseeded> {
        let unseeded = rest.chunks_exact(2).filter_map(|of| {
            let claim = self.wanted.claims.get(usize::try_from(of[0]).ok()?)?;
            let What::Budget(_, per, zone) = &claim.limit.id.what else { return None };
            let since = heard.windows.at(*per, zone, at).start;
            heard.desk.opened(&claim.limit.id, since, of[1]);
            Some(Unseeded { limit: Arc::clone(&claim.limit), since })
        });
        unseeded.collect()
    }

    fn rates(&self, numbers: &[i64]) -> Vec<RateReading> {
        let limits = self.wanted.claims.iter().map(|claim| &claim.limit);
        let rates = limits.filter(|limit| matches!(limit.id.what, What::RequestRate | What::TokenRate));
        let readings = rates.zip(numbers.chunks_exact(2)).map(|(limit, numbers)| RateReading {
            limit: Arc::clone(limit),
            remaining: count(numbers[0]),
            reset: Duration::from_millis(count(numbers[1])),
        });
        readings.collect()
    }
}

/// When the window that a moment is in begins, in milliseconds.
fn start(limit: &Limit, windows: &mut Windows, now: Timestamp) -> i64 {
    match &limit.id.what {
        What::Budget(_, per, zone) => windows.at(*per, zone, now).start.as_millisecond(),
        What::RequestRate | What::TokenRate | What::Concurrent => 0,
    }
}

/// When it ends.
fn end(limit: &Limit, windows: &mut Windows, now: Timestamp) -> Option<Timestamp> {
    match &limit.id.what {
        What::Budget(_, per, zone) => windows.at(*per, zone, now).end,
        What::RequestRate | What::TokenRate | What::Concurrent => None,
    }
}

/// Tokens that a script can count with: beyond four thousand million, it does not matter how many.
fn tokens(count: u64) -> i64 {
    i64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
