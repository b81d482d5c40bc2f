//! Amounts of money, as integers: what a token costs, and what a call came to.

use std::fmt;

/// US dollars in billionths: what a call came to, what a budget allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NanoUsd(pub u64);

/// US dollars in trillionths: the price of one token. One dollar for a million tokens is 1,000,000 of these for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PicoUsd(pub u64);

impl NanoUsd {
    /// Reads a plain decimal of dollars with at most nine digits after the point.
    pub fn from_decimal(text: &str) -> Option<Self> {
        decimal(text, 9).map(Self)
    }

    /// The sum; more than can be held stays at the most that can.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl PicoUsd {
    /// Reads a plain decimal of dollars for a million tokens, with at most six digits after the point.
    pub fn from_decimal_per_million(text: &str) -> Option<Self> {
        decimal(text, 6).map(Self)
    }
}

/// A plain decimal of dollars, without needless zeros: `0.0006`, `20`.
impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut part) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let mut places = 9;
        while part % 10 == 0 {
            (part, places) = (part / 10, places - 1);
        }
        write!(f, "{whole}.{part:0places$}")
    }
}

/// A plain decimal, as an integer of its `places`th digit after the point. `None`: it is no such number, has more digits than that, or is
/// larger than can be held.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let part = part.trim_end_matches('0');
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > places || text.ends_with('.') {
        return None;
    }
    let unit = 10u64.checked_pow(u32::try_from(places).ok()?)?;
    let part: u64 = format!("{part:0<places$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_read_exactly_or_not_at_all() {
        let table = [
            ("0", Some(0)),
            ("20", Some(20_000_000_000)),
            ("0.002", Some(2_000_000)),
            ("0.000000001", Some(1)),
            ("1.50", Some(1_500_000_000)),
            ("1.5000000000000", Some(1_500_000_000)),
            ("0.0000000001", None),
            ("18446744073", Some(18_446_744_073_000_000_000)),
            ("18446744074", None),
            ("-1", None),
            ("1e3", None),
            ("NaN", None),
            ("", None),
            (".5", None),
            ("5.", None),
        ];
        for (text, expected) in table {
            assert_eq!(NanoUsd::from_decimal(text).map(|amount| amount.0), expected, "{text}");
        }
    }

    #[test]
    fn amounts_are_written_as_plain_decimals() {
        for (nano, text) in [(0, "0"), (1, "0.000000001"), (600_000, "0.0006"), (20_000_000_000, "20"), (1_500_000_000, "1.5")] {
            assert_eq!(NanoUsd(nano).to_string(), text);
            assert_eq!(NanoUsd::from_decimal(text), Some(NanoUsd(nano)));
        }
    }

    proptest! {
        #[test]
        fn an_amount_that_is_written_is_read_again(nano in any::<u64>(), zeros in 0..12usize) {
            let text = NanoUsd(nano).to_string();
            prop_assert_eq!(NanoUsd::from_decimal(&text), Some(NanoUsd(nano)));
            let padded = format!("{}{text}{}{}", "0".repeat(zeros), if text.contains('.') { "" } else { ".0" }, "0".repeat(zeros));
            prop_assert_eq!(NanoUsd::from_decimal(&padded), Some(NanoUsd(nano)));
        }

        #[test]
        fn a_decimal_is_its_digits(whole in 0..1_000_000u64, part in "[0-9]{1,9}") {
            let text = format!("{whole}.{part}");
            let nano = whole * 1_000_000_000 + format!("{part:0<9}").parse::<u64>().unwrap();
            prop_assert_eq!(NanoUsd::from_decimal(&text), Some(NanoUsd(nano)));
            let per_million = (nano % 1000 == 0).then_some(PicoUsd(nano / 1000));
            prop_assert_eq!(PicoUsd::from_decimal_per_million(&text), per_million);
        }

        #[test]
        fn whatever_is_read_has_one_number_and_no_text_is_too_much(text in "[-+.0-9eE_ ]{0,30}") {
            if let Some(amount) = NanoUsd::from_decimal(&text) {
                prop_assert!(text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.'));
                prop_assert_eq!(NanoUsd::from_decimal(&amount.to_string()), Some(amount));
            }
        }
    }
}
