//! Idle connections, by origin and by what was asked of its addresses. The one used last is taken first, so that the others grow old and go; nothing runs in the background.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;
use toolgate_config::address::Origin;
use toolgate_policies::egress::Addresses;

use super::link::Link;

/// How many connections wait for each origin; more are closed when they become idle. The last one used is the first one taken, so that
/// even a busy origin seldom has many waiting, and what a thousand streams have opened does not stay.
const MOST_IDLE: usize = 128;

/// How long one waits. Shorter than what common servers allow, so that it is we who close.
const LONGEST_IDLE: Duration = Duration::from_secs(55);

/// The idle connections of every origin that was ever asked. Origins come from configurations, so there are few.
///
/// A connection goes back to whoever might have opened it: one that was opened to any address is never given to somebody who may only reach
/// public ones.
#[derive(Debug, Default)]
pub(super) struct Pool {
    any: Shelves,
    named: Shelves,
    public: Shelves,
}

type Shelves = RwLock<HashMap<Origin, Arc<Shelf>>>;

impl Pool {
    /// The shelf of an origin, for connections to such addresses.
    pub(super) fn shelf(&self, origin: &Origin, allowed: Addresses) -> Arc<Shelf> {
        let shelves = match allowed {
            Addresses::Any => &self.any,
            Addresses::Named => &self.named,
            Addresses::Public => &self.public,
        };
        if let Some(shelf) = shelves.read().unwrap_or_else(PoisonError::into_inner).get(origin) {
            return Arc::clone(shelf);
        }
        let mut shelves = shelves.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(shelves.entry(origin.clone()).or_insert_with(|| Arc::new(Shelf::new(origin))))
    }
}

/// The idle connections to one origin.
#[derive(Debug)]
pub(super) struct Shelf {
    host: HeaderValue,
    idle: Mutex<VecDeque<Idle>>,
}

#[derive(Debug)]
struct Idle {
    link: Box<Link>,
    since: Instant,
}

impl Shelf {
    fn new(origin: &Origin) -> Self {
        // A normalised host has no character that a header may not carry.
        let host = HeaderValue::try_from(origin.authority()).unwrap_or(HeaderValue::from_static(""));
        Self { host, idle: Mutex::default() }
    }

    /// The value of the `host` header.
    pub(super) fn host(&self) -> HeaderValue {
        self.host.clone()
    }

    /// The connection that was used last, unless it has waited for too long. It may have been closed by the server meanwhile.
    pub(super) fn take(self: &Arc<Self>) -> Option<Box<Link>> {
        let mut newest = self.lock().pop_back()?;
        if newest.since.elapsed() < LONGEST_IDLE {
            newest.link.taken_from(self);
            return Some(newest.link);
        }
        // All others are older still.
        self.clear();
        None
    }

    /// Keeps a connection that is ready for another request.
    pub(super) fn keep(&self, link: Box<Link>) {
        let since = Instant::now();
        let mut idle = self.lock();
        let oldest = idle.front().is_some_and(|oldest| since - oldest.since >= LONGEST_IDLE);
        let dropped = if oldest || idle.len() >= MOST_IDLE { idle.pop_front() } else { None };
        idle.push_back(Idle { link, since });
        // The socket is closed outside the lock.
        drop(idle);
        drop(dropped);
    }

    /// Closes all, outside the lock. When one of them died without an answer, the server may well have left the others too.
    pub(super) fn clear(&self) {
        let idle = std::mem::take(&mut *self.lock());
        drop(idle);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
