//! Names that come once and never again.

use std::ops::Range;

use super::super::accounts::{KEPT, MOST, PATIENCE};
use super::*;

fn of_user(user: &str, what: What) -> Arc<Limit> {
    let scope = Scope::User(KeyName::new("shop"), user.into());
    Arc::new(Limit::new(CounterId { scope, what }, 100))
}

fn accounts(memory: &Memory) -> usize {
    memory.accounts.lock().count()
}

/// The most accounts that there are while these users come, so many in a millisecond, each with these counters.
fn flood(memory: &Memory, users: Range<i64>, in_a_ms: i64, counters: &[What]) -> usize {
    let begin = ms(users.start);
    let come = |user: i64| {
        let limits = counters.iter().map(|what| of_user(&user.to_string(), what.clone()));
        let want = wanted(limits.map(|limit| claim(&limit, 1)).collect::<Vec<_>>());
        taken(memory.take(&want, begin + SignedDuration::from_millis((user - users.start) / in_a_ms)));
        accounts(memory)
    };
    users.clone().map(come).max().unwrap_or(0)
}

#[test]
fn a_million_names_keep_the_accounts_few() {
    let memory = Memory::default();
    let (key, user) = (limit(What::RequestRate, 100), of_user("ann", What::RequestRate));
    taken(memory.take(&wanted([claim(&key, 60), claim(&user, 60)]), ms(0)));

    // Faster than windows end: those of users are forgotten, and no others.
    let most = flood(&memory, 0..300_000, 10, &[What::RequestRate, What::TokenRate]);
    assert!(most > MOST && most < MOST * 5 / 4, "{most}");
    let rates = taken(memory.take(&wanted([claim(&key, 1), claim(&user, 1)]), ms(30_000))).rates;
    assert_eq!(rates.iter().map(|rate| rate.remaining).collect::<Vec<_>>(), [39, 99]);

    // Slower: there are few again, though nobody ever looks at all of them.
    flood(&memory, 300_000..900_000, 1, &[What::RequestRate]);
    let most = flood(&memory, 900_000..1_000_000, 1, &[What::RequestRate]);
    assert!(most > KEPT && most < KEPT * 5 / 4, "{most}");
}

#[test]
fn only_what_is_of_no_use_is_forgotten() {
    let memory = Memory::default();
    let (held, empty) = (of_user("ann", What::Concurrent), of_user("bob", What::Concurrent));
    let (busy, over) = (of_user("ann", What::RequestRate), of_user("bob", What::RequestRate));
    let (spent, fresh) = (of_user("ann", budget(Unit::Usd, Per::Day)), of_user("bob", budget(Unit::Usd, Per::Day)));
    let known = |limit: &Arc<Limit>| memory.accounts.lock().find(limit).is_some();
    let all = [&held, &empty, &busy, &over, &spent, &fresh];

    let of = unseeded(memory.take(&wanted([claim(&spent, 0)]), ms(0)));
    memory.seed(&[Seed { of: of[0].clone(), used: 0 }]);
    let before = taken(memory.take(&wanted([claim(&spent, 9), claim(&held, 1), claim(&over, 1), claim(&empty, 1)]), ms(0))).held;
    memory.settle(&[before[0].clone(), before[3].clone()], &usd(7), ms(0));
    let later = PATIENCE * 1000;
    taken(memory.take(&wanted([claim(&busy, 60)]), ms(later - 59_999)));
    unseeded(memory.take(&wanted([claim(&fresh, 1)]), ms(later - 1)));
    assert_eq!(all.map(known), [true; 6], "few enough");

    // Others come, enough for a look at every account.
    for user in 0..KEPT * 3 / 2 {
        taken(memory.take(&wanted([claim(&of_user(&user.to_string(), What::RequestRate), 1)]), ms(later)));
    }
    assert_eq!(all.map(known), [true, false, true, false, false, true]);
    assert_eq!(taken(memory.take(&wanted([claim(&held, 1), claim(&busy, 1)]), ms(later))).rates[0].remaining, 39);
    let of = unseeded(memory.take(&wanted([claim(&spent, 1)]), ms(later)));
    memory.seed(&[Seed { of: of[0].clone(), used: 7 }]);
    assert_eq!(stands(&memory, &spent, ms(later)), (7, 0));
}

#[test]
fn what_is_settled_after_its_account_was_forgotten_is_counted() {
    let (day, rate) = (of_user("ann", budget(Unit::Tokens, Per::Day)), of_user("ann", What::TokenRate));
    let held = [&day, &rate].map(|limit| Held { limit: Arc::clone(limit), amount: 0, at: ms(0) });
    let memory = Memory::default();
    memory.settle(&held, &tokens(30), ms(1000));
    let of = unseeded(memory.take(&wanted([claim(&day, 1)]), ms(1000)));
    memory.seed(&[Seed { of: of[0].clone(), used: 5 }]);
    assert_eq!(stands(&memory, &day, ms(1000)), (35, 0));
    assert_eq!(taken(memory.take(&wanted([claim(&rate, 1)]), ms(1000))).rates[0].remaining, 69);
}
