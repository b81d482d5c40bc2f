//! What a model call used, by kind, and the sum over the rounds of a run.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Tokens of one call or of a run. `prompt` holds the cached ones, `completion` the reasoning ones, as OpenAI counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// `prompt_tokens`.
    #[serde(default, rename = "prompt_tokens", deserialize_with = "count")]
    pub prompt: u64,
    /// `completion_tokens`.
    #[serde(default, rename = "completion_tokens", deserialize_with = "count")]
    pub completion: u64,
    /// `total_tokens`; a provider that leaves it out means the sum.
    #[serde(default, rename = "total_tokens", deserialize_with = "count")]
    pub total: u64,
    /// `prompt_tokens_details`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "prompt_tokens_details")]
    pub prompt_details: Option<PromptDetails>,
    /// `completion_tokens_details`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "completion_tokens_details")]
    pub completion_details: Option<CompletionDetails>,
}

/// What is inside the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptDetails {
    /// Read from the provider's cache.
    #[serde(default, deserialize_with = "count")]
    pub cached_tokens: u64,
    /// Sound.
    #[serde(default, deserialize_with = "count")]
    pub audio_tokens: u64,
}

/// What is inside the completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionDetails {
    /// Thought, not said.
    #[serde(default, deserialize_with = "count")]
    pub reasoning_tokens: u64,
    /// Sound.
    #[serde(default, deserialize_with = "count")]
    pub audio_tokens: u64,
    /// Predicted by the caller, and right.
    #[serde(default, deserialize_with = "count")]
    pub accepted_prediction_tokens: u64,
    /// Predicted by the caller, and wrong.
    #[serde(default, deserialize_with = "count")]
    pub rejected_prediction_tokens: u64,
}

impl Usage {
    /// Reads a `usage` value. What is no object, or says nothing but zeros, is no usage.
    pub fn parse(text: &str) -> Option<Self> {
        // Most chunks of a stream say `null`, and an error is dear to make.
        if !text.starts_with('{') {
            return None;
        }
        let mut usage: Self = serde_json::from_str(text).ok()?;
        if usage.total == 0 {
            usage.total = usage.prompt.saturating_add(usage.completion);
        }
        (usage.total > 0).then_some(usage)
    }

    /// A count of our own, where the provider gave none.
    pub fn estimate(prompt_bytes: usize, completion_bytes: usize) -> Self {
        // Four bytes a token is what English and JSON come to; it is an estimate, and is marked as one wherever it is shown.
        let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
        let (prompt, completion) = (tokens(prompt_bytes), tokens(completion_bytes));
        Self { prompt, completion, total: prompt + completion, ..Self::default() }
    }

    /// Tokens read from the provider's cache.
    pub fn cached(&self) -> u64 {
        self.prompt_details.map_or(0, |details| details.cached_tokens)
    }

    /// Tokens thought and not said.
    pub fn reasoning(&self) -> u64 {
        self.completion_details.map_or(0, |details| details.reasoning_tokens)
    }

    /// Adds what another call used. Details are there when any call had them.
    pub fn add(&mut self, other: &Self) {
        self.prompt = self.prompt.saturating_add(other.prompt);
        self.completion = self.completion.saturating_add(other.completion);
        self.total = self.total.saturating_add(other.total);
        if let Some(more) = other.prompt_details {
            let details = self.prompt_details.get_or_insert_default();
            details.cached_tokens = details.cached_tokens.saturating_add(more.cached_tokens);
            details.audio_tokens = details.audio_tokens.saturating_add(more.audio_tokens);
        }
        if let Some(more) = other.completion_details {
            let details = self.completion_details.get_or_insert_default();
            details.reasoning_tokens = details.reasoning_tokens.saturating_add(more.reasoning_tokens);
            details.audio_tokens = details.audio_tokens.saturating_add(more.audio_tokens);
            details.accepted_prediction_tokens =
                details.accepted_prediction_tokens.saturating_add(more.accepted_prediction_tokens);
            details.rejected_prediction_tokens =
                details.rejected_prediction_tokens.saturating_add(more.rejected_prediction_tokens);
        }
    }

    /// As JSON.
    pub fn render(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// More tokens than any call has. A provider that names more is not believed, so that no sum ever overflows.
const MOST: u64 = 1 << 48;

/// A count as providers really send it: a number, a float, `null`, anything. What is no count is zero.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Count)
}

struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
        Ok(number.min(MOST))
    }

    fn visit_i64<E>(self, _negative: i64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_f64<E>(self, number: f64) -> Result<u64, E> {
        Ok(if number.is_finite() && number > 0.0 { (number as u64).min(MOST) } else { 0 })
    }

    fn visit_bool<E>(self, _: bool) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_str<E>(self, _: &str) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_as_providers_send_it() {
        let table = [
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, Some((10, 5, 15, 0))),
            (r#"{"prompt_tokens":10,"completion_tokens":5}"#, Some((10, 5, 15, 0))),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}"#, Some((10, 5, 15, 4))),
            (r#"{"prompt_tokens":10,"completion_tokens":null,"prompt_tokens_details":null}"#, Some((10, 0, 10, 0))),
            (r#"{"prompt_tokens":"x","completion_tokens":-3,"total_tokens":0}"#, None),
            (r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#, None),
            ("null", None),
            ("[]", None),
        ];
        for (text, expected) in table {
            let seen = Usage::parse(text).map(|usage| (usage.prompt, usage.completion, usage.total, usage.cached()));
            assert_eq!(seen, expected, "{text}");
        }
    }

    #[test]
    fn rounds_add_up_with_their_details() {
        let mut sum = Usage::parse(r#"{"prompt_tokens":1,"completion_tokens":2}"#).unwrap();
        let other =
            r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"completion_tokens_details":{"reasoning_tokens":2}}"#;
        sum.add(&Usage::parse(other).unwrap());
        assert_eq!((sum.prompt, sum.completion, sum.total, sum.reasoning()), (4, 6, 10, 2));
        assert!(sum.render().contains(r#""reasoning_tokens":2"#) && !sum.render().contains("prompt_tokens_details"));
    }
}
