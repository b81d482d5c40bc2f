//! Text that every database takes: some of it comes from callers, and a row that is refused would keep all others from being written.

use std::borrow::Cow;

use ring::digest::{SHA256, digest};

/// The longest text of a row, in bytes: six of them are the key of an index, which has a page to itself at most.
const LONGEST: usize = 256;
/// How much of a longer one is kept in front of its digest.
const KEPT: usize = 200;

/// The text as the ledger keeps it, in rows and in questions alike. A text that is too long keeps its beginning, and a digest of the whole
/// which tells it from others.
pub(super) fn fitted(text: &str) -> Cow<'_, str> {
    let fits = text.len() <= LONGEST;
    match memchr::memchr(0, text.as_bytes()) {
        None if fits => Cow::Borrowed(text),
        Some(_) if fits => Cow::Owned(without_nul(text)),
        _ => Cow::Owned(format!("{}…{}", without_nul(&text[..text.floor_char_boundary(KEPT)]), digest_of(text))),
    }
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "?")
}

/// Half of it is more than enough to tell texts apart.
fn digest_of(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_and_stay_apart() {
        for (text, expected) in [("gpt-4o-mini", "gpt-4o-mini"), ("a\0b", "a?b"), ("", "")] {
            assert_eq!(fitted(text), expected);
        }
        let long = "ä".repeat(LONGEST);
        for other in [long.clone() + "x", long.clone() + "\0", "\0".repeat(LONGEST + 1)] {
            let text = fitted(&other);
            assert!(text.len() <= LONGEST && !text.contains('\0'), "{text}");
            assert!(text.starts_with(&other[..2].replace('\0', "?")));
            assert_ne!(text, fitted(&long));
        }
    }
}
