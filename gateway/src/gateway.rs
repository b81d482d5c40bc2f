//! What every request shares: the configuration in force, the metrics, and the count of requests in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc};
use toolgate_config::Config;
use toolgate_policies::arguments::Downhill;
use toolgate_policies::egress::Credentials;
use toolgate_policies::known;
use toolgate_policies::limits::Limits;
use toolgate_policies::redact::Redactor;
use toolgate_tools::net::Net;
use toolgate_tools::toolbox::Toolbox;

use crate::found::Found;
use crate::listings::Listings;
use crate::money::{Closed, Money, Tab};
use crate::prepared::Prepared;
use crate::store::pauses::Pauses;
use crate::telemetry::metrics::Metrics;
use crate::tokens::Tokens;
use crate::trace::{Run, Traces};
use crate::upstream::Breakers;

/// The process as a request sees it.
pub struct Gateway {
    in_force: ArcSwap<InForce>,
    /// Outgoing connections.
    pub net: Arc<Net>,
    /// Which providers are not asked at the moment.
    pub breakers: Breakers,
    /// What runs tools.
    pub toolbox: Toolbox,
    /// The ledger and the counters.
    pub money: Money,
    /// What is found at MCP servers; it puts configurations in force.
    pub found: Found,
    /// The runs that wait for their callers.
    pub pauses: Pauses,
    /// The runs that are kept.
    pub traces: Traces,
    /// Counters of the whole process.
    pub metrics: Metrics,
    /// What counts tokens.
    pub tokens: Tokens,
    /// What providers list as their models.
    pub listings: Listings,
    in_flight: AtomicUsize,
    draining: AtomicBool,
    emptied: Notify,
    departures: mpsc::UnboundedSender<Departed>,
}

/// A configuration, and what of it goes onto the wire.
pub struct InForce {
    /// The configuration.
    pub config: Arc<Config>,
    /// Its texts.
    pub prepared: Prepared,
    /// Its limits.
    pub limits: Arc<Limits>,
    /// What is taken out of what tools return.
    pub tool_results: Arc<Redactor>,
    /// What is taken out of what models answer.
    pub answers: Arc<Redactor>,
    /// What is taken out of arguments on their way to tools that are trusted less than the run.
    pub arguments: Arc<Downhill>,
    /// What a model may not put into a URL or a header of a tool.
    pub credentials: Arc<Credentials>,
    /// Which configuration of this process it is: a later one has a greater number.
    pub generation: u64,
}

impl InForce {
    fn new(config: Config) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let generation = LAST.fetch_add(1, Ordering::Relaxed);
        // A secret of the gateway's own is one, whatever an operator wants to be left alone.
        let (results, answers) = (&config.redaction.tool_results, &config.redaction.answers);
        let (results, answers) = (known::with_known(results, &config), known::with_known(answers, &config));
        Self {
            prepared: Prepared::of(&config),
            limits: Arc::new(Limits::of(&config)),
            tool_results: Arc::new(Redactor::new(&results)),
            answers: Arc::new(Redactor::new(&answers)),
            arguments: Arc::new(Downhill::of(results)),
            credentials: Arc::new(Credentials::of(&config)),
            config: Arc::new(config),
            generation,
        }
    }
}

impl InForce {
    /// The same configuration with other tools found: it is the same one for everything that is counted.
    fn with_found(&self, config: Config) -> Self {
        Self {
            prepared: Prepared::of(&config),
            limits: Arc::clone(&self.limits),
            tool_results: Arc::clone(&self.tool_results),
            answers: Arc::clone(&self.answers),
            arguments: Arc::clone(&self.arguments),
            credentials: Arc::clone(&self.credentials),
            config: Arc::new(config),
            generation: self.generation,
        }
    }
}

/// A request whose caller went away.
pub struct Departed {
    /// Its record.
    pub run: Run,
    /// What it holds and has spent.
    pub tab: Option<Tab>,
    /// Its place among the requests in flight: so no more than `server.max_concurrent` of them wait, and a drain waits for them.
    pub _place: Option<InFlight>,
}

/// The requests whose callers went away, for the one task that settles them. A record cannot be settled where its request is dropped: that
/// can be anywhere, and must not take time.
pub struct Departures(mpsc::UnboundedReceiver<Departed>);

impl Departures {
    /// Settles each as it comes, until the gateway is gone.
    pub async fn settle(mut self, gateway: Arc<Gateway>) {
        while let Some(Departed { mut run, tab, _place }) = self.0.recv().await {
            let haste = self.0.len() > FEW_DEPARTURES;
            gateway.tokens.charge_all(&mut run.rounds, haste).await;
            if let Some(mut tab) = tab {
                tab.abandon(&gateway.money, &gateway.in_force(), &mut run);
            }
            crate::serve::settle(&gateway, run);
        }
    }
}

/// While more of them wait, what they used is counted in haste.
const FEW_DEPARTURES: usize = 16;

/// Why a request is not let in at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// `server.max_concurrent` requests are in flight.
    Overloaded,
    /// The process is about to end.
    ShuttingDown,
}

impl Gateway {
    /// A gateway that nobody has called yet.
    ///
    /// # Errors
    /// The store or the counters cannot be used.
    pub fn open(config: Config) -> Result<(Arc<Self>, Departures), Closed> {
        let net = Arc::new(Net::new());
        let (departures, departed) = mpsc::unbounded_channel();
        let toolbox = Toolbox::new(Arc::clone(&net));
        let (money, found, pauses) = (Money::open(&config)?, Found::open(&config.store.url)?, Pauses::open(&config.store.url)?);
        let in_force = InForce::new(config);
        toolbox.hub().redact(Arc::clone(&in_force.tool_results));
        let gateway = Arc::new(Self {
            money,
            found,
            pauses,
            in_force: ArcSwap::from_pointee(in_force),
            toolbox,
            net,
            breakers: Breakers::default(),
            traces: Traces::default(),
            departures,
            metrics: Metrics::new().map_err(|error| Closed(format!("the metrics: {error}")))?,
            tokens: Tokens::default(),
            listings: Listings::default(),
            in_flight: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            emptied: Notify::new(),
        });
        Ok((gateway, Departures(departed)))
    }

    /// Takes up what the ledger knows from before this process: the counters of what was spent, and what is left of the budgets.
    ///
    /// # Errors
    /// The store or the counters cannot be used.
    pub async fn resume(&self) -> Result<(), Closed> {
        for sum in self.money.ledger.sums(None).await? {
            self.metrics.resume(&sum);
        }
        self.money.look_up(&self.in_force().limits).await
    }

    /// The configuration in force. A request that needs one view of it keeps what it got.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.load().config)
    }

    /// The configuration in force with its texts.
    pub fn in_force(&self) -> Arc<InForce> {
        self.in_force.load_full()
    }

    /// Takes the record of a request whose caller went away, and its tab.
    pub fn departed(&self, departed: Departed) {
        // Nobody listens only when the process ends, and then nobody reads either.
        let _ = self.departures.send(departed);
    }

    /// Puts another configuration in force, whole. For [`Found`] alone, which sees to it that one comes after another.
    pub fn replace(&self, config: Config) {
        let new = InForce::new(config);
        self.toolbox.hub().redact(Arc::clone(&new.tool_results));
        self.in_force.store(Arc::new(new));
    }

    /// Puts the same configuration in force with other tools found; likewise.
    pub fn renew(&self, config: Config) {
        let renewed = self.in_force.load().with_found(config);
        self.in_force.store(Arc::new(renewed));
    }

    /// Lets a request in, and counts it until what is returned is dropped.
    ///
    /// # Errors
    /// Why it is turned away.
    pub fn enter(self: &Arc<Self>) -> Result<InFlight, TurnedAway> {
        // Counted before it is judged: a drain that starts in between waits for it.
        let before = self.in_flight.fetch_add(1, Ordering::SeqCst);
        let entered = InFlight { gateway: Arc::clone(self) };
        if self.is_draining() {
            return Err(TurnedAway::ShuttingDown);
        }
        let limit = self.in_force.load().config.server.max_concurrent;
        if before < limit { Ok(entered) } else { Err(TurnedAway::Overloaded) }
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// From now on no request is let in.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Whether the process is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Waits until nothing is in flight.
    pub async fn idle(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// A request that was let in. Dropping it gives its place back, and does nothing else.
pub struct InFlight {
    gateway: Arc<Gateway>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.gateway.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.gateway.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolgate_config::check::{Source, read};

    use super::*;

    fn gateway(max_concurrent: usize) -> Arc<Gateway> {
        let file = format!("server: {{ max_concurrent: {max_concurrent} }}\nauth: none\n");
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }).unwrap();
        Gateway::open(config).unwrap().0
    }

    #[test]
    fn a_place_that_is_given_back_can_be_taken_again() {
        let gateway = gateway(2);
        let first = gateway.enter().ok().unwrap();
        let _second = gateway.enter().ok().unwrap();
        assert_eq!(gateway.enter().err(), Some(TurnedAway::Overloaded));
        assert_eq!(gateway.in_flight(), 2, "one that was turned away takes no place");
        drop(first);
        assert!(gateway.enter().is_ok());
    }

    #[tokio::test]
    async fn a_drain_lets_nobody_in_and_ends_with_the_last_one() {
        let gateway = gateway(2);
        let running = gateway.enter().ok().unwrap();
        gateway.drain();
        assert_eq!(gateway.enter().err(), Some(TurnedAway::ShuttingDown));
        let waiting = tokio::spawn({
            let gateway = Arc::clone(&gateway);
            async move { gateway.idle().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(running);
        waiting.await.unwrap();
    }
}
