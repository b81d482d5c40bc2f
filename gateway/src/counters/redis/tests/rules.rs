//! One table of rules, for the counters of one process and for those that many share.

use std::fmt::Write as _;

use jiff::SignedDuration;
use toolgate_policies::counters::{Again, Counters, Held};

use super::*;

/// A moment: so many milliseconds after a midnight that begins a month.
fn at(ms: i64) -> Timestamp {
    "2026-10-01T00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_millis(ms)
}

const MINUTE: i64 = 60_000;

/// Something that happens at a moment, and what is seen of it.
enum Step {
    /// Take these from these limits.
    Take(i64, &'static [(usize, u64)], &'static str),
    /// The same, of this output at most and at least: each token of it adds so many thousandths to the first claim.
    Output(i64, (usize, u64, u64), [u64; 2], &'static str),
    /// The same as the first, roughly: it must fit so many times.
    Rough(i64, u64, (usize, u64), &'static str),
    /// Take these, whether they fit or not.
    Force(i64, (usize, u64), &'static str),
    /// Tell what was used before.
    Seed(u64),
    /// What was taken at the n-th taking becomes this much of everything.
    Settle(i64, usize, u64),
    /// It is given back.
    Give(usize),
    /// What is used and held.
    Read(i64, usize, &'static str),
}
use Step::{Force, Give, Output, Read, Rough, Settle, Take};

/// The limits of the table.
const DAY: usize = 0;
const MINUTELY: usize = 1;
const TOTAL: usize = 2;
const REQUESTS: usize = 3;
const TOKENS: usize = 4;
const PLACES: usize = 5;

fn limits() -> Vec<Arc<Limit>> {
    vec![
        limit(budget(Unit::Usd, Per::Day), 100),
        limit(budget(Unit::Tokens, Per::Minute), 100),
        limit(budget(Unit::Usd, Per::Total), 1000),
        limit(What::RequestRate, 3),
        limit(What::TokenRate, 100),
        limit(What::Concurrent, 2),
    ]
}

const RULES: &[(&str, &[Step])] = &[
    (
        "a budget asks for its seed, once",
        &[
            Take(0, &[(DAY, 10), (REQUESTS, 1)], "unseeded 0@0"),
            Take(1, &[(DAY, 10), (REQUESTS, 1)], "unseeded 0@0"),
            Read(1, DAY, "unknown"),
            Step::Seed(85),
            Take(2, &[(DAY, 10), (REQUESTS, 1)], "taken 10 1; left 2 in 60000"),
            Step::Seed(0),
            Read(3, DAY, "95: 85 and 10"),
            Take(3, &[(DAY, 10), (REQUESTS, 1)], "denied 0 until day; left 2 in 59999"),
        ],
    ),
    (
        "all is taken or nothing",
        &[
            Take(0, &[(DAY, 10)], "unseeded 0@0"),
            Step::Seed(0),
            Take(0, &[(DAY, 10), (TOKENS, 101)], "denied 4 never; left 100 in 0"),
            Read(0, DAY, "0: 0 and 0"),
            Take(0, &[(PLACES, 1), (TOKENS, 60), (DAY, 40)], "taken 1 60 40; left 40 in 60000"),
            Take(5, &[(PLACES, 1), (TOKENS, 41), (DAY, 10)], "denied 4 in 59995; left 40 in 59995"),
            Take(5, &[(PLACES, 1), (TOKENS, 40), (DAY, 10)], "taken 1 40 10; left 0 in 60000"),
            Take(5, &[(PLACES, 1), (TOKENS, 40), (DAY, 10)], "denied 5 when free; left 0 in 60000"),
            Take(5, &[(DAY, 51)], "denied 0 until day"),
            Take(5, &[(DAY, 101)], "denied 0 until day"),
            Give(1),
            Take(6, &[(PLACES, 1)], "taken 1"),
            Take(6, &[(DAY, 61)], "denied 0 until day"),
            Settle(6, 0, 7),
            Read(6, DAY, "7: 7 and 0"),
            Take(6, &[(TOKENS, 93)], "taken 93; left 0 in 60000"),
        ],
    ),
    (
        "nothing always fits",
        &[
            Take(0, &[(DAY, 0)], "unseeded 0@0"),
            Step::Seed(500),
            Take(0, &[(DAY, 0)], "taken 0"),
            Take(0, &[(DAY, 1)], "denied 0 until day"),
        ],
    ),
    (
        "a window ends, what is held stays",
        &[
            Take(MINUTE - 1, &[(MINUTELY, 60), (TOTAL, 60)], "unseeded 1@0 2@-"),
            Step::Seed(0),
            Take(MINUTE - 1, &[(MINUTELY, 60), (TOTAL, 60)], "taken 60 60"),
            Take(MINUTE - 1, &[(MINUTELY, 30)], "taken 30"),
            Settle(MINUTE - 1, 1, 25),
            Read(MINUTE - 1, MINUTELY, "85: 25 and 60"),
            Take(MINUTE, &[(MINUTELY, 41)], "denied 1 until minute 2"),
            Take(MINUTE, &[(MINUTELY, 40)], "taken 40"),
            Read(MINUTE, MINUTELY, "100: 0 and 100"),
            Settle(MINUTE, 0, 20),
            Read(MINUTE, MINUTELY, "60: 20 and 40"),
            Read(5 * MINUTE, MINUTELY, "40: 0 and 40"),
            Read(MINUTE, TOTAL, "20: 20 and 0"),
            Settle(5 * MINUTE, 2, 3),
            Read(5 * MINUTE, MINUTELY, "3: 3 and 0"),
        ],
    ),
    (
        "a settle begins a window as a take does",
        &[
            Take(0, &[(MINUTELY, 60)], "unseeded 1@0"),
            Step::Seed(30),
            Take(0, &[(MINUTELY, 60)], "taken 60"),
            Settle(MINUTE + 5, 0, 50),
            Read(MINUTE + 5, MINUTELY, "50: 50 and 0"),
            Take(MINUTE + 6, &[(MINUTELY, 51)], "denied 1 until minute 2"),
        ],
    ),
    (
        "a seed for a window that is over is none",
        &[
            Take(0, &[(MINUTELY, 1)], "unseeded 1@0"),
            Read(MINUTE, MINUTELY, "0: 0 and 0"),
            Take(MINUTE, &[(MINUTELY, 100)], "taken 100"),
            Step::Seed(50),
            Read(MINUTE, MINUTELY, "100: 0 and 100"),
        ],
    ),
    (
        "output is lowered to what fits",
        &[
            Take(0, &[(DAY, 10)], "unseeded 0@0"),
            Step::Seed(0),
            Output(0, (DAY, 50, 2500), [100, 10], "taken 100 of 20"),
            Give(0),
            Output(0, (DAY, 50, 2500), [20, 10], "taken 100 of 20"),
            Give(1),
            Output(0, (DAY, 74, 2499), [100, 10], "taken 99 of 10"),
            Give(2),
            Output(0, (DAY, 76, 2500), [100, 10], "denied 0 until day"),
            Output(0, (DAY, 76, 2500), [100, 9], "taken 99 of 9"),
            Give(3),
            Output(0, (DAY, 100, 1), [1000, 10], "taken 100 of 499"),
            Give(4),
            Output(0, (DAY, 76, 2500), [100, 100], "denied 0 until day"),
            Output(0, (DAY, 76, 2500), [5, 10], "taken 89 of 5"),
            Output(0, (TOKENS, 76, 2500), [100, 1], "denied 4 never; left 100 in 0"),
        ],
    ),
    (
        "what is roughly known must fit several times, and is not lowered",
        &[
            Take(0, &[(DAY, 10)], "unseeded 0@0"),
            Step::Seed(10),
            Rough(0, 3, (DAY, 31), "denied 0 until day, roughly"),
            Rough(0, 3, (DAY, 34), "denied 0 until day, roughly"),
            Rough(0, 3, (DAY, 30), "taken 30"),
            Take(0, &[(DAY, 60)], "taken 60"),
        ],
    ),
    (
        "a wait is long enough for every rate in the way",
        &[
            Take(0, &[(REQUESTS, 3)], "taken 3; left 0 in 60000"),
            Take(9000, &[(TOKENS, 100)], "taken 100; left 0 in 60000"),
            Take(10_000, &[(REQUESTS, 1), (TOKENS, 1)], "denied 3 in 59000; left 0 in 50000 0 in 59000"),
            Take(10_000, &[(TOKENS, 1), (REQUESTS, 1)], "denied 4 in 59000; left 0 in 59000 0 in 50000"),
            Take(10_000, &[(REQUESTS, 4), (TOKENS, 1)], "denied 3 never; left 0 in 50000 0 in 59000"),
            Take(10_000, &[(REQUESTS, 1), (TOKENS, 101)], "denied 3 in 50000; left 0 in 50000 0 in 59000"),
        ],
    ),
    (
        "what is forced is taken",
        &[
            Force(0, (TOKENS, 90), "taken 90; left 10 in 60000"),
            Force(1000, (TOKENS, 90), "taken 90; left 0 in 60000"),
            Take(2000, &[(TOKENS, 1)], "denied 4 in 58000; left 0 in 59000"),
            Take(60_000, &[(TOKENS, 11)], "denied 4 in 1000; left 10 in 1000"),
            Take(60_000, &[(TOKENS, 10)], "taken 10; left 0 in 60000"),
        ],
    ),
    (
        "case 35: no minute lets more than the limit through",
        &[
            Take(59_500, &[(REQUESTS, 1)], "taken 1; left 2 in 60000"),
            Take(59_999, &[(REQUESTS, 2)], "taken 2; left 0 in 60000"),
            Take(60_500, &[(REQUESTS, 1)], "denied 3 in 59499; left 0 in 59499"),
            Take(119_998, &[(REQUESTS, 1)], "denied 3 in 1; left 0 in 1"),
            Take(119_999, &[(REQUESTS, 3)], "taken 3; left 0 in 60000"),
            Take(300_000, &[(REQUESTS, 3)], "taken 3; left 0 in 60000"),
            Take(300_000, &[(REQUESTS, 4)], "denied 3 never; left 0 in 60000"),
        ],
    ),
    (
        "case 37: tokens of a rate are put right when they are known, a request is counted for good",
        &[
            Take(0, &[(TOKENS, 90), (REQUESTS, 1)], "taken 90 1; left 10 in 60000 2 in 60000"),
            Settle(100, 0, 30),
            Take(100, &[(TOKENS, 60), (REQUESTS, 1)], "taken 60 1; left 10 in 60000 1 in 60000"),
            Give(1),
            Take(200, &[(TOKENS, 1), (REQUESTS, 1)], "taken 1 1; left 69 in 60000 0 in 60000"),
            Settle(61_000, 2, 41),
            Take(61_000, &[(TOKENS, 61)], "denied 4 in 60000; left 60 in 60000"),
            Take(61_000, &[(TOKENS, 60)], "taken 60; left 0 in 60000"),
        ],
    ),
    (
        "a clock that goes back stands still",
        &[
            Take(MINUTE, &[(REQUESTS, 3)], "taken 3; left 0 in 60000"),
            Take(0, &[(REQUESTS, 1)], "denied 3 in 60000; left 0 in 60000"),
            Take(0, &[(MINUTELY, 1)], "unseeded 1@60000"),
            Take(2 * MINUTE, &[(REQUESTS, 1)], "taken 1; left 2 in 60000"),
        ],
    ),
    (
        "a counter that is nobody's yet",
        &[
            Read(0, DAY, "unknown"),
            Take(0, &[(PLACES, 2)], "taken 2"),
            Take(0, &[(PLACES, 1)], "denied 5 when free"),
            Give(0),
            Take(0, &[(PLACES, 1)], "taken 1"),
        ],
    ),
];

/// The table's player: counters, and what was taken from them.
struct Play {
    shelf: Shelf,
    limits: Vec<Arc<Limit>>,
    held: Vec<Vec<Held>>,
    unseeded: Vec<toolgate_policies::counters::Unseeded>,
}

impl Play {
    fn claims(&self, of: &[(usize, u64)]) -> Vec<Claim> {
        of.iter().map(|(limit, amount)| claim(&self.limits[*limit], *amount)).collect()
    }

    async fn step(&mut self, step: &Step) -> Option<(String, &'static str)> {
        match step {
            Take(at, claims, seen) => Some((self.take(*at, wanted(self.claims(claims))).await, seen)),
            Output(at, (limit, fixed, each), [output, least_output], seen) => {
                let claims = vec![Claim { each: *each, ..claim(&self.limits[*limit], *fixed) }];
                let wanted = Wanted { claims, output: *output, least_output: *least_output, margin: 1 };
                Some((self.take(*at, wanted).await, seen))
            }
            Rough(at, margin, of, seen) => {
                let claims = vec![Claim { rough: true, ..self.claims(&[*of]).remove(0) }];
                Some((self.take(*at, Wanted { margin: *margin, ..wanted(claims) }).await, seen))
            }
            Force(at, of, seen) => {
                let claims = vec![Claim { forced: true, ..self.claims(&[*of]).remove(0) }];
                Some((self.take(*at, wanted(claims)).await, seen))
            }
            Step::Seed(used) => {
                let seeds: Vec<_> = self.unseeded.iter().map(|of| Seed { of: of.clone(), used: *used }).collect();
                self.shelf.seed(&seeds).await.unwrap();
                None
            }
            Settle(when, taking, used) => {
                self.port().settle(&self.held[*taking], &Used { usd: *used, tokens: *used, requests: *used }, at(*when));
                None
            }
            Give(taking) => {
                self.port().give_back(&self.held[*taking]);
                None
            }
            Read(when, limit, seen) => {
                let readings = self.shelf.read(&[Arc::clone(&self.limits[*limit])], at(*when)).await.unwrap();
                let reading = readings.first();
                let of = |r: &BudgetReading| format!("{}: {} and {}", r.used + r.held, r.used, r.held);
                Some((reading.map_or("unknown".to_owned(), of), seen))
            }
        }
    }

    fn port(&self) -> Arc<dyn Counters> {
        self.shelf.port()
    }

    async fn take(&mut self, when: i64, wanted: Wanted) -> String {
        let mut seen = String::new();
        let index = |limit: &Arc<Limit>| self.limits.iter().position(|of| of == limit).unwrap();
        let rates = match self.shelf.take(&wanted, at(when)).await.unwrap() {
            Taking::Taken(taken) => {
                seen.push_str("taken");
                taken.held.iter().for_each(|held| write!(seen, " {}", held.amount).unwrap());
                if wanted.output > 0 {
                    write!(seen, " of {}", taken.output).unwrap();
                }
                self.held.push(taken.held);
                taken.rates
            }
            Taking::Denied(Denied { limit, again, was_rough, rates }) => {
                let again = match again {
                    Again::At(end) if end == at(24 * 60 * MINUTE) => "until day".to_owned(),
                    Again::At(end) => format!("until minute {}", (end.as_millisecond() - at(0).as_millisecond()) / MINUTE),
                    Again::After(wait) => format!("in {}", wait.as_millis()),
                    Again::WhenFree => "when free".to_owned(),
                    Again::Never => "never".to_owned(),
                };
                write!(seen, "denied {} {again}{}", index(&limit), if was_rough { ", roughly" } else { "" }).unwrap();
                rates
            }
            Taking::Unseeded(unseeded) => {
                seen.push_str("unseeded");
                for of in &unseeded {
                    let since = of.since.as_millisecond() - at(0).as_millisecond();
                    let since = if of.since == Timestamp::MIN { "-".to_owned() } else { since.to_string() };
                    write!(seen, " {}@{since}", index(&of.limit)).unwrap();
                }
                self.unseeded = unseeded;
                Vec::new()
            }
        };
        for (at, rate) in rates.iter().enumerate() {
            let before = if at == 0 { "; left" } else { "" };
            write!(seen, "{before} {} in {}", rate.remaining, rate.reset.as_millis()).unwrap();
        }
        seen
    }
}

async fn play(shelf: Shelf, name: &str, steps: &[Step]) {
    let mut play = Play { shelf, limits: limits(), held: Vec::new(), unseeded: Vec::new() };
    for (index, step) in steps.iter().enumerate() {
        if let Some((seen, right)) = play.step(step).await {
            assert_eq!(seen, right, "{name}: step {index}");
        }
    }
}

#[tokio::test]
async fn the_counters_of_one_process_keep_the_rules() {
    for (name, steps) in RULES {
        play(Shelf::Memory(Arc::default()), name, steps).await;
    }
}

#[tokio::test]
async fn the_counters_that_many_share_keep_the_same_rules() {
    let host = Host::start().await;
    for (name, steps) in RULES {
        host.command(&["FLUSHALL"]).await;
        play(Shelf::Redis(Arc::new(host.led(at(0)))), name, steps).await;
    }
}
