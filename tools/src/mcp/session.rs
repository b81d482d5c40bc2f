//! One session with a server: how it begins, one request in it, and its end. Requests share it; each has its own answer and its own time.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig, ClientRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ErrorCode, ErrorData, Implementation, ProtocolVersion, RequestId, ServerPeerInfo,
    ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, PeerRequestOptions, RequestContext,
    RoleClient, RunningService, RunningServiceCancellationToken, ServiceError,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use toolgate_config::mcp::{McpServer, Reach};

use super::cleaner::Cleaner;
use super::error::{Lost, Unreachable};
use super::flag::Flag;
use super::http::{self, Failure};
use super::stdio::{self, Process};
use super::wire::{Stage, Ticket};
use crate::bound;
use crate::net::Net;

/// How much of what a server says of itself is kept, in bytes.
const LONGEST_WORD: usize = 100;

/// How long a cancellation may take to be written.
const CANCELLING: Duration = Duration::from_secs(2);

/// How long after a session's end a writer has to say how far it had come.
const LAST_WORD: Duration = Duration::from_millis(50);

/// How long `rmcp` and the transport may take to end.
const ENDING: Duration = Duration::from_secs(8);

/// What a server says of itself. For people: nothing follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the protocol that is spoken with it.
    pub protocol: String,
}

/// What sessions need of the process around them.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    /// The way out over HTTP.
    pub(super) net: Arc<Net>,
    /// For what is logged of what servers say.
    pub(super) cleaner: Cleaner,
}

/// How a server wants to be greeted: it is remembered from one session to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Greeting {
    /// As all servers do up to the revision of November 2025.
    #[default]
    Initialize,
    /// As those do that know nothing older than the revision of July 2026.
    Discover,
}

/// A session, for those who ask something in it.
#[derive(Debug)]
pub(super) struct Session {
    /// Who answers.
    pub(super) about: About,
    /// Raised when nothing more can be asked in it.
    pub(super) over: Flag,
    peer: Peer<RoleClient>,
    cancels: mpsc::UnboundedSender<RequestId>,
}

/// A session, for the one who keeps it.
pub(super) struct Held {
    /// What is shared.
    pub(super) session: Arc<Session>,
    /// Woken when the server says that its list of tools is another.
    pub(super) changed: Arc<Notify>,
    /// The requests of which nobody wants the answer any more.
    pub(super) cancels: mpsc::UnboundedReceiver<RequestId>,
    stop: RunningServiceCancellationToken,
    ended: JoinHandle<()>,
    process: Option<Process>,
}

/// Begins a session. What it has started and cannot use is ended in `chores`.
pub(super) async fn begin(
    ways: &Ways,
    server: &McpServer,
    greeting: &mut Greeting,
    closing: &Flag,
    chores: &mut JoinSet<()>,
) -> Result<Held, Unreachable> {
    let due = Instant::now() + server.timeout;
    match attempt(ways, server, *greeting, due, closing, chores).await {
        // One that knows only the newer way says so in this form; one that has failed otherwise does not know better in another form.
        Err(Unreachable::Refused(_)) if *greeting == Greeting::Initialize => {
            let held = attempt(ways, server, Greeting::Discover, due, closing, chores).await?;
            *greeting = Greeting::Discover;
            Ok(held)
        }
        Err(Unreachable::Version | Unreachable::Refused(_)) if *greeting == Greeting::Discover => {
            *greeting = Greeting::Initialize;
            attempt(ways, server, *greeting, due, closing, chores).await
        }
        tried => tried,
    }
}

async fn attempt(
    ways: &Ways,
    server: &McpServer,
    greeting: Greeting,
    due: Instant,
    closing: &Flag,
    chores: &mut JoinSet<()>,
) -> Result<Held, Unreachable> {
    let (over, changed) = (Flag::new(), Arc::new(Notify::new()));
    let ears = Ears { changed: Arc::clone(&changed) };
    let mut process = None;
    let greeted = match &server.reach {
        Reach::Stdio { command, args, env } => {
            let (started, lines) = stdio::start(server, command, args, env, &over, &ways.cleaner)?;
            process = Some(started);
            within(due, closing, ears.serve_with_lifecycle(lines, greeting.mode())).await
        }
        Reach::Http { url, headers } => {
            let transport = http::transport(server, url, headers, Arc::clone(&ways.net), Arc::clone(&changed));
            within(due, closing, ears.serve_with_lifecycle(transport, greeting.mode())).await
        }
    };
    match greeted {
        Ok(running) => Ok(Held::new(running, over, changed, process)),
        Err(why) => {
            if let Some(process) = process {
                chores.spawn(process.close());
            }
            Err(why)
        }
    }
}

type Running = RunningService<RoleClient, Ears>;

/// The session, if it has begun in time and nobody has called it off.
async fn within(
    due: Instant,
    closing: &Flag,
    greeted: impl Future<Output = Result<Running, ClientInitializeError>>,
) -> Result<Running, Unreachable> {
    tokio::select! {
        greeted = timeout_at(due, Box::pin(greeted)) => match greeted {
            Ok(greeted) => greeted.map_err(|error| unreachable(&error)),
            Err(_) => Err(Unreachable::Late),
        },
        () = closing.raised() => Err(Unreachable::Gone),
    }
}

fn unreachable(error: &ClientInitializeError) -> Unreachable {
    match error {
        ClientInitializeError::JsonRpcError(error) => Unreachable::Refused(error.code.0),
        ClientInitializeError::TransportError { .. } => Failure::of(error).map_or(Unreachable::Gone, Unreachable::Http),
        ClientInitializeError::ConnectionClosed(_) => Unreachable::Gone,
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => Unreachable::Version,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => unreachable(fallback),
        _ => Unreachable::Strange,
    }
}

impl Greeting {
    fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Initialize => ClientLifecycleMode::Initialize,
            Self::Discover => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
        }
    }
}

impl Held {
    fn new(running: Running, over: Flag, changed: Arc<Notify>, process: Option<Process>) -> Self {
        let (cancels, cancelled) = mpsc::unbounded_channel();
        let peer = running.peer().clone();
        let about = peer.peer_info().map(|info| about(&info)).unwrap_or_default();
        let session = Arc::new(Session { about, over: over.clone(), peer, cancels });
        let stop = running.cancellation_token();
        // Owned by this value, which waits for it.
        let ended = tokio::spawn(async move {
            let _ = running.waiting().await;
            over.raise();
        });
        Self { session, changed, cancels: cancelled, stop, ended, process }
    }

    /// Ends the session and what belongs to it, and waits until all of it is gone.
    pub(super) async fn close(self) {
        let Self { session, stop, mut ended, process, .. } = self;
        session.over.raise();
        stop.cancel();
        if timeout(ENDING, &mut ended).await.is_err() {
            ended.abort();
        }
        if let Some(process) = process {
            process.close().await;
        }
    }
}

fn about(info: &ServerPeerInfo) -> About {
    let (name, version) = info.server_info.as_ref().map_or(("", ""), |server| (server.name.as_str(), server.version.as_str()));
    let word = |text: &str| bound::word(text, LONGEST_WORD);
    About { name: word(name), version: word(version), protocol: word(info.protocol_version.as_str()) }
}

impl Session {
    /// Asks one thing and waits for its answer. Whoever stops waiting, be it that time ran out or that this future is dropped, has the request
    /// called off: the server is told, if it was sent, and an answer that comes all the same goes to nobody.
    ///
    /// # Errors
    /// See [`Lost`].
    pub(super) async fn ask(&self, request: ClientRequest, ticket: &Ticket, due: Instant) -> Result<ServerResult, Lost> {
        if self.over.is_up() {
            return Err(Lost::Untaken);
        }
        let mut waiting = Waiting { session: self, ticket, id: None };
        let handed_on = tokio::select! {
            handed_on = timeout_at(due, self.peer.send_cancellable_request(request, PeerRequestOptions::no_options())) => handed_on,
            () = self.over.raised() => return Err(gone(ticket)),
        };
        let mut handle = match handed_on {
            Err(_) => return Err(Lost::Late { sent: !ticket.abandon() }),
            Ok(Err(_)) => return Err(gone(ticket)),
            Ok(Ok(handle)) => handle,
        };
        waiting.id = Some(handle.id.clone());
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer.ok(),
            () = self.over.raised() => last_word(&mut handle.rx).await,
            () = sleep_until(due) => return Err(Lost::Late { sent: !ticket.abandon() }),
        };
        waiting.id = None;
        match answer {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => Err(self.lost(error, ticket)),
            None => Err(gone(ticket)),
        }
    }

    fn lost(&self, error: ServiceError, ticket: &Ticket) -> Lost {
        match (error, ticket.stage()) {
            (ServiceError::McpError(error), _) => match Failure::of_answer(&error) {
                None => Lost::Said { code: error.code.0, text: error.message.into_owned() },
                Some(Failure::Cut | Failure::SessionBegunAnew) => Lost::Taken,
                Some(_) => Lost::Strange,
            },
            (ServiceError::TransportSend(error), Stage::Begun) if Failure::of(&error).is_some_and(Failure::is_an_answer) => {
                Lost::Strange
            }
            (ServiceError::TransportSend(_) | ServiceError::TransportClosed, Stage::Answered(status)) => Lost::Status(status),
            (ServiceError::TransportSend(_) | ServiceError::TransportClosed, Stage::Untaken) => {
                // It does not know us any more, or is not there: the next session is another one.
                self.over.raise();
                Lost::Untaken
            }
            (ServiceError::TransportSend(_) | ServiceError::TransportClosed, Stage::Begun) => Lost::Taken,
            _ => Lost::Strange,
        }
    }

    /// Tells the server that nobody waits for the answer to this request any more.
    pub(super) fn call_off(self: &Arc<Self>, id: RequestId) -> impl Future<Output = ()> + Send + 'static {
        let session = Arc::clone(self);
        async move {
            let params = CancelledNotificationParam::new(Some(id), Some("not waited for any more".to_owned()));
            let notice = CancelledNotification::new(params);
            let _ = timeout(CANCELLING, session.peer.send_notification(notice.into())).await;
        }
    }

    /// Wakes `changed` whenever a server of the newer kind, which has to be asked for that, says that its list is another. Ends when it can
    /// say so no more.
    pub(super) async fn follow(&self, changed: &Notify) {
        let newer = self.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize() && tells_of_changes(&info));
        let filter = || SubscriptionFilter::builder().tools_list_changed().build();
        if newer && let Ok(mut subscription) = self.peer.listen(filter()).await {
            while let Ok(Some(_)) = subscription.next().await {
                changed.notify_one();
            }
        }
    }
}

/// What still comes of a request after the session's end: its answer, or how far its writing has come, which is told on its ticket.
async fn last_word<T>(answer: &mut oneshot::Receiver<T>) -> Option<T> {
    let last = timeout(LAST_WORD, answer).await.ok().and_then(Result::ok);
    if last.is_none() {
        sleep(LAST_WORD).await;
    }
    last
}

fn tells_of_changes(info: &ServerPeerInfo) -> bool {
    info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
}

/// The session ended; what that means for this request.
fn gone(ticket: &Ticket) -> Lost {
    // What has not been begun by now must not be begun later.
    if ticket.abandon() || ticket.stage() == Stage::Untaken { Lost::Untaken } else { Lost::Taken }
}

/// A request that is waited for; dropped with its id, it is called off.
struct Waiting<'s> {
    session: &'s Session,
    ticket: &'s Ticket,
    id: Option<RequestId>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Nothing to tell where nothing was said.
        if let Some(id) = self.id.take()
            && !self.ticket.abandon()
        {
            let _ = self.session.cancels.send(id);
        }
    }
}

/// What we answer a server that asks us something: we can do nothing for it.
#[derive(Debug)]
struct Ears {
    changed: Arc<Notify>,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("toolgate", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    #[expect(deprecated, reason = "older servers ask for it")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(unknown("roots/list"))
    }

    async fn create_elicitation(&self, _: ElicitRequestParams, _: RequestContext<RoleClient>) -> Result<ElicitResult, ErrorData> {
        Err(unknown("elicitation/create"))
    }

    async fn on_custom_request(
        &self,
        _: rmcp::model::CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown("this method"))
    }
}

fn unknown(method: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)
}
