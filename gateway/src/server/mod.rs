//! The process while it serves: its listeners, its threads, and the ways to its end.
//!
//! The callers' connections have a runtime of their own, a thread a processor. The main thread keeps the admin listener, the signals and
//! the reloads, so that probes are answered whatever the callers do. A drain refuses new requests and waits for the running ones; a
//! hand-over gives the listening sockets to the next process, and then waits likewise. In both, the admin listener goes last.

mod connection;
mod connections;
mod line;
mod listen;
mod peer;
mod tls;
mod upgrade;
mod wording;

use std::future::pending;
use std::hint::black_box;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use parking_lot::Mutex;
use pingora_core::server::{Fds, ListenFds};
use pingora_core::services::Service as _;
use pingora_core::services::listening::Service;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use toolgate_config::address::Listen;
use tracing::{info, warn};

use self::connection::Reception;
use self::connections::Connections;
use self::listen::Bound;
use crate::admin::Admin;
use crate::found::Found;
use crate::gateway::{Departures, Gateway};
use crate::money::Closed;
use crate::reload::Reloader;

pub use self::connection::Answer;
pub use self::tls::Certificates;
pub use self::upgrade::meeting_place;

/// Names are resolved and files are read on these threads; they go when they are not needed.
const BLOCKING_THREADS: usize = 16;
/// How long two processes accept side by side when one takes over from the other.
const SIDE_BY_SIDE: Duration = Duration::from_secs(2);
/// How often the allocator is asked to tidy up, and what it then gives and takes back.
const BREATH: Duration = Duration::from_secs(2);
const LARGE_PIECE: usize = 16 * 1024 * 1024;
/// What blocking work has to end in when the process does.
const LAST_MOMENT: Duration = Duration::from_millis(200);
/// What records have to be settled in when the process ends.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What MCP servers have to be gone in when the process ends; each has a grace of its own, and this is longer.
const LAST_GOODBYES: Duration = Duration::from_secs(15);

/// Serves callers and operators until a signal ends it.
///
/// # Errors
/// A sentence for the operator: a port, or the process to take over from, is not there. Once it serves, it ends well.
pub fn run<A: Answer>(start: Start<A>) -> Result<(), String> {
    run_with(start, |_| pending::<()>()).map(drop)
}

/// Serves until a signal ends it, or until the guest has done what it came for: somebody in this process who calls the gateway from outside,
/// and is told where. Returns what the guest brings back; nothing where a signal came first.
///
/// # Errors
/// As [`run`].
pub fn run_with<A: Answer, G: Future>(start: Start<A>, guest: impl FnOnce(Listening) -> G) -> Result<Option<G::Output>, String> {
    let gateway = Arc::clone(&start.gateway);
    let main = Builder::new_current_thread().enable_all().max_blocking_threads(2).build().map_err(told)?;
    // Before the sockets are taken over from another process, which serves until then.
    main.block_on(gateway.resume()).map_err(|Closed(why)| why)?;
    let brought = serve(&main, start, guest);
    main.block_on(async {
        let _ = timeout(LAST_WORDS, gateway.idle()).await;
        // Programs that were started here do not outlive this one.
        let _ = timeout(LAST_GOODBYES, gateway.toolbox.hub().close()).await;
        gateway.found.close().await;
        gateway.pauses.close().await;
        gateway.money.close().await;
    });
    brought
}

/// What there is between the store's opening and its end.
fn serve<A: Answer, G: Future>(
    main: &Runtime,
    start: Start<A>,
    guest: impl FnOnce(Listening) -> G,
) -> Result<Option<G::Output>, String> {
    let mut signals = main.block_on(async { Signals::new() }).map_err(told)?;
    let looked = main.block_on(async {
        tokio::select! {
            () = start.gateway.found.begin(&start.gateway) => true,
            _ = signals.next() => false,
        }
    });
    if !looked {
        return Ok(None);
    }
    let sockets = Sockets::open(&start)?;
    let callers = runtime_of_callers().map_err(told)?;
    let brought = main.block_on(async {
        let connections = Arc::new(Connections::default());
        let reception = Reception { answer: start.callers, tls: start.certificates, connections: Arc::clone(&connections) };
        let stop = watch::Sender::new(false);
        listen(callers.handle(), "callers", &sockets.callers, reception, &sockets.fds, stop.subscribe());
        let admin = Arc::new(Admin::new(Arc::clone(&start.gateway), Arc::clone(&start.reloader)));
        let reception = Reception { answer: admin, tls: None, connections: Arc::default() };
        listen(&Handle::current(), "admin", &sockets.admin, reception, &sockets.fds, stop.subscribe());
        let reloading = tokio::spawn(start.reloader.watch());
        let finding = tokio::spawn(Found::watch(Arc::clone(&start.gateway)));
        let breathing = tokio::spawn(breathe());
        tokio::spawn(start.departures.settle(Arc::clone(&start.gateway)));
        info!(callers = %sockets.callers, admin = %sockets.admin, "listening");
        let running = Running { gateway: &start.gateway, connections: &connections, sockets: &sockets, stop: &stop };
        let guest = guest(Listening { callers: sockets.callers.address(), admin: sockets.admin.address() });
        let brought = running.until_the_end(&mut signals, &start.meeting_place, guest).await;
        reloading.abort();
        finding.abort();
        breathing.abort();
        // The listeners take a vanished sender for a fault.
        stop.send_replace(true);
        Ok::<_, String>(brought)
    })?;
    // The requests that are cut now still have their records settled, by a task of the main thread.
    callers.shutdown_timeout(LAST_MOMENT);
    Ok(brought)
}

/// Where a gateway listens, with the ports that it really has.
pub struct Listening {
    /// For callers.
    pub callers: Listen,
    /// For operators.
    pub admin: Listen,
}

/// The allocator returns freed pages to the system only when it is next asked for a large piece. A process that has gone quiet would keep
/// what its busiest moment took, so it is asked for one now and then; the piece is never touched and costs nothing.
async fn breathe() {
    loop {
        sleep(BREATH).await;
        drop(black_box(Vec::<u8>::with_capacity(LARGE_PIECE)));
    }
}

/// What is needed to begin.
pub struct Start<A> {
    /// What every request shares.
    pub gateway: Arc<Gateway>,
    /// Who answers callers.
    pub callers: Arc<A>,
    /// For TLS on the callers' listener.
    pub certificates: Option<Arc<Certificates>>,
    /// Who reads the configuration again.
    pub reloader: Arc<Reloader>,
    /// Where two processes meet to hand over sockets.
    pub meeting_place: PathBuf,
    /// The records of requests whose callers went away.
    pub departures: Departures,
    /// Whether to take the sockets of the process that runs already.
    pub take_over: bool,
}

fn told(error: std::io::Error) -> String {
    error.to_string()
}

/// The listening sockets.
struct Sockets {
    fds: ListenFds,
    callers: Bound,
    admin: Bound,
}

impl Sockets {
    fn open<A>(start: &Start<A>) -> Result<Self, String> {
        let server = &start.gateway.config().server;
        let mut fds = if start.take_over { upgrade::take_over(&start.meeting_place)? } else { Fds::new() };
        listen::close_others(&mut fds, &[&server.listen, &server.admin_listen]);
        let callers = Bound::bind(&server.listen, &mut fds)?;
        let admin = Bound::bind(&server.admin_listen, &mut fds)?;
        Ok(Self { fds: Arc::new(Mutex::new(fds)), callers, admin })
    }
}

/// Accepts connections until `stop` says otherwise.
fn listen<A: Answer>(
    runtime: &Handle,
    name: &str,
    socket: &Bound,
    reception: Reception<A>,
    fds: &ListenFds,
    stop: watch::Receiver<bool>,
) {
    let mut service = Service::new(name.to_owned(), reception);
    service.add_listener(socket.endpoint());
    let fds = Arc::clone(fds);
    runtime.spawn(async move { service.start_service(Some(fds), stop, 1).await });
}

fn runtime_of_callers() -> std::io::Result<Runtime> {
    let threads = available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("callers")
        .enable_all()
        .build()
}

/// The signals that end a process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

/// What a signal asks for.
enum Wish {
    End,
    HandOver,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::End,
            _ = self.interrupt.recv() => Wish::End,
            _ = self.quit.recv() => Wish::HandOver,
        }
    }
}

/// What ended it.
enum End<T> {
    Guest(T),
    Signal,
    HandedOver,
}

/// A process that serves.
struct Running<'a> {
    gateway: &'a Gateway,
    connections: &'a Connections,
    sockets: &'a Sockets,
    stop: &'a watch::Sender<bool>,
}

impl Running<'_> {
    /// What the guest brings back, where it is the guest that ends it.
    async fn until_the_end<G: Future>(&self, signals: &mut Signals, place: &std::path::Path, guest: G) -> Option<G::Output> {
        match self.first_end(signals, place, guest).await {
            End::Guest(brought) => {
                self.drain(signals).await;
                return Some(brought);
            }
            End::Signal => self.drain(signals).await,
            End::HandedOver => self.leave(signals).await,
        }
        None
    }

    /// Waits for whatever ends it. Then the guest is gone, and with it the requests that it had under way: nothing waits for those.
    async fn first_end<G: Future>(&self, signals: &mut Signals, place: &std::path::Path, guest: G) -> End<G::Output> {
        let mut guest = pin!(guest);
        loop {
            let wish = tokio::select! {
                brought = &mut guest => return End::Guest(brought),
                wish = signals.next() => wish,
            };
            match wish {
                Wish::End => return End::Signal,
                Wish::HandOver if self.hand_over(place).await => return End::HandedOver,
                Wish::HandOver => warn!("the hand-over failed; this process goes on serving"),
            }
        }
    }

    /// Refuses new requests, and waits for the running ones. The sockets stay open to say so.
    async fn drain(&self, signals: &mut Signals) {
        info!(in_flight = self.gateway.in_flight(), "draining");
        self.gateway.drain();
        self.finish(signals).await;
        self.sockets.callers.remove();
        self.sockets.admin.remove();
    }

    /// Gives the sockets away. Whether somebody took them.
    #[expect(clippy::disallowed_methods, reason = "waited for here; the library sleeps while it tries")]
    async fn hand_over(&self, place: &std::path::Path) -> bool {
        info!("handing over");
        let (fds, place) = (Arc::clone(&self.sockets.fds), place.to_owned());
        let given = tokio::task::spawn_blocking(move || upgrade::hand_over(&fds, &place)).await;
        match given {
            Ok(Ok(())) => true,
            Ok(Err(why)) => {
                warn!("{why}");
                false
            }
            Err(_) => false,
        }
    }

    /// Leaves new connections to the next process, and waits for the requests that run here.
    async fn leave(&self, signals: &mut Signals) {
        tokio::select! {
            () = sleep(SIDE_BY_SIDE) => {}
            _ = signals.next() => {}
        }
        self.stop.send_replace(true);
        info!(in_flight = self.gateway.in_flight(), "handed over");
        self.finish(signals).await;
    }

    /// Waits until the last answer has gone out, the grace is over, or a second signal comes.
    async fn finish(&self, signals: &mut Signals) {
        self.connections.close();
        let last = async {
            self.gateway.idle().await;
            self.connections.none().await;
        };
        tokio::select! {
            done = timeout(self.gateway.config().server.shutdown_grace, last) => match done {
                Ok(()) => info!("the last request is done"),
                Err(_) => warn!(in_flight = self.gateway.in_flight(), "the grace is over; what still runs is cut"),
            },
            _ = signals.next() => warn!(in_flight = self.gateway.in_flight(), "told twice; what still runs is cut"),
        }
    }
}
