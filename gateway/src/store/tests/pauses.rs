//! What is kept of runs that wait for their callers, wherever it is kept.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use toolgate_config::store::StoreUrl;

use super::house::{Folder, ledger, run, wherever};
use crate::store::database::Writing;
use crate::store::pauses::{LOOKED_AT, Owner, Pause, Pauses, expired};
use crate::talk::paused::{Kept, Place};

fn owner(key: &str, user: &str) -> Owner {
    Owner::new(key, Some(user))
}

/// A pause of the key `shop` whose ids, conversation and contents are known by these numbers.
fn pause(calls: u8, before: u8, content: u8) -> Pause {
    Pause {
        owner: owner("shop", ""),
        at: Timestamp::now(),
        content: [content; 16],
        kept: Kept { place: place(calls, before), state: Some(format!("{calls} {before} {content}")) },
    }
}

fn place(calls: u8, before: u8) -> Place {
    Place { calls: [calls; 16], before: [before; 16] }
}

async fn found(pauses: &Pauses, owner: Owner, places: &[Place]) -> Vec<String> {
    let found = pauses.find(owner, places.to_vec(), Timestamp::now()).await.unwrap();
    found.into_iter().map(|kept| kept.state.unwrap_or_default()).collect()
}

/// Without a store there is no file; with one there are its tables.
async fn with(url: StoreUrl, test: impl AsyncFnOnce(Pauses)) {
    let ledger = ledger(&url);
    test(Pauses::open(&url).unwrap()).await;
    ledger.close().await;
}

async fn what_is_kept_is_found_by_its_owner_alone(url: StoreUrl) {
    with(url, async |pauses| {
        assert_eq!(found(&pauses, owner("shop", ""), &[place(1, 1)]).await, [""; 0]);
        let ann = Pause { owner: owner("shop", "ann"), ..pause(1, 1, 9) };
        for pause in [pause(1, 1, 1), pause(2, 2, 2), ann] {
            assert!(pauses.keep(pause).await.unwrap());
        }
        let table: [(&str, &str, &[Place], &[&str]); 8] = [
            ("shop", "", &[place(1, 1)], &["1 1 1"]),
            ("shop", "", &[place(1, 8)], &["1 1 1"]),
            ("shop", "", &[place(8, 1)], &["1 1 1"]),
            ("shop", "", &[place(2, 1), place(1, 1)], &["2 2 2", "1 1 1"]),
            ("shop", "", &[place(8, 8)], &[]),
            ("shop", "ann", &[place(1, 1), place(2, 2)], &["1 1 9"]),
            ("shop", "bob", &[place(1, 1)], &[]),
            ("other", "", &[place(1, 1)], &[]),
        ];
        for (key, user, places, expected) in table {
            let mut seen = found(&pauses, owner(key, user), places).await;
            seen.sort();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(seen, expected, "{key} {user} {places:?}");
        }
        pauses.close().await;
    })
    .await;
}

async fn a_place_is_taken_by_others_and_not_by_itself(url: StoreUrl) {
    with(url, async |pauses| {
        let old = Timestamp::now() - SignedDuration::from_mins(61);
        // The pause, and whether its place was free.
        let table = [
            (pause(1, 1, 1), true),
            (pause(1, 1, 1), true),
            (pause(1, 1, 2), false),
            (pause(1, 2, 2), true),
            (pause(2, 1, 2), true),
            (Pause { owner: owner("other", ""), ..pause(1, 1, 2) }, true),
            (Pause { at: old, ..pause(3, 3, 1) }, true),
            (pause(3, 3, 2), true),
            (Pause { kept: Kept { place: place(4, 4), state: None }, ..pause(4, 4, 0) }, true),
        ];
        for (pause, was_free) in table {
            assert_eq!(pauses.keep(pause.clone()).await.unwrap(), was_free, "{pause:?}");
        }
        assert_eq!(found(&pauses, owner("shop", ""), &[place(3, 3)]).await, ["3 3 2"]);
        assert_eq!(found(&pauses, owner("shop", ""), &[place(4, 4)]).await, [""]);
        pauses.close().await;
    })
    .await;
}

async fn of_many_that_are_alike_its_own_is_found_and_the_newest(url: StoreUrl) {
    with(url, async |pauses| {
        let begin = Timestamp::now() - SignedDuration::from_mins(1);
        let many = u8::try_from(LOOKED_AT + 8).unwrap();
        for before in 0..many {
            let at = begin + SignedDuration::from_secs(i64::from(before));
            assert!(pauses.keep(Pause { at, ..pause(1, before, 7) }).await.unwrap());
        }
        let seen = found(&pauses, owner("shop", ""), &[place(1, 0)]).await;
        let newest = (0..many).rev().take(LOOKED_AT - 1).map(|before| format!("1 {before} 7"));
        let expected: Vec<String> = std::iter::once("1 0 7".to_owned()).chain(newest).collect();
        assert_eq!(seen, expected);
        pauses.close().await;
    })
    .await;
}

async fn an_hour_later_it_is_gone(url: StoreUrl) {
    with(url.clone(), async |pauses| {
        let old = Timestamp::now() - SignedDuration::from_secs(59 * 60);
        assert!(pauses.keep(Pause { at: old, ..pause(1, 1, 1) }).await.unwrap());
        assert!(pauses.keep(pause(2, 2, 2)).await.unwrap());
        let both = [place(1, 1), place(2, 2)];
        let later = async |minutes| {
            let now = Timestamp::now() + SignedDuration::from_mins(minutes);
            pauses.find(owner("shop", ""), both.to_vec(), now).await.unwrap().len()
        };
        assert_eq!((later(0).await, later(2).await, later(62).await), (2, 1, 0));
        pauses.close().await;
    })
    .await;
    // The keeper's steps.
    let dropped = std::thread::spawn(move || {
        let Some(mut database) = Writing::open(&url, Duration::from_secs(3)).unwrap() else { return vec![1, 1, 0] };
        let later = expired(Timestamp::now()) + SignedDuration::from_mins(62);
        let steps = (0..3).map(|_| database.drop_pauses(later, 1).unwrap()).collect();
        database.close();
        steps
    });
    assert_eq!(dropped.join().unwrap(), [1, 1, 0]);
}

async fn what_was_kept_is_there_after_a_restart(url: StoreUrl) {
    with(url.clone(), async |pauses| {
        assert!(pauses.keep(pause(1, 1, 1)).await.unwrap());
        pauses.close().await;
    })
    .await;
    if url == StoreUrl::None {
        return;
    }
    // Two gateways on it.
    with(url.clone(), async |first| {
        let second = Pauses::open(&url).unwrap();
        assert_eq!(found(&first, owner("shop", ""), &[place(1, 1)]).await, ["1 1 1"]);
        assert!(second.keep(pause(2, 2, 2)).await.unwrap());
        assert!(!first.keep(pause(2, 2, 3)).await.unwrap());
        first.close().await;
        second.close().await;
    })
    .await;
}

async fn a_key_that_keeps_too_many_loses_its_oldest(url: StoreUrl) {
    with(url, async |pauses| {
        let at = Timestamp::now() - SignedDuration::from_mins(30);
        let numbered = |at: Timestamp, number: u16| {
            let [high, low] = number.to_be_bytes();
            let mut pause = Pause { at, ..pause(7, 7, 7) };
            (pause.kept.place.calls[0], pause.kept.place.calls[1]) = (high, low);
            pause
        };
        let all = (0..1003_u16).map(|number| pauses.keep(numbered(at + SignedDuration::from_millis(number.into()), number)));
        for kept in futures_util::future::join_all(all).await {
            assert!(kept.unwrap());
        }
        let places = (0..1003_u16).map(|number| numbered(at, number).kept.place);
        let mut left: Vec<_> = pauses.find(owner("shop", ""), places.clone().collect(), Timestamp::now()).await.unwrap();
        left.sort_by_key(|kept| kept.place);
        assert_eq!(left.iter().map(|kept| kept.place).collect::<Vec<_>>(), places.skip(3).collect::<Vec<_>>());
        assert!(pauses.keep(Pause { owner: owner("other", ""), ..pause(1, 1, 1) }).await.unwrap());
        pauses.close().await;
    })
    .await;
}

wherever!(
    a_key_that_keeps_too_many_loses_its_oldest,
    a_place_is_taken_by_others_and_not_by_itself,
    an_hour_later_it_is_gone,
    of_many_that_are_alike_its_own_is_found_and_the_newest,
    what_is_kept_is_found_by_its_owner_alone,
    what_was_kept_is_there_after_a_restart,
);
