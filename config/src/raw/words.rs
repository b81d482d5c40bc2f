//! The closed sets of words, each with what it means. A word whose feature does not exist yet is known, and refused by name.

use serde_json::{Value as Json, json};

use crate::class::{DataClass, TrustZone};
use crate::limit::Per;
use crate::place::{Faults, Place};
use crate::provider::ProviderKind;
use crate::raw::mcp::Transport;
use crate::raw::nearest;
use crate::raw::shape::{Shape, or_filled, wrong};
use crate::raw::text::Text;
use crate::raw::yaml::{Node, Value};
use crate::redaction::Personal;
use crate::server::{Auth, Enforcement, LogFormat, Privacy};
use crate::store::OnCounterFailure;
use crate::tool::{Body, Effect, Errors, HttpMethod};

/// A closed set of words.
pub(crate) trait Words: Copy + 'static {
    /// Each word and what it means; `None`: not supported yet.
    const WORDS: &'static [(&'static str, Option<Self>)];
}

impl<T: Words> Shape for T {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let Value::Text(text) = &node.value else {
            return wrong(node, place, &allowed::<T>(), faults);
        };
        let word = text.whole();
        match T::WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, Some(meant))) => return Some(*meant),
            Some((_, None)) => faults.add(place, format!("`{}` is not supported yet; allowed: {}", text.written, allowed::<T>())),
            None => faults.add(place, unknown::<T>(text)),
        }
        None
    }

    fn schema() -> Json {
        or_filled(&json!({ "enum": supported::<T>().collect::<Vec<_>>() }))
    }
}

fn supported<T: Words>() -> impl Iterator<Item = &'static str> {
    T::WORDS.iter().filter(|(_, meant)| meant.is_some()).map(|(word, _)| *word)
}

fn allowed<T: Words>() -> String {
    supported::<T>().collect::<Vec<_>>().join(", ")
}

fn unknown<T: Words>(text: &Text) -> String {
    let known = format!("unknown word `{}`; allowed: {}", text.written, allowed::<T>());
    match nearest(&text.written, supported::<T>()) {
        Some(word) => format!("{known}; nearest: {word}"),
        None => known,
    }
}

/// Gives each type its words.
macro_rules! words {
    ($($type:ty { $($word:literal => $meant:expr,)+ })+) => {$(
        impl Words for $type {
            const WORDS: &'static [(&'static str, Option<Self>)] = &[$(($word, $meant)),+];
        }
    )+};
}

words! {
    Auth {
        "keys" => Some(Self::Keys),
        "none" => Some(Self::None),
        "passthrough" => Some(Self::Passthrough),
    }
    ProviderKind {
        "openai" => Some(Self::OpenAi),
        "anthropic" => Some(Self::Anthropic),
        "gemini" => Some(Self::Gemini),
        "groq" => Some(Self::Groq),
        "mistral" => Some(Self::Mistral),
        "openrouter" => Some(Self::OpenRouter),
        "ollama" => Some(Self::Ollama),
        "openai_compatible" => Some(Self::OpenAiCompatible),
    }
    TrustZone {
        "local" => Some(Self::Local),
        "private" => Some(Self::Private),
        "external_eu" => Some(Self::ExternalEu),
        "external_global" => Some(Self::ExternalGlobal),
    }
    DataClass {
        "public" => Some(Self::Public),
        "internal" => Some(Self::Internal),
        "source_code" => Some(Self::SourceCode),
        "configuration" => Some(Self::Configuration),
        "diagnostics" => Some(Self::Diagnostics),
        "secret" => Some(Self::Secret),
    }
    Effect {
        "read_only" => Some(Self::ReadOnly),
        "idempotent_write" => Some(Self::IdempotentWrite),
        "non_idempotent_write" => Some(Self::NonIdempotentWrite),
    }
    HttpMethod {
        "GET" => Some(Self::Get),
        "HEAD" => Some(Self::Head),
        "POST" => Some(Self::Post),
        "PUT" => Some(Self::Put),
        "PATCH" => Some(Self::Patch),
        "DELETE" => Some(Self::Delete),
    }
    Body {
        "json" => Some(Self::Json),
        "none" => Some(Self::None),
    }
    Errors {
        "generic" => Some(Self::Generic),
        "body" => Some(Self::Body),
    }
    Enforcement {
        "enforce" => Some(Self::Enforce),
        "observe" => Some(Self::Observe),
    }
    Privacy {
        "none" => Some(Self::None),
        "metadata" => Some(Self::Metadata),
        "redacted" => Some(Self::Redacted),
        "full" => Some(Self::Full),
    }
    OnCounterFailure {
        "refuse" => Some(Self::Refuse),
        "local" => Some(Self::Local),
    }
    Per {
        "minute" => Some(Self::Minute),
        "hour" => Some(Self::Hour),
        "day" => Some(Self::Day),
        "week" => Some(Self::Week),
        "month" => Some(Self::Month),
        "total" => Some(Self::Total),
    }
    LogFormat {
        "json" => Some(Self::Json),
        "text" => Some(Self::Text),
    }
    Redact {
        "default" => Some(Self::Default),
        "off" => Some(Self::Off),
    }
    Personal {
        "email" => Some(Self::Email),
        "phone" => Some(Self::Phone),
        "iban" => Some(Self::Iban),
        "card" => Some(Self::Card),
        "ip" => Some(Self::Ip),
    }
    Transport {
        "stdio" => Some(Self::Stdio),
        "http" => Some(Self::Http),
        "streamable-http" => Some(Self::Http),
        "streamable_http" => Some(Self::Http),
        "streamableHttp" => Some(Self::Http),
        "sse" => None,
    }
    NoEgress {
        "none" => Some(Self::None),
        "own_site" => None,
    }
}

/// Whether what a tool returns is redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redact {
    /// As everything is.
    Default,
    /// It is not.
    Off,
}

/// `egress` as one word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoEgress {
    /// Nobody.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_file_are_those_of_the_types() {
        assert_eq!(TrustZone::WORDS.len(), TrustZone::ALL.len());
        assert!(TrustZone::WORDS.iter().all(|(word, meant)| meant.map(TrustZone::as_str) == Some(word)));
        assert_eq!(DataClass::WORDS.len(), DataClass::ALL.len());
        assert!(DataClass::WORDS.iter().all(|(word, meant)| meant.map(DataClass::as_str) == Some(word)));
        assert_eq!(Effect::WORDS.len(), Effect::ALL.len());
        assert!(Effect::WORDS.iter().all(|(word, meant)| meant.map(Effect::as_str) == Some(word)));
        assert_eq!(Per::WORDS.len(), Per::ALL.len());
        assert!(Per::WORDS.iter().all(|(word, meant)| meant.map(Per::as_str) == Some(word)));
        assert_eq!(Personal::WORDS.len(), Personal::ALL.len());
        assert!(Personal::WORDS.iter().all(|(word, meant)| meant.map(Personal::as_str) == Some(word)));
        assert_eq!(HttpMethod::WORDS.len(), HttpMethod::ALL.len());
        assert!(HttpMethod::WORDS.iter().all(|(word, meant)| meant.map(HttpMethod::as_str) == Some(word)));
    }
}
