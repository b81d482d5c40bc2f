//! The patterns of the operator's own. A match may be of any length, but what it is to be must show early: its first end within
//! [`LONGEST_WAIT`] bytes, and each longer one within as many again. So a stream holds no more of it than of anything else.

use toolgate_config::pattern::{Automaton, LONGEST_WAIT, State};

use super::hit::{Hit, Tail};
use super::view::{self, View};

/// What is at a place.
pub(super) enum Found {
    /// A mask that was there already, and where it ends: no pattern looks into it.
    Mask(usize),
    /// A match.
    Match(Hit),
}

/// What the patterns say of a place: the first that matches there goes before the others.
pub(super) fn find(view: &View<'_>, place: usize) -> view::Found<Option<Found>> {
    let until = place + LONGEST_WAIT;
    if let Some(to) = view.up_to(until).mask(place)? {
        return Ok(Some(Found::Mask(to)));
    }
    for (pattern, (kind, automaton)) in view.patterns().iter().enumerate() {
        let start = automaton.start(view.before_as_written(place));
        if let Next::End(end, state) = next(automaton, start, view, place, until)? {
            let hit = Hit::new(place, end, kind.clone());
            return grown(Growth { pattern, state }, view, hit, until).map(|hit| Some(Found::Match(hit)));
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
        Ok(match self.next(view, end, end + LONGEST_WAIT)? {
            Next::End(to, state) => Some((to, Self { state, ..self })),
            Next::None | Next::Late => None,
        })
    }

    fn next(self, view: &View<'_>, end: usize, until: usize) -> view::Found<Next> {
        match view.patterns().get(self.pattern) {
            Some((_, automaton)) => next(automaton, self.state, view, end, until),
            None => Ok(Next::None),
        }
    }
}

/// The match at its full length, or as far as it may be held: then what follows may still belong to it.
fn grown(mut growth: Growth, view: &View<'_>, mut hit: Hit, until: usize) -> view::Found<Hit> {
    loop {
        match growth.next(view, hit.end, until)? {
            Next::End(end, state) => (hit.end, growth.state) = (end, state),
            Next::None => return Ok(hit),
            Next::Late => return Ok(hit.with(Tail::Pattern(growth))),
        }
    }
}

/// The next end of a match.
enum Next {
    /// It ends there, in that state.
    End(usize, State),
    /// There is none.
    None,
    /// There is none so far.
    Late,
}

/// The next end behind `from` that a match has which is in `state` there, up to a place.
fn next(automaton: &Automaton, state: State, view: &View<'_>, from: usize, until: usize) -> view::Found<Next> {
    let mut state = state;
    for place in from..=until {
        let byte = view.at(place)?;
        let masked = byte == Some(b'[') && view.up_to(until).mask(place)?.is_some();
        // Behind a match there may be a mask: no end of the text, and no part of the match.
        let next = byte.map_or_else(|| automaton.end(state), |byte| automaton.next(state, byte));
        if automaton.is_match(next) && place > from {
            return Ok(Next::End(place, state));
        }
        if automaton.is_dead(next) || byte.is_none() || masked {
            return Ok(Next::None);
        }
        state = next;
    }
    Ok(Next::Late)
}
