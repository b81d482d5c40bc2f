//! What a call used: Anthropic counts what was read from the cache and what was written to it beside the input; the canon has both inside.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The counts of one call. Each report of a stream is a new total. The prompt's does not shrink, and some servers that speak this dialect tell
/// it only once, and zeros after that; the output's is a mere beginning until the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

#[derive(Deserialize)]
struct Told<'t> {
    #[serde(borrow, default)]
    input_tokens: Option<&'t RawValue>,
    #[serde(borrow, default)]
    cache_read_input_tokens: Option<&'t RawValue>,
    #[serde(borrow, default)]
    cache_creation_input_tokens: Option<&'t RawValue>,
    #[serde(borrow, default)]
    output_tokens: Option<&'t RawValue>,
    #[serde(borrow, default)]
    output_tokens_details: Option<Details<'t>>,
}

#[derive(Deserialize)]
struct Details<'t> {
    #[serde(borrow, default)]
    thinking_tokens: Option<&'t RawValue>,
}

impl Used {
    /// Takes a report.
    pub(super) fn take(&mut self, usage: Option<&RawValue>) {
        let Some(told) = usage.and_then(|usage| serde_json::from_str::<Told<'_>>(usage.get()).ok()) else { return };
        let details = told.output_tokens_details.and_then(|details| details.thinking_tokens);
        let prompt = [
            (&mut self.input, told.input_tokens),
            (&mut self.cache_read, told.cache_read_input_tokens),
            (&mut self.cache_write, told.cache_creation_input_tokens),
        ];
        for (count, told) in prompt {
            *count = told.and_then(whole).max(*count);
        }
        for (count, told) in [(&mut self.output, told.output_tokens), (&mut self.thinking, details)] {
            *count = told.and_then(whole).or(*count);
        }
    }

    /// The canonical `usage`, as JSON. `None`: nothing was told.
    pub(super) fn render(&self) -> Option<String> {
        let prompt = [self.input, self.cache_read, self.cache_write].into_iter().flatten().reduce(u64::saturating_add);
        if prompt.is_none() && self.output.is_none() {
            return None;
        }
        let output = self.output.unwrap_or(0);
        let mut text = String::with_capacity(240);
        text.push('{');
        // A prompt that was not told is something else than none.
        if let Some(prompt) = prompt {
            let _ = write!(text, r#""prompt_tokens":{prompt},"#);
        }
        let total = prompt.unwrap_or(0).saturating_add(output);
        let (read, written) = (self.cache_read.unwrap_or(0), self.cache_write.unwrap_or(0));
        let _ = write!(text, r#""completion_tokens":{output},"total_tokens":{total},"#);
        let _ = write!(text, r#""prompt_tokens_details":{{"cached_tokens":{read},"cache_write_tokens":{written}}}"#);
        if let Some(thinking) = self.thinking {
            let _ = write!(text, r#","completion_tokens_details":{{"reasoning_tokens":{thinking}}}"#);
        }
        text.push('}');
        Some(text)
    }
}

/// A count as it may be written. What is no count tells nothing.
fn whole(raw: &RawValue) -> Option<u64> {
    let number: f64 = raw.get().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    Some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Usage;

    fn used(reports: &[&str]) -> Option<Usage> {
        let mut used = Used::default();
        for report in reports {
            used.take(Some(serde_json::from_str(report).unwrap()));
        }
        used.render().and_then(|text| Usage::parse(&text))
    }

    #[test]
    fn the_cache_is_inside_the_prompt_and_nothing_is_added_twice() {
        let start = r#"{"input_tokens":100,"cache_read_input_tokens":40,"cache_creation_input_tokens":10,"output_tokens":1}"#;
        let usage = used(&[start, r#"{"output_tokens":10}"#]).unwrap();
        assert_eq!((usage.prompt, usage.completion, usage.total), (150, 10, 160));
        assert_eq!((usage.cached(), usage.cache_write(), usage.billed().fresh), (40, 10, 100));
        let again = r#"{"input_tokens":100,"cache_read_input_tokens":40,"cache_creation_input_tokens":10,"output_tokens":10}"#;
        assert_eq!(used(&[start, again]), Some(usage), "a total that is told again is the same total");
        assert_eq!(used(&[start, r#"{"input_tokens":0,"output_tokens":10}"#]), Some(usage), "none is no total");
    }

    #[test]
    fn case_28_the_last_total_counts() {
        let usage = used(&[r#"{"input_tokens":100,"output_tokens":1}"#, r#"{"output_tokens":10}"#]).unwrap();
        assert_eq!((usage.prompt, usage.completion, usage.total), (100, 10, 110));
    }

    #[test]
    fn odd_reports_tell_what_they_can() {
        let thought = used(&[r#"{"input_tokens":5,"output_tokens":9,"output_tokens_details":{"thinking_tokens":7}}"#]).unwrap();
        assert_eq!((thought.reasoning(), thought.output()), (7, 9));
        let odd = used(&[r#"{"input_tokens":5.0,"output_tokens":"x","cache_read_input_tokens":null}"#]).unwrap();
        assert_eq!((odd.prompt, odd.completion), (5, 0));
        assert!(used(&[r#"{"output_tokens":3}"#]).unwrap().lacks_prompt());
        assert_eq!(used(&["{}"]), None);
        assert_eq!(used(&["7"]), None);
        assert_eq!(used(&[]), None);
    }
}
