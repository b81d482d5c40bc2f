//! The counters of one process, asked by a request with six limits on its path.

use std::sync::Arc;

use divan::{Bencher, black_box};
use jiff::{SignedDuration, Timestamp};
use toolgate_config::limit::{Per, Unit, Zone};
use toolgate_config::names::{KeyName, ModelName};
use toolgate_policies::counters::memory::Memory;
use toolgate_policies::counters::{Claim, Counters, Hold, Seed, Taking, Used, Wanted};
use toolgate_policies::limits::{CounterId, Limit, Scope, What};
use toolgate_policies::window::window;

/// Budgets of everybody, the model and the key, and the three rates of the key.
fn path() -> Vec<Arc<Limit>> {
    let zone = Zone::find("Europe/Berlin").unwrap_or_else(|| panic!("no zone"));
    let key = || Scope::Key(KeyName::new("shop"));
    let limits = [
        (Scope::Everybody, What::Budget(Unit::Usd, Per::Month, zone)),
        (Scope::Model(ModelName::new("support")), What::Budget(Unit::Usd, Per::Day, Zone::utc())),
        (key(), What::Budget(Unit::Tokens, Per::Day, Zone::utc())),
        (key(), What::RequestRate),
        (key(), What::TokenRate),
        (key(), What::Concurrent),
    ];
    limits.map(|(scope, what)| Arc::new(Limit::new(CounterId { scope, what }, u64::MAX / 2))).into()
}

fn wanted(path: &[Arc<Limit>]) -> Wanted {
    let claim =
        |limit: &Arc<Limit>| Claim { limit: Arc::clone(limit), fixed: 1_000_000, each: 600_000, forced: false, rough: true };
    Wanted { claims: path.iter().map(claim).collect(), output: 256, least_output: 256, margin: 1024 }
}

/// Counters that know what was used.
fn seeded(wanted: &Wanted, now: Timestamp) -> Arc<Memory> {
    let memory = Arc::new(Memory::default());
    if let Taking::Unseeded(unseeded) = memory.take(wanted, now) {
        memory.seed(&unseeded.into_iter().map(|of| Seed { of, used: 1 }).collect::<Vec<_>>());
    }
    memory
}

/// A moment, and the later ones: two thousand requests a second.
fn clock() -> impl FnMut() -> Timestamp {
    let mut now = Timestamp::UNIX_EPOCH;
    move || {
        now += SignedDuration::from_micros(500);
        now
    }
}

/// Takes from all six, and settles.
#[divan::bench]
fn take_and_settle_6_limits(bencher: Bencher) {
    let (wanted, mut now) = (wanted(&path()), clock());
    let memory = seeded(&wanted, now());
    bencher.bench_local(|| {
        let now = now();
        let Taking::Taken(taken) = memory.take(black_box(&wanted), now) else { panic!("not taken") };
        Hold::new(Arc::clone(&memory) as Arc<dyn Counters>, taken.held).settle(&Used { usd: 9, tokens: 9, requests: 1 }, now);
    });
}

/// Finds the window of a moment, which is done once a window.
#[divan::bench(args = [Per::Minute, Per::Day, Per::Month])]
fn find_window(bencher: Bencher, per: Per) {
    let zone = Zone::find("Europe/Berlin").unwrap_or_else(|| panic!("no zone"));
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000);
    bencher.bench(|| window(per, black_box(&zone), black_box(now)));
}
