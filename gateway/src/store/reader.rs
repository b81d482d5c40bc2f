//! What the ledger is asked: on a connection of its own, so that no row waits for an answer, and on a thread of its own, so that no request
//! does. All who ask the same while an answer is looked for share the next one.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use toolgate_config::store::StoreUrl;

use super::database::{Asked, Reading};
use super::{Patience, Sum, Unusable};

/// Longer than any ledger takes to be summed up: whoever waits this long waits for a server that does not answer.
const LONGEST: Duration = Duration::from_secs(60);

type Answer = Result<Arc<[Sum]>, Unusable>;

struct Question {
    asked: Asked,
    answer: oneshot::Sender<Answer>,
}

/// Asks.
pub(super) struct Reader {
    questions: Mutex<Option<mpsc::UnboundedSender<Question>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Reader {
    /// Starts the thread; the store is opened with the first question.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(url: StoreUrl, patience: Patience) -> std::io::Result<Self> {
        let (questions, asked) = mpsc::unbounded_channel();
        let (ending, ended) = oneshot::channel();
        std::thread::Builder::new().name("ledger reader".to_owned()).spawn(move || {
            answer_all(&url, patience, asked);
            // Nobody may wait for it.
            let _ = ending.send(());
        })?;
        Ok(Self { questions: Mutex::new(Some(questions)), ended: Mutex::new(Some(ended)) })
    }

    /// The sums of the rows that are on the disk.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn sums(&self, asked: Asked) -> Answer {
        let (answer, answered) = oneshot::channel();
        let question = Question { asked, answer };
        let sent = self.questions.lock().as_ref().is_some_and(|questions| questions.send(question).is_ok());
        if !sent {
            return Err(Unusable("the store is closed".to_owned()));
        }
        match tokio::time::timeout(LONGEST, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Unusable("the store cannot be read: it does not answer".to_owned())),
        }
    }

    /// Closes the connection. An answer that takes longer than `patience` is not waited for.
    pub(super) async fn close(&self, patience: Duration) {
        self.questions.lock().take();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended {
            // An error is an end as well.
            let _ = tokio::time::timeout(patience, ended).await;
        }
    }
}

fn answer_all(url: &StoreUrl, patience: Patience, mut asked: mpsc::UnboundedReceiver<Question>) {
    let mut reading = None;
    while let Some(question) = asked.blocking_recv() {
        let mut waiting = vec![question];
        while let Ok(question) = asked.try_recv() {
            waiting.push(question);
        }
        while let Some(last) = waiting.pop() {
            let same: Vec<Question> = waiting.extract_if(.., |question| question.asked == last.asked).collect();
            let answer = look(&mut reading, url, patience, &last.asked);
            for question in same.into_iter().chain([last]) {
                // Whoever asked may have gone.
                let _ = question.answer.send(answer.clone());
            }
        }
    }
}

/// Looks once; a connection that failed is not used again.
fn look(kept: &mut Option<Reading>, url: &StoreUrl, patience: Patience, asked: &Asked) -> Answer {
    let reading = match kept.take() {
        Some(reading) => Some(reading),
        None => Reading::open(url, patience.busy)?,
    };
    let Some(mut reading) = reading else { return Ok(Arc::new([])) };
    let sums = reading.sums(asked).map_err(|trouble| Unusable(format!("the store cannot be read: {}", trouble.0)))?;
    *kept = Some(reading);
    Ok(sums.into())
}
