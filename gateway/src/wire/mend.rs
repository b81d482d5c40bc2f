//! The numbers that JSON does not have, and that some servers write all the same: a cost that is `NaN` must not lose the answer around it.

/// The words that stand where a number should. The longer ones first.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text with `null` for each of them, wherever they stand outside of strings. `None`: there are none, so they are not what is wrong.
pub(super) fn numbers(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '-', 'I', 'N']) {
        let (before, here) = rest.split_at(at);
        mended.push_str(before);
        if let Some(word) = NO_NUMBERS.iter().find(|word| here.starts_with(**word)) {
            mended.push_str("null");
            rest = &here[word.len()..];
        } else {
            let (kept, after) = here.split_at(if here.starts_with('"') { string(here)? } else { 1 });
            mended.push_str(kept);
            rest = after;
        }
    }
    mended.push_str(rest);
    (mended != text).then_some(mended)
}

/// How long the string is that begins here. `None`: it does not end.
fn string(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.as_bytes().get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_31_what_is_no_number_is_nothing_and_strings_stay() {
        let table = [
            (r#"{"cost":NaN}"#, Some(r#"{"cost":null}"#)),
            (r#"[NaN,-Infinity, Infinity ,-1]"#, Some("[null,null, null ,-1]")),
            (r#"{"a":"NaN é","b":NaN}"#, Some(r#"{"a":"NaN é","b":null}"#)),
            (r#"{"a":"\"NaN","b\\":NaN,"日":-2}"#, Some(r#"{"a":"\"NaN","b\\":null,"日":-2}"#)),
            (r#"{"a":"NaN"}"#, None),
            (r#"{"a":-1}"#, None),
            (r#"{"a":NaN,"b":"cut"#, None),
            (r#"{"a":NaN,"b":"cut\"#, None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(numbers(text).as_deref(), expected, "{text}");
        }
    }
}
