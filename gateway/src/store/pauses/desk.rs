//! Pauses in a database: a thread that has the connection, and takes one request after another. What waits together to be kept is written in
//! one transaction.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use toolgate_config::store::StoreUrl;

use super::{Pause, Wanted};
use crate::store::database::{Trouble, Writing};
use crate::store::{Patience, Unusable, no_thread};
use crate::talk::paused::Kept;

/// The most that is written in one transaction.
const MOST_AT_ONCE: usize = 64;

/// The thread, as those who ask it see it.
pub(super) struct Desk {
    jobs: Mutex<Option<UnboundedSender<Job>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    patience: Patience,
}

enum Job {
    Keep(Pause, oneshot::Sender<Result<bool, Unusable>>),
    Find(Wanted, oneshot::Sender<Result<Vec<Kept>, Unusable>>),
}

impl Desk {
    /// Starts the thread; the store is opened with the first pause.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(url: StoreUrl, patience: Patience) -> Result<Self, Unusable> {
        let (jobs, mut asked) = unbounded_channel();
        let (ending, ended) = oneshot::channel();
        let work = move || {
            Clerk { url, patience, database: None }.work(&mut asked);
            // Nobody may wait for it.
            let _ = ending.send(());
        };
        std::thread::Builder::new().name("pauses".to_owned()).spawn(work).map_err(no_thread)?;
        Ok(Self { jobs: Mutex::new(Some(jobs)), ended: Mutex::new(Some(ended)), patience })
    }

    pub(super) async fn keep(&self, pause: Pause) -> Result<bool, Unusable> {
        self.ask(|answer| Job::Keep(pause, answer)).await
    }

    pub(super) async fn find(&self, wanted: Wanted) -> Result<Vec<Kept>, Unusable> {
        self.ask(|answer| Job::Find(wanted, answer)).await
    }

    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T, Unusable>>) -> Job) -> Result<T, Unusable> {
        let (answer, answered) = oneshot::channel();
        let job = job(answer);
        let sent = self.jobs.lock().as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            return Err(Unusable("the store is closed".to_owned()));
        }
        match tokio::time::timeout(self.patience.deadline, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Unusable("the store does not answer".to_owned())),
        }
    }

    /// Closes the connection. What takes longer than `patience` is not waited for.
    pub(super) async fn close(&self, patience: Duration) {
        self.jobs.lock().take();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended {
            // An error is an end as well.
            let _ = tokio::time::timeout(patience, ended).await;
        }
    }
}

/// Who does the work.
struct Clerk {
    url: StoreUrl,
    patience: Patience,
    database: Option<Writing>,
}

impl Clerk {
    fn work(mut self, jobs: &mut UnboundedReceiver<Job>) {
        let mut next = jobs.blocking_recv();
        while let Some(job) = next.take() {
            match job {
                // Whoever asked has gone: it waits no longer, and what it would have been told is of no use.
                Job::Find(_, answer) if answer.is_closed() => {}
                Job::Keep(_, answer) if answer.is_closed() => {}
                Job::Find(wanted, answer) => {
                    let found = self.with(|database| database.find_pauses(&wanted));
                    // It may have gone meanwhile.
                    let _ = answer.send(found);
                }
                Job::Keep(pause, answer) => next = self.keep(pause, answer, jobs),
            }
            if next.is_none() {
                next = jobs.blocking_recv();
            }
        }
        if let Some(database) = self.database {
            database.close();
        }
    }

    /// Keeps a pause, and with it those that wait right behind. Gives what came after them.
    fn keep(
        &mut self,
        pause: Pause,
        answer: oneshot::Sender<Result<bool, Unusable>>,
        jobs: &mut UnboundedReceiver<Job>,
    ) -> Option<Job> {
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
        let kept = self.with(|database| database.keep_pauses(&pauses));
        for (at, answer) in answers.into_iter().enumerate() {
            let one = kept.as_ref().map(|kept| kept.get(at).copied().unwrap_or(false)).map_err(Clone::clone);
            let _ = answer.send(one);
        }
        next
    }

    /// Does something with the database; a connection that failed is not used again.
    fn with<T>(&mut self, work: impl FnOnce(&mut Writing) -> Result<T, Trouble>) -> Result<T, Unusable> {
        let mut database = match self.database.take() {
            Some(database) => database,
            None => Writing::open(&self.url, self.patience.busy)?.ok_or_else(|| Unusable("nothing is kept".to_owned()))?,
        };
        let done = work(&mut database)
            .map_err(|trouble| Unusable(format!("the store {} does not keep what waits: {}", database.name(), trouble.0)))?;
        self.database = Some(database);
        Ok(done)
    }
}
