//! The life of one server: it is greeted, asked what it offers, watched, and greeted again when it is gone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use toolgate_config::mcp::McpServer;
use toolgate_policies::egress::EgressRefusal;

use super::error::{CallError, Unreachable};
use super::flag::Flag;
use super::hub::{Listing, State};
use super::listing::{self, Listed};
use super::patience::{self, Patience};
use super::session::{self, About, Greeting, Held, Session, Ways};

/// What a server that is closed may still take for the calls that are under way.
const GRACE: Duration = Duration::from_secs(30);

/// After news of another list: more of them may be under way.
const SETTLING: Duration = Duration::from_millis(50);

/// A list is not asked for more often than this.
const BETWEEN_LISTS: Duration = Duration::from_millis(500);

/// A list that could not be read is asked for again after this, and then ever later.
const LIST_AGAIN: Duration = Duration::from_secs(5);
const LIST_AGAIN_LATEST: Duration = Duration::from_secs(300);

/// A server and how it is.
#[derive(Debug)]
pub(super) struct Server {
    described: Mutex<Arc<McpServer>>,
    phase: watch::Sender<Phase>,
    seen: watch::Sender<Seen>,
    /// A call wants a session now.
    nudge: Notify,
    closing: Flag,
    /// Nobody has a grace any more.
    leaving: Flag,
    tidings: Arc<Notify>,
}

/// Whether it can be asked.
#[derive(Clone, Debug)]
enum Phase {
    /// It is being greeted.
    Greeting,
    /// It can.
    Up(Arc<Session>),
    /// It cannot; when it was last tried, and when it will be next; what rule is in the way, where one is.
    Down { tried: Instant, next: Instant, denied: Option<EgressRefusal> },
    /// It never will be again.
    Closed,
}

/// What is known of it.
#[derive(Clone, Debug)]
struct Seen {
    state: State,
    tools: Arc<[Listed]>,
    about: About,
    looked: bool,
}

impl Server {
    /// A server that nobody has greeted yet; `tidings` is woken when what is known of it is another.
    pub(super) fn new(described: Arc<McpServer>, tidings: Arc<Notify>) -> Arc<Self> {
        let seen = Seen {
            state: State::Down("it was not reached yet".into()),
            tools: Arc::default(),
            about: About::default(),
            looked: false,
        };
        Arc::new(Self {
            described: Mutex::new(described),
            phase: watch::channel(Phase::Greeting).0,
            seen: watch::channel(seen).0,
            nudge: Notify::new(),
            closing: Flag::new(),
            leaving: Flag::new(),
            tidings,
        })
    }

    /// How the file describes it.
    pub(super) fn described(&self) -> Arc<McpServer> {
        Arc::clone(&self.described.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The file says something else of its tools, and the same of how it is reached.
    pub(super) fn describe(&self, described: Arc<McpServer>) {
        *self.described.lock().unwrap_or_else(PoisonError::into_inner) = described;
        self.tidings.notify_one();
    }

    /// What is known of it.
    pub(super) fn listing(&self) -> Listing {
        let Seen { state, tools, about, .. } = self.seen.borrow().clone();
        Listing { server: self.described(), state, tools, about }
    }

    /// Waits until it was asked once, or could not be, or it is this late.
    pub(super) async fn looked(&self, by: Instant) {
        let mut seen = self.seen.subscribe();
        let _ = timeout_at(by, seen.wait_for(|seen| seen.looked)).await;
    }

    /// No new calls; those under way have a grace.
    pub(super) fn close(&self) {
        self.closing.raise();
    }

    /// No new calls, and those under way are broken off.
    pub(super) fn leave(&self) {
        self.leaving.raise();
        self.closing.raise();
    }

    /// A session to ask in. One that is being mended is waited for; one that is down for longer is tried at once where the last try is not
    /// fresh, and else not waited for.
    pub(super) async fn session(&self, due: Instant) -> Result<Arc<Session>, CallError> {
        let mut phase = self.phase.subscribe();
        let mut nudged = false;
        loop {
            let now = phase.borrow_and_update().clone();
            match now {
                Phase::Up(session) if !session.over.is_up() => return Ok(session),
                Phase::Closed => return Err(CallError::Down),
                Phase::Down { tried, next, denied } => {
                    if nudged || !patience::worth_waiting(Instant::now(), tried, next) {
                        return Err(denied.map_or(CallError::Down, CallError::Denied));
                    }
                    self.nudge.notify_one();
                    nudged = true;
                }
                // Its keeper has not seen yet that it is over, or is at it.
                Phase::Up(_) | Phase::Greeting => {}
            }
            match timeout_at(due, phase.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(CallError::Down),
                Err(_) => return Err(CallError::TimedOut { sent: false }),
            }
        }
    }

    /// Keeps it until it is closed.
    pub(super) async fn live(self: Arc<Self>, ways: Ways) {
        let mut chores = JoinSet::new();
        let (mut patience, mut greeting) = (Patience::default(), Greeting::default());
        while !self.closing.is_up() {
            self.phase.send_replace(Phase::Greeting);
            let began = Instant::now();
            let described = self.described();
            let (pause, denied) = match session::begin(&ways, &described, &mut greeting, &self.closing, &mut chores).await {
                Ok(held) => {
                    let began = Instant::now();
                    self.keep(held, &described, &mut chores).await;
                    (patience.lost(began.elapsed()), None)
                }
                Err(why) => {
                    self.missed(&described, &why);
                    (patience.failed(), why.denied())
                }
            };
            if !pause.is_zero() {
                self.rest(began, pause, denied).await;
            }
            while chores.try_join_next().is_some() {}
        }
        self.phase.send_replace(Phase::Closed);
        self.know(|seen| seen.state = State::Down("it is closed".into()));
        while chores.join_next().await.is_some() {}
    }

    /// Waits for the next try, or for a call that wants it now.
    async fn rest(&self, tried: Instant, pause: Duration, denied: Option<EgressRefusal>) {
        let next = Instant::now() + pause;
        self.phase.send_replace(Phase::Down { tried, next, denied });
        tokio::select! {
            () = sleep_until(next) => {}
            // Not faster than one try a pause of the calls: a nudge may be of a call that came before this try.
            () = async { sleep_until(tried + patience::CALLS_WAIT).await; self.nudge.notified().await } => {}
            () = self.closing.raised() => {}
        }
    }

    /// Keeps a session until it is over or is to be closed.
    async fn keep(&self, mut held: Held, described: &McpServer, chores: &mut JoinSet<()>) {
        let session = Arc::clone(&held.session);
        let name = described.name.as_str();
        tracing::info!(server = name, protocol = session.about.protocol, "a server of tools is there");
        self.phase.send_replace(Phase::Up(Arc::clone(&session)));
        tokio::select! {
            () = session.over.raised() => {
                tracing::warn!(server = name, "the session with a server of tools ended");
                self.phase.send_replace(Phase::Greeting);
                self.know(|seen| seen.state = State::Down("the session ended".into()));
            }
            () = self.closing.raised() => {
                self.phase.send_replace(Phase::Closed);
                tokio::select! {
                    () = settled(&session) => {}
                    () = self.leaving.raised() => {}
                }
            }
            () = self.list(&session, &held.changed, described) => {}
            () = followed(&session, &held.changed) => {}
            () = call_off(&session, &mut held.cancels) => {}
        }
        chores.spawn(held.close());
    }

    /// Asks for the list, and again whenever it may be another. Never ends.
    async fn list(&self, session: &Session, changed: &Notify, described: &McpServer) {
        let mut again = LIST_AGAIN;
        loop {
            let failed = !self.look(session, described).await;
            let asked = Instant::now();
            tokio::select! {
                () = changed.notified() => {
                    // A burst is one piece of news, and what comes while it is read is one more.
                    sleep(SETTLING).await;
                    sleep_until(asked + BETWEEN_LISTS).await;
                    again = LIST_AGAIN;
                }
                () = sleep(again), if failed => again = (again * 2).min(LIST_AGAIN_LATEST),
            }
        }
    }

    /// Reads the list once; whether that went well.
    async fn look(&self, session: &Session, described: &McpServer) -> bool {
        let name = described.name.as_str();
        match listing::read(session, name, Instant::now() + described.timeout).await {
            Ok(list) => {
                let state = list.cut.map_or(State::Connected, |cut| State::Degraded(cut.into()));
                self.know(|seen| {
                    seen.about = session.about.clone();
                    seen.state = state;
                    // Whoever holds the old list may go on comparing it by its address.
                    if *seen.tools != *list.tools {
                        seen.tools = list.tools.into();
                    }
                });
                true
            }
            // The session's end is told by whoever sees to that.
            Err(why) if why.is_over() => true,
            Err(why) => {
                tracing::warn!(server = name, %why, "a server's list of tools could not be read; the old one stays");
                self.know(|seen| {
                    seen.about = session.about.clone();
                    seen.state = State::Degraded(why.to_string());
                });
                false
            }
        }
    }

    fn missed(&self, described: &McpServer, why: &Unreachable) {
        if !self.closing.is_up() {
            let server = described.name.as_str();
            // It is tried for as long as it is away: what is known needs no second line.
            match self.know(|seen| seen.state = State::Down(why.to_string())) {
                true => tracing::warn!(server, %why, "a server of tools cannot be reached"),
                false => tracing::debug!(server, %why, "a server of tools still cannot be reached"),
            }
        }
    }

    /// Changes what is known, and tells of it where it is another: whether it is.
    fn know(&self, change: impl FnOnce(&mut Seen)) -> bool {
        let told = self.seen.send_if_modified(|seen| {
            let before = seen.clone();
            change(seen);
            seen.looked = true;
            !before.looked || before.state != seen.state || before.about != seen.about || !Arc::ptr_eq(&before.tools, &seen.tools)
        });
        if told {
            self.tidings.notify_one();
        }
        told
    }
}

/// The calls under way hold the session; when they are done, nobody but its keeper does.
async fn settled(session: &Arc<Session>) {
    let due = Instant::now() + GRACE;
    // The keeper holds it twice; the phase does not any more.
    while Arc::strong_count(session) > 2 && Instant::now() < due && !session.over.is_up() {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Follows the news of a newer server. Never ends.
async fn followed(session: &Session, changed: &Notify) {
    session.follow(changed).await;
    std::future::pending().await
}

/// Tells the server of the requests that nobody waits for. Never ends.
async fn call_off(session: &Arc<Session>, cancels: &mut tokio::sync::mpsc::UnboundedReceiver<rmcp::model::RequestId>) {
    let mut telling = JoinSet::new();
    while let Some(id) = cancels.recv().await {
        while telling.try_join_next().is_some() {}
        telling.spawn(session.call_off(id));
    }
}
