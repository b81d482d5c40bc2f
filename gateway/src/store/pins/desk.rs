//! Pins in a database: a thread that has the connection, and does one thing after another.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use toolgate_config::store::StoreUrl;

use crate::store::database::{Trouble, Writing};
use crate::store::{Patience, Unusable, no_thread};

type Job = Box<dyn FnOnce(&mut Clerk) + Send>;

/// The thread, as those who ask it see it.
pub(super) struct Desk {
    jobs: Mutex<Option<UnboundedSender<Job>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    patience: Patience,
}

impl Desk {
    /// Starts the thread; the store is opened with the first question.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(url: StoreUrl, patience: Patience) -> Result<Self, Unusable> {
        let (jobs, mut asked) = unbounded_channel::<Job>();
        let (ending, ended) = oneshot::channel();
        let work = move || {
            let mut clerk = Clerk { url, patience, database: None };
            while let Some(job) = asked.blocking_recv() {
                job(&mut clerk);
            }
            if let Some(database) = clerk.database {
                database.close();
            }
            // Nobody may wait for it.
            let _ = ending.send(());
        };
        std::thread::Builder::new().name("pins".to_owned()).spawn(work).map_err(no_thread)?;
        Ok(Self { jobs: Mutex::new(Some(jobs)), ended: Mutex::new(Some(ended)), patience })
    }

    /// Does something with the database, and gives what came of it.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writing) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Unusable> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |clerk| {
            // Whoever asked may have gone.
            let _ = answer.send(clerk.with(work));
        });
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
    /// Does something with the database; a connection that failed is not used again.
    fn with<T>(&mut self, work: impl FnOnce(&mut Writing) -> Result<T, Trouble>) -> Result<T, Unusable> {
        let mut database = match self.database.take() {
            Some(database) => database,
            None => Writing::open(&self.url, self.patience.busy)?.ok_or_else(|| Unusable("nothing is kept".to_owned()))?,
        };
        let done = work(&mut database)
            .map_err(|trouble| Unusable(format!("the store {} does not keep definitions: {}", database.name(), trouble.0)))?;
        self.database = Some(database);
        Ok(done)
    }
}
