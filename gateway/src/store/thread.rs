//! A thread that has a connection to the database, for what is asked seldom and must not wait for the ledger's rows: it takes one job after
//! another. What a job is, and how it is done, is the business of whoever starts it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use toolgate_config::store::StoreUrl;

use super::database::{Trouble, Writing};
use super::{Patience, Unusable, no_thread};

/// What came of a job, on its way to whoever asked.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Unusable>>;

/// The thread, as those who ask it see it.
pub(super) struct Thread<J> {
    jobs: Mutex<Option<UnboundedSender<J>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    patience: Patience,
}

impl<J: Send + 'static> Thread<J> {
    /// Starts it under this name; the store is opened with the first job. `kept` is what it keeps, for the sentence about a store that does not.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(
        name: &str,
        kept: &'static str,
        url: StoreUrl,
        patience: Patience,
        work: impl FnOnce(&mut Clerk, &mut UnboundedReceiver<J>) + Send + 'static,
    ) -> Result<Self, Unusable> {
        let (jobs, mut asked) = unbounded_channel();
        let (ending, ended) = oneshot::channel();
        let work = move || {
            let mut clerk = Clerk { url, patience, kept, database: None };
            work(&mut clerk, &mut asked);
            if let Some(database) = clerk.database {
                database.close();
            }
            // Nobody may wait for it.
            let _ = ending.send(());
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(no_thread)?;
        Ok(Self { jobs: Mutex::new(Some(jobs)), ended: Mutex::new(Some(ended)), patience })
    }

    /// Hands it a job, and waits for what comes of that.
    pub(super) async fn ask<T>(&self, job: impl FnOnce(Answer<T>) -> J) -> Result<T, Unusable> {
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
pub(super) struct Clerk {
    url: StoreUrl,
    patience: Patience,
    kept: &'static str,
    database: Option<Writing>,
}

impl Clerk {
    /// Does something with the database; a connection that failed is not used again.
    pub(super) fn with<T>(&mut self, work: impl FnOnce(&mut Writing) -> Result<T, Trouble>) -> Result<T, Unusable> {
        let mut database = match self.database.take() {
            Some(database) => database,
            None => Writing::open(&self.url, self.patience.busy)?.ok_or_else(|| Unusable("nothing is kept".to_owned()))?,
        };
        let kept = self.kept;
        let done = work(&mut database)
            .map_err(|trouble| Unusable(format!("the store {} does not keep {kept}: {}", database.name(), trouble.0)))?;
        self.database = Some(database);
        Ok(done)
    }
}
