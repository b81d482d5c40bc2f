//! Several gateways beside each other.

use std::task::Poll;

use futures_util::future::join_all;
use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

/// A lease that a test can wait for.
const SHORT: Terms = Terms { lease: Duration::from_secs(2), patience: Duration::from_secs(20) };

impl Redis {
    /// Takes as soon as it can.
    async fn take_in_the_end(&self, wanted: &Wanted, ledger: u64) -> Hold {
        loop {
            match self.take_from(wanted, ledger).await {
                Ok(Taking::Taken(taken)) => return Hold::new(self.port(), taken.held),
                Ok(Taking::Denied(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                other => panic!("neither taken nor denied: {other:?}"),
            }
        }
    }
}

async fn at_once(gateways: &[&Redis], wanted: &Wanted) -> usize {
    let takings = join_all((0..200).map(|n| gateways[n % gateways.len()].take_from(wanted, 0))).await;
    takings.into_iter().map(is_taken).filter(|taken| *taken).count()
}

#[tokio::test]
async fn case_31_of_two_hundred_at_once_at_two_gateways_there_is_room_for_a_hundred() {
    let host = Host::start().await;
    let gateways = [host.gateway(), host.gateway()];
    let cases = [
        (budget(Unit::Usd, Per::Total), 100 * 7 + 6, 7),
        (budget(Unit::Requests, Per::Month), 100, 1),
        (What::RequestRate, 100, 1),
        (What::TokenRate, 100 * 50 + 49, 50),
        (What::Concurrent, 100, 1),
    ];
    for (what, most, amount) in cases {
        let limit = limit(what, most);
        let taken = at_once(&[&gateways[0], &gateways[1]], &wanted([claim(&limit, amount)])).await;
        assert_eq!(taken, 100, "{limit:?}");
    }
}

#[tokio::test]
async fn what_is_taken_from_many_is_taken_from_all_or_none() {
    let host = Host::start().await;
    let gateways = [host.gateway(), host.gateway()];
    let (wide, narrow) = (limit(budget(Unit::Usd, Per::Total), 1000), limit(What::Concurrent, 30));
    let taken = at_once(&[&gateways[0], &gateways[1]], &wanted([claim(&wide, 5), claim(&narrow, 1)])).await;
    assert_eq!(taken, 30);
    assert_eq!(gateways[0].stands(&wide).await, (0, 150));
}

#[tokio::test]
async fn whoever_settles_sees_it_at_once() {
    let host = Host::start().await;
    let gateway = host.gateway();
    let day = limit(budget(Unit::Usd, Per::Total), 10_000);
    let wanted = wanted([claim(&day, 3)]);
    for n in 1..=500 {
        let hold = gateway.take_all(&wanted, 0).await;
        hold.settle(&usd(1), Timestamp::now());
        assert_eq!(gateway.stands(&day).await, (n, 0));
    }
}

#[tokio::test]
async fn many_messages_at_once_are_all_counted() {
    let host = Host::start().await;
    let gateways = [host.gateway(), host.gateway()];
    let total = limit(budget(Unit::Usd, Per::Total), 1_000_000);
    let mut holds = Vec::new();
    for n in 0..2000 {
        holds.push(gateways[n % 2].take_all(&wanted([claim(&total, 10)]), 5).await);
    }
    assert_eq!(gateways[0].stands(&total).await, (5, 20_000));
    for (n, hold) in holds.into_iter().enumerate() {
        if n % 4 < 2 {
            hold.settle(&usd(7), Timestamp::now());
        }
    }
    gateways[1].ping().await.unwrap();
    assert_eq!(gateways[0].stands(&total).await, (5 + 7000, 0));
}

#[tokio::test]
async fn a_gateway_that_nobody_asks_says_that_it_is_there() {
    let host = Host::start().await;
    let _gateway = host.gateway_that(OnCounterFailure::Refuse, SHORT);
    let gateways = &["ZRANGE", keys::GATEWAYS, "0", "-1", "WITHSCORES"];
    let first = host.command(gateways).await;
    while host.command(gateways).await == first {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_a_dead_gateway_held_is_free_when_its_lease_ends_and_what_it_used_is_asked_of_the_ledger() {
    let host = Host::start().await;
    let (dead, alive) = (host.gateway_that(OnCounterFailure::Refuse, SHORT), host.gateway());
    let (total, places) = (limit(budget(Unit::Usd, Per::Total), 100), limit(What::Concurrent, 1));
    let want = wanted([claim(&total, 60), claim(&places, 1)]);
    let hold = dead.take_all(&want, 10).await;
    assert!(!is_taken(alive.take_from(&want, 10).await));
    drop(dead);
    // It had written down 25 more before it died, and told nobody.
    let kept = alive.take_in_the_end(&want, 35).await;
    assert_eq!(alive.stands(&total).await, (35, 60));
    drop(hold);

    // What was told is counted, even where it is not written down yet.
    kept.settle(&usd(5), Timestamp::now());
    let dead = host.gateway_that(OnCounterFailure::Refuse, SHORT);
    let _lost = dead.take_all(&want, 0).await;
    drop(dead);
    let _kept = alive.take_in_the_end(&want, 35).await;
    assert_eq!(alive.stands(&total).await, (40, 60));
}

#[tokio::test]
async fn what_a_gateway_held_that_takes_leave_is_free_at_once() {
    let host = Host::start().await;
    let gateways = [host.gateway(), host.gateway()];
    let places = limit(What::Concurrent, 1);
    let total = limit(budget(Unit::Usd, Per::Total), 100);
    let hold = gateways[0].take_all(&wanted([claim(&places, 1), claim(&total, 50)]), 0).await;
    hold.settle(&usd(20), Timestamp::now());
    let _forgotten = gateways[0].take_all(&wanted([claim(&places, 1)]), 0).await;
    gateways[0].close().await;
    assert!(is_taken(gateways[1].take_from(&wanted([claim(&places, 1)]), 0).await));
    assert_eq!(gateways[1].stands(&total).await, (20, 0));
    assert!(gateways[0].take(&wanted([claim(&places, 1)]), Timestamp::now()).await.is_err());
}

#[tokio::test]
async fn a_gateway_that_was_gone_for_a_while_still_holds_what_it_held_and_gives_back_no_more() {
    let host = Host::start().await;
    let gateways = [host.gateway(), host.gateway()];
    let (total, places) = (limit(budget(Unit::Usd, Per::Total), 100), limit(What::Concurrent, 2));
    let want = wanted([claim(&total, 30), claim(&places, 1)]);
    let first = gateways[0].take_all(&want, 0).await;
    let second = gateways[0].take_all(&want, 0).await;
    // As if both had slept for longer than their lease.
    host.command(&["DEL", keys::GATEWAYS]).await;
    assert!(is_taken(gateways[1].take_from(&want, 0).await), "nobody else is there");
    first.settle(&usd(25), Timestamp::now());
    gateways[0].ping().await.unwrap();
    assert_eq!(gateways[1].stands(&total).await, (25, 60));
    drop(second);
    gateways[0].ping().await.unwrap();
    assert_eq!(gateways[1].stands(&total).await, (25, 30));
    assert!(is_taken(gateways[1].take_from(&wanted([claim(&places, 1)]), 0).await));
    assert!(!is_taken(gateways[1].take_from(&wanted([claim(&places, 1)]), 0).await));
}

#[tokio::test]
async fn a_server_that_forgets_everything_asks_the_ledger_and_is_told_what_is_held() {
    let host = Host::start().await;
    let gateway = host.gateway();
    let total = limit(budget(Unit::Usd, Per::Total), 100);
    let want = wanted([claim(&total, 30)]);
    let first = gateway.take_all(&want, 0).await;
    let _second = gateway.take_all(&want, 0).await;
    host.command(&["FLUSHALL"]).await;
    // What nobody has opened is not half counted.
    first.settle(&usd(20), Timestamp::now());
    assert_eq!(gateway.read(&[Arc::clone(&total)], Timestamp::now()).await.unwrap(), []);
    let _third = gateway.take_all(&want, 20).await;
    assert_eq!(gateway.stands(&total).await, (20, 60));
}

#[tokio::test]
async fn a_seed_that_was_looked_up_for_a_budget_that_is_gone_is_none() {
    let host = Host::start().await;
    let gateway = host.gateway();
    let total = limit(budget(Unit::Usd, Per::Total), 100);
    let want = wanted([claim(&total, 30)]);
    let Taking::Unseeded(old) = gateway.take(&want, Timestamp::now()).await.unwrap() else { panic!("seeded") };
    host.command(&["FLUSHALL"]).await;
    let other = host.gateway();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(matches!(other.take(&want, Timestamp::now()).await, Ok(Taking::Unseeded(_))));
    gateway.seed(&[Seed { of: old[0].clone(), used: 5 }]).await.unwrap();
    assert!(matches!(other.take(&want, Timestamp::now()).await, Ok(Taking::Unseeded(_))));
}

#[tokio::test]
async fn case_35_clocks_an_hour_apart_share_windows_and_rates() {
    let host = Host::start().await;
    let gateways = [host.gateway(), host.gateway()];
    let clock = |n: usize| Timestamp::now() + SignedDuration::from_hours(n as i64);
    let (day, rate) = (limit(budget(Unit::Tokens, Per::Hour), 100), limit(What::RequestRate, 4));
    let want = wanted([claim(&day, 20), claim(&rate, 1)]);
    let Taking::Unseeded(of) = gateways[1].take(&want, clock(1)).await.unwrap() else { panic!("seeded") };
    gateways[1].seed(&[Seed { of: of[0].clone(), used: 0 }]).await.unwrap();
    for n in [0, 1, 0, 1] {
        let Ok(Taking::Taken(taken)) = gateways[n].take(&want, clock(n)).await else { panic!("not taken by {n}") };
        let used = Used { tokens: 15, ..Used::default() };
        gateways[n].port().settle(&taken.held, &used, clock(n));
    }
    for n in [0, 1] {
        let Ok(Taking::Denied(denied)) = gateways[n].take(&want, clock(n)).await else { panic!("not denied by {n}") };
        assert_eq!(denied.limit, rate);
        // What is settled is told on the way, and each gateway has a way of its own.
        let reading = loop {
            let reading = gateways[n].read(&[Arc::clone(&day)], clock(n)).await.unwrap().remove(0);
            if reading.held == 0 {
                break reading;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(reading.used, 60, "{n}");
        assert_eq!(reading.resets.unwrap() - SignedDuration::from_hours(1), of[0].since);
    }
}

#[tokio::test]
async fn a_caller_that_leaves_before_the_answer_holds_nothing() {
    let host = Host::start().await;
    let gateway = host.gateway();
    let places = limit(What::Concurrent, 1);
    let want = wanted([claim(&places, 1)]);
    let mut left_early = 0;
    while left_early < 50 {
        let mut take = Box::pin(gateway.take(&want, Timestamp::now()));
        match futures_util::poll!(&mut take) {
            Poll::Pending => left_early += 1,
            // The machine was busy with others for so long that the answer was there first.
            Poll::Ready(Ok(Taking::Taken(taken))) => drop(Hold::new(gateway.port(), taken.held)),
            Poll::Ready(Ok(Taking::Denied(_))) => {}
            Poll::Ready(other) => panic!("not taken: {other:?}"),
        }
        // The answer comes, or it does not.
        tokio::task::yield_now().await;
        drop(take);
    }
    let hold = gateway.take_all(&want, 0).await;
    assert!(!is_taken(gateway.take_from(&want, 0).await));
    drop(hold);
}

#[tokio::test]
async fn amounts_beyond_all_measure_stay_as_large_as_they_can_be_counted() {
    let host = Host::start().await;
    let gateway = host.gateway();
    let total = limit(budget(Unit::Usd, Per::Total), u64::MAX);
    let hold = gateway.take_all(&wanted([claim(&total, 1 << 52)]), 0).await;
    drop(hold);
    let other = limit_of("other", budget(Unit::Usd, Per::Total), u64::MAX);
    for _ in 0..3000 {
        gateway.take_all(&wanted([claim(&other, 0)]), 0).await.settle(&usd(u64::MAX), Timestamp::now());
    }
    assert_eq!(gateway.stands(&other).await.0, script::MOST);
}

#[derive(Clone, Debug)]
enum Event {
    Take(usize, u64),
    Settle(usize, u64),
    Give(usize),
    Break,
    Leave(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..3_usize, 1..40_u64).prop_map(|(gateway, amount)| Event::Take(gateway, amount)),
        5 => (any::<usize>(), 0..=100_u64).prop_map(|(hold, percent)| Event::Settle(hold, percent)),
        2 => any::<usize>().prop_map(Event::Give),
        1 => Just(Event::Break),
        1 => (0..3_usize).prop_map(Event::Leave),
    ]
}

#[test]
fn in_any_order_of_taking_settling_breaking_and_dying_the_limit_holds_and_nothing_used_is_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = runtime.block_on(Host::start());
    let case = AtomicU32::new(0);
    let config = ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(events in prop::collection::vec(event(), 1..80))| {
        let total = limit_of(&case.fetch_add(1, Ordering::Relaxed).to_string(), budget(Unit::Usd, Per::Total), 100);
        runtime.block_on(any_order(&host, &total, &events));
    });
}

/// Three gateways and what they hold; whoever dies is followed by another.
async fn any_order(host: &Host, total: &Arc<Limit>, events: &[Event]) {
    let mut gateways = vec![host.gateway(), host.gateway(), host.gateway()];
    let mut holds: Vec<(usize, u64, Hold)> = Vec::new();
    let mut ledger = 0;
    for event in events {
        match event {
            Event::Take(which, amount) => {
                let want = wanted([claim(total, *amount)]);
                let fits = ledger + holds.iter().map(|(_, amount, _)| amount).sum::<u64>() + amount <= 100;
                let taking = gateways[*which].take_from(&want, ledger).await.unwrap();
                assert_eq!(matches!(taking, Taking::Taken(_)), fits, "{ledger} used, then {event:?}");
                if let Taking::Taken(taken) = taking {
                    holds.push((*which, *amount, Hold::new(gateways[*which].port(), taken.held)));
                }
            }
            Event::Settle(which, percent) if !holds.is_empty() => {
                let (gateway, amount, hold) = holds.swap_remove(which % holds.len());
                let used = amount * percent / 100;
                ledger += used;
                hold.settle(&usd(used), Timestamp::now());
                gateways[gateway].ping().await.unwrap();
            }
            Event::Give(which) if !holds.is_empty() => {
                let (gateway, _, hold) = holds.swap_remove(which % holds.len());
                drop(hold);
                gateways[gateway].ping().await.unwrap();
            }
            Event::Settle(..) | Event::Give(_) => {}
            Event::Break => drop(host.command(&["CLIENT", "KILL", "TYPE", "normal"]).await),
            Event::Leave(which) => {
                // What it told last may be lost with it.
                let told = holds.iter().position(|(gateway, ..)| gateway == which);
                if let Some((_, amount, hold)) = told.map(|at| holds.swap_remove(at)) {
                    ledger += amount;
                    hold.settle(&usd(amount), Timestamp::now());
                }
                gateways[*which] = host.gateway();
                holds.retain(|(gateway, ..)| gateway != which);
                // As if its lease had ended. The others are there, and say so.
                host.command(&["DEL", keys::GATEWAYS]).await;
                for gateway in &gateways {
                    gateway.ping().await.unwrap();
                }
            }
        }
    }
}
