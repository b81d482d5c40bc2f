//! What a ledger does, wherever it is kept.

with_every_database!(
    a_batch_that_is_written_again_is_there_once,
    amounts_beyond_all_measure_stay_at_the_most,
    every_scope_and_unit_is_summed_up,
    many_rows_share_few_commits,
    old_rows_go_and_their_sums_stay,
    several_gateways_share_a_store,
    the_ledger_goes_on_where_it_was_closed,
    tickets_are_reached_in_their_order,
);

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use toolgate_config::limit::{Per, Unit, Zone};
use toolgate_config::money::NanoUsd;
use toolgate_config::names::{KeyName, ModelName};
use toolgate_config::store::StoreUrl;
use toolgate_policies::counters::Unseeded;
use toolgate_policies::limits::{CounterId, Limit, Scope, What as Counted};

use super::house::{Folder, eventually, ledger, row, rows_in, run, tool_row, with_every_database};
use crate::store::database::{Numbered, Writing};
use crate::store::{Ledger, PATIENCE, Row, Sum, Ticket};

fn asked(scope: Scope, unit: Unit, per: Per, since: Timestamp) -> Unseeded {
    let id = CounterId { scope, what: Counted::Budget(unit, per, Zone::utc()) };
    Unseeded { limit: Arc::new(Limit::new(id, 1)), since }
}

/// Rows of two keys, two models, two users, of today and of an hour ago; one whose cost is not known, and one of a tool.
fn mixed(now: Timestamp) -> Vec<Row> {
    let earlier = now - SignedDuration::from_hours(1);
    vec![
        Row { at: now, ..row() },
        Row { at: now, user: Some("ann".into()), ..row() },
        Row { at: now, user: Some("bob".into()), cost: None, ..row() },
        Row { at: now, user: Some("ann".into()), requests: 0, ..tool_row() },
        Row { at: now, key: "other".into(), user: Some("ann".into()), ..row() },
        Row { at: now, model: "*".into(), ..row() },
        Row { at: earlier, user: Some("ann".into()), cost: Some(NanoUsd(1)), ..row() },
    ]
}

async fn every_scope_and_unit_is_summed_up(url: StoreUrl) {
    let ledger = ledger(&url);
    let now = Timestamp::now();
    write_all(&ledger, mixed(now));
    let model = |name: &str| Scope::Model(ModelName::new(name));
    let key = |name: &str| Scope::Key(KeyName::new(name));
    let user = |name: &str| Scope::User(KeyName::new("shop"), name.into());
    let table = [
        (Scope::Everybody, [4 * 600 + 2000, 5 * 15, 5], [4 * 600 + 2000 + 1, 6 * 15, 6]),
        (model("support"), [3 * 600 + 2000, 4 * 15, 4], [3 * 600 + 2000 + 1, 5 * 15, 5]),
        (model("*"), [600, 15, 1], [600, 15, 1]),
        (model("none"), [0; 3], [0; 3]),
        (key("shop"), [3 * 600 + 2000, 4 * 15, 4], [3 * 600 + 2000 + 1, 5 * 15, 5]),
        (key("other"), [600, 15, 1], [600, 15, 1]),
        (user("ann"), [600 + 2000, 15, 1], [600 + 2000 + 1, 30, 2]),
        (user("bob"), [0, 15, 1], [0, 15, 1]),
        (user("eve"), [0; 3], [0; 3]),
    ];
    for (scope, in_window, in_total) in table {
        for (place, unit) in [Unit::Usd, Unit::Tokens, Unit::Requests].into_iter().enumerate() {
            let of = |per, since| asked(scope.clone(), unit, per, since);
            let used = ledger.used(&of(Per::Minute, now)).await.unwrap();
            assert_eq!(used, in_window[place], "{scope:?} {unit:?} in the window");
            let used = ledger.used(&of(Per::Total, Timestamp::MIN)).await.unwrap();
            assert_eq!(used, in_total[place], "{scope:?} {unit:?} in all");
        }
    }
    ledger.close().await;
}

async fn many_rows_share_few_commits(url: StoreUrl) {
    let ledger = Arc::new(ledger(&url));
    let writers: Vec<_> = (0..32)
        .map(|_| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                for _ in 0..50 {
                    ledger.written(ledger.write(row())).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(rows_in(&ledger).await, 32 * 50);
    assert!(ledger.commits() < 32 * 50 / 4, "{} commits", ledger.commits());
    ledger.close().await;
}

fn write_all(ledger: &Ledger, rows: Vec<Row>) -> Ticket {
    rows.into_iter().map(|row| ledger.write(row)).last().unwrap()
}

/// Sorted, so that they can be compared.
async fn sums(ledger: &Ledger, since: Option<Timestamp>) -> Vec<Sum> {
    let mut sums = ledger.sums(since).await.unwrap();
    sums.sort_by(|a, b| (&a.key, &a.model, &a.tool).cmp(&(&b.key, &b.model, &b.tool)));
    sums
}

async fn the_ledger_goes_on_where_it_was_closed(url: StoreUrl) {
    let now = Timestamp::now();
    let first = ledger(&url);
    write_all(&first, mixed(now));
    first.close().await;
    assert!(first.is_well().is_err(), "nobody is let in any more");
    let second = ledger(&url);
    write_all(&second, mixed(now));
    let all = sums(&second, None).await;
    let table =
        [("other", "support", "", 2), ("shop", "*", "", 2), ("shop", "support", "", 8), ("shop", "support", "get_order", 2)];
    let found: Vec<_> = all.iter().map(|sum| (&*sum.key, &*sum.model, &*sum.tool, sum.calls)).collect();
    assert_eq!(found, table);
    let [.., model, tool] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&*model.provider, &*model.served, model.unknown, model.reasoning), ("openai", "support", 2, 24));
    assert_eq!((&*tool.provider, &*tool.served, tool.unknown, tool.cost), ("", "support", 0, NanoUsd(4000)));
    second.close().await;
}

async fn tickets_are_reached_in_their_order(url: StoreUrl) {
    let ledger = Arc::new(ledger(&url));
    let tickets: Vec<Ticket> = (0..3000).map(|_| ledger.write(row())).collect();
    assert!(tickets.is_sorted());
    let mut waiting = Vec::new();
    for (earlier, ticket) in tickets.iter().copied().enumerate().rev().step_by(500) {
        let ledger = Arc::clone(&ledger);
        waiting.push(tokio::spawn(async move {
            ledger.written(ticket).await.unwrap();
            assert!(rows_in(&ledger).await > earlier as u64);
        }));
    }
    for waiter in waiting {
        waiter.await.unwrap();
    }
    ledger.close().await;
}

async fn several_gateways_share_a_store(url: StoreUrl) {
    let opening: Vec<_> = (0..4).map(|_| url.clone()).map(|url| std::thread::spawn(move || ledger(&url))).collect();
    let ledgers: Vec<_> = opening.into_iter().map(|opened| Arc::new(opened.join().unwrap())).collect();
    let writing: Vec<_> = ledgers
        .iter()
        .cloned()
        .map(|ledger| {
            tokio::spawn(async move {
                for _ in 0..100 {
                    ledger.written(ledger.write(row())).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writing {
        writer.await.unwrap();
    }
    for ledger in ledgers {
        assert_eq!(rows_in(&ledger).await, 400);
        ledger.close().await;
    }
}

async fn old_rows_go_and_their_sums_stay(url: StoreUrl) {
    let ledger = ledger(&url);
    let now = Timestamp::now();
    let old = now - SignedDuration::from_hours(48);
    let of = |key: &str, user: &str| asked(Scope::User(KeyName::new(key), user.into()), Unit::Usd, Per::Total, Timestamp::MIN);
    // More than two steps drop, and as many that stay.
    for at in [old, now] {
        (0..200).for_each(|_| {
            write_all(&ledger, mixed(at));
        });
    }
    let (all, ann) = (sums(&ledger, None).await, ledger.used(&of("shop", "ann")).await.unwrap());
    let kept = sums(&ledger, Some(now - SignedDuration::from_hours(24))).await;
    assert_eq!(rows_in(&ledger).await, 2800);

    ledger.keep(Duration::from_secs(24 * 60 * 60));
    let long_ago = Some(old - SignedDuration::from_hours(48));
    eventually("old rows are dropped", async || sums(&ledger, long_ago).await == kept).await;
    assert_eq!(sums(&ledger, None).await, all);
    assert_eq!(ledger.used(&of("shop", "ann")).await.unwrap(), ann);

    // A second time, onto what was carried before.
    (0..200).for_each(|_| {
        write_all(&ledger, mixed(old));
    });
    ledger.keep(Duration::from_secs(24 * 60 * 60));
    eventually("old rows are dropped again", async || sums(&ledger, long_ago).await == kept).await;
    assert_eq!(rows_in(&ledger).await, 2800 + 1400);
    assert!(ledger.used(&of("shop", "ann")).await.unwrap() > ann);
    assert_eq!(ledger.used(&of("shop", "eve")).await.unwrap(), 0);
    ledger.close().await;
}

async fn amounts_beyond_all_measure_stay_at_the_most(url: StoreUrl) {
    let ledger = ledger(&url);
    let most = u64::try_from(i64::MAX).unwrap();
    let at = Timestamp::now() - SignedDuration::from_hours(48);
    let dear = Row { at, cost: Some(NanoUsd(u64::MAX)), reasoning: u64::MAX, user: Some("x".repeat(5000).into()), ..row() };
    let usd = asked(Scope::Key(KeyName::new("shop")), Unit::Usd, Per::Total, Timestamp::MIN);
    for dropped in [false, true] {
        write_all(&ledger, vec![dear.clone(); 3]);
        let used = ledger.used(&usd).await.unwrap();
        assert!(used >= most, "{used} is less than the most that a database holds");
        if !dropped {
            ledger.keep(Duration::from_secs(60 * 60));
            eventually("rows are dropped", async || ledger.sums(Some(at)).await.unwrap().is_empty()).await;
        }
    }
    ledger.close().await;
}

async fn a_batch_that_is_written_again_is_there_once(url: StoreUrl) {
    let apart = || {
        let mut database = Writing::open(&url, PATIENCE.busy).unwrap().unwrap();
        let rows = [row(), row()];
        let batch: Vec<_> = rows.iter().zip(1..).map(|(row, id)| Numbered { id, row }).collect();
        database.append(&batch).unwrap();
        database.append(&batch).unwrap();
        database.close();
    };
    std::thread::scope(|scope| scope.spawn(apart).join()).unwrap();
    let ledger = ledger(&url);
    assert_eq!(rows_in(&ledger).await, 2);
    ledger.close().await;
}
