//! A provider's own report of what a call cost: a number of dollars in any form that JSON has for one, read digit by digit. A float in
//! between would already be another amount.

use toolgate_config::money::NanoUsd;

/// No call costs more, in billionths: a million dollars. Who reports more is not believed.
const MOST: u64 = 1_000_000 * 1_000_000_000;

/// Reads a JSON number of dollars, rounded half up. `None`: it is no number, is below zero, or is absurd.
pub(super) fn read(number: &str) -> Option<NanoUsd> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(part.bytes());
    if whole.is_empty() || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let Some(first) = digits().position(|digit| digit != b'0') else { return Some(NanoUsd(0)) };
    // How many digits, from the first that is not zero, stand before the last that counts.
    let kept = exponent.parse::<i64>().ok()?.checked_add(9)?.checked_add_unsigned(whole.len() as u64)?;
    let kept = kept.checked_sub_unsigned(first as u64)?;
    if kept < 0 {
        return Some(NanoUsd(0));
    }
    let kept = usize::try_from(kept).ok().filter(|&kept| kept <= MOST.ilog10() as usize + 1)?;
    let mut rest = digits().skip(first).chain(std::iter::repeat(b'0'));
    let nano = rest.by_ref().take(kept).fold(0, |nano, digit| nano * 10 + u64::from(digit - b'0'));
    let nano = nano + u64::from(rest.next().is_some_and(|digit| digit >= b'5'));
    (nano <= MOST).then_some(NanoUsd(nano))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_31_a_reported_cost_is_read_exactly_or_not_at_all() {
        let table = [
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("0e5", Some(0)),
            ("0.00014", Some(140_000)),
            ("1.4e-4", Some(140_000)),
            ("1.4E-04", Some(140_000)),
            ("14e-5", Some(140_000)),
            ("12", Some(12_000_000_000)),
            ("1.2e1", Some(12_000_000_000)),
            ("1.2E+1", Some(12_000_000_000)),
            // What a float makes of it: one digit more or less is another amount.
            ("0.0000000014999999999999999", Some(1)),
            ("0.0000000015", Some(2)),
            ("0.00000000049", Some(0)),
            ("0.0000000005", Some(1)),
            ("5e-10", Some(1)),
            ("5e-11", Some(0)),
            ("1e-400", Some(0)),
            ("0.1000000000000000055511151231257827", Some(100_000_000)),
            ("1000000", Some(MOST)),
            ("1e6", Some(MOST)),
            ("1000000.000000001", None),
            ("1e7", None),
            ("1e308", None),
            ("1e400", None),
            ("1e99999999999999999999", None),
            ("1e9223372036854775807", None),
            ("1e-9223372036854775808", Some(0)),
            ("-1", None),
            ("-0.5", None),
            ("null", None),
            ("true", None),
            ("\"0.5\"", None),
            ("[1]", None),
            ("{}", None),
            ("NaN", None),
            ("Infinity", None),
            ("", None),
        ];
        for (number, expected) in table {
            assert_eq!(read(number).map(|cost| cost.0), expected, "{number}");
        }
    }

    proptest! {
        #[test]
        fn any_form_of_an_amount_is_that_amount(nano in 0..=MOST, shift in 0usize..12) {
            let exponent = shift as i64 - 9;
            prop_assert_eq!(read(&format!("{nano}e-9")), Some(NanoUsd(nano)));
            prop_assert_eq!(read(&NanoUsd(nano).to_string()), Some(NanoUsd(nano)));
            prop_assert_eq!(read(&format!("{nano}{}e{}", "0".repeat(shift), -9 - shift as i64)), Some(NanoUsd(nano)));
            let digits = format!("{nano:0>24}");
            let (whole, part) = digits.split_at(24 - shift);
            prop_assert_eq!(read(&format!("{whole}.{part}0e{exponent}")), Some(NanoUsd(nano)));
        }

        #[test]
        fn whatever_is_sent_is_read_without_a_fault(text in "[-+0-9.eE]{0,12}") {
            prop_assert!(read(&text).is_none_or(|cost| cost.0 <= MOST));
        }
    }
}
