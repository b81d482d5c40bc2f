//! A usage in the other spelling of OpenAI's API, that of its pictures and its sound: `input_tokens` and `output_tokens`.

use serde::Deserialize;

use super::{CompletionDetails, MOST, PromptDetails, Usage, count};

#[derive(Deserialize)]
struct Told {
    #[serde(default, deserialize_with = "count")]
    input_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    output_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    total_tokens: u64,
    /// Pictures spell it in the plural, sound does not.
    #[serde(default)]
    input_tokens_details: Option<ToldOfInput>,
    #[serde(default)]
    input_token_details: Option<ToldOfInput>,
    #[serde(default)]
    output_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct ToldOfInput {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    audio_tokens: u64,
}

impl Usage {
    /// Reads a `usage` value in that spelling. What is no object, or says nothing but zeros, is no usage.
    pub fn parse_in_and_out(text: &str) -> Option<Self> {
        if !text.starts_with('{') {
            return None;
        }
        let told: Told = serde_json::from_str(text).ok()?;
        let (prompt, completion) = (told.input_tokens, told.output_tokens);
        let details = told.input_tokens_details.or(told.input_token_details);
        let usage = Self {
            prompt_details: details
                .map(|ToldOfInput { cached_tokens, audio_tokens }| PromptDetails { cached_tokens, audio_tokens }),
            completion_details: told.output_tokens_details,
            total: if told.total_tokens == 0 { prompt.saturating_add(completion) } else { told.total_tokens },
            ..Self::counted(prompt, completion)
        };
        (prompt.max(completion) > 0 && prompt.max(completion) < MOST).then_some(usage)
    }
}
