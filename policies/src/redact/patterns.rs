//! The patterns of the operator's own. A match may be of any length, but what it is to be must show early: its first end within [`LOOK`] bytes,
//! and each longer one within as many again. So a stream holds no more of it than of anything else.

use toolgate_config::pattern::{Automaton, State};

use super::hit::{Hit, Tail};
use super::view::{self, LOOK, View};

/// What is at a place.
pub(super) enum Found {
    /// A mask that was there already, and where it ends: no pattern looks into it.
    Mask(usize),
    /// A match.
    Match(Hit),
}

/// What the patterns say of a place: the first that matches there goes before the others.
pub(super) fn find(view: &View<'_>, place: usize) -> view::Found<Option<Found>> {
    if let Some(to) = view.mask(place)? {
        return Ok(Some(Found::Mask(to)));
    }
    for (at, (kind, automaton)) in view.patterns().iter().enumerate() {
        let start = automaton.start(view.before_as_written(place));
        if let Some((end, state)) = longer(automaton, start, view, place, place)? {
            let hit = Hit::new(place, end, kind.clone());
            return grown(Growth { pattern: at, state }, view, hit).map(|hit| Some(Found::Match(hit)));
        }
    }
    Ok(None)
}

/// How a match may become longer: the pattern, and where in it its end so far is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pattern: usize,
    state: State,
}

impl Growth {
    /// The next end of the match, if it has one.
    pub(super) fn step(self, view: &View<'_>, end: usize) -> view::Found<Option<(usize, Self)>> {
        let Some((_, automaton)) = view.patterns().get(self.pattern) else { return Ok(None) };
        Ok(longer(automaton, self.state, view, end, end)?.map(|(to, state)| (to, Self { state, ..self })))
    }
}

/// The match at its full length, or at as much of it as may be held.
fn grown(mut growth: Growth, view: &View<'_>, mut hit: Hit) -> view::Found<Hit> {
    while hit.end < hit.start + LOOK {
        match growth.step(view, hit.end)? {
            Some((end, next)) => (hit.end, growth) = (end, next),
            None => return Ok(hit),
        }
    }
    Ok(hit.with(Tail::Pattern(growth)))
}

/// The next end behind `end` that a match has which is in `state` at `from`, and its state there.
fn longer(automaton: &Automaton, state: State, view: &View<'_>, from: usize, end: usize) -> view::Found<Option<(usize, State)>> {
    let mut state = state;
    for place in from..=from + LOOK {
        let byte = view.at(place)?;
        let masked = byte == Some(b'[') && view.mask(place)?.is_some();
        let next = match byte {
            Some(byte) if !masked => automaton.next(state, byte),
            // What comes behind is no end of the text, and no part of the match.
            Some(_) => automaton.next(state, b'['),
            None => automaton.end(state),
        };
        if automaton.is_match(next) && place > end {
            return Ok(Some((place, state)));
        }
        if automaton.is_dead(next) || byte.is_none() || masked {
            return Ok(None);
        }
        state = next;
    }
    Ok(None)
}
