//! Whatever happens, in whatever order: a gateway alone with a server counts as a process alone does.

use jiff::SignedDuration;
use proptest::prelude::*;
use toolgate_policies::counters::memory::Memory;
use toolgate_policies::counters::{Counters, Held};

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Take { claims: Vec<(usize, u64, u64)>, output: u64, least: u64, margin: u64, forced: bool, rough: bool },
    Seed(u64),
    Settle(usize, u64),
    Give(usize),
    Wait(i64),
    Read,
}

fn limits(case: u32) -> Vec<Arc<Limit>> {
    let key = case.to_string();
    let whats = [
        (budget(Unit::Usd, Per::Minute), 1000),
        (budget(Unit::Tokens, Per::Hour), 5000),
        (budget(Unit::Usd, Per::Total), 20_000),
        (What::RequestRate, 5),
        (What::TokenRate, 800),
        (What::Concurrent, 3),
    ];
    whats.into_iter().map(|(what, most)| limit_of(&key, what, most)).collect()
}

fn event() -> impl Strategy<Value = Event> {
    let claims = prop::collection::btree_map(0..6_usize, (prop_oneof![Just(1), 0..900_u64], 0..3000_u64), 1..5);
    let claims = claims.prop_map(|claims| claims.into_iter().map(|(limit, (fixed, each))| (limit, fixed, each)).collect());
    let take = (claims, 0..500_u64, 0..300_u64, 1..4_u64, prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    prop_oneof![
        6 => take.prop_map(|(claims, output, least, margin, forced, rough)| Event::Take { claims, output, least, margin, forced, rough }),
        3 => (0..900_u64).prop_map(Event::Seed),
        3 => (any::<usize>(), 0..1500_u64).prop_map(|(which, used)| Event::Settle(which, used)),
        1 => any::<usize>().prop_map(Event::Give),
        4 => prop_oneof![Just(1_i64), 0..2500_i64, 0..70_000_i64, Just(-1000_i64)].prop_map(Event::Wait),
        1 => Just(Event::Read),
    ]
}

/// What is to be compared: a time without what is finer than a microsecond.
fn shape(taking: &Taking) -> String {
    format!("{taking:?}")
}

struct Both {
    redis: Redis,
    memory: Memory,
    limits: Vec<Arc<Limit>>,
    held: Vec<Vec<Held>>,
    unseeded: Vec<toolgate_policies::counters::Unseeded>,
    now: Timestamp,
}

impl Both {
    async fn happens(&mut self, event: &Event) {
        match event {
            Event::Take { claims, output, least, margin, forced, rough } => {
                let claim = |(limit, fixed, each): &(usize, u64, u64)| Claim {
                    limit: Arc::clone(&self.limits[*limit]),
                    fixed: if *limit == 3 || *limit == 5 { 1000 } else { *fixed * 1000 + *each % 7 },
                    each: *each,
                    forced: *forced,
                    rough: *rough,
                };
                let claims = claims.iter().map(claim).collect();
                let wanted = Wanted { claims, output: *output, least_output: *least, margin: *margin };
                let there = self.redis.take(&wanted, self.now).await.unwrap();
                let here = self.memory.take(&wanted, self.now);
                assert_eq!(shape(&there), shape(&here), "{wanted:?}");
                match here {
                    Taking::Taken(taken) => self.held.push(taken.held),
                    Taking::Unseeded(unseeded) => self.unseeded = unseeded,
                    Taking::Denied(_) => {}
                }
            }
            Event::Seed(used) => {
                let seeds: Vec<_> = self.unseeded.drain(..).map(|of| Seed { of, used: *used }).collect();
                self.redis.seed(&seeds).await.unwrap();
                self.memory.seed(&seeds);
            }
            Event::Settle(which, used) if !self.held.is_empty() => {
                let held = self.held.swap_remove(which % self.held.len());
                let used = Used { usd: *used, tokens: *used, requests: 1 };
                self.redis.port().settle(&held, &used, self.now);
                // It is told before the clock moves on.
                self.redis.ping().await.unwrap();
                self.memory.settle(&held, &used, self.now);
            }
            Event::Give(which) if !self.held.is_empty() => {
                let held = self.held.swap_remove(which % self.held.len());
                self.redis.port().give_back(&held);
                self.redis.ping().await.unwrap();
                self.memory.give_back(&held);
            }
            Event::Settle(..) | Event::Give(_) => {}
            Event::Wait(ms) => self.now += SignedDuration::from_millis(*ms),
            Event::Read => {
                let there = self.redis.read(&self.limits[..3], self.now).await.unwrap();
                assert_eq!(there, self.memory.read(&self.limits[..3], self.now));
            }
        }
    }
}

#[test]
fn whatever_happens_both_count_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = runtime.block_on(Host::start());
    let case = AtomicU32::new(0);
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(events in prop::collection::vec(event(), 1..60))| {
        runtime.block_on(async {
            let now = "2026-10-01T00:00Z".parse::<Timestamp>().unwrap();
            let limits = limits(case.fetch_add(1, Ordering::Relaxed));
            let redis = host.led(now);
            let memory = Memory::default();
            memory.read(&[], now);
            let mut both = Both { redis, memory, limits, held: Vec::new(), unseeded: Vec::new(), now };
            for event in &events {
                both.happens(event).await;
            }
        });
    });
}
