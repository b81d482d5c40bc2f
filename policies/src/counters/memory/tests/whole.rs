//! What holds whatever many requests do, in any order: the counters beside a simple account of the same.

use proptest::prelude::*;

use super::*;
use crate::rate::Rate;
use crate::window::window;

/// The limits of a test: budgets whose windows end soon, later and never, and the rest.
fn limits() -> [Arc<Limit>; 6] {
    [
        limit(budget(Unit::Usd, Per::Minute), 100),
        limit(budget(Unit::Tokens, Per::Hour), 150),
        limit(budget(Unit::Usd, Per::Total), 300),
        limit(What::RequestRate, 5),
        limit(What::TokenRate, 120),
        limit(What::Concurrent, 3),
    ]
}

/// What happens, some time after the last thing.
#[derive(Clone, Debug)]
enum Does {
    /// A request asks of these limits, by their bits.
    Ask { of: u8, fixed: u64, each: u64, output: u64, least: u64 },
    /// A request that holds something has used this part of it, in hundredths.
    Settle(prop::sample::Index, u64),
    /// A request that holds something ends without having used it.
    Drop(prop::sample::Index),
    /// The process ends, with all that only it knew, and begins anew.
    Crash,
}

fn doings() -> impl Strategy<Value = Vec<(i64, Does)>> {
    let pause = prop_oneof![6 => 0..2000_i64, 1 => 0..70_000_i64, 1 => 0..4_000_000_i64];
    let ask = (1..64_u8, 0..40_u64, 0..2000_u64, 0..40_u64, 0..40_u64);
    let does = prop_oneof![
        15 => ask.prop_map(|(of, fixed, each, output, least)| Does::Ask { of, fixed, each, output, least }),
        9 => (any::<prop::sample::Index>(), 0..=100_u64).prop_map(|(which, part)| Does::Settle(which, part)),
        6 => any::<prop::sample::Index>().prop_map(Does::Drop),
        1 => Just(Does::Crash),
    ];
    prop::collection::vec((pause, does), 1..150)
}

/// One counter, the simple way.
enum Simple {
    /// What was used, and when; and what is held.
    Budget(Vec<(Timestamp, u64)>, u64),
    Rate(Box<Rate>),
    Concurrent(u64),
}

impl Simple {
    fn new(limit: &Limit, now: Timestamp) -> Self {
        match &limit.id.what {
            What::Budget(..) => Self::Budget(vec![(now, 20)], 0),
            What::RequestRate | What::TokenRate => Self::Rate(Box::new(Rate::new(now))),
            What::Concurrent => Self::Concurrent(0),
        }
    }

    /// What was used and what is held, of a budget.
    fn stands(&self, limit: &Limit, now: Timestamp) -> Option<(u64, u64)> {
        let (Self::Budget(used, held), What::Budget(_, per, zone)) = (self, &limit.id.what) else { return None };
        let start = window(*per, zone, now).start;
        Some((used.iter().filter(|(at, _)| *at >= start).map(|(_, used)| used).sum(), *held))
    }

    fn fits(&mut self, amount: u64, limit: &Limit, now: Timestamp) -> bool {
        match self {
            Self::Budget(..) => self.stands(limit, now).is_some_and(|(used, held)| used + held + amount <= limit.most),
            Self::Rate(rate) => rate.fits(amount, limit.most, now),
            Self::Concurrent(held) => *held + amount <= limit.most,
        }
    }

    fn take(&mut self, amount: u64, now: Timestamp) {
        match self {
            Self::Budget(_, held) | Self::Concurrent(held) => *held += amount,
            Self::Rate(rate) => rate.take(amount, now),
        }
    }

    fn end(&mut self, held: &Held, used: u64, now: Timestamp) {
        match self {
            Self::Budget(all, holds) => {
                *holds -= held.amount;
                all.push((now, used));
            }
            Self::Rate(rate) if held.limit.id.what == What::TokenRate => rate.correct(held.at, held.amount, used, now),
            Self::Rate(_) => {}
            Self::Concurrent(holds) => *holds -= held.amount,
        }
    }

    fn crash(&mut self, now: Timestamp) {
        match self {
            Self::Budget(_, held) | Self::Concurrent(held) => *held = 0,
            Self::Rate(rate) => **rate = Rate::new(now),
        }
    }
}

struct World {
    memory: Arc<Memory>,
    limits: [Arc<Limit>; 6],
    simple: Vec<Simple>,
    holds: Vec<(Hold, Vec<Held>)>,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let limits = limits();
        let simple = limits.iter().map(|limit| Simple::new(limit, ms(0))).collect();
        Self { memory: Arc::default(), limits, simple, holds: Vec::new(), now: ms(0) }
    }

    fn step(&mut self, does: Does) -> Result<(), TestCaseError> {
        match does {
            Does::Ask { of, fixed, each, output, least } => {
                let (bits, limits) = (0..6, &self.limits);
                let of = bits.filter(|bit| of & (1 << bit) != 0).map(|bit| &limits[bit]);
                let claims = of.map(|limit| match limit.id.what {
                    What::Budget(..) => Claim { each, ..claim(limit, fixed) },
                    What::TokenRate => claim(limit, fixed),
                    What::RequestRate | What::Concurrent => claim(limit, 1),
                });
                let want = Wanted { claims: claims.collect(), output, least_output: least, margin: 1 };
                self.ask(&want)?;
            }
            Does::Settle(which, part) if !self.holds.is_empty() => self.settle(which.index(self.holds.len()), part),
            Does::Drop(which) if !self.holds.is_empty() => {
                let (hold, held) = self.holds.swap_remove(which.index(self.holds.len()));
                self.end(&held, &Used::default());
                drop(hold);
            }
            Does::Crash => {
                self.memory = Arc::default();
                self.simple.iter_mut().for_each(|simple| simple.crash(self.now));
                self.holds.clear();
            }
            Does::Settle(..) | Does::Drop(_) => {}
        }
        Ok(())
    }

    fn settle(&mut self, which: usize, part: u64) {
        let (hold, held) = self.holds.swap_remove(which);
        let of = |unit| {
            let of_unit = |held: &&Held| matches!(held.limit.id.what, What::Budget(of, ..) if of == unit);
            held.iter().find(of_unit).map_or(0, |held| held.amount * part / 100)
        };
        let used = Used { usd: of(Unit::Usd), tokens: of(Unit::Tokens), requests: 1 };
        self.end(&held, &used);
        hold.settle(&used, self.now);
    }

    fn end(&mut self, held: &[Held], used: &Used) {
        for held in held {
            let place = self.place(&held.limit);
            self.simple[place].end(held, used.of(&held.limit.id.what), self.now);
        }
    }

    fn place(&self, limit: &Arc<Limit>) -> usize {
        self.limits.iter().position(|other| other == limit).unwrap()
    }

    fn ask(&mut self, want: &Wanted) -> Result<(), TestCaseError> {
        let (output, first) = self.expected(want);
        match self.take(want) {
            Taking::Taken(taken) => {
                prop_assert_eq!((taken.output, None), (output, first));
                for held in &taken.held {
                    let place = self.place(&held.limit);
                    self.simple[place].take(held.amount, self.now);
                }
                self.holds.push((Hold::new(Arc::clone(&self.memory) as Arc<dyn Counters>, taken.held.clone()), taken.held));
                self.rates(&taken.rates)
            }
            Taking::Denied(denied) => {
                prop_assert_eq!(Some(self.place(&denied.limit)), first);
                self.rates(&denied.rates)
            }
            Taking::Unseeded(_) => unreachable!(),
        }
    }

    /// Asks, and tells what is not known as a ledger would.
    fn take(&self, want: &Wanted) -> Taking {
        let unseeded = match self.memory.take(want, self.now) {
            Taking::Unseeded(unseeded) => unseeded,
            done => return done,
        };
        let used = |of: &Unseeded| self.simple[self.place(&of.limit)].stands(&of.limit, self.now).unwrap().0;
        let seeds: Vec<Seed> = unseeded.into_iter().map(|of| Seed { used: used(&of), of }).collect();
        self.memory.seed(&seeds);
        self.memory.take(want, self.now)
    }

    /// The output that fits, and the limit that does not: found by trying.
    fn expected(&mut self, want: &Wanted) -> (u64, Option<usize>) {
        let (least, now) = (want.least_output.min(want.output), self.now);
        let mut misfit = |output, of: fn(&What) -> bool| {
            let claims = want.claims.iter().filter(|claim| of(&claim.limit.id.what));
            let mut places = claims.map(|claim| (claim, self.limits.iter().position(|limit| *limit == claim.limit).unwrap()));
            places
                .find(|(claim, place)| !self.simple[*place].fits(claim.amount(output), &claim.limit, now))
                .map(|(_, place)| place)
        };
        let is_budget = |what: &What| matches!(what, What::Budget(..));
        let output = (least..=want.output).rev().find(|output| misfit(*output, is_budget).is_none()).unwrap_or(least);
        (output, misfit(output, |_| true))
    }

    fn rates(&mut self, readings: &[RateReading]) -> Result<(), TestCaseError> {
        for RateReading { limit, remaining, reset } in readings {
            let place = self.place(limit);
            let Simple::Rate(rate) = &mut self.simple[place] else { panic!("{limit:?} is no rate") };
            prop_assert_eq!((*remaining, *reset), (rate.remaining(limit.most, self.now), rate.reset(self.now)));
        }
        Ok(())
    }

    /// Every budget that is known stands as it should, and within its limit.
    fn check(&self) -> Result<(), TestCaseError> {
        for reading in self.memory.read(&self.limits, self.now) {
            let right = self.simple[self.place(&reading.limit)].stands(&reading.limit, self.now);
            prop_assert_eq!(Some((reading.used, reading.held)), right, "{:?}", reading);
            prop_assert!(reading.used + reading.held <= reading.limit.most, "{:?}", reading);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_order_of_asking_settling_and_dropping_keeps_used_and_held_within_the_limit(doings in doings()) {
        let mut world = World::new();
        for (pause, does) in doings {
            world.now += SignedDuration::from_millis(pause);
            world.step(does)?;
            world.check()?;
        }
        for _ in 0..world.holds.len() {
            world.settle(0, 100);
        }
        world.check()?;
        prop_assert!(world.memory.read(&world.limits, world.now).iter().all(|reading| reading.held == 0));
    }
}
