//! JSON in one pass, without a tree: where its strings are, what they mean, and what of them goes. All else is copied.

use std::borrow::Cow;
use std::ops::Range;

use super::checks::judge::is_reference;
use super::checks::phone;
use super::kind::{Counts, Kind};
use super::view::{About, MASK};
use super::{Redactor, is_number, mark};

/// A document without what is to be taken out; `None`: it is no JSON, or not one that holds a string.
pub(super) fn redact<'t>(redactor: &Redactor, text: &'t str, counts: &mut Counts) -> Option<Cow<'t, str>> {
    let mut found = Counts::default();
    let mut pass = Pass {
        redactor,
        text,
        at: 0,
        out: String::new(),
        copied: 0,
        counts: &mut found,
        nested: Vec::new(),
        secret: None,
        about: About::Anything,
        role: Role::Other,
        named: None,
    };
    pass.documents()?;
    let (out, copied) = (pass.out, pass.copied);
    counts.merge(&found);
    Some(if copied == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + text.get(copied..)?) })
}

/// A pass over a document.
struct Pass<'a, 't> {
    redactor: &'a Redactor,
    text: &'t str,
    at: usize,
    out: String,
    /// How much of the text is in `out`, or masked.
    copied: usize,
    counts: &'a mut Counts,
    /// The containers around the place.
    nested: Vec<Nest>,
    /// What the next value is, for its key says that it is secret.
    secret: Option<Kind>,
    /// What its key says about it otherwise.
    about: About,
    /// The key says that the value is a name, or what that name stands for.
    role: Role,
    /// What a name in the same object says of the value beside it, and how deep that object is.
    named: Option<(usize, Kind)>,
}

/// A list or an object.
struct Nest {
    /// What closes it.
    close: u8,
    /// What is in it, for the key before it says that it is secret.
    secret: Option<Kind>,
}

/// What a pair of a list of variables is: `{"name": "DB_PASSWORD", "value": "…"}`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Name,
    Value,
    Other,
}

impl<'t> Pass<'_, 't> {
    /// One document or more, white space between them.
    fn documents(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'{' | b'[' | b'"' => self.value()?,
                _ => return None,
            }
            self.blanks();
            if self.at == self.text.len() {
                return Some(());
            }
        }
    }

    /// A value and all that is in it; not recursive, for what comes from outside could be nested deep.
    fn value(&mut self) -> Option<()> {
        loop {
            let mut opened = false;
            match self.next()? {
                b'{' => opened = self.open(b'}')?,
                b'[' => opened = self.open(b']')?,
                b'"' => self.string_value()?,
                _ => self.scalar()?,
            }
            if opened {
                continue;
            }
            loop {
                let Some(close) = self.nested.last().map(|nest| nest.close) else { return Some(()) };
                match self.next()? {
                    b',' => {
                        self.at += 1;
                        self.member(close)?;
                        break;
                    }
                    byte if byte == close => {
                        self.at += 1;
                        self.nested.pop();
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Goes into a container, and in an object behind the first key. Whether there is something in it.
    fn open(&mut self, close: u8) -> Option<bool> {
        self.at += 1;
        let secret = self.secret.take();
        self.role = Role::Other;
        if self.next()? == close {
            self.at += 1;
            return Some(false);
        }
        self.nested.push(Nest { close, secret });
        self.member(close)?;
        Some(true)
    }

    /// Goes to the value of the next member: behind its key, or to an item, which is what its list is.
    fn member(&mut self, close: u8) -> Option<()> {
        if close == b'}' {
            return self.key();
        }
        self.secret = self.nested.last().and_then(|nest| nest.secret.clone());
        Some(())
    }

    fn key(&mut self) -> Option<()> {
        if self.next()? != b'"' {
            return None;
        }
        let (raw, escaped) = self.string()?;
        let text: Cow<'t, str> =
            if escaped { Cow::Owned(decoded(self.text.get(raw.clone())?)?) } else { Cow::Borrowed(self.text.get(raw.clone())?) };
        self.about = About::Anything;
        let before = self.copied;
        self.scan(raw, &text, escaped)?;
        let is_changed = self.copied != before;
        let name = if is_changed { self.redactor.name(&text) } else { Cow::Borrowed(&*text) };
        self.secret = self.redactor.secret_name(&name, self.nested.last().and_then(|nest| nest.secret.as_ref()));
        self.role = role(&name);
        // A key that loses something says the same as one that has lost it: nothing.
        self.about = if name.contains("[redacted:") { About::Anything } else { about(name.as_bytes()) };
        if self.next()? != b':' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn string_value(&mut self) -> Option<()> {
        let (raw, escaped) = self.string()?;
        let text: Cow<'t, str> =
            if escaped { Cow::Owned(decoded(self.text.get(raw.clone())?)?) } else { Cow::Borrowed(self.text.get(raw.clone())?) };
        let role = std::mem::replace(&mut self.role, Role::Other);
        let depth = self.nested.len();
        match role {
            Role::Name => {
                self.named = self.redactor.secret_name(&text, None).map(|kind| (depth, kind));
            }
            Role::Value => {
                let named = self.named.take().filter(|(named, _)| *named == depth).map(|(_, kind)| kind);
                self.secret = self.secret.take().or(named);
            }
            Role::Other => {}
        }
        match self.secret.take() {
            Some(kind) if !is_reference(text.as_bytes()) && !text.as_bytes().starts_with(MASK) => {
                self.mask(raw, &kind);
                Some(())
            }
            _ => self.scan(raw, &text, escaped),
        }
    }

    /// `true`, `false`, `null`, a number.
    fn scalar(&mut self) -> Option<()> {
        let secret = self.secret.take();
        self.role = Role::Other;
        let rest = self.text.as_bytes().get(self.at..)?;
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')).count();
        let word = rest.get(..length)?;
        let number = is_number(word);
        let place = self.at..self.at + length;
        self.at += length;
        if let Some(kind) = secret.filter(|kind| Redactor::hides_number(kind, self.text.get(place.clone()).unwrap_or_default())) {
            self.mask_number(place, &kind);
        }
        (number || matches!(word, b"true" | b"false" | b"null")).then_some(())
    }

    /// A text stands in a number's place, so that the document stays one.
    fn mask_number(&mut self, place: Range<usize>, kind: &Kind) {
        self.out.push_str(self.text.get(self.copied..place.start).unwrap_or_default());
        self.copied = place.start;
        self.out.push('"');
        self.mask(place, kind);
        self.out.push('"');
    }

    /// What of a string is to be masked: `raw` as it is written, `text` as it is meant.
    fn scan(&mut self, raw: Range<usize>, text: &str, escaped: bool) -> Option<()> {
        let mut masks = Vec::new();
        self.redactor.masks(text, Some(self.about), |place, kind| masks.push((place, kind.clone())));
        if masks.is_empty() {
            return Some(());
        }
        let mut places = Places { raw: self.text.get(raw.clone())?, escaped, at: 0, meant: 0 };
        for (place, kind) in masks {
            let from = places.of(place.start)?;
            let to = places.of(place.end)?;
            self.mask(raw.start + from..raw.start + to, &kind);
        }
        Some(())
    }

    fn mask(&mut self, place: Range<usize>, kind: &Kind) {
        self.out.push_str(self.text.get(self.copied..place.start).unwrap_or_default());
        mark(kind, &mut self.out);
        self.counts.add(kind);
        self.copied = place.end;
    }

    /// A string's place without its quotes, and whether it has escapes.
    fn string(&mut self) -> Option<(Range<usize>, bool)> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut escaped = false;
        let mut at = start;
        loop {
            match bytes.get(at)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    at += 2;
                }
                0..0x20 => return None,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        Some((start..at, escaped))
    }

    fn blanks(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    }

    fn next(&mut self) -> Option<u8> {
        self.blanks();
        self.text.as_bytes().get(self.at).copied()
    }
}

fn role(key: &str) -> Role {
    match key {
        "name" | "Name" | "key" | "Key" | "variable" => Role::Name,
        "value" | "Value" => Role::Value,
        _ => Role::Other,
    }
}

/// What a key says about its value.
pub(super) fn about(key: &[u8]) -> About {
    let mut words = key
        .split(|byte| !byte.is_ascii_alphabetic())
        .flat_map(|part| part.chunk_by(|a, b| !(a.is_ascii_lowercase() && b.is_ascii_uppercase())));
    match words.find_map(|word| {
        if phone::is_word(word) { Some(About::Phone) } else { word.eq_ignore_ascii_case(b"version").then_some(About::Version) }
    }) {
        Some(about) => about,
        None => About::Anything,
    }
}

/// Where in a string as it is written stands what stands at a place of what it means. Asked in order.
struct Places<'t> {
    raw: &'t str,
    escaped: bool,
    at: usize,
    meant: usize,
}

impl Places<'_> {
    fn of(&mut self, meant: usize) -> Option<usize> {
        if !self.escaped {
            return Some(meant);
        }
        while self.meant < meant {
            let (character, length) = unit(self.raw.get(self.at..)?)?;
            self.meant += character.len_utf8();
            self.at += length;
        }
        Some(self.at)
    }
}

/// What a string means.
fn decoded(raw: &str) -> Option<String> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while !rest.is_empty() {
        let plain = rest.find('\\').unwrap_or(rest.len());
        let (before, behind) = rest.split_at_checked(plain)?;
        text.push_str(before);
        rest = behind;
        if !rest.is_empty() {
            let (character, length) = unit(rest)?;
            text.push(character);
            rest = rest.get(length..)?;
        }
    }
    Some(text)
}

/// The first character that a string means, and how long it is as it is written. Half of a pair of surrogates is no character; it is read as the
/// replacement character.
fn unit(raw: &str) -> Option<(char, usize)> {
    if !raw.starts_with('\\') {
        let character = raw.chars().next()?;
        return Some((character, character.len_utf8()));
    }
    let simple = match raw.as_bytes().get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'u' => return escape(raw),
        _ => return None,
    };
    Some((simple, 2))
}

fn escape(raw: &str) -> Option<(char, usize)> {
    let first = four(raw, 2)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = raw.get(6..8).filter(|mark| *mark == "\\u").and_then(|_| four(raw, 8));
    match second {
        Some(second) if first < 0xDC00 && (0xDC00..0xE000).contains(&second) => {
            char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).map(|character| (character, 12))
        }
        _ => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}

fn four(raw: &str, from: usize) -> Option<u32> {
    let digits = raw.get(from..from + 4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}
