//! `providers:`: an account at a model API.

use std::time::Duration;

use crate::address::BaseUrl;
use crate::class::TrustZone;
use crate::names::ProviderName;
use crate::secret::Secret;

/// An account at a model API: address, key, dialect, trust zone, patience.
#[derive(Debug)]
pub struct Provider {
    /// Its name in the file.
    pub name: ProviderName,
    /// The dialect it speaks.
    pub kind: ProviderKind,
    /// Where it is; the paths of the API are appended.
    pub base_url: BaseUrl,
    /// Sent as a bearer. With `auth: passthrough` the caller's is sent in its place.
    pub api_key: Option<Secret>,
    /// How far it is trusted.
    pub trust_zone: TrustZone,
    /// Until a connection stands, TLS included.
    pub connect_timeout: Duration,
    /// From the request's last byte to the answer's first.
    pub first_byte_timeout: Duration,
    /// Between two chunks of an answer.
    pub idle_timeout: Duration,
    /// Tries after the first, while nothing has been received.
    pub retries: u32,
}

/// The model APIs that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// OpenAI itself.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// Groq.
    Groq,
    /// Mistral.
    Mistral,
    /// OpenRouter.
    OpenRouter,
    /// Ollama's own `/api/chat`.
    Ollama,
    /// Anything that speaks OpenAI's chat completions.
    OpenAiCompatible,
}

impl ProviderKind {
    /// Where its API is, unless the file says otherwise.
    pub const fn default_address(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::Groq => Some("https://api.groq.com/openai/v1"),
            Self::Mistral => Some("https://api.mistral.ai/v1"),
            Self::OpenRouter => Some("https://openrouter.ai/api/v1"),
            Self::Ollama => Some("http://127.0.0.1:11434"),
            Self::OpenAiCompatible => None,
        }
    }
}
