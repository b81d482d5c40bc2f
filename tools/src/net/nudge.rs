//! The waker that a connection's codec is given. Taking what the codec has delivered makes the codec wake its task, which is the very task
//! that is taking: it would run a second time for each chunk, for nothing. So nudges are not passed on while it takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A waker for the codec, and the task that stands behind it at the moment.
#[derive(Debug)]
pub(super) struct Nudge {
    shared: Arc<Shared>,
    codec: Waker,
}

#[derive(Debug)]
struct Shared {
    task: Mutex<Waker>,
    hushed: AtomicBool,
    missed: AtomicBool,
}

impl Nudge {
    /// A waker that wakes nobody yet.
    pub(super) fn new() -> Self {
        let task = Mutex::new(Waker::noop().clone());
        let shared = Arc::new(Shared { task, hushed: AtomicBool::new(false), missed: AtomicBool::new(false) });
        Self { codec: Waker::from(Arc::clone(&shared)), shared }
    }

    /// The codec's waker, which from now on wakes this task.
    pub(super) fn towards(&mut self, task: &Waker) -> Context<'_> {
        let mut behind = self.shared.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !behind.will_wake(task) {
            behind.clone_from(task);
        }
        drop(behind);
        Context::from_waker(&self.codec)
    }

    /// Takes something that the codec has delivered. If there is nothing, a nudge that came meanwhile from elsewhere is passed on; if there
    /// is, whoever took it comes back for more anyway.
    pub(super) fn hushed<T>(&self, take: impl FnOnce() -> Poll<T>) -> Poll<T> {
        self.shared.hushed.store(true, Ordering::SeqCst);
        let taken = take();
        self.shared.hushed.store(false, Ordering::SeqCst);
        if self.shared.missed.swap(false, Ordering::SeqCst) && taken.is_pending() {
            self.shared.pass_on();
        }
        taken
    }
}

impl Shared {
    fn pass_on(&self) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.hushed.load(Ordering::SeqCst) {
            return self.pass_on();
        }
        self.missed.store(true, Ordering::SeqCst);
        // The hush may have ended between the two lines above, and with it the look at what was missed.
        if !self.hushed.load(Ordering::SeqCst) && self.missed.swap(false, Ordering::SeqCst) {
            self.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_a_nudge_that_nobody_would_notice_is_passed_on() {
        let (count, mut nudge) = (Arc::new(Count::default()), Nudge::new());
        let codec = nudge.towards(&Waker::from(Arc::clone(&count))).waker().clone();
        let woken = || count.0.swap(0, Ordering::SeqCst);
        codec.wake_by_ref();
        assert_eq!(woken(), 1, "outside");
        let taken = nudge.hushed(|| {
            codec.wake_by_ref();
            Poll::Ready(())
        });
        assert_eq!((taken, woken()), (Poll::Ready(()), 0), "while something is taken");
        let nothing = nudge.hushed(|| {
            codec.wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((nothing, woken()), (Poll::Pending, 1), "while there is nothing");
        assert_eq!(nudge.hushed(|| Poll::<()>::Pending), Poll::Pending);
        assert_eq!(woken(), 0, "none came");
        nudge.towards(Waker::noop());
        codec.wake_by_ref();
        assert_eq!(woken(), 0, "someone else is behind it");
    }
}
