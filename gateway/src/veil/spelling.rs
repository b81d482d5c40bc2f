//! The inside of a JSON string and the text that it spells: where the one stands in the other. What of a text is not changed stays written as it
//! was, escapes included.

use std::borrow::Cow;
use std::ops::Range;

/// Stands for an escape that spells no character: half a surrogate pair, the other half of which came with another chunk.
const HALF: char = char::REPLACEMENT_CHARACTER;

/// The text that the inside of a JSON string spells.
pub(super) fn text(inner: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', inner.as_bytes()) else { return Cow::Borrowed(inner) };
    let mut text = String::with_capacity(inner.len());
    let (mut plain, mut at) = (0, first);
    loop {
        text.push_str(&inner[plain..at]);
        let (character, length) = escape(&inner[at..]);
        text.extend(character);
        (plain, at) = (at + length, at + length);
        match memchr::memchr(b'\\', &inner.as_bytes()[at..]) {
            Some(next) => at += next,
            None => break,
        }
    }
    text.push_str(&inner[plain..]);
    Cow::Owned(text)
}

/// A place in the text as a place in the inside of the string that spells it.
pub(super) fn place(inner: &str, place: usize) -> usize {
    let (mut spelt, mut at) = (0, 0);
    while spelt < place && at < inner.len() {
        let next = memchr::memchr(b'\\', &inner.as_bytes()[at..]).map_or(inner.len(), |next| at + next);
        if next - at >= place - spelt {
            return at + (place - spelt);
        }
        spelt += next - at;
        let (character, length) = escape(&inner[next..]);
        spelt += character.map_or(0, char::len_utf8);
        at = next + length;
    }
    at
}

/// The inside of a string with places of its text replaced, in their order.
pub(super) fn replaced(inner: &str, edits: &[Edit]) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut at = 0;
    for Edit { range, text } in edits {
        out.push_str(&inner[at..place(inner, range.start).max(at)]);
        push_spelt(&mut out, text);
        at = place(inner, range.end).max(at);
    }
    out.push_str(&inner[at..]);
    out
}

/// Appends a text as the inside of a JSON string.
pub(super) fn push_spelt(out: &mut String, text: &str) {
    let quoted = crate::wire::object::quoted(text);
    out.push_str(&quoted[1..quoted.len() - 1]);
}

/// How much of the inside of a string, which may have come in part, is whole: an escape at its end can lack its rest.
pub(super) fn whole(inner: &str) -> usize {
    let from = inner.len().saturating_sub(LONGEST_ESCAPE);
    // A backslash there is the beginning of an escape only where the backslashes right before it are pairs.
    let Some(begun) = inner.as_bytes()[from..].iter().rposition(|&byte| byte == b'\\').map(|at| from + at) else {
        return inner.len();
    };
    let before = inner.as_bytes()[..begun].iter().rev().take_while(|&&byte| byte == b'\\').count();
    if before % 2 == 1 {
        return inner.len();
    }
    let rest = &inner.as_bytes()[begun..];
    let lacks = rest.len() < 2 || (rest[1] == b'u' && rest.len() < 6);
    let is_first_half = !lacks && rest[1] == b'u' && rest.len() == 6 && matches!(unit(&inner[begun..]), Some(0xd800..=0xdbff));
    // The second half, while it comes: `\ud83c\udf`.
    let second = lacks
        .then(|| begun.checked_sub(6))
        .flatten()
        .filter(|&at| inner.is_char_boundary(at) && matches!(unit(&inner[at..]), Some(0xd800..=0xdbff)));
    if lacks || is_first_half { second.unwrap_or(begun) } else { inner.len() }
}

const LONGEST_ESCAPE: usize = 6;

/// A replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// What of the text it replaces.
    pub(super) range: Range<usize>,
    /// By what.
    pub(super) text: String,
}

/// What the escape at the beginning spells, and how long it is written.
fn escape(written: &str) -> (Option<char>, usize) {
    let bytes = written.as_bytes();
    let simple = |character| (Some(character), 2);
    match bytes.get(1) {
        Some(b'n') => simple('\n'),
        Some(b't') => simple('\t'),
        Some(b'r') => simple('\r'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'u') => match unit(written) {
            Some(high @ 0xd800..=0xdbff) => match written.get(6..).and_then(unit) {
                Some(low @ 0xdc00..=0xdfff) => (char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12),
                _ => (Some(HALF), 6),
            },
            Some(unit) => (Some(char::from_u32(unit).unwrap_or(HALF)), 6),
            None => (None, bytes.len()),
        },
        Some(&byte) if byte.is_ascii() => simple(byte.into()),
        // It has no end, or is none.
        _ => (None, bytes.len().min(1)),
    }
}

/// The number of the `\u` escape at the beginning.
fn unit(written: &str) -> Option<u32> {
    let digits = written.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spelt_is_what_serde_reads() {
        for inner in ["", "plain", r"a\nb\\c\/d", r"\u00e9é\ud83c\udfbb!", r#"\"q\""#, r"\\u0041", r"\t\r\b\f"] {
            let expected: String = serde_json::from_str(&format!("\"{inner}\"")).unwrap();
            assert_eq!(text(inner), expected, "{inner}");
        }
        assert!(matches!(text("plain é"), Cow::Borrowed(_)));
        assert_eq!(text(r"a\ud83c"), "a\u{fffd}");
        assert_eq!(text(r"\udfbbb"), "\u{fffd}b");
    }

    #[test]
    fn places_are_found_again() {
        let inner = r"a\nb\u00e9é\ud83c\udfbbz";
        let spelt = text(inner).into_owned();
        for (at, _) in spelt.char_indices().chain([(spelt.len(), ' ')]) {
            let found = place(inner, at);
            assert_eq!(
                (text(&inner[..found]).into_owned(), text(&inner[found..]).into_owned()),
                (spelt[..at].to_owned(), spelt[at..].to_owned())
            );
        }
    }

    #[test]
    fn only_what_is_replaced_is_written_anew() {
        let edits = |range: Range<usize>, text: &str| [Edit { range, text: text.to_owned() }];
        assert_eq!(replaced(r"\u0061SECRET\u0062", &edits(1..7, "\"x\"")), r#"\u0061\"x\"\u0062"#);
        assert_eq!(replaced(r"\u0061\u0062", &edits(0..2, "")), "");
        assert_eq!(replaced("abc", &[]), "abc");
    }

    #[test]
    fn an_escape_that_has_not_come_whole_waits() {
        let table = [
            ("abc", 3),
            (r"ab\", 2),
            (r"ab\\", 4),
            (r"ab\\\", 4),
            (r"a\n", 3),
            (r"a\u00e", 1),
            (r"a\u00e9", 7),
            (r"a\\u00e", 7),
            (r"a\ud83c", 1),
            (r"a\ud83c\", 1),
            (r"a\ud83c\udf", 1),
            (r"a\ud83c\udfbb", 13),
            ("", 0),
            (r"\", 0),
            ("é\\", 2),
        ];
        for (inner, expected) in table {
            assert_eq!(whole(inner), expected, "{inner}");
        }
    }
}
