//! The server goes away, and comes back.

use super::*;

async fn until_it_is_back(gateway: &Redis) {
    for _ in 0..1000 {
        if gateway.desk.away().is_none() && !gateway.desk.is_alone() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the gateway does not find its server again");
}

async fn until_it_is_away(gateway: &Redis) {
    while gateway.desk.away().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn without_a_server_nothing_begins_and_no_password_is_told() {
    for on_failure in [OnCounterFailure::Refuse, OnCounterFailure::Local] {
        for url in [
            "redis://ann:PASSWORD-CANARY@127.0.0.1:1/0",
            "rediss://:PASSWORD-CANARY@127.0.0.1:1",
            "redis://:PASSWORD-CANARY@[::1:1/x",
        ] {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let error = Redis::open(&Secret::new(url), on_failure).err().expect("there is no server");
            assert!(!error.0.contains("CANARY"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_without_it() {
    let host = Host::start().await;
    host.command(&["CONFIG", "SET", "requirepass", "right"]).await;
    let url = Secret::new(format!("{}?pass=PASSWORD-CANARY", host.url().expose()));
    let error = Redis::open(&url, OnCounterFailure::Refuse).err().expect("the password is wrong");
    assert!(!error.0.contains("CANARY") && error.0.contains("authentication"), "{error:?}");
}

#[tokio::test]
async fn refuse_nobody_is_let_in_until_the_server_is_back_and_then_the_ledger_is_asked() {
    let mut host = Host::start().await;
    let gateway = host.gateway();
    let (total, places) = (limit(budget(Unit::Usd, Per::Total), 100), limit(What::Concurrent, 2));
    let want = wanted([claim(&total, 30), claim(&places, 1)]);
    let settled = gateway.take_all(&want, 0).await;
    let _kept = gateway.take_all(&want, 0).await;
    host.kill();
    assert!(gateway.take(&want, Timestamp::now()).await.is_err());
    assert!(gateway.ping().await.is_err());
    settled.settle(&usd(10), Timestamp::now());
    assert!(gateway.read(&[Arc::clone(&total)], Timestamp::now()).await.is_err());

    host.again().await;
    until_it_is_back(&gateway).await;
    gateway.ping().await.unwrap();
    let _more = gateway.take_all(&want, 10).await;
    assert_eq!(gateway.stands(&total).await, (10, 60), "the server is new, and knows what is held");
    assert!(!is_taken(gateway.take_from(&want, 10).await), "both places are taken");
    assert_eq!(gateway.decided_here(), 0);
}

#[tokio::test]
async fn a_server_that_does_nothing_is_away_and_what_it_did_in_the_dark_is_undone() {
    let host = Host::start().await;
    let gateway = host.gateway_that(OnCounterFailure::Refuse, TERMS);
    let total = limit(budget(Unit::Usd, Per::Total), 100);
    let want = wanted([claim(&total, 30)]);
    let hold = gateway.take_all(&want, 0).await;
    host.freeze();
    hold.settle(&usd(7), Timestamp::now());
    assert!(gateway.take(&want, Timestamp::now()).await.is_err());
    until_it_is_away(&gateway).await;
    host.thaw();
    until_it_is_back(&gateway).await;
    assert_eq!(gateway.stands(&total).await, (7, 0), "the taking whose answer never came holds nothing, the message counts once");
}

#[tokio::test]
async fn where_connections_break_all_the_time_each_message_counts_once() {
    let host = Host::start().await;
    let gateway = Arc::new(host.gateway());
    let total = limit(budget(Unit::Usd, Per::Total), 1_000_000);
    let want = wanted([claim(&total, 10)]);
    let asking = tokio::spawn({
        let (gateway, want) = (Arc::clone(&gateway), want.clone());
        async move {
            let mut used = 0;
            while used < 6000 {
                match gateway.take_from(&want, used).await {
                    Ok(Taking::Taken(taken)) => {
                        gateway.port().settle(&taken.held, &usd(3), Timestamp::now());
                        used += 3;
                    }
                    // It broke once more while it was mended.
                    _ => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        }
    });
    while !asking.is_finished() {
        host.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    asking.await.unwrap();
    assert_eq!(gateway.stands(&total).await, (6000, 0));
}

#[tokio::test]
async fn a_server_that_starts_again_with_old_data_asks_the_ledger() {
    let mut host = Host::start().await;
    let gateway = host.gateway();
    let total = limit(budget(Unit::Usd, Per::Total), 100);
    let want = wanted([claim(&total, 10)]);
    gateway.take_all(&want, 0).await.settle(&usd(5), Timestamp::now());
    assert_eq!(gateway.stands(&total).await, (5, 0));
    host.command(&["SAVE"]).await;
    gateway.take_all(&want, 0).await.settle(&usd(6), Timestamp::now());
    assert_eq!(gateway.stands(&total).await, (11, 0));
    host.kill();
    host.again().await;
    until_it_is_back(&gateway).await;
    drop(gateway.take_all(&want, 11).await);
    assert_eq!(gateway.stands(&total).await, (11, 0));
}

#[tokio::test]
async fn a_server_that_cannot_write_is_away_until_it_can() {
    let host = Host::start().await;
    let gateway = host.gateway();
    let day = limit(budget(Unit::Usd, Per::Month), 100);
    let want = wanted([claim(&day, 10)]);
    for (n, (setting, wrong, right)) in
        [("min-replicas-to-write", "9", "NOREPLICAS"), ("maxmemory", "1", "OOM")].iter().enumerate()
    {
        let used = 4 * n as u64;
        let hold = gateway.take_all(&want, used).await;
        host.command(&["CONFIG", "SET", setting, wrong]).await;
        let error = gateway.take(&want, Timestamp::now()).await.unwrap_err();
        assert!(error.0.contains(right), "{setting}: {error:?}");
        hold.settle(&usd(4), Timestamp::now());
        host.command(&["CONFIG", "SET", setting, "0"]).await;
        until_it_is_back(&gateway).await;
        assert_eq!(gateway.stands(&day).await, (used + 4, 0));
    }
}

#[tokio::test]
async fn scripts_that_were_thrown_away_are_brought_again() {
    let host = Host::start().await;
    let gateway = host.gateway();
    let want = wanted([claim(&limit(What::Concurrent, 1), 1)]);
    host.command(&["SCRIPT", "FLUSH"]).await;
    assert!(is_taken(gateway.take(&want, Timestamp::now()).await));
}

#[tokio::test]
async fn local_the_gateway_counts_for_itself_and_tells_what_was_used_when_the_server_is_back() {
    let host = Host::start().await;
    let gateway = host.gateway_that(OnCounterFailure::Local, TERMS);
    let (total, places) = (limit(budget(Unit::Usd, Per::Total), 100), limit(What::Concurrent, 2));
    let want = wanted([claim(&total, 20), claim(&places, 1)]);
    let before = gateway.take_all(&want, 10).await;
    host.freeze();
    let during = gateway.take_all(&want, 10).await;
    assert!(!is_taken(gateway.take_from(&want, 10).await), "what was held in the server is held here");
    gateway.ping().await.unwrap();
    assert_eq!(gateway.stands(&total).await, (10, 40));
    before.settle(&usd(15), Timestamp::now());
    let after = gateway.take_all(&want, 10).await;
    assert!(gateway.decided_here() > 0);

    host.thaw();
    until_it_is_back(&gateway).await;
    assert_eq!(gateway.stands(&total).await, (25, 40), "what is held here is held in the server");
    during.settle(&usd(1), Timestamp::now());
    drop(after);
    assert_eq!(gateway.stands(&total).await, (26, 0));
    let other = host.gateway();
    assert_eq!(other.stands(&total).await, (26, 0));
}

#[tokio::test]
async fn local_what_many_calls_used_while_the_server_was_away_is_told_in_a_few_messages() {
    let host = Host::start().await;
    let gateway = host.gateway_that(OnCounterFailure::Local, TERMS);
    let totals: Vec<_> = (0..300).map(|n| limit_of(&n.to_string(), budget(Unit::Usd, Per::Total), 1_000_000)).collect();
    for total in &totals {
        drop(gateway.take_all(&wanted([claim(total, 1)]), 0).await);
    }
    host.freeze();
    assert!(is_taken(gateway.take_from(&wanted([claim(&totals[0], 0)]), 0).await));
    for _ in 0..50 {
        for total in &totals {
            gateway.take_all(&wanted([claim(total, 2)]), 0).await.settle(&usd(2), Timestamp::now());
        }
    }
    assert!(gateway.desk.untold() < 5000, "{}", gateway.desk.untold());
    host.thaw();
    until_it_is_back(&gateway).await;
    for total in &totals {
        assert_eq!(gateway.stands(total).await, (100, 0));
    }
}

#[tokio::test]
async fn local_rates_begin_anew_and_what_was_taken_elsewhere_is_not_given_back() {
    let mut host = Host::start().await;
    let gateway = host.gateway_that(OnCounterFailure::Local, TERMS);
    let rate = limit(What::TokenRate, 100);
    let want = wanted([claim(&rate, 60)]);
    let there = gateway.take_all(&want, 0).await;
    host.kill();
    let here = gateway.take_all(&want, 0).await;
    drop(there);
    assert!(!is_taken(gateway.take(&want, Timestamp::now()).await), "what was given back was never taken here");
    host.again().await;
    until_it_is_back(&gateway).await;
    let _again = gateway.take_all(&want, 0).await;
    drop(here);
    assert!(!is_taken(gateway.take(&want, Timestamp::now()).await));
}
