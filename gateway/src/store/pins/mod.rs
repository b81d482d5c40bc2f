//! Pins: what a tool of an MCP server was when it was first seen, or when the operator last accepted it. Whoever has the same store has the
//! same pins; they outlive the process, and the server's absence. Without a store they are the process's own.
//!
//! They have a thread and a connection of their own, made with the first question: there are few, and no request waits for one.

mod desk;

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use toolgate_config::store::StoreUrl;

use self::desk::Desk;
use super::database::{Reading, Trouble};
use super::text::fitted;
use super::{PATIENCE, Unusable};

/// SHA-256 of a definition.
pub type Digest = [u8; 32];

/// So many tools of one server are remembered. One that lists ever new ones fills no disk; what comes after is not known, and so withheld.
pub(super) const MOST_OF_SERVER: usize = 5000;

/// A longer definition is known by its digest alone.
const LONGEST_DEFINITION: usize = 128 * 1024;

/// A tool as it is, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The name of its server in the configuration.
    pub server: String,
    /// The server's own name of it.
    pub tool: String,
    /// What tells it from another one.
    pub digest: Digest,
    /// Name, description and schema as JSON; empty: too long.
    pub definition: String,
}

impl Pin {
    /// Of a tool with this definition.
    pub fn of(server: &str, tool: &str, definition: String) -> Self {
        let mut digest_of = Digest::default();
        digest_of.copy_from_slice(digest(&SHA256, definition.as_bytes()).as_ref());
        Self {
            server: fitted(server).into_owned(),
            tool: fitted(tool).into_owned(),
            digest: digest_of,
            definition: if definition.len() > LONGEST_DEFINITION { String::new() } else { definition },
        }
    }

    /// Whether both are of one tool.
    pub fn is_of_the_same_tool(&self, other: &Self) -> bool {
        (&self.server, &self.tool) == (&other.server, &other.tool)
    }
}

/// Where pins are kept.
pub struct Pins(Where);

enum Where {
    Here(Mutex<HashMap<(String, String), Pin>>),
    There(Desk),
}

impl Pins {
    /// Of the store that a configuration names.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn open(url: &StoreUrl) -> Result<Self, Unusable> {
        Ok(Self(match url {
            StoreUrl::None => Where::Here(Mutex::default()),
            StoreUrl::Sqlite(_) | StoreUrl::Postgres(_) => Where::There(Desk::start(url.clone(), PATIENCE)?),
        }))
    }

    /// Notes those that were never seen, and gives for each what holds for its tool; `None`: its server has too many.
    ///
    /// # Errors
    /// The store cannot be used at the moment.
    pub async fn see(&self, seen: Vec<Pin>) -> Result<Vec<Option<Digest>>, Unusable> {
        match &self.0 {
            Where::Here(pins) => Ok(see_here(&mut pins.lock(), seen)),
            Where::There(desk) => desk.ask(move |database| database.see_pins(&seen, Timestamp::now())).await,
        }
    }

    /// From now on these hold.
    ///
    /// # Errors
    /// The store cannot be used at the moment.
    pub async fn accept(&self, accepted: Vec<Pin>) -> Result<(), Unusable> {
        match &self.0 {
            Where::Here(pins) => {
                let mut pins = pins.lock();
                accepted.into_iter().for_each(|pin| drop(pins.insert(place(&pin), pin)));
                Ok(())
            }
            Where::There(desk) => desk.ask(move |database| database.accept_pins(&accepted, Timestamp::now())).await,
        }
    }

    /// Closes the connection, if there is one.
    pub async fn close(&self) {
        match &self.0 {
            Where::Here(_) => {}
            Where::There(desk) => desk.close(PATIENCE.busy).await,
        }
    }
}

/// Every pin of a store, which is only looked at; none where there is no store yet. It takes a while, and is not for a thread that has a
/// runtime.
///
/// # Errors
/// It cannot be read.
pub fn look(url: &StoreUrl) -> Result<Vec<Pin>, Unusable> {
    if let StoreUrl::Sqlite(path) = url
        && !path.try_exists().unwrap_or(true)
    {
        return Ok(Vec::new());
    }
    let Some(mut reading) = Reading::open(url, PATIENCE.busy)? else { return Ok(Vec::new()) };
    reading.pins().map_err(|trouble: Trouble| Unusable(format!("the store cannot be read: {}", trouble.0)))
}

fn place(pin: &Pin) -> (String, String) {
    (pin.server.clone(), pin.tool.clone())
}

fn see_here(pins: &mut HashMap<(String, String), Pin>, seen: Vec<Pin>) -> Vec<Option<Digest>> {
    let one = |pin: Pin| {
        let place = place(&pin);
        if let Some(known) = pins.get(&place) {
            return Some(known.digest);
        }
        if pins.keys().filter(|(server, _)| *server == pin.server).count() >= MOST_OF_SERVER {
            return None;
        }
        Some(pins.entry(place).or_insert(pin).digest)
    };
    seen.into_iter().map(one).collect()
}
