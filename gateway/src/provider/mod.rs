//! The dialects of model APIs. OpenAI's chat completions are the canon: [`encode`] makes of such a request what a provider is sent, [`Decoder`]
//! and [`decode`] make such an answer of what it says, [`explain`] such a failure. Pure: no socket, no clock; each dialect is a folder or a
//! file of its own, and here stands only who speaks which.

mod anthropic;
mod canon;
mod chunks;
mod decoder;
mod gemini;
mod groq;
pub mod ids;
pub mod listing;
mod mistral;
mod mistral_answer;
mod ollama;
mod openai;
mod openai_answer;
mod openai_body;
mod openai_errors;
mod openrouter;
mod thoughts;

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};
use toolgate_config::provider::{Provider, ProviderKind};
use toolgate_config::secret::Secret;
use toolgate_tools::media::Media;
use toolgate_tools::net::Segments;

pub use self::decoder::Decoder;
use crate::failure::Failure;
use crate::targets::Target;

/// What is asked of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A chat completion.
    Chat,
    /// Something that is not interpreted: the path below the base URL of OpenAI's API, such as `/embeddings`.
    PassThrough(&'static str),
}

/// A request as a provider is sent it.
#[derive(Debug)]
pub struct Encoded {
    /// Path and query.
    pub path: String,
    /// The body.
    pub body: Segments,
    /// What was left out of the request for the rest of it to be taken: for the trace.
    pub note: Option<&'static str>,
}

/// What a provider cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The member of the request that asks for it.
    pub field: &'static str,
    /// The rest of the sentence that begins with the field's name.
    pub why: String,
}

impl From<Unsupported> for Failure {
    fn from(Unsupported { field, why }: Unsupported) -> Self {
        Self::InvalidRequest(field, why)
    }
}

/// What an answer is stamped with where its provider says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Seconds since 1970.
    pub created: u64,
    /// Another number for each model call: ids are made of it.
    pub seed: u64,
}

/// The request for a provider: `body` is the canonical one, with the provider's own name for the model in it.
///
/// # Errors
/// [`Unsupported`].
pub fn encode(target: &Target, endpoint: Endpoint, body: &Segments, stream: bool) -> Result<Encoded, Unsupported> {
    match (target.provider.kind, endpoint) {
        (ProviderKind::Anthropic, Endpoint::Chat) => anthropic::encode(target, body, stream),
        (ProviderKind::Gemini, Endpoint::Chat) => gemini::encode(target, body, stream),
        (ProviderKind::Ollama, Endpoint::Chat) => ollama::encode(target, body, stream),
        (ProviderKind::Anthropic | ProviderKind::Gemini | ProviderKind::Ollama, Endpoint::PassThrough(_)) => {
            let why = "names a model whose provider serves chat completions only: send this to another model";
            Err(Unsupported { field: "model", why: why.to_owned() })
        }
        (
            ProviderKind::OpenAi
            | ProviderKind::Groq
            | ProviderKind::Mistral
            | ProviderKind::OpenRouter
            | ProviderKind::OpenAiCompatible,
            Endpoint::Chat,
        ) => openai::encode(target, body),
        (
            ProviderKind::OpenAi
            | ProviderKind::Groq
            | ProviderKind::Mistral
            | ProviderKind::OpenRouter
            | ProviderKind::OpenAiCompatible,
            Endpoint::PassThrough(path),
        ) => Ok(openai::pass_through(target, path, body)),
    }
}

/// The headers of a request: the provider's credential, the form of the answer, and what of the caller's own may go on.
pub fn headers(provider: &Provider, key: Option<&Secret>, is_callers_own: bool, caller: &HeaderMap, stream: bool) -> HeaderMap {
    match provider.kind {
        ProviderKind::Anthropic => anthropic::headers(key, caller, stream),
        ProviderKind::Gemini => gemini::headers(key, caller, stream),
        ProviderKind::Ollama
        | ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::OpenAiCompatible => openai::headers(key, is_callers_own, caller, stream),
    }
}

/// The member of a canonical request that limits how long its answer may be, as this provider's encoding reads it.
pub fn output_limit(provider: &Provider) -> &'static str {
    match provider.kind {
        // The old name is refused by the models that reason.
        ProviderKind::OpenAi => "max_completion_tokens",
        ProviderKind::Anthropic
        | ProviderKind::Gemini
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::Ollama
        | ProviderKind::OpenAiCompatible => "max_tokens",
    }
}

/// The output limit that this target is sent where nobody set one; `None`: it is sent none.
pub fn usual_output(target: &Target) -> Option<u64> {
    (target.provider.kind == ProviderKind::Anthropic).then(|| anthropic::usual_output(target))
}

/// The operator's `params` as this target takes them: set for one model, they must not break another.
pub fn params<'p>(target: &Target, params: &'p Map<String, Value>) -> Cow<'p, Map<String, Value>> {
    match target.provider.kind {
        ProviderKind::Anthropic => anthropic::params(&target.upstream_model, params),
        kind => openai::params(kind, &target.upstream_model, params),
    }
}

/// The inside of a list of messages from which something was cut, as this target takes it: without the thoughts that are bound to what is gone.
pub fn of_cut<'m>(target: &Target, messages: &'m [Bytes]) -> Cow<'m, [Bytes]> {
    match target.provider.kind {
        ProviderKind::Anthropic if anthropic::binds_thoughts(&target.upstream_model) => openai_body::without_thoughts(messages),
        _ => Cow::Borrowed(messages),
    }
}

/// Whether the closing call must name the tools of the history, and forbid them: such a provider refuses a history of calls without them.
pub fn closes_with_tools(provider: &Provider) -> bool {
    provider.kind == ProviderKind::Anthropic
}

/// Whether a tool's result may hold such a picture or file for this provider. OpenAI's own API and those that follow it take text alone.
pub fn takes_in_results(provider: &Provider, media: &Media) -> bool {
    match provider.kind {
        ProviderKind::Anthropic => anthropic::takes(media),
        ProviderKind::Gemini => gemini::takes(media),
        ProviderKind::Ollama
        | ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::OpenAiCompatible => false,
    }
}

/// The headers of an answer that may reach the caller.
pub fn passed_on(answer: &HeaderMap) -> HeaderMap {
    openai::passed_on(answer)
}

/// A plain answer as a chat completion. What is no answer goes on as it is.
pub fn decode(provider: &Provider, body: Bytes, stamp: Stamp) -> Bytes {
    match provider.kind {
        ProviderKind::Anthropic => anthropic::decode(provider, body, stamp),
        ProviderKind::Gemini => gemini::decode(provider, body, stamp),
        ProviderKind::Ollama => ollama::decode(body, stamp),
        ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::OpenAiCompatible => openai::decode(provider.kind, body),
    }
}

/// What an answer that is no success means.
pub fn explain(provider: &Provider, status: StatusCode, headers: &HeaderMap, body: &Bytes) -> Failure {
    match provider.kind {
        ProviderKind::Anthropic => anthropic::explain(status, headers, body, hidden(provider)),
        ProviderKind::Gemini => gemini::explain(status, headers, body, hidden(provider)),
        ProviderKind::Ollama
        | ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::OpenAiCompatible => openai::explain(status, headers, body, hidden(provider)),
    }
}

/// What an error inside a stream, or under a status of success, means.
pub fn explain_inside(provider: &Provider, body: &[u8]) -> Failure {
    match provider.kind {
        ProviderKind::Anthropic => anthropic::explain_inside(body, hidden(provider)),
        ProviderKind::Gemini => gemini::explain_inside(body, hidden(provider)),
        ProviderKind::Ollama
        | ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter
        | ProviderKind::OpenAiCompatible => openai::explain_inside(body, hidden(provider)),
    }
}

fn hidden(provider: &Provider) -> openai::Hidden<'_> {
    openai::Hidden { key: provider.api_key.as_ref(), host: &provider.base_url.origin.address.host }
}

/// What a model thought aloud beside its calls (a raw JSON string), as the list of thoughts that its provider gets back with the next round;
/// `None`: it has no use for them, or says itself what it wants back.
pub fn thought_aloud(provider: &Provider, aloud: &str) -> Option<String> {
    match provider.kind {
        ProviderKind::OpenAiCompatible | ProviderKind::Ollama => Some(openai::signed_aloud(&signer(provider), aloud)),
        ProviderKind::Anthropic
        | ProviderKind::Gemini
        | ProviderKind::OpenAi
        | ProviderKind::Groq
        | ProviderKind::Mistral
        | ProviderKind::OpenRouter => None,
    }
}

/// Who made a thought that only its maker may get back: 16 hexadecimal digits of a hash of the provider's name and address.
pub fn signer(provider: &Provider) -> String {
    let place = format!("{}\0{}{}", provider.name, provider.base_url.origin.authority(), provider.base_url.path);
    ids::hex(&ids::digest(place.as_bytes())[..8])
}

#[cfg(test)]
mod golden;
