//! The patterns of `redaction.patterns`, compiled: each an automaton that reads a byte at a time, so that a match may come in pieces.

use std::collections::HashMap;
use std::fmt;

use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_syntax::ast;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind, Look};

/// A match that is not there after so many bytes is none.
pub const LONGEST_WAIT: usize = 128;

/// The largest automaton: how many moves it may have, states times kinds of bytes.
const LARGEST: usize = 1 << 19;

/// Where an automaton is in a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A state of a table.
    Number(u32),
    /// Which texts of a list go on so, from the first to before the last, how much of them was read, and whether one of them was read whole
    /// before the last byte.
    Among(u32, u32, u32, bool),
}

/// A pattern, which is asked whether a match begins at a place. Each byte costs one step, whatever the pattern is.
#[derive(Debug)]
pub enum Automaton {
    /// Of any form.
    Table(Box<Table>),
    /// Nothing but texts, of which there may be many and long ones.
    Texts(Texts),
}

/// The states of a pattern, and where each byte leads from each.
pub struct Table {
    /// The kind of each byte.
    kinds: [u8; 256],
    /// How many kinds there are, the end of the text included, which is the last.
    width: usize,
    moves: Vec<u32>,
    matches: Vec<bool>,
    dead: Vec<bool>,
    /// By the byte before; the last: at the start of the text.
    starts: Vec<u32>,
}

impl Automaton {
    /// The pattern.
    ///
    /// # Errors
    /// What is wrong with it, for the operator.
    pub fn new(regex: &str) -> Result<Self, String> {
        let hir = syntax::parse(regex).map_err(|error| wrong(&error))?;
        match Texts::of(&hir) {
            Some(texts) => Ok(Self::Texts(texts)),
            None => Table::new(&hir).map(|table| Self::Table(Box::new(table))),
        }
    }

    /// The state before a match, by the byte before it; `None`: the text starts here.
    pub fn start(&self, before: Option<u8>) -> State {
        match self {
            Self::Table(table) => table.start(before),
            Self::Texts(texts) => texts.start(),
        }
    }

    /// The state after a byte.
    pub fn next(&self, state: State, byte: u8) -> State {
        match (self, state) {
            (Self::Table(table), State::Number(number)) => table.next(number, byte),
            (Self::Texts(texts), State::Among(from, to, depth, _)) => texts.next((from, to), depth, Some(byte)),
            (_, state) => state,
        }
    }

    /// The state after the end of the text.
    pub fn end(&self, state: State) -> State {
        match (self, state) {
            (Self::Table(table), State::Number(number)) => table.end(number),
            (Self::Texts(texts), State::Among(from, to, depth, _)) => texts.next((from, to), depth, None),
            (_, state) => state,
        }
    }

    /// Whether a match has ended before what was read last.
    pub fn is_match(&self, state: State) -> bool {
        match (self, state) {
            (Self::Table(table), State::Number(number)) => table.matches[number as usize],
            (_, State::Among(.., whole)) => whole,
            (Self::Texts(_), State::Number(_)) => false,
        }
    }

    /// Whether there is no match to come.
    pub fn is_dead(&self, state: State) -> bool {
        match (self, state) {
            (Self::Table(table), State::Number(number)) => table.dead[number as usize],
            (_, State::Among(from, to, ..)) => from >= to,
            (Self::Texts(_), State::Number(_)) => true,
        }
    }
}

/// Texts in their order: those that go on alike stand together.
#[derive(Debug)]
pub struct Texts(Vec<Vec<u8>>);

/// Shorter texts are compiled as any pattern is.
const SHORTEST_TEXT: usize = 8;
/// So much of a text is as good as all of it.
const LONG_ENOUGH: u32 = 96;

impl Texts {
    /// The texts that a pattern matches, if it matches nothing else.
    fn of(hir: &Hir) -> Option<Self> {
        let mut extractor = Extractor::new();
        extractor.limit_total(1 << 16).limit_literal_len(1 << 16);
        let all = extractor.extract(hir);
        if !all.is_exact() || !hir.properties().look_set().is_empty() {
            return None;
        }
        let mut texts: Vec<Vec<u8>> = all.literals()?.iter().map(|text| text.as_bytes().to_vec()).collect();
        texts.sort_unstable();
        texts.dedup();
        (!texts.is_empty() && texts.iter().all(|text| text.len() >= SHORTEST_TEXT)).then_some(Self(texts))
    }

    fn start(&self) -> State {
        State::Among(0, u32::try_from(self.0.len()).unwrap_or(u32::MAX), 0, false)
    }

    fn next(&self, (from, to): (u32, u32), depth: u32, byte: Option<u8>) -> State {
        let (from, to) = (from as usize, to as usize);
        let among = self.0.get(from..to).unwrap_or_default();
        // Where one is the beginning of others it is the first of them.
        let whole = among.first().is_some_and(|text| text.len() == depth as usize || depth >= LONG_ENOUGH);
        let at = |text: &Vec<u8>| text.get(depth as usize).copied();
        let (first, end) = match byte {
            Some(byte) => {
                (among.partition_point(|text| at(text) < Some(byte)), among.partition_point(|text| at(text) <= Some(byte)))
            }
            None => (0, 0),
        };
        let place = |offset: usize| u32::try_from(from + offset).unwrap_or(u32::MAX);
        State::Among(place(first), place(end), depth + 1, whole)
    }
}

impl Table {
    /// Compiles a pattern. `\b` looks at ASCII alone; all else is as the `regex` crate has it.
    ///
    /// # Errors
    /// What is wrong with it, for the operator.
    fn new(hir: &Hir) -> Result<Self, String> {
        let least = hir.properties().minimum_len();
        if least == Some(0) {
            return Err("it matches nothing at all, which is everywhere".to_owned());
        }
        if least.is_none_or(|least| least > LONGEST_WAIT) {
            return Err(format!("it matches no text, or none of at most {LONGEST_WAIT} bytes"));
        }
        let config = thompson::Config::new().nfa_size_limit(Some(LARGEST));
        let nfa = NFA::compiler().configure(config).build_from_hir(&with_ascii_words(hir)).map_err(|_| too_large())?;
        let config = DFA::config().skip_cache_capacity_check(true).cache_capacity(256 * LARGEST);
        let lazy = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| too_large())?;
        Build::new(&lazy).table().ok_or_else(too_large)
    }

    fn start(&self, before: Option<u8>) -> State {
        State::Number(self.starts[before.map_or(256, usize::from)])
    }

    fn next(&self, state: u32, byte: u8) -> State {
        self.after(state, usize::from(self.kinds[usize::from(byte)]))
    }

    fn end(&self, state: u32) -> State {
        self.after(state, self.width - 1)
    }

    fn after(&self, state: u32, kind: usize) -> State {
        State::Number(self.moves[state as usize * self.width + kind])
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("states", &self.matches.len()).finish_non_exhaustive()
    }
}

/// The states of a lazy automaton, all of them found at once: the lazy one forgets states when it has too many, and a stream must not.
struct Build<'a> {
    lazy: &'a DFA,
    cache: Cache,
    known: HashMap<LazyStateID, u32>,
    found: Vec<LazyStateID>,
}

impl<'a> Build<'a> {
    fn new(lazy: &'a DFA) -> Self {
        Self { lazy, cache: lazy.create_cache(), known: HashMap::new(), found: Vec::new() }
    }

    /// `None`: it is too large.
    fn table(mut self) -> Option<Table> {
        let classes = self.lazy.byte_classes();
        let width = classes.alphabet_len();
        let mut kinds = [0; 256];
        for byte in 0..=u8::MAX {
            kinds[usize::from(byte)] = classes.get(byte);
        }
        let of_kind: Vec<u8> = classes.representatives(0..=u8::MAX).filter_map(|unit| unit.as_u8()).collect();
        let starts = (0..=256).map(|before| self.start(u8::try_from(before).ok())).collect::<Option<Vec<_>>>()?;
        let mut moves = Vec::new();
        let mut at = 0;
        while let Some(&state) = self.found.get(at) {
            for &byte in &of_kind {
                let next = self.lazy.next_state(&mut self.cache, state, byte).ok()?;
                moves.push(self.number(next));
            }
            let next = self.lazy.next_eoi_state(&mut self.cache, state).ok()?;
            moves.push(self.number(next));
            if self.found.len() * width > LARGEST || self.cache.clear_count() > 0 {
                return None;
            }
            at += 1;
        }
        let dead: Vec<bool> = self.found.iter().map(|state| state.is_dead() || state.is_quit()).collect();
        let matches = self.found.iter().map(|state| state.is_match()).collect();
        Some(Table { kinds, width, moves, matches, dead, starts })
    }

    fn start(&mut self, before: Option<u8>) -> Option<u32> {
        let config = start::Config::new().look_behind(before).anchored(Anchored::Yes);
        let state = self.lazy.start_state(&mut self.cache, &config).ok()?;
        Some(self.number(state))
    }

    fn number(&mut self, state: LazyStateID) -> u32 {
        let next = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        *self.known.entry(state).or_insert_with(|| {
            self.found.push(state);
            next
        })
    }
}

fn too_large() -> String {
    "it is too large; fewer or smaller repetitions, or `(?-u:…)` around what need not know all scripts".to_owned()
}

fn wrong(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => match error.kind() {
            ast::ErrorKind::UnsupportedLookAround => "it cannot run in linear time: look-around does not exist here".to_owned(),
            ast::ErrorKind::UnsupportedBackreference => {
                "it cannot run in linear time: back-references do not exist here".to_owned()
            }
            kind => format!("it is no regular expression: {kind}"),
        },
        regex_syntax::Error::Translate(error) => format!("it is no regular expression: {}", error.kind()),
        _ => "it is no regular expression".to_owned(),
    }
}

/// The words of all scripts are more than an automaton can know without looking back; those of ASCII are not.
fn with_ascii_words(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => *other,
        }),
        HirKind::Repetition(repetition) => Hir::repetition(repetition.with(with_ascii_words(&repetition.sub))),
        HirKind::Capture(capture) => with_ascii_words(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(with_ascii_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(with_ascii_words).collect()),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
    }
}

/// Pairs of bytes, for what must be known of a text at a glance.
pub struct Pairs(Box<[u64; 1024]>);

impl Pairs {
    /// The pairs that a match of one of these begins with.
    pub fn of<'a>(patterns: impl IntoIterator<Item = &'a Automaton>) -> Self {
        let mut pairs = Self(Box::new([0; 1024]));
        let befores = (0..=u8::MAX).map(Some).chain([None]);
        for pattern in patterns {
            let mut starts: Vec<State> = befores.clone().map(|before| pattern.start(before)).collect();
            starts.dedup();
            for first in 0..=u8::MAX {
                let mut states: Vec<State> =
                    starts.iter().map(|start| pattern.next(*start, first)).filter(|state| !pattern.is_dead(*state)).collect();
                states.dedup();
                for second in (0..=u8::MAX).filter(|_| !states.is_empty()) {
                    let may = states
                        .iter()
                        .map(|state| pattern.next(*state, second))
                        .any(|state| !pattern.is_dead(state) || pattern.is_match(state));
                    if may {
                        pairs.add(first, second);
                    }
                }
            }
        }
        pairs
    }

    /// One more.
    pub fn add(&mut self, first: u8, second: u8) {
        let at = usize::from(first) << 8 | usize::from(second);
        self.0[at >> 6] |= 1 << (at & 63);
    }

    /// Whether it is one of them.
    pub fn has(&self, first: u8, second: u8) -> bool {
        let at = usize::from(first) << 8 | usize::from(second);
        self.0[at >> 6] >> (at & 63) & 1 == 1
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pairs")
    }
}
