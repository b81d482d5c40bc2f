//! All servers of the configuration in force, each with a life of its own: the trouble of one is never another's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolgate_config::mcp::McpServer;
use toolgate_config::tool::{Effect, McpWork};
use toolgate_policies::redact::Redactor;

use super::answer::Answer;
use super::call;
use super::cleaner::Cleaner;
use super::error::CallError;
use super::listing::Listed;
use super::server::Server;
use super::session::{About, Ways};
use crate::arguments::Arguments;
use crate::net::Net;

/// The sessions with every server; one for the whole process.
#[derive(Debug)]
pub struct Hub {
    ways: Ways,
    inside: Mutex<Inside>,
    tidings: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inside {
    servers: Vec<Arc<Server>>,
    /// Closed, and perhaps in their grace.
    going: Vec<Weak<Server>>,
    lives: JoinSet<()>,
    closed: bool,
}

/// What is known of a server.
#[derive(Clone, Debug)]
pub struct Listing {
    /// How the file describes it.
    pub server: Arc<McpServer>,
    /// How it is.
    pub state: State,
    /// What it offers, as it said when it was last asked with success; empty until then. It stays while the server is down.
    pub tools: Arc<[Listed]>,
    /// What it says of itself.
    pub about: About,
}

/// How a server is. The sentences are our own and hold no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It can be asked, and what is known of its tools is all of them.
    Connected,
    /// It can be asked, but what is known of its tools may be old, or not all of them: why.
    Degraded(String),
    /// It cannot be asked: why.
    Down(String),
}

impl Hub {
    /// A hub without servers, whose HTTP goes out through this client.
    pub fn new(net: Arc<Net>) -> Arc<Self> {
        Arc::new(Self {
            ways: Ways { net, cleaner: Cleaner::default() },
            inside: Mutex::default(),
            tidings: Arc::new(Notify::new()),
        })
    }

    /// From now on these are the servers: new ones are greeted, those that are reached as before go on, all others are closed; the calls that
    /// are under way there may end. What is started lives on the runtime that calls this.
    pub fn serve(&self, wanted: &[Arc<McpServer>]) {
        let mut inside = self.inside();
        if inside.closed {
            return;
        }
        let mut before = std::mem::take(&mut inside.servers);
        for described in wanted {
            let same = before.iter().position(|server| server.described().is_reached_like(described));
            let server = match same {
                Some(at) => {
                    let server = before.swap_remove(at);
                    if !Arc::ptr_eq(&server.described(), described) {
                        server.describe(Arc::clone(described));
                    }
                    server
                }
                None => {
                    let server = Server::new(Arc::clone(described), Arc::clone(&self.tidings));
                    inside.lives.spawn(Arc::clone(&server).live(self.ways.clone()));
                    server
                }
            };
            inside.servers.push(server);
        }
        before.iter().for_each(|server| server.close());
        inside.going.retain(|server| server.strong_count() > 0);
        inside.going.extend(before.iter().map(Arc::downgrade));
        while inside.lives.try_join_next().is_some() {}
        drop(inside);
        self.tidings.notify_one();
    }

    /// From now on, what servers say beside the protocol is logged as this leaves it; until then, with all that is redacted by default.
    pub fn redact(&self, redactor: Arc<Redactor>) {
        self.ways.cleaner.put(redactor);
    }

    /// What is known of each server, in the order of the file.
    pub fn listings(&self) -> Vec<Listing> {
        self.inside().servers.iter().map(|server| server.listing()).collect()
    }

    /// Waits until a listing is another than when this was last waited for. For one who waits; what happens meanwhile is not missed.
    pub async fn changed(&self) {
        self.tidings.notified().await;
    }

    /// Waits until each server was asked what it offers, or cannot be, or it is this late.
    pub async fn first_look(&self, by: Instant) {
        let servers = self.inside().servers.clone();
        for server in servers {
            server.looked(by).await;
        }
    }

    /// Calls a tool; `due` is when its time is over, sending included. A call that may be made twice is made again once where the session
    /// died under it; any other only where the server certainly did not take it. Dropping the future calls it off.
    ///
    /// # Errors
    /// See [`CallError`]. What the server itself calls an error is an [`Answer`].
    pub async fn call(&self, work: &McpWork, arguments: &Arguments, effect: Effect, due: Instant) -> Result<Answer, CallError> {
        let found = self.inside().servers.iter().find(|server| server.described().is_reached_like(&work.server)).cloned();
        match found {
            Some(server) => call::call(&server, &work.tool, arguments, effect, due).await,
            None => Err(CallError::Down),
        }
    }

    /// Closes every session, breaks off the calls that are under way, and waits until all that belongs to them is gone, processes too.
    pub async fn close(&self) {
        let mut lives = {
            let mut inside = self.inside();
            inside.closed = true;
            inside.going.iter().filter_map(Weak::upgrade).for_each(|server| server.leave());
            inside.servers.iter().for_each(|server| server.leave());
            std::mem::take(&mut inside.lives)
        };
        while lives.join_next().await.is_some() {}
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
