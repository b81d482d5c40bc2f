//! The text as a check sees it: what stands before a place, as far back as the last mask, and what stands after it, as far as it has come.
//!
//! Two rules here make a stream the same as its whole. A check that runs into the end of what has come, while more may come, gives up with
//! [`More`] and is asked again; and no check looks further ahead than [`LOOK`] bytes from what it would mask, or further back than [`BACK`].

use toolgate_config::pattern::Automaton;

use super::kind::Kind;
use super::sought::Sought;

/// How far a check may look ahead of what it would mask before it must have decided, in bytes.
pub(super) const LOOK: usize = 128;

/// How far a check may look back.
pub(super) const BACK: usize = 128;

/// How a mask begins.
pub(super) const MASK: &[u8] = b"[redacted:";
/// The longest word that a mask may hold, in bytes.
const LONGEST_WORD: usize = 64;

/// The text ends here for now: nothing can be said yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More;

/// What a check finds, or that it cannot say yet.
pub(super) type Found<T> = Result<T, More>;

/// A set of bytes.
pub(super) type Class = fn(u8) -> bool;

/// What the name of a field says about its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum About {
    /// Nothing.
    #[default]
    Anything,
    /// It is a telephone number.
    Phone,
    /// It is a version.
    Version,
}

/// What a configuration says.
#[derive(Debug)]
pub(super) struct Known {
    /// Which kinds are looked for.
    pub(super) sought: Sought,
    /// The words that stand in masks of ours.
    pub(super) kinds: Vec<Kind>,
    /// The patterns of the operator's own.
    pub(super) patterns: Vec<(Kind, Automaton)>,
}

/// A text and what is known of it.
#[derive(Clone, Copy)]
pub(super) struct View<'t> {
    bytes: &'t [u8],
    floor: usize,
    last: bool,
    known: &'t Known,
    about: About,
}

impl<'t> View<'t> {
    /// `floor`: the end of the last mask, before which nothing is looked at; `last`: nothing comes after `bytes`; `known`: what masks of ours
    /// may say, and the patterns.
    pub(super) fn new(bytes: &'t [u8], floor: usize, last: bool, known: &'t Known) -> Self {
        Self { bytes, floor, last, known, about: About::Anything }
    }

    /// The same text as if nothing were known of it from a place on but that it goes on.
    pub(super) fn up_to(&self, place: usize) -> Self {
        let bytes = self.bytes.get(..place).unwrap_or(self.bytes);
        Self { bytes, last: self.last || bytes.len() == place, ..*self }
    }

    /// The same text as the value of a field.
    pub(super) fn about(self, about: About) -> Self {
        Self { about, ..self }
    }

    /// Whether it is the value of a field that holds telephone numbers.
    pub(super) fn is_of_phone(&self) -> bool {
        self.about == About::Phone
    }

    /// Whether it is the value of a field that holds versions.
    pub(super) fn is_of_version(&self) -> bool {
        self.about == About::Version
    }

    /// Which kinds are looked for.
    pub(super) fn sought(&self) -> Sought {
        self.known.sought
    }

    /// The patterns of the operator's own.
    pub(super) fn patterns(&self) -> &'t [(Kind, Automaton)] {
        &self.known.patterns
    }

    /// The byte before a place as a pattern sees it: behind a mask that is its last one.
    pub(super) fn before_as_written(&self, place: usize) -> Option<u8> {
        match place {
            0 => None,
            _ if place == self.floor => Some(b']'),
            _ => self.bytes.get(place - 1).copied(),
        }
    }

    /// How many bytes there are so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The byte at a place; `None`: the text has ended before it.
    pub(super) fn at(&self, place: usize) -> Found<Option<u8>> {
        match self.bytes.get(place) {
            Some(&byte) => Ok(Some(byte)),
            None if self.last => Ok(None),
            None => Err(More),
        }
    }

    /// The byte before a place. A mask is like the start of the text, for a mask that is already there is one as well.
    pub(super) fn before(&self, place: usize) -> Option<u8> {
        if place <= self.floor { None } else { self.bytes.get(place - 1).copied() }
    }

    /// What stands between two places that were read.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'t [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// Up to `max` bytes before a place, or fewer where the text or a mask begins.
    pub(super) fn left(&self, place: usize, max: usize) -> &'t [u8] {
        let from = place.saturating_sub(max).max(self.floor).min(place);
        self.slice(from, place)
    }

    /// Where the run of a class that begins at a place ends: at the latest after `max` bytes.
    pub(super) fn run(&self, from: usize, max: usize, class: Class) -> Found<usize> {
        let mut to = from;
        while to < from + max {
            match self.at(to)? {
                Some(byte) if class(byte) => to += 1,
                _ => break,
            }
        }
        Ok(to)
    }

    /// Where the run of a class that ends at a place begins: at the earliest `max` bytes before it.
    pub(super) fn run_back(&self, to: usize, max: usize, class: Class) -> usize {
        let left = self.left(to, max);
        to - left.iter().rev().take_while(|&&byte| class(byte)).count()
    }

    /// Whether the text goes on like this, letters of either case.
    pub(super) fn goes_on(&self, place: usize, with: &[u8]) -> Found<bool> {
        for (offset, expected) in with.iter().enumerate() {
            match self.at(place + offset)? {
                Some(byte) if byte.eq_ignore_ascii_case(expected) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether exactly this stands at a place that was read.
    pub(super) fn is(&self, place: usize, what: &[u8]) -> bool {
        self.bytes.get(place..).is_some_and(|rest| rest.starts_with(what))
    }

    /// Where the mask of ours ends that begins at a place, if one does.
    pub(super) fn mask(&self, place: usize) -> Found<Option<usize>> {
        if !self.goes_on(place, MASK)? {
            return Ok(None);
        }
        let word = place + MASK.len();
        let end = self.run(word, LONGEST_WORD + 1, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))?;
        let known = self.known.kinds.iter().any(|kind| kind.as_str().as_bytes() == self.slice(word, end));
        Ok((known && self.at(end)? == Some(b']')).then_some(end + 1))
    }

    /// Whether what ends here goes on: with a letter, a digit or `_`, or with a mask, which stands where such a thing has stood.
    pub(super) fn word_goes_on(&self, place: usize) -> Found<bool> {
        match self.at(place)? {
            Some(b'[') => Ok(self.mask(place)?.is_some()),
            byte => Ok(byte.is_some_and(alnum_)),
        }
    }

    /// Whether a digit stands here, or a mask, where one may have stood.
    pub(super) fn is_digit_or_mask(&self, place: usize) -> Found<bool> {
        match self.at(place)? {
            Some(b'[') => Ok(self.mask(place)?.is_some()),
            byte => Ok(byte.is_some_and(digit)),
        }
    }

    /// Whether a mask begins here. Of a run that ends at one nothing is masked: it was longer while the mask was not there, and was let pass.
    pub(super) fn is_mask(&self, place: usize) -> Found<bool> {
        Ok(self.mask(place)?.is_some())
    }

    /// Whether a dot and a digit follow.
    pub(super) fn is_decimal(&self, place: usize) -> Found<bool> {
        Ok(self.at(place)? == Some(b'.') && self.is_digit_or_mask(place + 1)?)
    }

    /// Whether a word may begin here: what stands before is no letter, digit or `_` (of ASCII: some scripts write without spaces).
    pub(super) fn word_begins(&self, place: usize) -> bool {
        !self.before(place).is_some_and(alnum_)
    }
}

/// Letters and digits.
pub(super) fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Digits.
pub(super) fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Letters, digits, `_`.
pub(super) fn alnum_(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Letters, digits, `_`, `-`: what most tokens are made of, and base64 in URLs.
pub(super) fn token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The same with dots.
pub(super) fn dotted(byte: u8) -> bool {
    token(byte) || byte == b'.'
}

/// The same with `=`.
pub(super) fn dotted_padded(byte: u8) -> bool {
    dotted(byte) || byte == b'='
}

/// Base64, either alphabet, with its padding.
pub(super) fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
}

/// Hexadecimal digits.
pub(super) fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// Hexadecimal digits, small letters.
pub(super) fn lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Capitals and digits.
pub(super) fn upper_alnum(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'Z')
}

/// Space and tab.
pub(super) fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// What RFC 6750 lets a bearer's token be made of.
pub(super) fn bearer(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'-' | b'=' | b':')
}
