//! Cutting text on a character, never in one, and saying that it was cut.

use std::borrow::Cow;

/// How much there was of something that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// So many bytes.
    Exactly(usize),
    /// More than these, and the rest was not read.
    MoreThan(usize),
}

/// The text, if all of it was read and it has at most `max` bytes; else as much of its beginning as fits with a mark behind it. The result
/// never has more than `max` bytes. Where not even the mark fits there is none.
pub fn text(text: &str, max: usize, total: Total) -> Cow<'_, str> {
    if text.len() <= max && matches!(total, Total::Exactly(_)) {
        return Cow::Borrowed(text);
    }
    // The number that is shown in the end has no more digits than this one.
    let Some(room) = max.checked_sub(mark(max, total).len()) else { return Cow::Borrowed(head(text, max)) };
    let kept = head(text, room);
    Cow::Owned(format!("{kept}{}", mark(kept.len(), total)))
}

fn mark(shown: usize, total: Total) -> String {
    match total {
        Total::Exactly(all) => format!("\n… [cut: {shown} of {all} bytes shown]"),
        Total::MoreThan(read) => format!("\n… [cut: {shown} of more than {read} bytes shown]"),
    }
}

/// The text, if it has at most `max` bytes; else its beginning and its end with a mark between them that says how much is left out, and how
/// much that is. The result has more than `max` bytes only where the mark alone has.
pub fn middle(text: &str, max: usize) -> (Cow<'_, str>, usize) {
    if text.len() <= max {
        return (Cow::Borrowed(text), 0);
    }
    let mark = |left_out: usize| format!("\n… [cut: {left_out} of {} bytes left out] …\n", text.len());
    let room = max.saturating_sub(mark(text.len()).len());
    let head = head(text, room.div_ceil(2));
    let tail = &text[text.ceil_char_boundary(text.len() - (room - head.len()))..];
    let left_out = text.len() - head.len() - tail.len();
    (Cow::Owned(format!("{head}{}{tail}", mark(left_out))), left_out)
}

/// The longest beginning of at most `max` bytes that ends with a whole character.
pub fn head(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// A name from outside, fit to stand in a sentence: no control characters, at most `max` bytes.
pub fn word(text: &str, max: usize) -> String {
    // What is left out may be any number of characters, so they are dropped before the bytes are counted.
    let clean: String = text.chars().filter(|character| !character.is_control()).take(max).collect();
    head(&clean, max).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [&str; 4] = [
        "plain text of one byte each, long enough",
        "zwölf Boxkämpfer jagen Viktor quer",
        "日本語のテキストはここにある",
        "🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀",
    ];

    #[test]
    fn a_cut_never_splits_a_character_nor_passes_the_bound() {
        for sample in SAMPLES {
            let long = sample.repeat(4);
            for max in 0..=long.len() + 2 {
                for total in [Total::Exactly(long.len()), Total::MoreThan(long.len())] {
                    let cut = text(&long, max, total);
                    let whole = max >= long.len() && total == Total::Exactly(long.len());
                    assert!(cut.len() <= max.max(if whole { long.len() } else { 0 }), "{max}: {cut}");
                    assert_eq!(cut == long, whole, "{max}");
                    let kept = cut.split("\n…").next().unwrap();
                    assert!(long.starts_with(kept), "{max}: {cut}");
                }
            }
        }
    }

    #[test]
    fn one_byte_decides() {
        let long = "x".repeat(100);
        let table =
            [(100, "x".repeat(100)), (101, "x".repeat(100)), (99, format!("{}\n… [cut: 66 of 100 bytes shown]", "x".repeat(66)))];
        for (max, expected) in table {
            assert_eq!(text(&long, max, Total::Exactly(100)), expected, "{max}");
        }
        assert_eq!(text(&long, 99, Total::Exactly(100)).len(), 99);
    }

    #[test]
    fn the_middle_is_left_out_on_characters_and_the_mark_says_how_much() {
        for sample in SAMPLES {
            let long = sample.repeat(9);
            let mark = format!("\n… [cut: {0} of {0} bytes left out] …\n", long.len());
            for max in 0..=long.len() + 2 {
                let (cut, bytes) = middle(&long, max);
                assert_eq!(cut == long, max >= long.len(), "{max}");
                if cut != long {
                    assert!(cut.len() <= max.max(mark.len()), "{max}: {cut}");
                    let (head, rest) = cut.split_once("\n… [cut: ").unwrap();
                    let (left_out, tail) = rest.split_once(&format!(" of {} bytes left out] …\n", long.len())).unwrap();
                    assert!(long.starts_with(head) && long.ends_with(tail), "{max}: {cut}");
                    assert_eq!(left_out.parse(), Ok(bytes), "{max}: {cut}");
                    assert_eq!(bytes, long.len() - head.len() - tail.len(), "{max}: {cut}");
                    assert!(head.len().abs_diff(tail.len()) <= 8, "{max}: {cut}");
                }
            }
        }
        assert_eq!(middle(&"x".repeat(90), 62).0, format!("{0}\n… [cut: 68 of 90 bytes left out] …\n{0}", "x".repeat(11)));
    }

    #[test]
    fn as_much_is_kept_as_fits() {
        for max in 40..200 {
            let cut = text(&"é".repeat(200), max, Total::Exactly(400)).into_owned();
            // One byte may be lost to the character, one to a number that is a digit shorter than the bound.
            assert!(cut.len() + 2 >= max, "{max}: {}", cut.len());
        }
    }

    #[test]
    fn what_was_not_read_is_said_even_where_the_rest_would_fit() {
        assert_eq!(text("short", 100, Total::MoreThan(5)), "short\n… [cut: 5 of more than 5 bytes shown]");
    }

    #[test]
    fn a_word_is_clean_and_short() {
        assert_eq!(word("get_\u{0}order\r\n\u{1b}[31m", 64), "get_order[31m");
        assert_eq!(word(&"é".repeat(100), 9), "éééé");
    }
}
