//! A deadline that moves often and fires almost never. Moving it later costs a store: the timer behind it is only set anew when it fires
//! too early, or when the deadline moves before it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline and the timer behind it.
#[derive(Debug)]
pub(super) struct Alarm {
    deadline: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// An alarm without a timer.
    pub(super) fn new() -> Self {
        Self { deadline: Instant::now(), timer: None }
    }

    /// Moves the deadline.
    pub(super) fn set(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Ready once the deadline has passed, also for a task that has used up its share by reading: a server that never pauses must not keep
    /// the time from being looked at.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        pin!(unconstrained(poll_fn(|cx| self.poll_timer(cx)))).poll(cx)
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }

    /// Forgets whom to wake, so that an idle connection does not keep a finished task's memory.
    pub(super) fn forget(&mut self) {
        if let Some(timer) = &mut self.timer {
            let _ = timer.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::consume_budget;

    use super::*;

    #[tokio::test]
    async fn it_rings_in_a_task_that_has_used_up_its_share() {
        let mut alarm = Alarm::new();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let rings = poll_fn(|cx| {
            while pin!(consume_budget()).poll(cx).is_ready() {}
            Poll::Ready(alarm.poll(cx).is_ready())
        });
        assert!(rings.await);
    }
}
