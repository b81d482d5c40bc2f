//! Characters that change what is read without being seen: without a width, turning the direction, carrying hidden text, controlling a
//! terminal. Some are part of how people write: those stay where they stand between what they belong to.

use std::ops::RangeInclusive;

const JOINERS: RangeInclusive<char> = '\u{200C}'..='\u{200D}';
const STYLES: RangeInclusive<char> = '\u{FE0E}'..='\u{FE0F}';
const KEYCAP: char = '\u{20E3}';

/// What is never seen: controls, and what Unicode says is ignored where it cannot be shown.
const UNSEEN: &[RangeInclusive<char>] = &[
    '\u{7F}'..='\u{9F}',
    '\u{AD}'..='\u{AD}',
    '\u{34F}'..='\u{34F}',
    '\u{61C}'..='\u{61C}',
    '\u{115F}'..='\u{1160}',
    '\u{17B4}'..='\u{17B5}',
    '\u{180B}'..='\u{180F}',
    '\u{200B}'..='\u{200F}',
    '\u{2028}'..='\u{202E}',
    '\u{2060}'..='\u{206F}',
    '\u{3164}'..='\u{3164}',
    '\u{FE00}'..='\u{FE0F}',
    '\u{FEFF}'..='\u{FEFF}',
    '\u{FFA0}'..='\u{FFA0}',
    '\u{FFF0}'..='\u{FFFB}',
    '\u{1BCA0}'..='\u{1BCA3}',
    '\u{1D173}'..='\u{1D17A}',
    '\u{E0000}'..='\u{E0FFF}',
];

/// Pictures, roughly as Unicode lists them.
const PICTURES: &[RangeInclusive<char>] = &[
    '\u{A9}'..='\u{A9}',
    '\u{AE}'..='\u{AE}',
    '\u{203C}'..='\u{203C}',
    '\u{2049}'..='\u{2049}',
    '\u{2122}'..='\u{2122}',
    '\u{2139}'..='\u{2139}',
    '\u{2194}'..='\u{21AA}',
    '\u{231A}'..='\u{23FF}',
    '\u{24C2}'..='\u{24C2}',
    '\u{25AA}'..='\u{25FE}',
    '\u{2600}'..='\u{27BF}',
    '\u{2934}'..='\u{2935}',
    '\u{2B00}'..='\u{2BFF}',
    '\u{3030}'..='\u{303D}',
    '\u{3297}'..='\u{3299}',
    '\u{1F000}'..='\u{1FAFF}',
];

/// Scripts whose letters are joined, or kept from it, by characters without a width.
const JOINING: &[RangeInclusive<char>] = &[
    '\u{620}'..='\u{74F}',
    '\u{750}'..='\u{77F}',
    '\u{870}'..='\u{8FF}',
    '\u{900}'..='\u{DFF}',
    '\u{F00}'..='\u{109F}',
    '\u{1780}'..='\u{17B3}',
    '\u{17B6}'..='\u{17FF}',
    '\u{FB50}'..='\u{FDFF}',
    '\u{FE70}'..='\u{FEFC}',
];

/// The flags of England, Scotland and Wales: a black flag, and what it is the flag of, in tags.
const FLAGS: [&str; 3] = [
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// How many bytes stay as they are, from the beginning of `rest` on; `None`: its first character cannot be seen and belongs to nothing.
pub(super) fn meant(before: &str, rest: &str) -> Option<usize> {
    let mut characters = rest.chars();
    let character = characters.next()?;
    if let Some(flag) = FLAGS.iter().find(|flag| rest.starts_with(**flag)) {
        return Some(flag.len());
    }
    let mut belongs = || {
        let (last, next) = (before.chars().next_back(), characters.next());
        (JOINERS.contains(&character) && joins(last, next)) || (STYLES.contains(&character) && styles(last, next))
    };
    (is_seen(character) || belongs()).then_some(character.len_utf8())
}

/// Whether it can be seen, whatever it stands beside.
pub(crate) fn is_seen(character: char) -> bool {
    !(character.is_ascii_control() || is_in(UNSEEN, character))
}

/// Whether a joiner between these two is how they are written.
fn joins(last: Option<char>, next: Option<char>) -> bool {
    let (Some(last), Some(next)) = (last, next) else { return false };
    let pictures = (is_in(PICTURES, last) || last == *STYLES.end()) && is_in(PICTURES, next);
    pictures || (is_in(JOINING, last) && is_in(JOINING, next))
}

/// Whether a style between these two says how a picture is to look.
fn styles(last: Option<char>, next: Option<char>) -> bool {
    let is_key = |character: char| character.is_ascii_digit() || matches!(character, '#' | '*');
    last.is_some_and(|last| is_in(PICTURES, last) || (is_key(last) && next == Some(KEYCAP)))
}

fn is_in(ranges: &[RangeInclusive<char>], character: char) -> bool {
    ranges.iter().any(|range| range.contains(&character))
}
