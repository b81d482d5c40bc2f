//! Pauses in a database: what waits together to be kept is written in one transaction.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use toolgate_config::store::StoreUrl;

use super::{Pause, Wanted};
use crate::store::thread::{Answer, Clerk, Thread};
use crate::store::{Patience, Unusable};
use crate::talk::paused::Kept;

/// The most that is written in one transaction.
const MOST_AT_ONCE: usize = 64;

/// The thread, as those who ask it see it.
pub(super) struct Desk(Thread<Job>);

enum Job {
    Keep(Pause, Answer<bool>),
    Find(Wanted, Answer<Vec<Kept>>),
}

impl Desk {
    /// Starts the thread; the store is opened with the first pause.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(url: StoreUrl, patience: Patience) -> Result<Self, Unusable> {
        Thread::start("pauses", "what waits", url, patience, work).map(Self)
    }

    pub(super) async fn keep(&self, pause: Pause) -> Result<bool, Unusable> {
        self.0.ask(|answer| Job::Keep(pause, answer)).await
    }

    pub(super) async fn find(&self, wanted: Wanted) -> Result<Vec<Kept>, Unusable> {
        self.0.ask(|answer| Job::Find(wanted, answer)).await
    }

    /// Closes the connection. What takes longer than `patience` is not waited for.
    pub(super) async fn close(&self, patience: Duration) {
        self.0.close(patience).await;
    }
}

fn work(clerk: &mut Clerk, jobs: &mut UnboundedReceiver<Job>) {
    let mut next = jobs.blocking_recv();
    while let Some(job) = next.take() {
        match job {
            // Whoever asked has gone: it waits no longer, and what it would have been told is of no use.
            Job::Find(_, answer) if answer.is_closed() => {}
            Job::Keep(_, answer) if answer.is_closed() => {}
            Job::Find(wanted, answer) => {
                let found = clerk.with(|database| database.find_pauses(&wanted));
                // It may have gone meanwhile.
                let _ = answer.send(found);
            }
            Job::Keep(pause, answer) => next = keep(clerk, pause, answer, jobs),
        }
        if next.is_none() {
            next = jobs.blocking_recv();
        }
    }
}

/// Keeps a pause, and with it those that wait right behind. Gives what came after them.
fn keep(clerk: &mut Clerk, pause: Pause, answer: Answer<bool>, jobs: &mut UnboundedReceiver<Job>) -> Option<Job> {
    let (mut pauses, mut answers, mut next) = (vec![pause], vec![answer], None);
    while pauses.len() < MOST_AT_ONCE {
        match jobs.try_recv() {
            Ok(Job::Keep(pause, answer)) => {
                pauses.push(pause);
                answers.push(answer);
            }
            Ok(other) => {
                next = Some(other);
                break;
            }
            Err(_) => break,
        }
    }
    let kept = clerk.with(|database| database.keep_pauses(&pauses));
    for (at, answer) in answers.into_iter().enumerate() {
        let one = kept.as_ref().map(|kept| kept.get(at).copied().unwrap_or(false)).map_err(Clone::clone);
        let _ = answer.send(one);
    }
    next
}
