//! Shortens a tool's result to a number of tokens: its head and its tail stay, with a mark between them.

use bytes::Bytes;
use toolgate_tools::{bound, foreign};

use crate::tokens::estimated_message;
use crate::wire::content;

/// To how many tokens any result can be shortened: a mark, and a little of what it was.
pub(super) const LEAST: u64 = 160;

/// A message that was shortened.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) message: Bytes,
    pub(super) tokens: u64,
    /// How many bytes of its text were left out.
    pub(super) left_out: usize,
}

/// The message, which has so many tokens, with no more than `most`: by the estimate, put right by how far that is off for the whole message.
pub(super) fn shortened(message: &Bytes, has: u64, most: u64) -> Short {
    let whole = || Short { message: message.clone(), tokens: has, left_out: 0 };
    let Some(text) = content::text(message) else { return whole() };
    // The lines that a result stands between stay, whatever is left of it.
    let inside = foreign::inside(&text).unwrap_or(0..text.len());
    let (before, behind) = (&text[..inside.start], &text[inside.end..]);
    let inside = &text[inside];
    let estimated = estimated_message(message).max(1);
    let mut room = share(inside.len(), most, has);
    loop {
        let (short, left_out) = bound::middle(inside, room);
        let message = content::with_text(message, &[before, &short, behind].concat());
        let tokens = (estimated_message(&message) * has).div_ceil(estimated);
        if tokens <= most || room == 0 {
            return Short { message, tokens, left_out };
        }
        // What is left has more tokens a byte than the rest had. Below a hundred bytes there is little but the mark.
        room = share(room, most, tokens).min(room * 9 / 10);
        room = if room < 100 { 0 } else { room };
    }
}

fn share(of: usize, part: u64, whole: u64) -> usize {
    let share = of as u128 * u128::from(part) / u128::from(whole.max(1));
    usize::try_from(share).unwrap_or(of)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn result(text: &str) -> Bytes {
        Bytes::from(json!({ "role": "tool", "tool_call_id": "c1", "content": text }).to_string())
    }

    #[test]
    fn case_70_a_result_is_shortened_to_what_it_may_have_on_a_character() {
        let texts = [
            "The quick brown fox jumps over the lazy dog. ".repeat(300),
            "日本の港に船が着く。".repeat(500),
            format!("{}{}", "a \"quoted\" line\n".repeat(200), "0123456789,".repeat(2000)),
            format!("{}{}", "9,8,7;".repeat(2000), " words that are easier to count".repeat(400)),
            "🎻".repeat(3000),
            "x".repeat(60_000),
        ];
        for text in &texts {
            let message = result(text);
            let estimated = estimated_message(&message);
            for scale in [1, 2] {
                let has = estimated * scale;
                for most in [LEAST, LEAST + 1, has / 7, has / 2, has - 1].into_iter().filter(|most| (LEAST..has).contains(most)) {
                    let short = shortened(&message, has, most);
                    assert!(short.tokens <= most, "{} of {most} tokens: {text:.20}", short.tokens);
                    assert!(most < 2 * LEAST || short.tokens * 10 >= most * 6, "{} of {most} tokens: {text:.20}", short.tokens);
                    let sent: Value = serde_json::from_slice(&short.message).unwrap();
                    let shown = sent["content"].as_str().unwrap();
                    let (head, rest) = shown.split_once("\n… [cut: ").unwrap();
                    let (mark, tail) = rest.split_once("] …\n").unwrap();
                    assert_eq!(mark, format!("{} of {} bytes left out", short.left_out, text.len()));
                    assert!(text.starts_with(head) && text.ends_with(tail));
                    assert_eq!(short.left_out, text.len() - head.len() - tail.len());
                    assert_eq!((&sent["role"], &sent["tool_call_id"]), (&json!("tool"), &json!("c1")));
                }
            }
        }
    }

    #[test]
    fn a_result_is_shortened_between_the_lines_that_it_stands_between() {
        let seal = foreign::Seal::random();
        let message = result(&format!("Error: it failed.\n{}", seal.wrapped("lookup", &"The quick brown fox. ".repeat(2000))));
        let has = estimated_message(&message);
        for most in [LEAST, 2 * LEAST, has / 2] {
            let short = shortened(&message, has, most);
            assert!(short.tokens <= most, "{} of {most}", short.tokens);
            let sent: Value = serde_json::from_slice(&short.message).unwrap();
            let shown = sent["content"].as_str().unwrap();
            let inside = &shown[foreign::inside(shown).unwrap()];
            assert!(inside.contains(" bytes left out] …") && inside.ends_with("fox. "), "{shown}");
            assert!(shown.starts_with("Error: it failed.\n[data "), "{shown}");
        }
    }

    #[test]
    fn what_is_no_text_stays_as_it_is() {
        let message = Bytes::from(r#"{"role":"tool","content":[{"image_url":"x"},{"text":"y"}]}"#);
        assert_eq!(shortened(&message, 500, 100), Short { message: message.clone(), tokens: 500, left_out: 0 });
    }
}
