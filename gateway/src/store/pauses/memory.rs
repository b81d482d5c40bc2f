//! Pauses in this process, for a gateway that has no store: a list by age. It is short enough to be looked through.

use parking_lot::Mutex;

use super::{Bounds, LOOKED_AT, Owner, Pause, Wanted, expired};
use crate::talk::paused::Kept;

/// The pauses, the oldest first.
pub(super) struct Memory {
    pauses: Mutex<Vec<Pause>>,
    bounds: Bounds,
}

impl Memory {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { pauses: Mutex::new(Vec::new()), bounds }
    }

    pub(super) fn keep(&self, pause: Pause) -> bool {
        let mut pauses = self.pauses.lock();
        let since = expired(pause.at);
        pauses.retain(|kept| kept.at >= since);
        let is_same = |kept: &Pause| kept.owner == pause.owner && kept.kept.place == pause.kept.place;
        if pauses.iter().any(|kept| is_same(kept) && kept.content != pause.content) {
            return false;
        }
        pauses.retain(|kept| !is_same(kept));
        self.make_room(&mut pauses, &pause.owner, bytes(&pause));
        pauses.push(pause);
        true
    }

    pub(super) fn find(&self, wanted: &Wanted) -> Vec<Kept> {
        let pauses = self.pauses.lock();
        let is_here = |kept: &Kept| wanted.places.contains(&kept.place);
        let is_alike = |kept: &Kept| {
            let mut places = wanted.places.iter();
            places.any(|place| place.calls == kept.place.calls || place.before == kept.place.before)
        };
        let own = || pauses.iter().rev().filter(|pause| pause.owner == wanted.owner && pause.at >= wanted.since);
        let own = || own().map(|pause| &pause.kept);
        let alike = own().filter(|kept| !is_here(kept) && is_alike(kept));
        own().filter(|kept| is_here(kept)).chain(alike).take(LOOKED_AT * wanted.places.len()).cloned().collect()
    }

    /// The oldest go first: of the same key where it has too many, then of all.
    fn make_room(&self, pauses: &mut Vec<Pause>, owner: &Owner, more: u64) {
        while pauses.iter().filter(|kept| kept.owner.key == owner.key).count() >= self.bounds.of_key
            && let Some(oldest) = pauses.iter().position(|kept| kept.owner.key == owner.key)
        {
            pauses.remove(oldest);
        }
        while !pauses.is_empty() && pauses.iter().map(bytes).sum::<u64>() + more > self.bounds.bytes {
            pauses.remove(0);
        }
    }
}

/// What a pause takes, roughly.
fn bytes(pause: &Pause) -> u64 {
    let state = pause.kept.state.as_ref().map_or(0, String::len);
    (size_of::<Pause>() + pause.owner.key.len() + pause.owner.user.len() + state) as u64
}
