//! The one pass over a text: an automaton finds triggers, a check at the place says what is to be masked.
//!
//! It can stop wherever the text ends for now and go on when more has come; it asks the same questions in the same order either way, so
//! what is masked never depends on where a stream was cut.

use std::ops::Range;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::{Builder, DFA};
use aho_corasick::{Anchored, MatchKind};
use toolgate_config::redaction::{Personal, Rules};

use super::hit::{Hit, Tail};
use super::kind::Kind;
use super::trigger::{self, Trigger};
use super::view::View;

/// What is looked for, compiled.
#[derive(Debug)]
pub(super) struct Engine {
    automaton: DFA,
    start: StateID,
    /// What each pattern of the automaton means.
    triggers: Vec<Trigger>,
    /// The words that stand in a mask of ours.
    kinds: Vec<Kind>,
    /// What is looked for.
    pub(super) sought: Sought,
    /// Beginnings that must not leave before it is known what they become.
    beginnings: Vec<&'static [u8]>,
}

/// Which kinds are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sought {
    pub(super) secrets: bool,
    pub(super) email: bool,
    pub(super) phone: bool,
    pub(super) iban: bool,
    pub(super) card: bool,
    pub(super) ip: bool,
}

impl Sought {
    pub(super) fn of(rules: &Rules) -> Self {
        let has = |kind| rules.personal.contains(&kind);
        Self {
            secrets: rules.secrets,
            email: has(Personal::Email),
            phone: has(Personal::Phone),
            iban: has(Personal::Iban),
            card: has(Personal::Card),
            ip: has(Personal::Ip),
        }
    }

    pub(super) fn nothing(self) -> bool {
        let Self { secrets, email, phone, iban, card, ip } = self;
        !(secrets || email || phone || iban || card || ip)
    }
}

/// How far the pass has come.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// The next byte that the automaton reads.
    pub(super) at: usize,
    /// The end of the last mask.
    pub(super) floor: usize,
    state: StateID,
    /// Which of the triggers that end at `at` is to be asked next.
    asked: Option<usize>,
    /// How the last mask goes on at `at`.
    tail: Tail,
    /// What is looked for at `at`, before anything else.
    then: Option<Trigger>,
}

/// Where the pass stopped.
#[derive(Debug)]
pub(super) enum Step {
    /// This is to be masked. Its end may be beyond that: what follows may still belong to it.
    Mask(Range<usize>, Kind),
    /// The last mask goes on to here.
    Swallowed(usize),
    /// The text has ended for now; nothing from here on may leave yet.
    Hold(usize),
}

/// What an asked trigger says.
pub(super) enum Verdict {
    /// Nothing.
    No,
    /// Something to mask.
    Hit(Hit),
    /// Nothing is to be changed, or looked at, up to there.
    Skip(usize),
    /// It cannot say yet; nothing from there on may leave.
    Wait(usize),
}

impl Engine {
    pub(super) fn new(rules: &Rules) -> Option<Self> {
        let sought = Sought::of(rules);
        let table = trigger::table(sought);
        let automaton = Builder::new()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(table.iter().map(|(literal, _)| *literal))
            .ok()?;
        let patterns = rules.patterns.iter().map(|pattern| Kind::Pattern(pattern.name.clone()));
        Some(Self {
            start: automaton.start_state(Anchored::No).ok()?,
            automaton,
            beginnings: table.iter().filter(|(_, trigger)| trigger.masks_itself()).map(|(literal, _)| *literal).collect(),
            triggers: table.into_iter().map(|(_, trigger)| trigger).collect(),
            kinds: Kind::BUILT_IN.iter().cloned().chain(patterns).collect(),
            sought,
        })
    }

    pub(super) fn cursor(&self) -> Cursor {
        Cursor { at: 0, floor: 0, state: self.start, asked: None, tail: Tail::Over, then: None }
    }

    /// Goes on to the next mask, or as far as the text has come.
    pub(super) fn step(&self, text: &[u8], last: bool, cursor: &mut Cursor) -> Step {
        loop {
            if let Some(step) = Self::swallow(&View::new(text, cursor.floor, last, &self.kinds), cursor) {
                return step;
            }
            let view = View::new(text, cursor.floor, last, &self.kinds);
            let Some((trigger, start)) = self.asked(text, cursor) else {
                return Step::Hold(if last { text.len() } else { trigger::held(self, &view, text.len()) });
            };
            match trigger.ask(&view, start, cursor.at) {
                Verdict::No => Self::answered(cursor),
                Verdict::Skip(to) => self.go_on_at(to, cursor),
                Verdict::Hit(hit) => {
                    self.go_on_at(hit.end, cursor);
                    (cursor.tail, cursor.then) = (hit.tail, hit.then);
                    return Step::Mask(hit.start..hit.end, hit.kind);
                }
                Verdict::Wait(hold) => return Step::Hold(hold.min(trigger::held(self, &view, cursor.at))),
            }
        }
    }

    /// Swallows the rest of the last mask: what is to be said of that, if there is something.
    fn swallow(view: &View<'_>, cursor: &mut Cursor) -> Option<Step> {
        let from = cursor.at;
        (cursor.at, cursor.tail) = cursor.tail.swallow(view, from);
        match cursor.tail {
            _ if cursor.at > from => {
                cursor.floor = cursor.at;
                Some(Step::Swallowed(cursor.at))
            }
            Tail::Over => None,
            _ => Some(Step::Hold(from)),
        }
    }

    fn go_on_at(&self, place: usize, cursor: &mut Cursor) {
        (cursor.at, cursor.floor, cursor.state, cursor.asked, cursor.then) = (place, place, self.start, None, None);
    }

    fn answered(cursor: &mut Cursor) {
        if cursor.then.take().is_none() {
            cursor.asked = cursor.asked.map(|asked| asked + 1);
        }
    }

    /// The trigger that is to be asked, where it begins; it ends where the cursor is.
    fn asked(&self, text: &[u8], cursor: &mut Cursor) -> Option<(Trigger, usize)> {
        if let Some(then) = cursor.then {
            return Some((then, cursor.at));
        }
        if cursor.asked.is_none_or(|asked| asked >= self.automaton.match_len(cursor.state)) {
            self.read(text, cursor)?;
        }
        let pattern = self.automaton.match_pattern(cursor.state, cursor.asked?);
        Some((self.triggers[pattern.as_usize()], cursor.at - self.automaton.pattern_len(pattern)))
    }

    /// Reads on to the next place where triggers end.
    fn read(&self, text: &[u8], cursor: &mut Cursor) -> Option<()> {
        let mut state = cursor.state;
        for (offset, &byte) in text.get(cursor.at..)?.iter().enumerate() {
            state = self.automaton.next_state(Anchored::No, state, byte);
            if self.automaton.is_special(state) && self.automaton.is_match(state) {
                (cursor.state, cursor.at, cursor.asked) = (state, cursor.at + offset + 1, Some(0));
                return Some(());
            }
        }
        (cursor.state, cursor.at, cursor.asked) = (state, text.len(), None);
        None
    }

    /// Beginnings that must not leave before it is known what they become.
    pub(super) fn beginnings(&self) -> &[&'static [u8]] {
        &self.beginnings
    }

    /// What the value of a name is, where the whole name says that it is secret.
    pub(super) fn secret_name(&self, name: &[u8]) -> Option<Kind> {
        if !self.sought.secrets || name.len() > LONGEST_NAME {
            return None;
        }
        let view = View::new(name, 0, true, &self.kinds);
        let mut cursor = self.cursor();
        while self.read(name, &mut cursor).is_some() {
            for match_of in 0..self.automaton.match_len(cursor.state) {
                let pattern = self.automaton.match_pattern(cursor.state, match_of);
                let start = cursor.at - self.automaton.pattern_len(pattern);
                let kind = self.triggers[pattern.as_usize()].names(&view, start, cursor.at);
                if kind.is_some() {
                    return kind;
                }
            }
        }
        None
    }
}

/// Longer names are no names.
const LONGEST_NAME: usize = 96;
