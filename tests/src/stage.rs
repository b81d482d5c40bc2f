//! What has happened so far, for whoever waits for it: a script goes on when the caller has seen something, a test when a server has.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

/// How long anything that must happen may take. It is a bound for a broken gateway, not a promise of a good one.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes that the caller has received so far, in all its responses.
#[derive(Clone, Default)]
pub struct Stage {
    seen: Arc<Mutex<Vec<u8>>>,
    news: Arc<Notify>,
}

impl Stage {
    /// The caller has received these bytes.
    pub fn saw(&self, bytes: &[u8]) {
        self.seen.lock().unwrap().extend_from_slice(bytes);
        self.news.notify_waiters();
    }

    /// Returns when the caller has received this text; `false` when it did not within [`PATIENCE`].
    pub async fn until_caller_saw(&self, text: &str) -> bool {
        until(&self.news, || contains(&self.seen.lock().unwrap(), text.as_bytes())).await
    }
}

/// Returns when `condition` holds; it is asked again at each piece of news. `false` when it did not hold within [`PATIENCE`].
pub async fn until(news: &Notify, condition: impl Fn() -> bool) -> bool {
    let wait = async {
        loop {
            let notified = news.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if condition() {
                return;
            }
            notified.await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.is_ok()
}

/// Returns when the condition holds, asking again and again.
///
/// # Panics
/// It did not hold within [`PATIENCE`].
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    for _ in 0..200 {
        if condition().await {
            return;
        }
        tokio::time::sleep(PATIENCE / 200).await;
    }
    panic!("it never came true that {what}");
}

/// Whether `needle` stands somewhere in `bytes`.
pub fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || bytes.windows(needle.len()).any(|window| window == needle)
}
