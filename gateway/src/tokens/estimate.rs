//! How many tokens a text comes to, without a vocabulary: by which kind of character follows which.
//!
//! Where a token ends is mostly a matter of neighbours: a letter after a blank begins one, a letter after a letter rarely does, a capital
//! after a small letter or a digit after a letter nearly always. So each pair of classes of bytes has a weight, the share of a token that it
//! brings on average, and the estimate is their sum. `weights.csv` holds them in thousandths; how they were found, and how far they are off
//! where, is in `docs/counting.md`.

use memchr::memchr;

/// A count under way. It can be fed a text in pieces, cut anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    thousandths: u64,
    /// The class of the last byte; at the beginning a blank.
    last: u8,
}

impl Estimate {
    /// Takes more of a text.
    pub fn text(&mut self, bytes: &[u8]) {
        let mut last = self.last;
        let mut sum = 0;
        for &byte in bytes {
            let class = CLASSES[usize::from(byte)];
            sum += u64::from(WEIGHTS[(usize::from(last) * ROW + usize::from(class)) % WEIGHTS.len()]);
            last = class;
        }
        self.last = last;
        self.thousandths += sum;
    }

    /// Takes more of a text in the form that it has inside of a JSON string. Only an escape must be whole.
    pub fn json(&mut self, inner: &str) {
        let mut rest = inner.as_bytes();
        while let Some(at) = memchr(b'\\', rest) {
            self.text(&rest[..at]);
            rest = self.escape(&rest[at..]);
        }
        self.text(rest);
    }

    /// The tokens so far. What is not empty is at least one.
    pub fn tokens(&self) -> u64 {
        ((self.thousandths + 500) / 1000).max(u64::from(self.thousandths > 0))
    }

    /// Begins another text, which does not go on where the last one ended.
    pub fn begin(&mut self) {
        self.last = 0;
    }

    /// Takes the escape that stands there, and returns what is behind it.
    fn escape<'t>(&mut self, text: &'t [u8]) -> &'t [u8] {
        let length = match text.get(1) {
            Some(b'u') => {
                let digits = text.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok());
                self.unit(digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or(0));
                6
            }
            Some(b'n' | b'r') => {
                self.text(b"\n");
                2
            }
            Some(b't' | b'b' | b'f') => {
                self.text(b"\t");
                2
            }
            Some(itself) => {
                self.text(&[*itself]);
                2
            }
            None => 1,
        };
        text.get(length..).unwrap_or_default()
    }

    /// Takes a unit of UTF-16. Of a character in two units, the first tells the classes of all bytes but the last: nothing has to be kept.
    fn unit(&mut self, unit: u16) {
        match char::from_u32(u32::from(unit)) {
            Some(character) => self.text(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None if unit < 0xdc00 => {
                let high = u32::from(unit - 0xd800) + 0x40;
                self.text(&[0xf0 | (high >> 8) as u8, 0x80 | (high >> 2 & 0x3f) as u8, 0x80 | ((high & 3) << 4) as u8]);
            }
            None => self.text(&[0x80 | (unit & 0x3f) as u8]),
        }
    }
}

/// The tokens of a text.
pub fn tokens(text: &[u8]) -> u64 {
    let mut estimate = Estimate::default();
    estimate.text(text);
    estimate.tokens()
}

/// The room of a row in the table, and of a column: a power of two, so that no index has to be checked.
const ROW: usize = 64;

/// The weight of a byte of the column's class after one of the row's, in thousandths of a token.
static WEIGHTS: [u16; ROW * ROW] = weights(include_bytes!("estimate/weights.csv"));

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = class(byte as u8);
        byte += 1;
    }
    classes
}

/// The class of a byte: its row and its column in the table. The first byte of a longer character stands for its script.
const fn class(byte: u8) -> u8 {
    match byte {
        b' ' => 0,
        b'\n' | b'\r' => 1,
        ..0x20 | 0x7f => 2,
        b'A' | b'E' | b'I' | b'O' | b'U' => 3,
        b'A'..=b'Z' => 4,
        b'0'..=b'9' => 5,
        b'.' | b',' => 6,
        b';' | b':' | b'!' | b'?' => 7,
        b'"' | b'\'' | b'`' => 8,
        b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' => 9,
        b'=' | b'+' | b'*' | b'/' | b'&' | b'|' | b'^' | b'%' | b'~' => 10,
        b'-' => 11,
        b'_' => 12,
        b'\\' | b'#' | b'@' | b'$' => 13,
        0x80..=0x8f => 14,
        0x90..=0x9f => 15,
        0xa0..=0xaf => 16,
        0xb0..=0xbf => 17,
        0xc0..=0xc3 => 18,
        0xc4..=0xcb => 19,
        0xcc..=0xcf => 20,
        0xd0..=0xd1 => 21,
        0xd2..=0xdf => 22,
        0xe0 => 23,
        0xe2 => 24,
        0xe3 => 25,
        0xe4..=0xe9 => 26,
        0xea..=0xed => 27,
        0xee..=0xef => 28,
        0xf0.. => 29,
        0xe1 => 30,
        b'a'..=b'z' => 31 + (byte - b'a'),
    }
}

/// Reads the table: a line of names, then a row a line, its name first.
const fn weights(text: &[u8]) -> [u16; ROW * ROW] {
    let mut table = [0; ROW * ROW];
    let (mut at, mut row) = (next_line(text, 0), 0);
    while at < text.len() {
        let mut column = 0;
        while text[at] != b'\n' {
            if text[at] == b',' {
                column += 1;
            } else if column > 0 {
                let cell = &mut table[row * ROW + column - 1];
                *cell = *cell * 10 + (text[at] - b'0') as u16;
            }
            at += 1;
        }
        at += 1;
        row += 1;
    }
    table
}

const fn next_line(text: &[u8], mut at: usize) -> usize {
    while text[at] != b'\n' {
        at += 1;
    }
    at + 1
}

#[cfg(test)]
mod tests;
