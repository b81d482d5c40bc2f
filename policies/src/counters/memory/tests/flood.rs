//! Names that come once and never again.

use super::super::accounts::{IDLE, KEPT};
use super::*;

fn of_user(user: &str, what: What) -> Arc<Limit> {
    let scope = Scope::User(KeyName::new("shop"), user.into());
    Arc::new(Limit { id: CounterId { scope, what }, most: 100 })
}

fn accounts(memory: &Memory) -> usize {
    memory.accounts.lock().len()
}

#[test]
fn a_million_names_keep_the_accounts_few() {
    let memory = Memory::default();
    let mut most = 0;
    for user in 0..1_000_000 {
        // A thousand a second: 120,000 names in the time for which an account must be kept.
        let want = wanted([claim(&of_user(&user.to_string(), What::RequestRate), 1)]);
        taken(memory.take(&want, ms(user)));
        most = most.max(accounts(&memory));
    }
    assert!(most > KEPT && most < 120_000 * 3 / 2, "{most}");
}

#[test]
fn only_what_is_idle_is_forgotten() {
    let memory = Memory::default();
    let (held, rate) = (of_user("ann", What::Concurrent), of_user("ann", What::RequestRate));
    let (spent, idle) = (of_user("ann", budget(Unit::Usd, Per::Day)), of_user("bob", What::Concurrent));
    let of = unseeded(memory.take(&wanted([claim(&spent, 1), claim(&held, 1)]), ms(0)));
    memory.seed(&[Seed { of: of[0].clone(), used: 0 }]);
    taken(memory.take(&wanted([claim(&held, 1)]), ms(0)));
    let settled = taken(memory.take(&wanted([claim(&spent, 9), claim(&idle, 1)]), ms(0))).held;
    memory.settle(&settled, &usd(7), ms(0));

    let later = IDLE * 1000;
    taken(memory.take(&wanted([claim(&rate, 60)]), ms(later - 1)));
    // Others come, enough for a look at every account.
    for user in 0..KEPT + KEPT / 2 {
        taken(memory.take(&wanted([claim(&of_user(&user.to_string(), What::RequestRate), 1)]), ms(later)));
    }
    let known = |limit: &Arc<Limit>| memory.accounts.lock().find(&limit.id).is_some();
    assert_eq!([&held, &rate, &spent, &idle].map(known), [true, true, false, false]);
    assert_eq!(taken(memory.take(&wanted([claim(&held, 1), claim(&rate, 1)]), ms(later))).rates[0].remaining, 39);
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
