//! The one pass over a text: an automaton finds triggers, a check at the place says what is to be masked.
//!
//! It can stop wherever the text ends for now and go on when more has come; it asks the same questions in the same order either way, so
//! what is masked never depends on where a stream was cut.

use std::ops::Range;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::{Builder, DFA};
use aho_corasick::{Anchored, MatchKind};
use toolgate_config::pattern::{Automaton, Pairs};
use toolgate_config::redaction::{Pattern, Rules};

use super::hit::{Hit, Tail};
use super::kind::Kind;
use super::patterns;
use super::sought::Sought;
use super::trigger::{self, Trigger};
use super::view::{About, Found, Known, LOOK, MASK, More, View};

/// What is looked for, compiled.
#[derive(Debug)]
pub(super) struct Engine {
    automaton: DFA,
    start: StateID,
    /// What each pattern of the automaton means.
    triggers: Vec<Trigger>,
    /// The words of masks, and the patterns.
    known: Known,
    /// Pairs of bytes that a pattern's match may begin with, and that with which a mask does; none where there are no patterns.
    begins: Option<Pairs>,
    /// What is looked for.
    pub(super) sought: Sought,
    /// Beginnings that must not leave before it is known what they become.
    beginnings: Vec<&'static [u8]>,
    /// The length of the longest of them, less one.
    longest_beginning: usize,
}

/// How far the pass has come.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// The next byte that the automaton reads.
    pub(super) at: usize,
    /// The end of the last mask.
    pub(super) floor: usize,
    state: StateID,
    /// What is known of the whole text.
    about: About,
    /// How far it was asked whether a pattern's match begins.
    tried: usize,
    /// Which of the triggers that end at `at` is to be asked next.
    asked: Option<usize>,
    /// How the last mask goes on at `at`.
    tail: Tail,
    /// What is looked for at `at`, before anything else.
    then: Option<Trigger>,
    /// A mask that begins further on; what stands before it is read first.
    planned: Option<Hit>,
}

impl Cursor {
    /// The text up to where the mask begins that was planned.
    fn up_to_planned<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        self.planned.as_ref().and_then(|hit| text.get(..hit.start)).unwrap_or(text)
    }

    /// The first bytes of the text were dropped: they are behind it.
    pub(super) fn forget(&mut self, gone: usize) {
        self.at -= gone;
        self.floor = self.floor.saturating_sub(gone);
        self.tried = self.tried.saturating_sub(gone);
        self.planned = self.planned.take().map(|hit| Hit { start: hit.start - gone, end: hit.end - gone, ..hit });
    }
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

/// What is asked next.
enum Asked {
    /// Nothing: the text has ended, for now.
    Nothing,
    /// A trigger, and where its literal begins.
    Trigger(Trigger, usize),
    /// Whether a pattern matches here.
    Patterns,
    /// The mask that was planned begins here.
    Planned(Hit),
}

/// No literal is longer, in bytes.
const LONGEST_LITERAL: usize = 32;

fn compiled(pattern: &Pattern) -> Option<(Kind, Automaton)> {
    Some((Kind::Pattern(pattern.name.clone()), Automaton::new(&pattern.regex).ok()?))
}

/// The pairs of bytes that a match may begin with, and with which a mask does.
fn begins(patterns: &[(Kind, Automaton)]) -> Option<Pairs> {
    let mut pairs = Pairs::of(patterns.iter().map(|(_, pattern)| pattern));
    if let [first, second, ..] = MASK {
        pairs.add(*first, *second);
    }
    (!patterns.is_empty()).then_some(pairs)
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
        let own_beginning = |(literal, trigger): &(&'static [u8], Trigger)| trigger.masks_itself().then_some(*literal);
        let mut beginnings: Vec<_> = table.iter().filter_map(own_beginning).collect();
        beginnings.sort_unstable();
        let patterns: Vec<_> = rules.patterns.iter().map(compiled).collect::<Option<_>>()?;
        let own = patterns.iter().map(|(kind, _)| kind.clone());
        Some(Self {
            start: automaton.start_state(Anchored::No).ok()?,
            automaton,
            longest_beginning: beginnings.iter().map(|literal| literal.len() - 1).max().unwrap_or_default(),
            beginnings,
            triggers: table.into_iter().map(|(_, trigger)| trigger).collect(),
            begins: begins(&patterns),
            known: Known { sought, kinds: Kind::BUILT_IN.iter().cloned().chain(own).collect(), patterns },
            sought,
        })
    }

    fn cursor(&self) -> Cursor {
        Cursor {
            at: 0,
            floor: 0,
            about: About::Anything,
            tried: 0,
            state: self.start,
            asked: None,
            tail: Tail::Over,
            then: None,
            planned: None,
        }
    }

    /// A cursor over a whole text.
    pub(super) fn cursor_whole(&self) -> Cursor {
        Cursor { then: self.sought.secrets.then_some(Trigger::Whole), ..self.cursor() }
    }

    /// A cursor over the value of a field.
    pub(super) fn cursor_about(&self, about: About) -> Cursor {
        Cursor { about, ..self.cursor() }
    }

    /// Goes on to the next mask, or as far as the text has come.
    pub(super) fn step(&self, text: &[u8], last: bool, cursor: &mut Cursor) -> Step {
        loop {
            if !matches!(cursor.tail, Tail::Over)
                && let Some(step) = Self::swallow(&self.view(text, last, cursor), cursor)
            {
                return step;
            }
            let view = self.view(text, last, cursor);
            let verdict = match self.asked(text, cursor) {
                Asked::Nothing if last => return Step::Hold(text.len()),
                Asked::Nothing => return Step::Hold(trigger::held(self, &view, text.len())),
                Asked::Trigger(trigger, start) => trigger.ask(&view, start, cursor.at),
                Asked::Patterns => self.ask_patterns(&view, text, cursor),
                Asked::Planned(hit) => Verdict::Hit(hit),
            };
            match verdict {
                Verdict::No => Self::answered(cursor),
                Verdict::Skip(to) => self.go_on_at(to, cursor),
                Verdict::Hit(hit) if hit.start > cursor.at => Self::plan(hit, cursor),
                Verdict::Hit(hit) => {
                    self.go_on_at(hit.end, cursor);
                    (cursor.tail, cursor.then) = (hit.tail, hit.then);
                    return Step::Mask(hit.start..hit.end, hit.kind);
                }
                Verdict::Wait(hold) => {
                    let planned = cursor.planned.as_ref().map_or(hold, |hit| hit.start);
                    return Step::Hold(hold.min(planned).min(trigger::held(self, &view, cursor.at)));
                }
            }
        }
    }

    fn view<'t>(&'t self, text: &'t [u8], last: bool, cursor: &Cursor) -> View<'t> {
        View::new(text, cursor.floor, last, &self.known).about(cursor.about)
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

    /// A mask that begins further on waits until the pass is there: what stands before it may hold others. One at a time is enough, for the
    /// names of two would stand in each other's values.
    fn plan(hit: Hit, cursor: &mut Cursor) {
        if cursor.planned.as_ref().is_none_or(|planned| hit.start < planned.start) {
            cursor.planned = Some(hit);
        }
        Self::answered(cursor);
    }

    fn go_on_at(&self, place: usize, cursor: &mut Cursor) {
        (cursor.at, cursor.floor, cursor.state, cursor.asked, cursor.then) = (place, place, self.start, None, None);
    }

    fn answered(cursor: &mut Cursor) {
        if cursor.then.take().is_some() {
            return;
        }
        match &mut cursor.asked {
            Some(asked) => *asked += 1,
            None => cursor.tried = cursor.at + 1,
        }
    }

    /// What is to be asked next. A trigger ends where the cursor is.
    fn asked(&self, text: &[u8], cursor: &mut Cursor) -> Asked {
        if let Some(then) = cursor.then {
            return Asked::Trigger(then, cursor.at);
        }
        if cursor.asked.is_none_or(|asked| asked >= self.automaton.match_len(cursor.state)) {
            match &self.begins {
                None => self.read(text, cursor),
                Some(begins) => {
                    if self.read_up_to(begins, text, cursor) {
                        return Asked::Patterns;
                    }
                }
            }
        }
        let Some(asked) = cursor.asked else { return Self::planned(text, cursor) };
        let pattern = self.automaton.match_pattern(cursor.state, asked);
        Asked::Trigger(self.triggers[pattern.as_usize()], cursor.at - self.automaton.pattern_len(pattern))
    }

    /// The mask that was planned, as far as no other has taken its place.
    fn planned(text: &[u8], cursor: &mut Cursor) -> Asked {
        match cursor.planned.take() {
            Some(hit) if hit.start <= cursor.at => {
                let start = cursor.at;
                Asked::Planned(Hit { start, end: hit.end.max(start), ..hit })
            }
            planned => {
                debug_assert!(planned.is_none() || cursor.at == text.len());
                cursor.planned = planned;
                Asked::Nothing
            }
        }
    }

    /// Reads on to the next place where triggers end, and no further than to a mask that was planned.
    fn read(&self, text: &[u8], cursor: &mut Cursor) {
        let mut state = cursor.state;
        let text = cursor.up_to_planned(text);
        for (offset, &byte) in text.get(cursor.at..).unwrap_or_default().iter().enumerate() {
            state = self.automaton.next_state(Anchored::No, state, byte);
            if self.automaton.is_special(state) && self.automaton.is_match(state) {
                // Most digits follow others, and then nothing begins with them.
                let inner =
                    byte.is_ascii_digit() && offset > 0 && text.get(cursor.at + offset - 1).is_some_and(u8::is_ascii_digit);
                if inner && self.automaton.match_len(state) == 1 && self.sought.has_digits() {
                    continue;
                }
                (cursor.state, cursor.at, cursor.asked) = (state, cursor.at + offset + 1, Some(0));
                return;
            }
        }
        (cursor.state, cursor.at, cursor.asked) = (state, cursor.at.max(text.len()), None);
    }

    /// The same, and no further than to where a pattern's match may begin: whether it is there.
    fn read_up_to(&self, begins: &Pairs, text: &[u8], cursor: &mut Cursor) -> bool {
        cursor.asked = None;
        let text = cursor.up_to_planned(text);
        while let Some(&byte) = text.get(cursor.at) {
            let may = text.get(cursor.at + 1).is_none_or(|&next| begins.has(byte, next));
            if may && cursor.tried <= cursor.at {
                return true;
            }
            cursor.state = self.automaton.next_state(Anchored::No, cursor.state, byte);
            cursor.at += 1;
            if self.automaton.is_special(cursor.state) && self.automaton.is_match(cursor.state) {
                cursor.asked = Some(0);
                return false;
            }
        }
        false
    }

    /// Whether a pattern matches where the cursor is. What it begins and a credential goes on with goes as a whole.
    fn ask_patterns(&self, view: &View<'_>, text: &[u8], cursor: &Cursor) -> Verdict {
        match patterns::find(view, cursor.at) {
            Ok(Some(patterns::Found::Mask(to))) => Verdict::Skip(to),
            Ok(Some(patterns::Found::Match(hit))) => match self.overlapping(view, text, cursor, hit.end) {
                Ok(Some(longer)) if longer.end > hit.end => Verdict::Hit(Hit { start: hit.start, kind: hit.kind, ..longer }),
                Ok(Some(longer)) if longer.end == hit.end => Verdict::Hit(Hit { tail: longer.tail, then: longer.then, ..hit }),
                Ok(_) => Verdict::Hit(hit),
                Err(More) => Verdict::Wait(cursor.at),
            },
            Ok(None) => Verdict::No,
            Err(More) => Verdict::Wait(cursor.at),
        }
    }

    /// What else begins between the cursor and the end of a match.
    fn overlapping(&self, view: &View<'_>, text: &[u8], cursor: &Cursor, end: usize) -> Found<Option<Hit>> {
        let view = view.up_to(cursor.at + LOOK);
        let text = text.get(..(end + LONGEST_LITERAL).min(cursor.at + LOOK)).unwrap_or(text);
        let mut inner = Cursor { at: cursor.at, floor: cursor.floor, ..self.cursor() };
        loop {
            if inner.asked.is_none_or(|asked| asked >= self.automaton.match_len(inner.state)) {
                self.read(text, &mut inner);
            }
            let Some(asked) = inner.asked else { break };
            let pattern = self.automaton.match_pattern(inner.state, asked);
            let start = inner.at - self.automaton.pattern_len(pattern);
            if start >= end {
                inner.asked = Some(asked + 1);
                continue;
            }
            match self.triggers[pattern.as_usize()].ask(&view, start, inner.at) {
                Verdict::Hit(hit) if hit.start < end && hit.start >= cursor.at => return Ok(Some(hit)),
                Verdict::Wait(_) => return Err(More),
                Verdict::Hit(_) | Verdict::Skip(_) | Verdict::No => inner.asked = Some(asked + 1),
            }
        }
        let cut = inner.at < end + LONGEST_LITERAL && view.at(inner.at).is_err();
        if cut && trigger::held(self, &view, inner.at) < end { Err(More) } else { Ok(None) }
    }

    /// Beginnings with this first byte, which must not leave before it is known what they become.
    pub(super) fn beginnings(&self, first: u8) -> &[&'static [u8]] {
        let from = self.beginnings.partition_point(|literal| literal.first() < Some(&first));
        let to = self.beginnings.partition_point(|literal| literal.first() <= Some(&first));
        self.beginnings.get(from..to).unwrap_or_default()
    }

    /// The most bytes of such a beginning that are not yet all of it.
    pub(super) fn longest_beginning(&self) -> usize {
        self.longest_beginning
    }

    /// What the value of a name is, where the whole name says that it is secret.
    pub(super) fn secret_name(&self, name: &[u8]) -> Option<Kind> {
        if !self.sought.secrets || name.len() > LONGEST_NAME {
            return None;
        }
        let view = View::new(name, 0, true, &self.known);
        let mut cursor = self.cursor();
        loop {
            self.read(name, &mut cursor);
            cursor.asked?;
            for match_of in 0..self.automaton.match_len(cursor.state) {
                let pattern = self.automaton.match_pattern(cursor.state, match_of);
                let start = cursor.at - self.automaton.pattern_len(pattern);
                let kind = self.triggers[pattern.as_usize()].names(&view, start, cursor.at);
                if kind.is_some() {
                    return kind;
                }
            }
        }
    }
}

/// Longer names are no names.
const LONGEST_NAME: usize = 96;
