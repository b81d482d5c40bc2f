//! The counters that many gateways share, in Redis or Valkey.
//!
//! A request takes from all its counters in one call of one script. What became of it is laid on a desk, and a courier, who has a thread of its
//! own, carries it to the server: a request does not wait for that. When the server is away, requests are refused, or the gateway counts for itself until it is back.

mod ask;
mod clock;
mod courier;
mod desk;
mod keys;
mod link;
mod script;
mod told;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use toolgate_config::secret::Secret;
use toolgate_config::store::OnCounterFailure;
use toolgate_policies::counters::{BudgetReading, Counters, Seed, Taking, Wanted};
use toolgate_policies::limits::Limit;

use self::ask::{Ask, Take};
use self::clock::Clock;
use self::courier::Courier;
use self::desk::{Desk, Refused};
use self::link::{Link, Server};
use super::Unreachable;

/// How long is waited for whom.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// What a gateway that has gone without a word holds, it holds for so long.
    lease: Duration,
    /// For a connection to the server, and for an answer.
    patience: Duration,
}

const TERMS: Terms = Terms { lease: Duration::from_secs(15), patience: Duration::from_secs(2) };

/// How long the last messages may take at the end.
const LAST_MESSAGES: Duration = Duration::from_secs(2);

/// How often a question is asked that gets lost on its way.
const TRIES: usize = 3;

/// The counters in a server. Dropped, the gateway is gone without a word; [`Redis::close`] takes leave.
pub struct Redis {
    desk: Arc<Desk>,
    server: String,
    patience: Duration,
    courier: Ending,
}

/// What the courier's thread listens to, and what is heard of it.
struct Ending {
    /// It ends when this is gone.
    _stop: oneshot::Sender<()>,
    /// It has ended; `None`: somebody waits for it already.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Redis {
    /// Connects to the server, and starts the thread that talks to it. It takes a while; no request waits yet.
    pub(super) fn open(url: &Secret, on_failure: OnCounterFailure) -> Result<Self, Unreachable> {
        Self::open_with(url, on_failure, TERMS, Clock::of_server())
    }

    fn open_with(url: &Secret, on_failure: OnCounterFailure, terms: Terms, clock: Clock) -> Result<Self, Unreachable> {
        let server = Server::new(url, terms.patience)?;
        let name = server.name().to_owned();
        let desk = Arc::new(Desk::new(clock, on_failure));
        let (runtime, (courier, link)) = joined_apart(Arc::clone(&desk), server, terms)?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = courier.run(link) => {}
                    _ = stopped => {}
                }
            });
            let _ = end.send(());
        };
        std::thread::Builder::new().name("counters".to_owned()).spawn(run).map_err(no_thread)?;
        // A gateway that can go on alone waits until the courier has found out that it must.
        let patience = match on_failure {
            OnCounterFailure::Refuse => terms.patience,
            OnCounterFailure::Local => terms.patience * 3,
        };
        Ok(Self { desk, server: name, patience, courier: Ending { _stop: stop, ended: Mutex::new(Some(ended)) } })
    }

    pub(super) async fn take(&self, wanted: &Wanted, now: Timestamp) -> Result<Taking, Unreachable> {
        for _ in 0..TRIES {
            let (reply, answer) = oneshot::channel();
            let take = Take { wanted: wanted.clone(), now, since: Instant::now(), tries: 0, reply };
            match self.desk.ask(Ask::Take(take)) {
                Ok(()) => {
                    if let Some(taking) = self.answer(answer).await?.and_then(ask::Offer::accept) {
                        return Ok(taking);
                    }
                }
                Err(Refused::Away(why)) => return Err(why),
                Err(Refused::Local) => {
                    if let Some(taking) = self.desk.take_here(wanted, now) {
                        return Ok(taking);
                    }
                }
            }
        }
        Err(self.lost())
    }

    pub(super) async fn seed(&self, seeds: &[Seed]) -> Result<(), Unreachable> {
        let sown = self.desk.sown(seeds);
        let (reply, answer) = oneshot::channel();
        match self.desk.ask(Ask::Seed { seeds: sown, reply }) {
            // Whoever was not told asks again.
            Ok(()) => self.answer(answer).await.map(drop),
            Err(Refused::Away(why)) => Err(why),
            Err(Refused::Local) => {
                self.desk.seed_here(seeds);
                Ok(())
            }
        }
    }

    pub(super) async fn read(&self, budgets: &[Arc<Limit>], now: Timestamp) -> Result<Vec<BudgetReading>, Unreachable> {
        for _ in 0..TRIES {
            let (reply, answer) = oneshot::channel();
            match self.desk.ask(Ask::Read { budgets: budgets.to_vec(), now, reply }) {
                Ok(()) => {
                    if let Some(readings) = self.answer(answer).await? {
                        return Ok(readings);
                    }
                }
                Err(Refused::Away(why)) => return Err(why),
                Err(Refused::Local) => {
                    if let Some(readings) = self.desk.read_here(budgets, now) {
                        return Ok(readings);
                    }
                }
            }
        }
        Err(self.lost())
    }

    /// Whether requests can be counted: by the server, or by this gateway alone where that is allowed.
    pub(super) async fn ping(&self) -> Result<(), Unreachable> {
        for _ in 0..TRIES {
            let (reply, answer) = oneshot::channel();
            match self.desk.ask(Ask::Ping { reply }) {
                Ok(()) => {
                    if self.answer(answer).await?.is_some() {
                        return Ok(());
                    }
                }
                Err(Refused::Away(why)) => return Err(why),
                Err(Refused::Local) => return Ok(()),
            }
        }
        Err(self.lost())
    }

    /// The counters as a hold sees them. A hold of them does not keep the connection.
    pub(super) fn port(&self) -> Arc<dyn Counters> {
        Arc::clone(&self.desk) as Arc<dyn Counters>
    }

    /// How many questions this gateway has decided on its own.
    pub(super) fn decided_here(&self) -> u64 {
        self.desk.decided_here()
    }

    /// The time by which everything is counted.
    pub(super) fn there(&self, here: Timestamp) -> Timestamp {
        self.desk.clock.there(here)
    }

    /// Delivers what is to be told, and takes leave. Nothing is taken afterwards.
    pub(super) async fn close(&self) {
        self.desk.close();
        let ended = self.courier.ended.lock().take();
        if let Some(ended) = ended {
            let _ = timeout(LAST_MESSAGES, ended).await;
            self.desk.go_away(Unreachable(format!("{}: this gateway has taken leave", self.server)));
        }
    }

    /// An answer; nothing where the question is to be asked anew.
    async fn answer<T>(&self, answer: oneshot::Receiver<T>) -> Result<Option<T>, Unreachable> {
        match timeout(self.patience, answer).await {
            Ok(answer) => Ok(answer.ok()),
            Err(_) => Err(Unreachable(format!("{}: no answer in time", self.server))),
        }
    }

    fn lost(&self) -> Unreachable {
        self.desk.away().unwrap_or_else(|| Unreachable(format!("{}: the connection breaks again and again", self.server)))
    }
}

/// Joins the server on a thread that may wait, with the runtime that the courier will live on.
fn joined_apart(desk: Arc<Desk>, server: Server, terms: Terms) -> Result<(Runtime, (Courier, Link)), Unreachable> {
    let join = move || {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let joined = runtime.block_on(Courier::new(desk, server, terms))?;
        Ok((runtime, joined))
    };
    let joining = std::thread::Builder::new().name("counters".to_owned()).spawn(join).map_err(no_thread)?;
    joining.join().unwrap_or_else(|_| Err(Unreachable("joining the server of the counters has failed".to_owned())))
}

fn no_thread(error: std::io::Error) -> Unreachable {
    Unreachable(format!("there is no thread for the counters: {error}"))
}

#[cfg(test)]
mod tests;
