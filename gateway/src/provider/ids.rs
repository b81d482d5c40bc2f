//! Call ids in the form that a provider accepts. An id that fits goes on as it is; any other becomes a hash of itself, the same in every
//! round, so that a call and its result stay together and two ids stay two. What callers see is never changed.

use std::borrow::Cow;

use ring::digest::{SHA256, digest as hash};

use super::Stamp;

/// Which ids a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Up to 40 bytes of anything printable: OpenAI.
    UpTo40,
    /// Letters, digits, `_` and `-`, up to 64 of them: Anthropic.
    Word,
    /// Exactly nine letters or digits: Mistral.
    Nine,
}

/// The id as a provider of this form is sent it.
pub fn fit(id: &str, form: Form) -> Cow<'_, str> {
    if form.takes(id) {
        return Cow::Borrowed(id);
    }
    let digest = digest(id.as_bytes());
    Cow::Owned(match form {
        Form::UpTo40 | Form::Word => format!("call_{}", hex(&digest[..16])),
        Form::Nine => base36(&digest),
    })
}

impl Form {
    fn takes(self, id: &str) -> bool {
        let is_word = |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        match self {
            Self::UpTo40 => (1..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()),
            Self::Word => (1..=64).contains(&id.len()) && is_word(id),
            Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }
}

/// An id for a call whose provider gave none: no other call of any round has it.
pub(super) fn made(stamp: Stamp, place: usize) -> String {
    format!("call_{:016x}_{place}", stamp.seed)
}

/// Whether an id was [`made`] here, so that its provider does not know it.
pub(super) fn is_made(id: &str) -> bool {
    let seed_and_place = id.strip_prefix("call_").and_then(|rest| rest.split_once('_'));
    seed_and_place.is_some_and(|(seed, place)| {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        seed.len() == 16 && seed.bytes().all(is_hex) && !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// SHA-256.
pub(super) fn digest(text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash(&SHA256, text).as_ref());
    bytes
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

/// Nine letters and digits: 46 bits of the hash, which is what the form has room for.
fn base36(digest: &[u8; 32]) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    digest[..9].iter().map(|byte| char::from(DIGITS[usize::from(*byte) % 36])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_16_ids_take_the_form_of_the_provider_by_hash_and_not_by_cutting() {
        let long = |last: char| format!("{}{last}", "x".repeat(59));
        for form in [Form::UpTo40, Form::Word, Form::Nine] {
            for id in ["call_aB3dEfGhIjKlMnOpQrStUvWx", "fc:1/rs.2", "", "日本", &long('a'), &"y".repeat(65)] {
                let sent = fit(id, form);
                assert!(form.takes(&sent), "{id} became {sent}");
                assert_eq!(sent, fit(id, form), "the same in every round");
            }
            assert_ne!(fit(&long('a'), form), fit(&long('b'), form), "two stay two");
        }
    }

    #[test]
    fn what_was_made_here_is_known_again() {
        for seed in [0, 7, u64::MAX] {
            assert!(is_made(&made(Stamp { created: 1, seed }, 12)));
        }
        assert_ne!(made(Stamp { created: 1, seed: 7 }, 0), made(Stamp { created: 1, seed: 8 }, 0));
        for other in [
            "",
            "call_",
            "call_1",
            "call_1_0",
            "call_aB3dEfGhIjKlMnOpQrStUvWx",
            "call_000000000000000g_0",
            "call_0000000000000007_",
        ] {
            assert!(!is_made(other), "{other}");
        }
    }

    #[test]
    fn an_id_that_fits_goes_on_as_it_is() {
        let table =
            [("call_1", Form::UpTo40), ("fc:1/rs.2", Form::UpTo40), ("toolu_01-x", Form::Word), ("aB3dEfGhI", Form::Nine)];
        for (id, form) in table {
            assert!(matches!(fit(id, form), Cow::Borrowed(_)), "{id}");
        }
    }
}
