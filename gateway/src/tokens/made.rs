//! About how many tokens there are in what is no text: for what a provider does not report, and for what has to be set aside before. The
//! figures stand in `docs/counting.md`.

use crate::wire::pass::{Made, Quality};

/// Bytes of a recording for a token: ten a second, at the 15 KB that a second of usual quality takes; and the tokens of the shortest one.
const HEARD: (u64, u64) = (1500, 50);

/// Bytes of speech for a token: twenty a second, at the same quality.
const SPOKEN: u64 = 750;

/// Tokens of speech for a character of its text: at 15 characters a second it is no more than 1.4.
const SPOKEN_FROM: u64 = 2;

/// A picture in each quality, in the larger of the usual sizes.
const PICTURE: [u64; 3] = [408, 1584, 6240];

/// The tokens of a recording that is heard.
pub fn heard(bytes: u64) -> u64 {
    bytes / HEARD.0 + HEARD.1
}

/// The tokens of speech.
pub fn spoken(bytes: u64) -> u64 {
    bytes.div_ceil(SPOKEN)
}

/// The most tokens that an answer has; `None`: as many as the model can.
pub fn most(made: Made) -> Option<u64> {
    match made {
        Made::Nothing => Some(0),
        Made::Text(limit) => limit,
        Made::Picture(quality) => Some(picture(quality)),
        Made::Speech(characters) => Some(characters.saturating_mul(SPOKEN_FROM)),
    }
}

/// The tokens of a picture.
pub fn picture(quality: Quality) -> u64 {
    match quality {
        Quality::Low => PICTURE[0],
        Quality::Medium => PICTURE[1],
        Quality::High => PICTURE[2],
    }
}
