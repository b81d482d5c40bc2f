//! The connections of one listener together: how many are in use, and the word that they shall close.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// What the connections of a listener share.
#[derive(Debug, Default)]
pub(super) struct Connections {
    closing: AtomicBool,
    told: Notify,
    open: AtomicUsize,
    emptied: Notify,
}

impl Connections {
    /// Each connection finishes what it is doing and closes.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    /// Whether they shall close.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Wakes who polls it once when they shall close. Poll it before asking [`Self::is_closing`].
    pub(super) fn told(&self) -> impl Future<Output = ()> {
        self.told.notified()
    }

    /// Counts a connection until what is returned is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::SeqCst);
        Open(Arc::clone(self))
    }

    /// Waits until none is left.
    pub(super) async fn none(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// A connection that counts.
#[derive(Debug)]
pub(super) struct Open(Arc<Connections>);

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}
