//! The dialects of model APIs: where a request goes, in what form, and what an error means. Pure.

mod openai;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use toolgate_config::provider::{Provider, ProviderKind};
use toolgate_config::secret::Secret;

use crate::failure::Failure;

/// The path of a chat completion at this provider.
pub fn path(provider: &Provider) -> String {
    match provider.kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => format!("{}/chat/completions", provider.base_url.path),
    }
}

/// The headers of a chat completion: the provider's credential, the form of the answer, and what of the caller's own may go on.
pub fn headers(provider: &Provider, key: Option<&Secret>, is_callers_own: bool, caller: &HeaderMap, stream: bool) -> HeaderMap {
    match provider.kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => openai::headers(key, is_callers_own, caller, stream),
    }
}

/// The member of a request that limits how long its answer may be.
pub fn output_limit(provider: &Provider) -> &'static str {
    match provider.kind {
        // The old name is refused by the models that reason.
        ProviderKind::OpenAi => "max_completion_tokens",
        ProviderKind::OpenAiCompatible => "max_tokens",
    }
}

/// The headers of an answer that may reach the caller.
pub fn passed_on(answer: &HeaderMap) -> HeaderMap {
    openai::passed_on(answer)
}

/// What an answer that is no success means.
pub fn explain(provider: &Provider, status: StatusCode, headers: &HeaderMap, body: &Bytes) -> Failure {
    match provider.kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => {
            let hidden = openai::Hidden { key: provider.api_key.as_ref(), host: &provider.base_url.origin.address.host };
            openai::explain(status, headers, body, hidden)
        }
    }
}

/// What an error inside a stream, or under a status of success, means.
pub fn explain_inside(provider: &Provider, body: &[u8]) -> Failure {
    match provider.kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => openai::explain_inside(body),
    }
}
