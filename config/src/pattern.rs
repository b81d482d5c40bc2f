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
use regex_syntax::hir::{Hir, HirKind, Look};

/// A match that is not there after so many bytes is none.
pub const LONGEST_WAIT: usize = 128;

/// The largest automaton: how many moves it may have, states times kinds of bytes.
const LARGEST: usize = 1 << 19;

/// Where an automaton is in a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(u32);

/// A pattern, which is asked whether a match begins at a place. Each byte costs one step, whatever the pattern is.
pub struct Automaton {
    /// The kind of each byte.
    kinds: [u8; 256],
    /// How many kinds there are, the end of the text included, which is the last.
    width: usize,
    moves: Vec<u32>,
    matches: Vec<bool>,
    dead: Vec<bool>,
    /// By the byte before; the last: at the start of the text.
    starts: Vec<u32>,
    begins: [bool; 256],
}

impl Automaton {
    /// Compiles a pattern. `\b` looks at ASCII alone; all else is as the `regex` crate has it.
    ///
    /// # Errors
    /// What is wrong with it, for the operator.
    pub fn new(regex: &str) -> Result<Self, String> {
        let hir = syntax::parse(regex).map_err(|error| wrong(&error))?;
        let least = hir.properties().minimum_len();
        if least == Some(0) {
            return Err("it matches nothing at all, which is everywhere".to_owned());
        }
        if least.is_none_or(|least| least > LONGEST_WAIT) {
            return Err(format!("it matches no text, or none of at most {LONGEST_WAIT} bytes"));
        }
        let config = thompson::Config::new().nfa_size_limit(Some(LARGEST));
        let nfa = NFA::compiler().configure(config).build_from_hir(&with_ascii_words(&hir)).map_err(|_| too_large())?;
        let config = DFA::config().skip_cache_capacity_check(true).cache_capacity(256 * LARGEST);
        let lazy = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| too_large())?;
        Build::new(&lazy).automaton().ok_or_else(too_large)
    }

    /// The state before a match, by the byte before it; `None`: the text starts here.
    pub fn start(&self, before: Option<u8>) -> State {
        State(self.starts[before.map_or(256, usize::from)])
    }

    /// The state after a byte.
    pub fn next(&self, state: State, byte: u8) -> State {
        self.after(state, usize::from(self.kinds[usize::from(byte)]))
    }

    /// The state after the end of the text.
    pub fn end(&self, state: State) -> State {
        self.after(state, self.width - 1)
    }

    /// Whether a match has ended before what was read last.
    pub fn is_match(&self, state: State) -> bool {
        self.matches[state.0 as usize]
    }

    /// Whether there is no match to come.
    pub fn is_dead(&self, state: State) -> bool {
        self.dead[state.0 as usize]
    }

    /// Whether a match may begin with this byte.
    pub fn may_begin(&self, byte: u8) -> bool {
        self.begins[usize::from(byte)]
    }

    fn after(&self, state: State, kind: usize) -> State {
        State(self.moves[state.0 as usize * self.width + kind])
    }
}

impl fmt::Debug for Automaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Automaton").field("states", &self.matches.len()).finish_non_exhaustive()
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
    fn automaton(mut self) -> Option<Automaton> {
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
        let alive = |byte: u8| {
            let kind = usize::from(kinds[usize::from(byte)]);
            starts.iter().any(|&start| !dead[moves[start as usize * width + kind] as usize])
        };
        let begins = std::array::from_fn(|byte| u8::try_from(byte).is_ok_and(alive));
        Some(Automaton { kinds, width, begins, moves, matches, dead, starts })
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
