//! The counters of one process, asked as requests ask them.

mod flood;
mod rules;
mod same_time;
mod whole;

use std::time::Duration;

use jiff::SignedDuration;
use toolgate_config::limit::{Per, Unit, Zone};
use toolgate_config::names::KeyName;

use super::*;
use crate::counters::{Again, Hold};
use crate::limits::{CounterId, Scope, What};

/// A moment of a test: so many milliseconds after a midnight.
fn ms(at: i64) -> Timestamp {
    "2026-10-08T00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_millis(at)
}

fn budget(unit: Unit, per: Per) -> What {
    What::Budget(unit, per, Zone::utc())
}

fn limit(what: What, most: u64) -> Arc<Limit> {
    Arc::new(Limit::new(CounterId { scope: Scope::Key(KeyName::new("shop")), what }, most))
}

/// A claim to so much, known exactly.
fn claim(limit: &Arc<Limit>, fixed: u64) -> Claim {
    Claim { limit: Arc::clone(limit), fixed: fixed.saturating_mul(1000), each: 0, forced: false, rough: false }
}

fn wanted(claims: impl Into<Vec<Claim>>) -> Wanted {
    Wanted { claims: claims.into(), output: 0, least_output: 0, margin: 1 }
}

fn taken(taking: Taking) -> Taken {
    match taking {
        Taking::Taken(taken) => taken,
        other => panic!("not taken: {other:?}"),
    }
}

fn denied(taking: Taking) -> Denied {
    match taking {
        Taking::Denied(denied) => denied,
        other => panic!("not denied: {other:?}"),
    }
}

fn unseeded(taking: Taking) -> Vec<Unseeded> {
    match taking {
        Taking::Unseeded(unseeded) => unseeded,
        other => panic!("seeded: {other:?}"),
    }
}

/// Counters of which these budgets know that so much was used.
fn seeded(budgets: &[(&Arc<Limit>, u64)], now: Timestamp) -> Arc<Memory> {
    let memory = Arc::new(Memory::default());
    let claims: Vec<Claim> = budgets.iter().map(|(limit, _)| claim(limit, 0)).collect();
    let of = unseeded(memory.take(&wanted(claims), now));
    let seeds: Vec<Seed> = of.into_iter().zip(budgets).map(|(of, (_, used))| Seed { of, used: *used }).collect();
    memory.seed(&seeds);
    memory
}

/// How a budget stands: used and held.
fn stands(memory: &Memory, budget: &Arc<Limit>, now: Timestamp) -> (u64, u64) {
    let reading = memory.read(std::slice::from_ref(budget), now).pop().expect("a budget that is known");
    (reading.used, reading.held)
}

fn usd(usd: u64) -> Used {
    Used { usd, tokens: 0, requests: 0 }
}

fn tokens(tokens: u64) -> Used {
    Used { usd: 0, tokens, requests: 0 }
}
