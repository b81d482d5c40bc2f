//! A number of the file, digit for digit: what a float would round is kept beside it as text.

use std::fmt;
use std::ops::Range;

use serde_json::Number;

/// A number, and how it is written.
#[derive(Clone, Debug)]
pub(crate) struct Numeral {
    pub(crate) value: Number,
    written: String,
    /// Where it is written, until that is looked up.
    at: Option<Range<usize>>,
}

impl From<Number> for Numeral {
    fn from(value: Number) -> Self {
        Self { written: value.to_string(), value, at: None }
    }
}

/// As it is written.
impl fmt::Display for Numeral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Numeral {
    /// Says which bytes of the file it is.
    pub(crate) fn stands_at(&mut self, bytes: Option<Range<usize>>) {
        self.at = bytes;
    }

    /// Looks up how a float is written. Where something else stands there, it stays the shortest text for its value.
    pub(crate) fn look_up(&mut self, file: &str) {
        let written = self.at.take().filter(|_| self.value.is_f64()).and_then(|at| file.get(at)).map(str::trim);
        if let Some(written) = written.filter(|written| written.parse().ok() == self.value.as_f64()) {
            written.clone_into(&mut self.written);
        }
    }

    /// As a plain decimal, whatever it is written like: `1.5e-3` is `0.0015`. `None`: it is no amount of anything.
    pub(crate) fn plain(&self) -> Option<String> {
        let (mantissa, exponent) = self.written.split_once(['e', 'E']).unwrap_or((&self.written, "0"));
        let exponent: i32 = exponent.parse().ok().filter(|exponent| (-40..=40).contains(exponent))?;
        let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
        let mantissa = mantissa.strip_prefix('+').unwrap_or(mantissa);
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (whole, part) = shifted(whole, part, exponent)?;
        Some(if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") })
    }
}

/// The digits before and after the point, after the point has moved to the right.
fn shifted(whole: &str, part: &str, by: i32) -> Option<(String, String)> {
    let digits = format!("{whole}{part}");
    let point = i32::try_from(whole.len()).ok()? + by;
    let before = usize::try_from(1 - point).unwrap_or(0);
    let after = usize::try_from(point - i32::try_from(digits.len()).ok()?).unwrap_or(0);
    let padded = format!("{}{digits}{}", "0".repeat(before), "0".repeat(after));
    let (whole, part) = padded.split_at_checked(usize::try_from(point.max(1)).ok()?)?;
    Some((whole.to_owned(), part.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_plain_decimal_however_it_is_written() {
        for (written, plain) in [
            ("20", Some("20")),
            ("1.10", Some("1.10")),
            ("1e-9", Some("0.000000001")),
            ("1.25E+3", Some("1250")),
            ("12.5e1", Some("125")),
            ("12.5e0", Some("12.5")),
            ("-12.5e-1", Some("-1.25")),
            ("0.5e1", Some("05")),
            (".5", Some("0.5")),
            ("5.", Some("5")),
            ("+1.5", Some("1.5")),
            ("+15", Some("15")),
            ("1e300", None),
            ("1e-300", None),
        ] {
            let file = format!("ä: {written} # 1");
            let mut number = Numeral::from(Number::from_f64(written.parse().unwrap()).unwrap());
            number.stands_at(Some(4..4 + written.len()));
            number.look_up(&file);
            assert_eq!((number.to_string().as_str(), number.plain().as_deref()), (written, plain));
        }
    }

    #[test]
    fn where_something_else_stands_a_number_keeps_its_value() {
        for at in [0..3, 1..2, 0..400] {
            let mut number = Numeral::from(Number::from_f64(0.1).unwrap());
            number.stands_at(Some(at));
            number.look_up("ä2.5");
            assert_eq!(number.to_string(), "0.1");
        }
    }
}
