//! The name of a run: a W3C trace id, the caller's own or a new one.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A W3C trace id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// A new one. Two digests of a count under keys that only this process knows: nobody can tell the next, no two are alike, and no system
    /// call is spent on a name.
    pub fn random() -> Self {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        let [high, low] = KEYS.each_ref().map(|key| u128::from(key.hash_one(count)));
        Self((high << 64 | low).to_be_bytes())
    }

    /// The id in a `traceparent` header; `None` where that is malformed.
    pub fn from_traceparent(value: &str) -> Option<Self> {
        let mut fields = value.trim().split('-');
        let (version, id, parent, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let is_hex =
            |text: &str, digits| text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let well_formed = is_hex(version, 2) && version != "ff" && is_hex(parent, 16) && is_hex(flags, 2) && is_hex(id, 32);
        let more = fields.next().is_some() && version == "00";
        Self::from_hex(id).filter(|id| well_formed && !more && id.0 != [0; 16])
    }

    /// The id with these bits.
    #[cfg(test)]
    pub(super) const fn from_bits(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }

    /// Its 32 hexadecimal digits, written into `digits`.
    pub fn hex<'d>(&self, digits: &'d mut [u8; 32]) -> &'d str {
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// From 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|id| Self(id.to_be_bytes()))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex(&mut [0; 32]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_names_the_run() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let table = [
            (format!("00-{id}-b7ad6b7169203331-01"), true),
            (format!("cc-{id}-b7ad6b7169203331-01-more"), true),
            (format!("00-{id}-b7ad6b7169203331-01-more"), false),
            (format!("ff-{id}-b7ad6b7169203331-01"), false),
            (format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), false),
            (format!("00-{}-b7ad6b7169203331-01", id.to_uppercase()), false),
            (format!("00-{id}-b7ad-01"), false),
            ("junk".to_owned(), false),
        ];
        for (value, good) in table {
            assert_eq!(TraceId::from_traceparent(&value).map(|id| id.to_string()), good.then(|| id.to_owned()), "{value}");
        }
    }
}
