//! A queue that nobody empties, or only half.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Instant;

use super::house::{HASTE, row, run};
use crate::store::pace::Pace;
use crate::store::queue::{Next, Queue};

#[test]
fn with_too_many_rows_on_their_way_nobody_is_let_in() {
    let (queue, row) = (Queue::new(HASTE), row());
    for _ in 0..100_000 {
        queue.push(row.clone());
    }
    let mut taken = Vec::new();
    assert!(matches!(queue.take(&mut taken, &mut Pace::default(), Instant::now()), Next::Write));
    assert_eq!(taken.len(), 100_000);
    queue.push(row);
    let unusable = queue.is_well().unwrap_err();
    assert!(unusable.0.contains("100001 rows wait"), "{}", unusable.0);
    queue.reached(100_000, false);
    queue.is_well().unwrap();
}

#[test]
fn a_row_that_waits_too_long_is_a_sign_of_a_stuck_store() {
    run(async {
        let queue = Queue::new(HASTE);
        let ticket = queue.push(row());
        queue.is_well().unwrap();
        for in_hand in [false, true] {
            if in_hand {
                queue.take(&mut Vec::new(), &mut Pace::default(), Instant::now());
            }
            assert!(queue.written(ticket).await.is_err());
            assert!(queue.is_well().unwrap_err().0.contains("a row waits"), "in hand: {in_hand}");
        }
        queue.reached(1, false);
        queue.written(ticket).await.unwrap();
        queue.is_well().unwrap();
    });
}

#[test]
fn those_go_on_whose_rows_are_written_and_no_others() {
    run(async {
        let queue = Arc::new(Queue::new(HASTE));
        let tickets: Vec<_> = (0..3).map(|_| queue.push(row())).collect();
        let waiting: Vec<_> = tickets
            .into_iter()
            .map(|ticket| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.written(ticket).await.is_ok() })
            })
            .collect();
        queue.take(&mut Vec::new(), &mut Pace::default(), Instant::now());
        queue.reached(2, true);
        let mut written = Vec::new();
        for waiter in waiting {
            written.push(waiter.await.unwrap());
        }
        assert_eq!(written, [true, true, false]);
    });
}

/// How many of those who wait would go on.
fn that_go_on(waiting: &mut [Pin<Box<impl Future>>]) -> usize {
    let mut context = Context::from_waker(Waker::noop());
    waiting.iter_mut().filter_map(|waiter| waiter.as_mut().poll(&mut context).is_ready().then_some(())).count()
}

#[test]
fn who_is_told_and_goes_away_still_tells_the_others() {
    run(async {
        let queue = Queue::new(HASTE);
        let tickets: Vec<_> = (0..3).map(|_| queue.push(row())).collect();
        let mut waiting: Vec<_> = tickets.into_iter().map(|ticket| Box::pin(queue.written(ticket))).collect();
        assert_eq!(that_go_on(&mut waiting), 0);
        queue.take(&mut Vec::new(), &mut Pace::default(), Instant::now());
        queue.reached(3, false);
        waiting.pop();
        assert_eq!(that_go_on(&mut waiting), 2);
    });
}

#[test]
fn at_the_end_nobody_waits() {
    run(async {
        let queue = Queue::new(HASTE);
        let ticket = queue.push(row());
        queue.begin_to_close();
        assert!(
            matches!(queue.take(&mut Vec::new(), &mut Pace::default(), Instant::now()), Next::Write),
            "what waits comes first"
        );
        assert!(matches!(queue.take(&mut Vec::new(), &mut Pace::default(), Instant::now()), Next::End));
        queue.end();
        assert!(queue.written(ticket).await.is_err());
        assert_eq!(queue.is_well().unwrap_err().0, "the store is closed");
        queue.ended().await;
    });
}
