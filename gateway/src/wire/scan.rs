//! The members of a large JSON object, found in one pass at the speed of memory.
//!
//! A transcript is nearly all text inside strings. There only a quote, a backslash and a control character mean anything, and those are
//! looked for many bytes at a time; outside of strings the grammar is checked byte by byte. What is found here is JSON. What is not may be
//! JSON all the same: whoever asks then asks serde_json, which also has the words for what is wrong.

use memchr::memchr2;

/// As deep as serde_json goes.
const DEEPEST: usize = 127;

/// Strings shorter than this are read byte by byte: a search costs more to begin.
const SHORT: usize = 16;

/// The members of the object that the text is, raw keys and raw values in their order; `None` if it is none, or is not JSON.
pub(super) fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    let mut members = Vec::with_capacity(12);
    scanner.space();
    scanner.object(0, |key, value| members.push((&text[key], &text[value])))?;
    scanner.space();
    (scanner.at == text.len()).then_some(members)
}

/// Where the values stand that the text is: one after another, with commas between; none where it is blank. `None`: it is something else.
pub(super) fn values(text: &str) -> Option<Vec<Range>> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    let mut values = Vec::with_capacity(8);
    scanner.space();
    while scanner.at < text.len() {
        let value = scanner.at;
        scanner.value(1)?;
        values.push(value..scanner.at);
        scanner.space();
        if scanner.at == text.len() {
            return Some(values);
        }
        scanner.byte(b',')?;
        scanner.space();
    }
    // After a comma something must come.
    values.is_empty().then_some(values)
}

type Range = std::ops::Range<usize>;

struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.object(depth, |_, _| {}),
            b'[' => self.list(depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize, mut member: impl FnMut(Range, Range)) -> Option<()> {
        self.open(b'{', depth)?;
        if self.close(b'}') {
            return Some(());
        }
        loop {
            let key = self.at;
            self.string()?;
            let key = key..self.at;
            self.space();
            self.byte(b':')?;
            self.space();
            let value = self.at;
            self.value(depth + 1)?;
            member(key, value..self.at);
            self.space();
            if self.close(b'}') {
                return Some(());
            }
            self.byte(b',')?;
            self.space();
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.open(b'[', depth)?;
        if self.close(b']') {
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            self.space();
            if self.close(b']') {
                return Some(());
            }
            self.byte(b',')?;
            self.space();
        }
    }

    fn open(&mut self, bracket: u8, depth: usize) -> Option<()> {
        self.byte(bracket)?;
        self.space();
        (depth < DEEPEST).then_some(())
    }

    fn close(&mut self, bracket: u8) -> bool {
        let closes = self.peek() == Some(bracket);
        self.at += usize::from(closes);
        closes
    }

    fn string(&mut self) -> Option<()> {
        self.byte(b'"')?;
        loop {
            let special = self.at + plain(&self.bytes[self.at..])?;
            self.at = special + 1;
            match self.bytes[special] {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.close(b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.close(b'.') {
            self.digits()?;
        }
        if self.close(b'e') || self.close(b'E') {
            let _ = self.close(b'+') || self.close(b'-');
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.bytes[self.at..].starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        self.close(byte).then_some(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// How many bytes of a string's rest come before the first quote or backslash; `None` if there is none, or a control character before it.
fn plain(rest: &[u8]) -> Option<usize> {
    let short = rest.iter().take(SHORT).position(|&byte| byte == b'"' || byte == b'\\');
    let end = match short {
        Some(end) => end,
        None => SHORT.min(rest.len()) + memchr2(b'"', b'\\', rest.get(SHORT..)?)?,
    };
    // Without a way out of the middle, so that the compiler looks at many bytes at a time.
    let controls = rest[..end].iter().fold(false, |found, &byte| found | (byte < 0x20));
    (!controls).then_some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::object::Members;

    /// What serde_json finds.
    fn expected(text: &str) -> Option<Vec<(&str, &str)>> {
        Members::parse(text.as_bytes())
            .ok()
            .map(|Members(members)| members.iter().map(|(key, value)| (key.get(), value.get())).collect())
    }

    #[test]
    fn what_is_json_and_what_is_not() {
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let long = format!("{{\"a\":\"{}\\\"é\"}}", "x".repeat(100));
        let table = [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            r#"{"a" : -0.5e+10 , "b":[1,2 , {"c":null}],"d":"\u00e9\n"}"#,
            r#"{"a":true,"a":false}"#,
            &long,
            "",
            "[]",
            "1",
            "{",
            "}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[,]}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":-}"#,
            r#"{"a":1e}"#,
            r#"{"a":+1}"#,
            r#"{"a":tru}"#,
            r#"{"a":nulls}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            r#"{"a":"\u12"}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":\"b",
            r#"{"a":"b\"}"#,
            r#"{a:1}"#,
            "{} {}",
            "{'a':1}",
            r#"{"a":1}x"#,
            "\u{feff}{}",
            r#"{"a":NaN}"#,
            r#"{"a":"\ud800"}"#,
        ];
        for text in table {
            assert_eq!(members(text), expected(text), "{text}");
        }
        assert_eq!(members(&deep(126)), expected(&deep(126)));
        assert!(members(&deep(126)).is_some() && members(&deep(127)).is_none() && members(&deep(100_000)).is_none());
    }

    #[test]
    fn values_with_commas_between() {
        let table = [
            ("", Some(vec![])),
            (" \n", Some(vec![])),
            ("1", Some(vec!["1"])),
            (r#" {"a":[1,2]} , "b,c" ,[] "#, Some(vec![r#"{"a":[1,2]}"#, r#""b,c""#, "[]"])),
            ("1,", None),
            (",1", None),
            ("1 2", None),
            ("1,,2", None),
            ("[1", None),
            ("1]", None),
        ];
        for (text, expected) in table {
            let found = values(text).map(|values| values.into_iter().map(|value| &text[value]).collect::<Vec<_>>());
            assert_eq!(found, expected, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Texts that are nearly JSON: whatever is found is what serde_json finds, and all that it finds is found.
        #[test]
        fn it_agrees_with_serde_json(text in r#"[ \n]?\{("[a-zé\\"\u{1}]{0,20}" ?: ?(-?[0-9]{1,3}(\.[0-9])?([eE][+-]?[0-9])?|true|null|"([ -~é]|\\[nu"x]){0,40}"|\[[0-9", ]{0,6}\]|\{"k":[01]\})[, ]?){0,4}\} ?"#) {
            prop_assert_eq!(members(&text), expected(&text));
        }
    }
}
