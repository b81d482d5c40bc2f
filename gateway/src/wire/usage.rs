//! What a model call used, by kind, as its provider reports it, and the sum over the rounds of a run.
//!
//! What is inside what differs between dialects. OpenAI's rule is the one here: the prompt holds the tokens that were read from the cache and
//! those that were written to it, the completion holds the reasoning ones, and both hold their sound. DeepSeek, OpenRouter and those who
//! translate other dialects into this one keep to it, under names of their own. Some (xAI, Gemini behind its compatible address) leave the
//! reasoning out of the completion; their total then says so. Anthropic's own dialect counts the cache beside the input, and has no
//! reasoning apart; Gemini's own counts thoughts beside the candidates: who reads those makes them into this.

mod cost;
mod in_and_out;

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;

/// Tokens of one call or of a run. `prompt` holds the cached ones, `completion` the reasoning ones, as OpenAI counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// `prompt_tokens`.
    #[serde(rename = "prompt_tokens")]
    pub prompt: u64,
    /// `completion_tokens`.
    #[serde(rename = "completion_tokens")]
    pub completion: u64,
    /// `total_tokens`; a provider that leaves it out means the sum.
    #[serde(rename = "total_tokens")]
    pub total: u64,
    /// `prompt_tokens_details`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "prompt_tokens_details")]
    pub prompt_details: Option<PromptDetails>,
    /// `completion_tokens_details`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "completion_tokens_details")]
    pub completion_details: Option<CompletionDetails>,
    /// What only some providers tell. It is counted, and shown to no caller of several rounds: their sum has OpenAI's members alone.
    #[serde(skip)]
    beyond: Beyond,
}

/// What is inside the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptDetails {
    /// Read from the provider's cache.
    pub cached_tokens: u64,
    /// Sound.
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

/// What is told under names that OpenAI does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Beyond {
    /// Read from the cache, by DeepSeek's name.
    cached: u64,
    /// Written to the cache.
    cache_write: u64,
    /// What the call cost.
    cost: Option<NanoUsd>,
    /// The prompt was not told, which is something else than none.
    lacks_prompt: bool,
}

impl Usage {
    /// Reads a `usage` value. What is no object, or says nothing but zeros, is no usage.
    pub fn parse(text: &str) -> Option<Self> {
        // Most chunks of a stream say `null`, and an error is dear to make.
        if !text.starts_with('{') {
            return None;
        }
        let usage = Self::from(serde_json::from_str::<Told<'_>>(text).ok()?);
        (usage.total > 0 && usage.prompt.max(usage.completion) < MOST).then_some(usage)
    }

    /// Tokens that were counted here.
    pub fn counted(prompt: u64, completion: u64) -> Self {
        Self { prompt, completion, total: prompt.saturating_add(completion), ..Self::default() }
    }

    /// The same with another prompt and completion, where the provider told only half.
    #[must_use]
    pub fn completed(self, prompt: u64, completion: u64) -> Self {
        let beyond = Beyond { lacks_prompt: false, ..self.beyond };
        Self { prompt, completion, total: prompt.saturating_add(completion), beyond, ..self }
    }

    /// Tokens read from the provider's cache.
    pub fn cached(&self) -> u64 {
        self.prompt_details.map_or(0, |details| details.cached_tokens).max(self.beyond.cached)
    }

    /// Tokens written to the provider's cache.
    pub fn cache_write(&self) -> u64 {
        self.beyond.cache_write
    }

    /// Tokens thought and not said.
    pub fn reasoning(&self) -> u64 {
        self.completion_details.map_or(0, |details| details.reasoning_tokens)
    }

    /// Tokens of output, reasoning included. Of one call: a sum of calls does not tell any more where their reasoning was.
    pub fn output(&self) -> u64 {
        let with_reasoning = self.completion.saturating_add(self.reasoning());
        let is_beside = self.total == self.prompt.saturating_add(with_reasoning);
        if is_beside { with_reasoning } else { self.completion }
    }

    /// Each token of one call once, by what it costs.
    pub fn billed(&self) -> Billed {
        let cached = self.cached().min(self.prompt);
        let cache_write = self.cache_write().min(self.prompt - cached);
        Billed { fresh: self.prompt - cached - cache_write, cached, cache_write, output: self.output() }
    }

    /// Whether the provider left out the prompt.
    pub fn lacks_prompt(&self) -> bool {
        self.beyond.lacks_prompt
    }

    /// What the provider says that the call cost.
    pub fn reported_cost(&self) -> Option<NanoUsd> {
        self.beyond.cost
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
        self.beyond = Beyond {
            cached: self.beyond.cached.saturating_add(other.beyond.cached),
            cache_write: self.beyond.cache_write.saturating_add(other.beyond.cache_write),
            lacks_prompt: self.beyond.lacks_prompt || other.beyond.lacks_prompt,
            cost: other.beyond.cost.map(|more| self.beyond.cost.unwrap_or_default().plus(more)).or(self.beyond.cost),
        };
    }

    /// As JSON.
    pub fn render(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A `usage` as it is read: every name that a provider was seen to use.
#[derive(Deserialize)]
struct Told<'t> {
    #[serde(borrow, default)]
    prompt_tokens: Option<&'t RawValue>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    total_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<ToldOfPrompt>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    #[serde(default, deserialize_with = "count")]
    prompt_cache_hit_tokens: u64,
    #[serde(borrow, default)]
    cost: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct ToldOfPrompt {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    audio_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    cache_creation_tokens: u64,
}

impl From<Told<'_>> for Usage {
    fn from(told: Told<'_>) -> Self {
        let written = |details: &ToldOfPrompt| details.cache_write_tokens.max(details.cache_creation_tokens);
        let details = |told: ToldOfPrompt| PromptDetails { cached_tokens: told.cached_tokens, audio_tokens: told.audio_tokens };
        let prompt = told.prompt_tokens.filter(|raw| raw.get().starts_with(|first: char| first.is_ascii_digit()));
        let lacks_prompt = prompt.is_none();
        let prompt = prompt.and_then(|raw| count(&mut serde_json::Deserializer::from_str(raw.get())).ok()).unwrap_or(0);
        let sum = prompt.saturating_add(told.completion_tokens);
        Self {
            prompt,
            completion: told.completion_tokens,
            total: if told.total_tokens == 0 { sum } else { told.total_tokens },
            beyond: Beyond {
                cached: told.prompt_cache_hit_tokens,
                cache_write: told.prompt_tokens_details.as_ref().map_or(0, written),
                cost: told.cost.and_then(|number| cost::read(number.get())),
                lacks_prompt,
            },
            prompt_details: told.prompt_tokens_details.map(details),
            completion_details: told.completion_tokens_details,
        }
    }
}

/// More tokens than any call has. A provider that names more is not believed: what it says is taken for no usage.
const MOST: u64 = 1 << 30;

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
mod tests;
