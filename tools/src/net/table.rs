//! For tests: names with the answers that they give one after another, and where a connection to an address of the world really goes.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use super::resolve::Found;

/// Names and their answers.
#[derive(Default)]
pub(crate) struct Table {
    answers: Mutex<HashMap<String, VecDeque<Found>>>,
    asked: Mutex<Vec<String>>,
    detours: HashMap<SocketAddr, SocketAddr>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Table {
    /// A name with what it answers, time after time, the last one again and again. No address at all: it cannot be resolved.
    pub(crate) fn name(self, name: &str, answers: &[&[&str]]) -> Self {
        let addresses = |answer: &&[&str]| answer.iter().map(|address| address.parse::<IpAddr>().unwrap()).collect();
        self.answers.lock().unwrap().insert(name.to_owned(), answers.iter().map(addresses).collect());
        self
    }

    /// Whoever connects to `address` meets this server of the test.
    pub(crate) fn detour(mut self, address: &str, to: SocketAddr) -> Self {
        self.detours.insert(address.parse().unwrap(), to);
        self
    }

    /// The names that were asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The addresses that were connected to, in order.
    pub(crate) fn dialled(&self) -> Vec<String> {
        self.dialled.lock().unwrap().iter().map(ToString::to_string).collect()
    }

    pub(super) fn lookup(&self, host: &str) -> Option<Found> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answers = answers.get_mut(host)?;
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }

    /// Where a connection to this address goes. Nothing of the world is ever dialled from a test.
    pub(super) fn way(&self, address: SocketAddr) -> SocketAddr {
        self.dialled.lock().unwrap().push(address);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let own = if address.ip().is_loopback() { address } else { nowhere };
        self.detours.get(&address).copied().unwrap_or(own)
    }
}
