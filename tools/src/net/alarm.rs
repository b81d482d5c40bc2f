//! A deadline that moves often and fires almost never. Moving it later costs a store: the timer behind it is only set anew when it fires
//! too early, or when the deadline moves before it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

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

    /// Ready once the deadline has passed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
