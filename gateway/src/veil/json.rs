//! The text of a JSON document while it comes, as [`Redactor::json`] looks at one that is here: what is in its strings is looked at as it is meant,
//! without escapes, and a string behind a key that says that it is secret goes whole. All else goes on as it is written, and so the document
//! stays one. What is no JSON is looked at as words.

use std::sync::Arc;

use toolgate_policies::redact::{Counts, Kind, Redactor, Window};

use super::eye::bytes_of_last;
use super::lane::difference;
use super::spelling;

/// Looks at a document that comes in pieces.
#[derive(Debug)]
pub(super) struct Json {
    redactor: Arc<Redactor>,
    at: At,
    /// The containers around the place: whether each is an object, and what is in it, for the key before it says that it is secret.
    nested: Vec<(bool, Option<Kind>)>,
    /// The next string is a key.
    is_key_next: bool,
    /// What the next value is, for its key says that it is secret.
    secret: Option<Kind>,
    /// The key before it.
    key: String,
}

#[derive(Debug)]
enum At {
    /// Between strings.
    Outside,
    /// In a key, of which this much has come, or in a value.
    String { string: Box<Inside>, key: Option<String> },
    /// In a value that goes whole.
    Secret { kind: Kind, value: Held },
    /// In a number whose key says that it is secret.
    Number { kind: Kind, raw: String },
    /// In what is no JSON.
    Words(Window),
}

/// The longest key whose meaning is asked, and the longest value that may turn out to be none that is secret, in bytes.
const LONGEST: usize = 256;

impl Json {
    pub(super) fn new(redactor: &Arc<Redactor>) -> Self {
        let redactor = Arc::clone(redactor);
        Self { redactor, at: At::Outside, nested: Vec::new(), is_key_next: false, secret: None, key: String::new() }
    }

    pub(super) fn push(&mut self, piece: &str, counts: &mut Counts) -> String {
        let mut out = String::with_capacity(piece.len());
        let mut rest = piece;
        while !rest.is_empty() {
            rest = match &mut self.at {
                At::Outside => self.outside(rest, &mut out),
                At::String { string, key } => {
                    let end = string.end.of(rest);
                    string.push(&rest[..end], counts, &mut out);
                    if let Some(key) = key.as_mut().filter(|key| key.len() < LONGEST) {
                        key.push_str(&rest[..end]);
                    }
                    self.after_string(rest, end, counts, &mut out)
                }
                At::Secret { kind, value } => {
                    let end = value.end.of(rest);
                    value.push(&rest[..end], kind, &self.redactor, counts, &mut out);
                    self.after_string(rest, end, counts, &mut out)
                }
                At::Number { raw, .. } => {
                    let end = rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(rest.len());
                    raw.push_str(&rest[..end]);
                    if end < rest.len() {
                        self.close(counts, &mut out);
                    }
                    &rest[end..]
                }
                At::Words(window) => {
                    out.push_str(&window.push(rest, counts));
                    ""
                }
            }
        }
        out
    }

    /// Nothing comes for a while: what is held leaves, if it is this short and not known to be secret.
    pub(super) fn let_go(&mut self, most: usize) -> String {
        let mut out = String::new();
        match &mut self.at {
            At::Outside | At::Secret { .. } | At::Number { .. } => {}
            At::String { string, .. } => string.let_go(most, &mut out),
            At::Words(window) => out = window.let_go(most),
        }
        out
    }

    /// Nothing more comes; what is left.
    pub(super) fn finish(&mut self, counts: &mut Counts) -> String {
        let mut out = String::new();
        self.close(counts, &mut out);
        *self = Self::new(&self.redactor);
        out
    }

    /// How much of the end of `text` is held back, in bytes.
    pub(super) fn held(&self, text: &str) -> usize {
        match &self.at {
            At::Outside => 0,
            At::String { string, .. } => string.raw.len(),
            At::Secret { value, .. } => value.raw.len(),
            At::Number { raw, .. } => raw.len(),
            At::Words(window) => bytes_of_last(text, window.held()),
        }
    }

    /// Reads on to the next string.
    fn outside<'p>(&mut self, piece: &'p str, out: &mut String) -> &'p str {
        for (at, byte) in piece.bytes().enumerate() {
            let begins = self.nested.is_empty() && !byte.is_ascii_whitespace();
            match byte {
                b'"' => {
                    out.push_str(&piece[..=at]);
                    self.at = self.string();
                    return &piece[at + 1..];
                }
                b'{' | b'[' => {
                    self.nested.push((byte == b'{', self.secret.take()));
                    self.next_member();
                }
                b'}' | b']' if !begins => drop(self.nested.pop()),
                b',' if !begins => self.next_member(),
                b':' if !begins => self.is_key_next = false,
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b'0'..=b'9' | b'-' if !begins && self.secret.is_some() => {
                    out.push_str(&piece[..at]);
                    let kind = self.secret.take();
                    self.at = kind.map_or(At::Outside, |kind| At::Number { kind, raw: String::new() });
                    return &piece[at..];
                }
                b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' | b't' | b'r' | b'u' | b'f' | b'a' | b'l' | b's' | b'n'
                    if !begins => {}
                _ => {
                    out.push_str(&piece[..at]);
                    self.at = At::Words(Window::new(Arc::clone(&self.redactor)));
                    return &piece[at..];
                }
            }
        }
        out.push_str(piece);
        ""
    }

    /// What comes next is a key, or an item, which is what its list is.
    fn next_member(&mut self) {
        let (is_object, within) = self.nested.last().map_or((false, None), |(is_object, within)| (*is_object, within.as_ref()));
        self.secret = within.filter(|_| !is_object).cloned();
        self.is_key_next = is_object;
    }

    fn string(&mut self) -> At {
        let secret = self.secret.take().filter(|_| !self.is_key_next);
        match secret {
            Some(kind) => At::Secret { kind, value: Held::default() },
            None if self.is_key_next => {
                At::String { string: Box::new(Inside::new(&self.redactor, "")), key: Some(String::new()) }
            }
            None => At::String { string: Box::new(Inside::new(&self.redactor, &self.key)), key: None },
        }
    }

    /// What of a piece comes behind the string that ends there, if it ends in it at all.
    fn after_string<'p>(&mut self, piece: &'p str, end: usize, counts: &mut Counts, out: &mut String) -> &'p str {
        let Some(rest) = piece.get(end + 1..) else { return "" };
        self.close(counts, out);
        out.push('"');
        rest
    }

    fn close(&mut self, counts: &mut Counts, out: &mut String) {
        match std::mem::replace(&mut self.at, At::Outside) {
            At::Outside => {}
            At::String { mut string, key } => {
                string.finish(counts, out);
                if let Some(key) = key {
                    self.key = self.redactor.name(&spelling::text(&key)).into_owned();
                    let within = self.nested.last().and_then(|(_, within)| within.as_ref());
                    self.secret = self.redactor.secret_name(&self.key, within);
                }
            }
            At::Secret { kind, value } => value.finish(&kind, &self.redactor, counts, out),
            At::Number { kind, raw } if Redactor::hides_number(&kind, &raw) => {
                counts.add(&kind);
                // A text stands in its place, so that the document stays one.
                out.push('"');
                spelling::push_spelt(out, &format!("[redacted:{kind}]"));
                out.push('"');
            }
            At::Number { raw, .. } => out.push_str(&raw),
            At::Words(mut window) => out.push_str(&window.finish(counts)),
        }
    }
}

/// Finds the end of a string that comes in pieces.
#[derive(Debug, Default)]
struct End {
    /// The next character is escaped.
    is_escaped: bool,
}

impl End {
    /// Where in a piece the string ends: at its closing quote, or with the piece.
    fn of(&mut self, piece: &str) -> usize {
        for (at, byte) in piece.bytes().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => return at,
                _ => {}
            }
        }
        piece.len()
    }
}

/// A string that is coming.
#[derive(Debug)]
struct Inside {
    window: Window,
    /// What has not left, as it is written.
    raw: String,
    /// How much of that was looked at.
    seen: usize,
    /// The text that this much spells.
    text: String,
    end: End,
}

impl Inside {
    fn new(redactor: &Arc<Redactor>, key: &str) -> Self {
        let window = Window::of_value(Arc::clone(redactor), key);
        Self { window, raw: String::new(), seen: 0, text: String::new(), end: End::default() }
    }

    fn push(&mut self, piece: &str, counts: &mut Counts, out: &mut String) {
        self.raw.push_str(piece);
        let new = &self.raw[self.seen..];
        let new = &new[..spelling::whole(new)];
        self.seen += new.len();
        let spelt = spelling::text(new);
        self.text.push_str(&spelt);
        let left = self.window.push(&spelt, counts).into_owned();
        let gone = self.text.len() - bytes_of_last(&self.text, self.window.held());
        self.leave(gone, &left, out);
    }

    fn let_go(&mut self, most: usize, out: &mut String) {
        let left = self.window.let_go(most);
        let gone = self.text.len() - bytes_of_last(&self.text, self.window.held());
        self.leave(gone, &left, out);
    }

    fn finish(&mut self, counts: &mut Counts, out: &mut String) {
        let left = self.window.finish(counts);
        self.leave(self.text.len(), &left, out);
        // Half an escape, which nothing completes any more.
        out.push_str(&self.raw);
    }

    /// The first `gone` bytes of the text leave, as `left` has them.
    fn leave(&mut self, gone: usize, left: &str, out: &mut String) {
        let written = spelling::place(&self.raw, gone);
        match difference(&self.text[..gone], left) {
            None => out.push_str(&self.raw[..written]),
            Some(edit) => out.push_str(&spelling::replaced(&self.raw[..written], &[edit])),
        }
        self.raw.drain(..written);
        self.text.drain(..gone);
        self.seen -= written;
    }
}

/// A value that goes whole, unless it is one of those that may stay.
#[derive(Debug, Default)]
struct Held {
    /// What has come of it; nothing, once its mask has left.
    raw: String,
    is_masked: bool,
    end: End,
}

impl Held {
    fn push(&mut self, piece: &str, kind: &Kind, redactor: &Redactor, counts: &mut Counts, out: &mut String) {
        if self.is_masked {
            return;
        }
        self.raw.push_str(piece);
        if self.raw.len() > LONGEST && !redactor.stays(&spelling::text(&self.raw)) {
            self.mask(kind, counts, out);
        }
    }

    fn finish(mut self, kind: &Kind, redactor: &Redactor, counts: &mut Counts, out: &mut String) {
        if self.is_masked {
            return;
        }
        let text = spelling::text(&self.raw);
        if text.is_empty() || redactor.stays(&text) {
            out.push_str(&self.raw);
        } else {
            drop(text);
            self.mask(kind, counts, out);
        }
    }

    fn mask(&mut self, kind: &Kind, counts: &mut Counts, out: &mut String) {
        counts.add(kind);
        spelling::push_spelt(out, &format!("[redacted:{kind}]"));
        self.raw.clear();
        self.is_masked = true;
    }
}
