//! Many at the same time: what one takes, no other gets.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// How many of `requests` that ask at the same moment are let in; `then` is what each of those does.
fn let_in(memory: &Arc<Memory>, want: &Wanted, requests: usize, then: impl Fn(Vec<Held>) + Sync) -> usize {
    let (begin, taken) = (Barrier::new(requests), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..requests {
            scope.spawn(|| {
                begin.wait();
                if let Taking::Taken(took) = memory.take(want, ms(0)) {
                    taken.fetch_add(1, Ordering::Relaxed);
                    then(took.held);
                }
            });
        }
    });
    taken.into_inner()
}

#[test]
fn of_200_at_once_100_are_let_in_where_there_is_room_for_100() {
    let kinds = [
        limit(budget(Unit::Usd, Per::Day), 1000),
        limit(budget(Unit::Tokens, Per::Total), 1009),
        limit(What::TokenRate, 1000),
        limit(What::Concurrent, 1000),
    ];
    for tight in kinds {
        let wide = limit(budget(Unit::Requests, Per::Month), 1_000_000);
        let memory = seeded(&[(&wide, 0)], ms(0));
        if let What::Budget(..) = tight.id.what {
            let of = unseeded(memory.take(&wanted([claim(&tight, 1)]), ms(0)));
            memory.seed(&[Seed { of: of[0].clone(), used: 0 }]);
        }
        assert_eq!(let_in(&memory, &wanted([claim(&wide, 1), claim(&tight, 10)]), 200, drop), 100, "{tight:?}");
        assert_eq!(stands(&memory, &wide, ms(0)), (0, 100), "those that were refused hold nothing");
    }
}

#[test]
fn case_31_no_two_requests_see_the_same_free_budget() {
    // A dollar, and each of 50 costs ten cents; what it really costs is known when all have asked.
    let dollar = limit(budget(Unit::Usd, Per::Day), 1_000_000_000);
    let memory = seeded(&[(&dollar, 0)], ms(0));
    let want = wanted([claim(&dollar, 100_000_000)]);
    let holds = Mutex::new(Vec::new());
    assert_eq!(let_in(&memory, &want, 50, |held| holds.lock().push(held)), 10);

    // Half of them are cancelled, and give their share back; the others cost nine cents.
    let (cancelled, done): (Vec<_>, Vec<_>) = holds.into_inner().into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    cancelled.into_iter().for_each(|(_, held)| memory.give_back(&held));
    done.into_iter().for_each(|(_, held)| memory.settle(&held, &usd(90_000_000), ms(200)));
    assert_eq!(stands(&memory, &dollar, ms(200)), (450_000_000, 0));

    // A run of six rounds at thirty cents is stopped before the one that would exceed.
    let round = wanted([claim(&dollar, 300_000_000)]);
    memory.settle(&taken(memory.take(&round, ms(300))).held, &usd(300_000_000), ms(400));
    assert_eq!(denied(memory.take(&round, ms(500))).limit, dollar);
    assert_eq!(stands(&memory, &dollar, ms(500)), (750_000_000, 0));
}

#[test]
fn of_many_that_come_and_go_no_more_than_the_limit_is_there_at_the_same_time() {
    let (busy, there, most) = (limit(What::Concurrent, 7), AtomicUsize::new(0), AtomicUsize::new(0));
    let memory = Arc::new(Memory::default());
    let want = wanted([claim(&busy, 1)]);
    let stay = |held: Vec<Held>| {
        most.fetch_max(1 + there.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        std::thread::yield_now();
        there.fetch_sub(1, Ordering::SeqCst);
        memory.give_back(&held);
    };
    let let_in: usize = (0..20).map(|_| let_in(&memory, &want, 30, stay)).sum();
    assert!(let_in >= 20 * 7 && most.into_inner() <= 7);
    assert_eq!(denied(memory.take(&wanted([claim(&busy, 8)]), ms(0))).again, Again::Never);
    taken(memory.take(&wanted([claim(&busy, 7)]), ms(0)));
}
