//! Pins in a database: each question is a job of the thread that has the connection.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use toolgate_config::store::StoreUrl;

use crate::store::database::{Trouble, Writing};
use crate::store::thread::{Answer, Clerk, Thread};
use crate::store::{Patience, Unusable};

type Job = Box<dyn FnOnce(&mut Clerk) + Send>;

/// The thread, as those who ask it see it.
pub(super) struct Desk(Thread<Job>);

impl Desk {
    /// Starts the thread; the store is opened with the first question.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(url: StoreUrl, patience: Patience) -> Result<Self, Unusable> {
        let thread = Thread::start("pins", "definitions", url, patience, |clerk, jobs: &mut UnboundedReceiver<Job>| {
            while let Some(job) = jobs.blocking_recv() {
                job(clerk);
            }
        });
        thread.map(Self)
    }

    /// Does something with the database, and gives what came of it.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writing) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Unusable> {
        let job = |answer: Answer<T>| -> Job {
            Box::new(move |clerk| {
                // Whoever asked may have gone.
                let _ = answer.send(clerk.with(work));
            })
        };
        self.0.ask(job).await
    }

    /// Closes the connection. What takes longer than `patience` is not waited for.
    pub(super) async fn close(&self, patience: Duration) {
        self.0.close(patience).await;
    }
}
