//! What a provider says of its window where it refuses a prompt for its length. The sentences differ, and most name the window beside what was
//! sent: the smaller number is the window, or so little that it is certain to fit.

/// No window is smaller; numbers below are codes, and figures of other things.
const SMALLEST: u64 = 1024;

/// How many tokens the sentence says that there may be, where that is fewer than were sent.
pub(super) fn window(said: &str, sent: u64) -> Option<u64> {
    let numbers = said.split(|character: char| !character.is_ascii_digit() && character != ',' && character != '_');
    let plain = |number: &str| number.replace([',', '_'], "").parse::<u64>().ok();
    numbers.filter_map(plain).filter(|number| *number >= SMALLEST).min().filter(|window| *window < sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_read_from_what_providers_say() {
        let table = [
            ("This model's maximum context length is 8192 tokens. However, you requested 14000 tokens.", Some(8192)),
            ("maximum context length is 32,768 tokens. However, your messages resulted in 50,001 tokens", Some(32_768)),
            ("prompt is too long: 210000 tokens > 200000 maximum", None),
            ("request (14200 tokens) exceeds the available context size (4096 tokens), try increasing it", Some(4096)),
            ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", Some(32_768)),
            ("Please reduce the length of the messages or completion. (code 400, 512 more)", None),
            ("Your prompt has 99999 tokens.", None),
            ("99999999999999999999999", None),
            ("", None),
        ];
        for (said, expected) in table {
            assert_eq!(window(said, 60_000), expected, "{said}");
        }
    }
}
