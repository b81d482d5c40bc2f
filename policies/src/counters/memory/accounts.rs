//! The accounts of all counters, found by what they count; and how they stay few.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use jiff::Timestamp;

use super::account::Account;
use crate::limits::{CounterId, Limit};

/// So many accounts are kept, idle or not.
pub(super) const KEPT: usize = 100_000;
/// For how many seconds nobody may have asked for an account that is idle: what was used is in the ledger by then.
pub(super) const IDLE: i64 = 120;
/// While there are too many accounts, so many are looked at for each that is opened.
const STEP: usize = 4;

/// The accounts, and their time.
#[derive(Default)]
pub(super) struct Accounts {
    places: HashMap<ById, usize>,
    entries: Vec<Entry>,
    now: Timestamp,
    /// How many were opened since idle ones were last looked for.
    opened: usize,
    /// Where to go on looking.
    hand: usize,
}

struct Entry {
    limit: Arc<Limit>,
    /// When it was last asked for, in seconds since 1970.
    asked: i64,
    account: Account,
}

impl Accounts {
    /// Moves the time on. A clock that goes back stands still.
    pub(super) fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// Where the account of a counter is.
    pub(super) fn find(&self, id: &CounterId) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// Where the account of a limit's counter is; it is opened where there is none.
    pub(super) fn find_or_open(&mut self, limit: &Arc<Limit>) -> usize {
        let place = self.find(&limit.id).unwrap_or_else(|| self.open(limit));
        self.entries[place].asked = self.now.as_second();
        place
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets some of those that are idle, if there are too many. Places change.
    pub(super) fn tidy(&mut self) {
        let looks = if self.entries.len() > KEPT { STEP * (1 + self.opened) } else { 0 };
        self.opened = 0;
        for _ in 0..looks {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            self.look();
        }
    }

    fn open(&mut self, limit: &Arc<Limit>) -> usize {
        let place = self.entries.len();
        self.entries.push(Entry {
            limit: Arc::clone(limit),
            asked: self.now.as_second(),
            account: Account::open(&limit.id.what, self.now),
        });
        self.places.insert(ById(Arc::clone(limit)), place);
        self.opened += 1;
        place
    }

    /// Forgets the account at hand, if it is idle; the last one takes its place.
    fn look(&mut self) {
        let Some(entry) = self.entries.get_mut(self.hand) else { return };
        if self.now.as_second() < entry.asked + IDLE || !entry.account.is_idle(self.now) {
            self.hand += 1;
            return;
        }
        let gone = self.entries.swap_remove(self.hand);
        self.places.remove(&gone.limit.id);
        if let Some(moved) = self.entries.get(self.hand)
            && let Some(place) = self.places.get_mut(&moved.limit.id)
        {
            *place = self.hand;
        }
    }
}

/// By where it is.
impl Index<usize> for Accounts {
    type Output = Account;

    fn index(&self, place: usize) -> &Account {
        &self.entries[place].account
    }
}

impl IndexMut<usize> for Accounts {
    fn index_mut(&mut self, place: usize) -> &mut Account {
        &mut self.entries[place].account
    }
}

/// A limit in the place of its counter's identity, which is long, and is shared this way.
struct ById(Arc<Limit>);

impl Borrow<CounterId> for ById {
    fn borrow(&self) -> &CounterId {
        &self.0.id
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}
