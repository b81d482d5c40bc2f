//! What the real model APIs refuse, asked of every request that reaches the scripted model: a gateway that keeps to it works with the real ones.
//! Each refusal has the status and roughly the sentence of the API that it stands for.

mod anthropic;
mod gemini;
mod mistral;
mod ollama;
mod openai;

use serde_json::Value;

use crate::dialect::{Dialect, Told};
use crate::wire::Head;

/// What a request is refused with.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The sentence.
    pub message: String,
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(message: T) -> Self {
        Self { status: 400, message: message.into() }
    }
}

/// A request, as far as it is looked at.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Path and query.
    pub target: &'a str,
    /// The headers.
    pub head: &'a Head,
    /// The body.
    pub body: &'a Value,
    /// What this model said before.
    pub told: &'a Told,
}

/// The first thing that the API of this dialect would refuse.
pub fn refusal(dialect: Dialect, asked: Asked<'_>) -> Option<Refusal> {
    if dialect == Dialect::OpenAi && !asked.target.ends_with("/chat/completions") {
        return None;
    }
    if !asked.body.is_object() {
        return Some("the body is not a JSON object".into());
    }
    match dialect {
        Dialect::OpenAi => openai::fault(asked.body).map(Refusal::from),
        Dialect::Anthropic => anthropic::refusal(asked),
        Dialect::Gemini => gemini::refusal(asked),
        Dialect::Ollama => ollama::refusal(asked),
        Dialect::Mistral => mistral::refusal(asked),
    }
}

/// The first member that is not among those that are known.
fn unknown<'v>(object: &'v Value, known: &[&str]) -> Option<&'v str> {
    object.as_object()?.keys().map(String::as_str).find(|name| !known.contains(name))
}

fn list<'v>(object: &'v Value, name: &str) -> &'v [Value] {
    object[name].as_array().map_or(&[], Vec::as_slice)
}

fn is_made_of(text: &str, allowed: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(allowed)
}

#[cfg(test)]
mod tests;
