//! The accounts of all counters, found by what they count; and how they stay few.
//!
//! They lie on shelves, which grow one by one and by little: whoever asks while there is a flood of new names does not wait until all the
//! others are put into a larger place.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use jiff::Timestamp;

use super::account::Account;
use crate::limits::{Limit, Scope};

/// So many accounts are kept, whether they are of use or not.
pub(super) const KEPT: usize = 100_000;
/// With more than so many, room is made in haste: then names are being invented.
pub(super) const MOST: usize = 4 * KEPT;
/// For so many seconds a budget is kept after it was last asked: by then what was used is in the ledger, from which it is seeded again.
pub(super) const PATIENCE: i64 = 120;
/// The same in haste.
const HASTE: i64 = 10;
/// While there are too many accounts, so many are looked at for each that is opened.
const STEP: usize = 4;
const SHELVES: usize = 64;

/// The accounts, and their time.
pub(super) struct Accounts {
    shelves: Vec<Shelf>,
    now: Timestamp,
    /// How many there are.
    count: usize,
    /// How many were opened since the last look for those that are of no use.
    opened: usize,
    /// Where to go on looking.
    hand: Place,
}

/// Where an account is, until accounts are forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    shelf: usize,
    at: usize,
}

#[derive(Default)]
struct Shelf {
    /// By the hash of their identity; where another has that already, by the number after it, and so on.
    by_hash: HashMap<u64, usize, BuildHasherDefault<AsItIs>>,
    entries: Vec<Entry>,
}

struct Entry {
    limit: Arc<Limit>,
    /// That by which it is found.
    hash: u64,
    /// When it was last asked for, in seconds since 1970.
    asked: i64,
    account: Account,
}

impl Default for Accounts {
    fn default() -> Self {
        let shelves = (0..SHELVES).map(|_| Shelf::default()).collect();
        Self { shelves, now: Timestamp::MIN, count: 0, opened: 0, hand: Place::default() }
    }
}

impl Accounts {
    /// Moves the time on. A clock that goes back stands still.
    pub(super) fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// Where the account of a counter is.
    pub(super) fn find(&self, limit: &Arc<Limit>) -> Option<Place> {
        let shelf = shelf_of(limit);
        let at = self.shelves[shelf].find(limit).ok()?;
        Some(Place { shelf, at })
    }

    /// Where the account of a limit's counter is; it is opened where there is none.
    pub(super) fn find_or_open(&mut self, limit: &Arc<Limit>) -> Place {
        let shelf = shelf_of(limit);
        let at = match self.shelves[shelf].find(limit) {
            Ok(at) => at,
            Err(hash) => self.open(shelf, hash, limit),
        };
        self.shelves[shelf].entries[at].asked = self.now.as_second();
        Place { shelf, at }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Forgets some of those that are of no use, if there are too many. Places change.
    pub(super) fn tidy(&mut self) {
        let looks = if self.count > KEPT { STEP * (1 + self.opened) } else { 0 };
        self.opened = 0;
        for _ in 0..looks {
            self.look();
        }
    }

    fn open(&mut self, shelf: usize, hash: u64, limit: &Arc<Limit>) -> usize {
        let account = Account::open(&limit.id.what, self.now);
        let Shelf { by_hash, entries } = &mut self.shelves[shelf];
        by_hash.insert(hash, entries.len());
        entries.push(Entry { limit: Arc::clone(limit), hash, asked: 0, account });
        self.count += 1;
        self.opened += 1;
        entries.len() - 1
    }

    /// Looks at the account at hand, and forgets it if it is of no use.
    fn look(&mut self) {
        let (Place { shelf, at }, haste) = (self.hand, self.count > MOST);
        let here = &mut self.shelves[shelf];
        let Some(entry) = here.entries.get_mut(at) else {
            self.hand = Place { shelf: (shelf + 1) % SHELVES, at: 0 };
            return;
        };
        if !entry.is_of_use(self.now, haste) && here.forget(at) {
            self.count -= 1;
        } else {
            self.hand.at += 1;
        }
    }
}

impl Shelf {
    /// Where the account of a limit's counter is; else the hash by which it would be found.
    fn find(&self, limit: &Arc<Limit>) -> Result<usize, u64> {
        let mut hash = limit.hash();
        while let Some(at) = self.by_hash.get(&hash) {
            let other = &self.entries[*at].limit;
            if Arc::ptr_eq(other, limit) || other.id == limit.id {
                return Ok(*at);
            }
            hash = hash.wrapping_add(1);
        }
        Err(hash)
    }

    /// Forgets an account, unless another is found by way of it. The last one takes its place.
    fn forget(&mut self, at: usize) -> bool {
        let hash = self.entries[at].hash;
        if self.by_hash.contains_key(&hash.wrapping_add(1)) {
            return false;
        }
        self.by_hash.remove(&hash);
        self.entries.swap_remove(at);
        if let Some(moved) = self.entries.get(at) {
            self.by_hash.insert(moved.hash, at);
        }
        true
    }
}

impl Entry {
    /// Whether something would be lost with it. In haste, the windows of users' rates may be: who invents a name has a new one anyway.
    fn is_of_use(&mut self, now: Timestamp, haste: bool) -> bool {
        let patience = if haste { HASTE } else { PATIENCE };
        let was_asked = now.as_second() < self.asked + patience;
        match &mut self.account {
            Account::Budget(budget) => was_asked || budget.is_held(),
            Account::Rate(rate) => {
                !rate.is_empty(now) && (was_asked || !haste || !matches!(self.limit.id.scope, Scope::User(..)))
            }
            Account::Concurrent(concurrent) => concurrent.is_held(),
        }
    }
}

/// The shelf of a counter. The bits that tell shelves apart are not those that tell apart what is on one.
fn shelf_of(limit: &Limit) -> usize {
    (limit.hash() >> 32) as usize % SHELVES
}

impl Index<Place> for Accounts {
    type Output = Account;

    fn index(&self, place: Place) -> &Account {
        &self.shelves[place.shelf].entries[place.at].account
    }
}

impl IndexMut<Place> for Accounts {
    fn index_mut(&mut self, place: Place) -> &mut Account {
        &mut self.shelves[place.shelf].entries[place.at].account
    }
}

/// What is a hash already is not hashed again.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        debug_assert!(false, "only hashes are looked up");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use toolgate_config::names::ModelName;

    use super::*;
    use crate::limits::{CounterId, What};

    fn limit(name: &str) -> Limit {
        Limit::new(CounterId { scope: Scope::Model(ModelName::new(name)), what: What::Concurrent }, 9)
    }

    fn limits(count: usize) -> Vec<Arc<Limit>> {
        (0..count).map(|at| Arc::new(limit(&at.to_string()))).collect()
    }

    /// Limits of one hash.
    fn alike(count: usize) -> Vec<Arc<Limit>> {
        (0..count).map(|at| Arc::new(limit(&at.to_string()).hashed(u64::MAX))).collect()
    }

    #[test]
    fn counters_of_the_same_hash_are_told_apart() {
        let mut accounts = Accounts::default();
        let limits = alike(5);
        let places: Vec<_> = limits.iter().map(|limit| accounts.find_or_open(limit)).collect();
        assert!(places.iter().zip(1..).all(|(place, next)| !places[next..].contains(place)));
        for limits in [limits, alike(5)] {
            assert_eq!(limits.iter().map(|limit| accounts.find_or_open(limit)).collect::<Vec<_>>(), places);
        }
        assert_eq!((accounts.count(), accounts.find(&Arc::new(limit("other").hashed(u64::MAX)))), (5, None));
    }

    #[test]
    fn an_account_by_way_of_which_others_are_found_is_not_forgotten() {
        let mut accounts = Accounts::default();
        let limits = alike(3);
        let places: Vec<_> = limits.iter().map(|limit| accounts.find_or_open(limit)).collect();
        let shelf = &mut accounts.shelves[places[0].shelf];
        assert!(!shelf.forget(0) && !shelf.forget(1) && shelf.forget(2));
        assert_eq!(limits.iter().map(|limit| shelf.find(limit)).collect::<Vec<_>>(), [Ok(0), Ok(1), Err(1)]);
        assert!(shelf.forget(1) && shelf.forget(0) && shelf.entries.is_empty() && shelf.by_hash.is_empty());
    }

    #[test]
    fn the_last_account_takes_the_place_of_one_that_is_forgotten() {
        let mut accounts = Accounts::default();
        let limits = limits(1000);
        for limit in &limits {
            accounts.find_or_open(limit);
        }
        for gone in 0..500 {
            let Place { shelf, at } = accounts.find(&limits[gone]).unwrap();
            assert!(accounts.shelves[shelf].forget(at));
            let found =
                |limit: &Arc<Limit>| accounts.find(limit).map(|Place { shelf, at }| &accounts.shelves[shelf].entries[at].limit);
            assert!(limits.iter().enumerate().all(|(at, limit)| found(limit) == (at > gone).then_some(limit)), "{gone}");
        }
    }
}
