//! What of a transcript goes when it does not fit: the oldest whole turns, then parts of the oldest results of tools. Pure: it is told who
//! said each message and how many tokens that has, and knows no text.
//!
//! A turn begins with a message of the assistant and reaches to the next one: a call with all its results, or an answer with the question
//! after it. What begins with the assistant can follow what the user said, so whatever goes from the front, the roles still take turns, and no
//! result is left without its call. System texts stay wherever they stand; so do the first user's message, the last user's message, and the
//! newest turn.

use std::ops::Range;

use crate::wire::history::Role;

/// A message, as far as this matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Whose it is.
    pub(super) role: Role,
    /// How many tokens it has.
    pub(super) tokens: u64,
    /// To how many it can be shortened; as many as it has: it cannot.
    pub(super) least: u64,
}

/// What is to be done so that a transcript fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Which messages go, in order.
    pub(super) dropped: Vec<usize>,
    /// How many turns they were.
    pub(super) turns: usize,
    /// Which are shortened, and to how many tokens at most.
    pub(super) shortened: Vec<(usize, u64)>,
    /// The tokens of what is left.
    pub(super) tokens: u64,
}

/// What has to go for the transcript to have no more tokens than there is room for. `None`: not even what must stay fits.
pub(super) fn plan(pieces: &[Piece], room: u64) -> Option<Plan> {
    let mut plan = Plan { tokens: sum(pieces), ..Plan::default() };
    let stays = staying(pieces);
    let turns = turns(pieces);
    for turn in &turns {
        if plan.tokens <= room {
            return Some(plan);
        }
        plan.drop_turn(pieces, &stays, turn.clone());
    }
    let kept = |at: &usize| plan.dropped.binary_search(at).is_err();
    let groups: Vec<Vec<usize>> = turns.into_iter().map(|turn| turn.filter(kept).collect()).collect();
    groups.iter().for_each(|group| plan.shorten(pieces, group, room));
    (plan.tokens <= room).then_some(plan)
}

/// How many tokens the newest turn has.
pub(super) fn newest(pieces: &[Piece]) -> u64 {
    turns(pieces).pop().map_or(0, |turn| sum(&pieces[turn]))
}

impl Plan {
    fn drop_turn(&mut self, pieces: &[Piece], stays: &[bool], turn: Range<usize>) {
        let before = self.dropped.len();
        self.dropped.extend(turn.filter(|at| !stays[*at]));
        self.turns += usize::from(self.dropped.len() > before);
        self.tokens -= self.dropped[before..].iter().map(|at| pieces[*at].tokens).sum::<u64>();
    }

    /// Shortens the results of one turn, which are of one age: the longest first, until all are as long as the shortest that is shortened.
    fn shorten(&mut self, pieces: &[Piece], group: &[usize], room: u64) {
        let over = self.tokens.saturating_sub(room);
        if over == 0 {
            return;
        }
        let left = |at: usize, level: u64| pieces[at].tokens.min(pieces[at].least.max(level));
        let saved = |level: u64| group.iter().map(|at| pieces[*at].tokens - left(*at, level)).sum::<u64>();
        let level = highest(sum(pieces), |level| saved(level) >= over);
        let cut = group.iter().filter(|at| left(**at, level) < pieces[**at].tokens);
        self.shortened.extend(cut.map(|at| (*at, left(*at, level))));
        self.tokens -= saved(level);
    }
}

/// The highest number up to `most` that is good, where all below a good one are good; 0 if none is.
fn highest(most: u64, is_good: impl Fn(u64) -> bool) -> u64 {
    let (mut good, mut beyond) = (0, most.saturating_add(1));
    while beyond - good > 1 {
        let middle = good + (beyond - good) / 2;
        if is_good(middle) { good = middle } else { beyond = middle }
    }
    good
}

/// The turns, oldest first. What stands before the first is in none.
fn turns(pieces: &[Piece]) -> Vec<Range<usize>> {
    let mut turns: Vec<Range<usize>> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match turns.last_mut() {
            _ if piece.role == Role::Assistant => turns.push(at..at + 1),
            Some(turn) => turn.end = at + 1,
            None => {}
        }
    }
    turns
}

/// Which messages stay whatever happens.
fn staying(pieces: &[Piece]) -> Vec<bool> {
    let is_user = |piece: &Piece| piece.role == Role::User;
    let mut stays: Vec<bool> = pieces.iter().map(|piece| piece.role == Role::System).collect();
    if let Some(first) = pieces.iter().position(is_user) {
        stays[first] = true;
    }
    let last = pieces.iter().rposition(is_user);
    if let Some(last) = last {
        // What a user says in several messages is one question.
        (0..=last).rev().take_while(|at| is_user(&pieces[*at])).for_each(|at| stays[at] = true);
    }
    let said_last = pieces.iter().rposition(|piece| piece.role != Role::System);
    if let Some(newest) = turns(pieces).pop().filter(|_| said_last != last) {
        stays[newest].fill(true);
    }
    stays
}

fn sum(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.tokens).sum()
}

#[cfg(test)]
mod tests;
