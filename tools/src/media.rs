//! What a tool returned that is no text: pictures, recordings, files. They are bytes of a stranger's; what is known of them is only what
//! kind they are said to be.

use serde::{Deserialize, Serialize};

use crate::bound;

/// The longest name of a kind, in bytes.
const LONGEST_KIND: usize = 100;

/// Something that is no text, as it came: base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    kind: String,
    base64: String,
}

impl Media {
    /// What is said to be of this media type, in base64. `None`: it is neither.
    pub fn new(kind: &str, base64: String) -> Option<Self> {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_named = |half: &str| {
            !half.is_empty() && half.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
        };
        let is_kind = kind.len() <= LONGEST_KIND && kind.split_once('/').is_some_and(|(of, form)| is_named(of) && is_named(form));
        (is_kind && is_base64(&base64)).then_some(Self { kind, base64 })
    }

    /// The media type, such as `image/png`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The contents in base64.
    pub fn base64(&self) -> &str {
        &self.base64
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        let padding = self.base64.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.base64.len() / 4 * 3).saturating_sub(padding)
    }

    /// Whether it is a picture.
    pub fn is_picture(&self) -> bool {
        self.kind.starts_with("image/")
    }

    /// What a model reads in its place.
    pub fn note(&self) -> String {
        note(&self.kind, self.bytes())
    }

    /// It as a `data:` address.
    pub fn address(&self) -> String {
        format!("data:{};base64,{}", self.kind, self.base64)
    }
}

/// What a model reads in the place of something that it is not shown: what it is said to be, and its size.
pub fn note(kind: &str, bytes: usize) -> String {
    let what = match kind.split_once('/') {
        Some(("image", _)) => "image",
        Some(("audio", _)) => "sound",
        _ => "file",
    };
    let kind: String = bound::word(kind, LONGEST_KIND).replace(['[', ']'], "");
    format!("[{what} {kind}, {}: not shown]", size(bytes))
}

fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        ..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !body.is_empty() && text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_a_kind_nor_base64_is_none() {
        let table = [
            ("image/png", "QUJD", Some("image/png")),
            ("Image/PNG; name=a", "QUI=", Some("image/png")),
            ("image/svg+xml", "QQ==", Some("image/svg+xml")),
            ("image", "QUJD", None),
            ("image/", "QUJD", None),
            ("image/p\"ng", "QUJD", None),
            ("image/png", "", None),
            ("image/png", "QUJ", None),
            ("image/png", "Q===", None),
            ("image/png", "QU\"D", None),
            ("image/png", "QU-_", None),
        ];
        for (kind, base64, expected) in table {
            assert_eq!(Media::new(kind, base64.to_owned()).as_ref().map(Media::kind), expected, "{kind} {base64}");
        }
    }

    #[test]
    fn a_note_says_what_it_is_and_how_large() {
        let picture = |groups: usize| Media::new("image/png", "QUJD".repeat(groups)).unwrap();
        assert_eq!(picture(1).note(), "[image image/png, 3 bytes: not shown]");
        assert_eq!(picture(4096).note(), "[image image/png, 12 KiB: not shown]");
        assert_eq!(Media::new("audio/wav", "QQ==".to_owned()).unwrap().note(), "[sound audio/wav, 1 byte: not shown]");
        assert_eq!(note("x]\n[system", 3 << 20), "[file xsystem, 3 MiB: not shown]");
        assert_eq!(picture(1).address(), "data:image/png;base64,QUJD");
    }
}
