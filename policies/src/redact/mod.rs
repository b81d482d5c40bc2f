//! Redaction: what must not be read by a model, a log or a trace is taken out of text, `[redacted:kind]` standing in its place.
//!
//! Two things are looked for: credentials, which are known by their shape ([`shapes`]) or by the name that they stand behind (`checks`), and
//! personal data, which passes a check (a checksum, a country's rules). What an operator adds are patterns. All of it is found in one pass
//! ([`engine`]) whose cost is proportional to the text's length, whatever the text is. Redacting twice is redacting once.
//!
//! Whoever holds the whole text asks a [`Redactor`]; a stream goes through a [`Window`], and what leaves that is the same, joined.

mod checks;
mod engine;
mod hit;
mod json;
mod kind;
mod patterns;
mod shapes;
mod sought;
mod trigger;
mod view;
mod window;

use std::borrow::Cow;
use std::ops::Range;

use toolgate_config::redaction::Rules;

use self::checks::judge::is_reference;
use self::engine::{Engine, Step};
pub use self::kind::{Counts, Iter, Kind};
use self::sought::Sought;
use self::view::{About, MASK};
pub use self::window::Window;

/// The shortest number that can be a secret, in bytes.
const SHORTEST_NUMBER: usize = 5;

fn is_number(word: &[u8]) -> bool {
    let of_numbers = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    word.iter().any(u8::is_ascii_digit) && word.iter().all(of_numbers)
}

/// What the value of a secret is called in an object that stands for it. What else such an object holds may be a description of it.
const VALUES: [&str; 10] = ["value", "Value", "current", "previous", "new", "old", "plain", "plaintext", "raw", "data"];

/// What is taken out of texts, compiled: once for a configuration.
#[derive(Debug)]
pub struct Redactor {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing is taken out.
    Off,
    /// This is.
    On(Box<Engine>),
    /// It could not be compiled, though the configuration was checked: then nothing passes.
    Shut,
}

impl Redactor {
    /// What the rules say.
    pub fn new(rules: &Rules) -> Self {
        let state = match Engine::new(rules) {
            _ if Sought::of(rules).nothing() && rules.patterns.is_empty() => State::Off,
            Some(engine) => State::On(Box::new(engine)),
            None => State::Shut,
        };
        Self { state }
    }

    /// Whether nothing is ever taken out.
    pub fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// A text without what is to be taken out, which is counted; borrowed where there was nothing.
    pub fn text<'t>(&self, text: &'t str, counts: &mut Counts) -> Cow<'t, str> {
        self.without(text, None, counts)
    }

    /// The name of a field without what is to be taken out of it. What a name says is asked of this: a document that was redacted before says
    /// the same as one that was not.
    pub fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        self.without(name, Some(About::Anything), &mut Counts::default())
    }

    fn without<'t>(&self, text: &'t str, about: Option<About>, counts: &mut Counts) -> Cow<'t, str> {
        let mut out = String::new();
        let mut copied = 0;
        self.masks(text, about, |place, kind| {
            out.push_str(text.get(copied..place.start).unwrap_or_default());
            mark(kind, &mut out);
            counts.add(kind);
            copied = place.end;
        });
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// A JSON document, or several behind each other, without what is to be taken out. Every string and every key is looked at as what it
    /// means, without its escapes; a string behind a key that says that it is secret goes whole. All else stays as it is written, byte for byte.
    /// A text that is no JSON is handled as text.
    pub fn json<'t>(&self, text: &'t str, counts: &mut Counts) -> Cow<'t, str> {
        if self.is_off() {
            return Cow::Borrowed(text);
        }
        match json::redact(self, text, counts) {
            Some(redacted) => redacted,
            None => self.text(text, counts),
        }
    }

    /// What the value of a field of this name is, where the name says that it is secret. `within`: what the object that it is in is, for the
    /// name of that says so; then what is plainly the value there is one too: `{"password": {"value": "…"}}`.
    pub fn secret_name(&self, name: &str, within: Option<&Kind>) -> Option<Kind> {
        self.engine()?.secret_name(name.as_bytes()).or_else(|| within.filter(|_| VALUES.contains(&name)).cloned())
    }

    /// Whether a number that is the value of such a field is a secret too. A short one is not, whatever its name says: it is a count, a year, a
    /// flag; and tokens are counted.
    pub fn hides_number(kind: &Kind, number: &str) -> bool {
        *kind != Kind::Token && number.len() >= SHORTEST_NUMBER && is_number(number.as_bytes())
    }

    /// Whether the value of such a field stays all the same: it only refers to a secret, or is a mask already.
    pub fn stays(&self, value: &str) -> bool {
        is_reference(value.as_bytes()) || value.as_bytes().starts_with(MASK)
    }

    /// What is to be masked in a text, in its order; `about`: it is the value of a field.
    fn masks(&self, text: &str, about: Option<About>, mut masked: impl FnMut(Range<usize>, &Kind)) {
        let engine = match &self.state {
            State::Off => return,
            State::On(engine) => engine,
            State::Shut if text.is_empty() || text == SHUT => return,
            State::Shut => return masked(0..text.len(), &Kind::Secret),
        };
        let mut cursor = about.map_or_else(|| engine.cursor_whole(), |about| engine.cursor_about(about));
        let mut open: Option<(Range<usize>, Kind)> = None;
        loop {
            match engine.step(text.as_bytes(), true, &mut cursor) {
                Step::Swallowed(to) => open = open.map(|(place, kind)| (place.start..to, kind)),
                Step::Mask(place, kind) => {
                    if let Some((place, kind)) = open.replace((place, kind)).filter(|(place, _)| !place.is_empty()) {
                        masked(place, &kind);
                    }
                }
                Step::Hold(_) => break,
            }
        }
        if let Some((place, kind)) = open.filter(|(place, _)| !place.is_empty()) {
            masked(place, &kind);
        }
    }

    fn engine(&self) -> Option<&Engine> {
        match &self.state {
            State::On(engine) => Some(engine),
            State::Off | State::Shut => None,
        }
    }
}

/// All that passes where nothing passes.
const SHUT: &str = "[redacted:secret]";

/// Writes what stands in the place of what was taken out.
fn mark(kind: &Kind, out: &mut String) {
    out.push_str("[redacted:");
    out.push_str(kind.as_str());
    out.push(']');
}
