//! A flag that is raised once and can be waited for.

use std::sync::Arc;

use tokio::sync::watch;

/// Raised once, seen by everybody who holds a copy.
#[derive(Clone, Debug)]
pub(super) struct Flag(Arc<watch::Sender<bool>>);

impl Flag {
    /// A flag that is down.
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }

    /// Raises it; again is the same.
    pub(super) fn raise(&self) {
        self.0.send_replace(true);
    }

    /// Whether it is up.
    pub(super) fn is_up(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is up.
    pub(super) async fn raised(&self) {
        // It cannot be closed: we hold its sender.
        let _ = self.0.subscribe().wait_for(|up| *up).await;
    }
}
