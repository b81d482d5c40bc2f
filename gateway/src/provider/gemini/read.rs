//! An answer as the API writes it, whole or as one chunk of a stream: the same form. Texts stay raw.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::super::chunks::NAMELESS;
use super::super::{Stamp, chunks};
use crate::wire::object::{as_str, quoted};

/// More answers than anybody asks for. Those beyond are not heard.
pub(super) const MOST_CHOICES: usize = 128;

/// A list that nearly always has one item, which costs no allocation then.
pub(super) struct Few<T>(pub(super) SmallVec<[T; 1]>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Few<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = SmallVec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Few(items))
            }
        }
        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

/// An answer, or a chunk of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: Option<Few<Candidate<'a>>>,
    #[serde(borrow, default)]
    pub(super) prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model_version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// One of the answers; nearly always the only one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) logprobs_result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Few<Part<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Feedback<'a> {
    #[serde(borrow, default, rename = "blockReason")]
    reason: Option<&'a RawValue>,
}

/// A part of an answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, default)]
    inline_data: Option<Blob<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    #[serde(borrow, default)]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// What a part says.
pub(super) enum Said<'p, 'a> {
    /// A raw string that is not empty.
    Text(&'a RawValue),
    /// The same, thought aloud.
    Thought(&'a RawValue),
    /// A call of a tool.
    Call(Called<'p, 'a>),
    /// A picture, as a `data:` URL.
    Picture(String),
    /// Nothing that a caller reads.
    Nothing,
}

/// A call of a tool.
pub(super) struct Called<'p, 'a>(&'p FunctionCall<'a>, Cow<'a, str>);

impl Called<'_, '_> {
    /// The provider's own id; empty: there is none.
    pub(super) fn id(&self) -> Cow<'_, str> {
        self.0.id.and_then(as_str).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        super::tools::own_name(&self.1)
    }

    /// The arguments as an object.
    pub(super) fn arguments(&self) -> &str {
        self.0.args.map(RawValue::get).filter(|args| args.starts_with('{')).unwrap_or("{}")
    }
}

impl<'a> Part<'a> {
    /// What it says.
    pub(super) fn said(&self) -> Said<'_, 'a> {
        if let Some(text) = self.text.filter(|text| super::super::canon::says_something(text)) {
            return if self.thought == Some(true) { Said::Thought(text) } else { Said::Text(text) };
        }
        if let Some(call) = &self.function_call {
            let name = call.name.and_then(as_str).filter(|name| !name.is_empty());
            return Said::Call(Called(call, name.unwrap_or(Cow::Borrowed(NAMELESS))));
        }
        match &self.inline_data {
            Some(Blob { mime_type: Some(kind), data: Some(data) }) => {
                let (kind, data) = (as_str(kind).unwrap_or_default(), as_str(data).unwrap_or_default());
                Said::Picture(format!("data:{kind};base64,{data}"))
            }
            _ => Said::Nothing,
        }
    }

    /// The signature of a text or a call, raw. That of a thought belongs to nothing that is sent back.
    pub(super) fn signature(&self) -> Option<&'a RawValue> {
        self.thought_signature.filter(|raw| self.thought != Some(true) && super::super::canon::says_something(raw))
    }
}

impl<'a> Candidate<'a> {
    pub(super) fn parts(&self) -> &[Part<'a>] {
        self.content.as_ref().and_then(|content| content.parts.as_ref()).map(|Few(parts)| &parts[..]).unwrap_or_default()
    }

    /// Why it ends, where it does.
    pub(super) fn end(&self) -> Option<End> {
        self.finish_reason.filter(|raw| raw.get() != "null").map(|raw| End::of(raw.get()))?
    }
}

impl<'a> Answer<'a> {
    /// What was said against the prompt, for whoever reads the refusal.
    pub(super) fn refusal(&self) -> Option<String> {
        let reason = self.prompt_feedback.as_ref()?.reason.and_then(as_str)?;
        Some(format!("The model's provider blocked this prompt ({reason})."))
    }

    /// Its id and its model, raw, each the provider's own where it has one.
    pub(super) fn names(&self, stamp: Stamp) -> (Cow<'a, str>, &'a str) {
        let made = || Cow::Owned(format!("\"chatcmpl-{:016x}\"", stamp.seed));
        let id = chunks::named(self.response_id).map_or_else(made, Cow::Borrowed);
        (id, chunks::named(self.model_version).unwrap_or("null"))
    }

    pub(super) fn candidates(&self) -> &[Candidate<'a>] {
        self.candidates.as_ref().map(|Few(candidates)| &candidates[..]).unwrap_or_default()
    }

    /// Whether a call came out so broken that there is nothing of it: no answer, but a failure to give one.
    pub(super) fn is_broken(&self) -> bool {
        self.candidates().iter().any(|candidate| candidate.end() == Some(End::Broken))
    }
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Stop,
    Length,
    Filtered,
    /// The model meant to call a tool, and nobody can tell how.
    Broken,
}

impl End {
    /// From the raw word.
    fn of(raw: &str) -> Option<Self> {
        Some(match raw.trim_matches('"') {
            "FINISH_REASON_UNSPECIFIED" | "" => return None,
            "MAX_TOKENS" => Self::Length,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "OTHER" => Self::Filtered,
            "IMAGE_SAFETY" | "IMAGE_PROHIBITED_CONTENT" | "IMAGE_RECITATION" | "IMAGE_OTHER" | "NO_IMAGE" | "MODEL_ARMOR" => {
                Self::Filtered
            }
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => Self::Broken,
            _ => Self::Stop,
        })
    }

    /// The canon's word.
    pub(super) fn word(self, has_calls: bool) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Filtered => "content_filter",
            Self::Stop | Self::Broken if has_calls => "tool_calls",
            Self::Stop | Self::Broken => "stop",
        }
    }
}

/// A signature as a caller carries it: for a call, or for the text where there is no id.
pub(super) fn detail(id: Option<&str>, signature: &RawValue, signer: &str, index: usize) -> String {
    let id = id.map(|id| format!(r#""id":{},"#, quoted(id))).unwrap_or_default();
    format!(
        r#"{{"type":"reasoning.encrypted",{id}"data":{},"format":"google-gemini-v1","index":{index},"signer":"{signer}"}}"#,
        signature.get()
    )
}

/// A picture as callers know them.
pub(super) fn picture(url: &str) -> String {
    format!(r#"{{"type":"image_url","image_url":{{"url":{}}}}}"#, quoted(url))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
}

/// The canon's usage: the prompt holds what was cached, the completion what was thought, which here stands beside it.
pub(super) fn usage(raw: &[u8]) -> Option<String> {
    let usage: Usage = serde_json::from_slice(raw).ok()?;
    let of_tools = usage.tool_use_prompt_token_count.unwrap_or(0);
    let prompt = usage.prompt_token_count.map(|prompt| prompt.saturating_add(of_tools));
    let thoughts = usage.thoughts_token_count.unwrap_or(0);
    let completion = usage.candidates_token_count.unwrap_or(0).saturating_add(thoughts);
    Some(chunks::usage(prompt, usage.cached_content_token_count.unwrap_or(0), completion, thoughts))
}

/// Token probabilities in the canon's form.
pub(super) fn logprobs(raw: &RawValue) -> Option<String> {
    let result: Logprobs<'_> = serde_json::from_str(raw.get()).ok()?;
    let tops = result.top_candidates.unwrap_or_default();
    let token = |chosen: &Chosen<'_>| {
        let (token, logprob) = (chosen.token?, chosen.log_probability?);
        Some(format!(r#""token":{},"logprob":{},"bytes":null"#, token.get(), logprob.get()))
    };
    let one = |(at, chosen): (usize, &Chosen<'_>)| {
        let top = tops.get(at).and_then(|top| top.candidates.as_deref()).unwrap_or_default();
        let top: Vec<String> = top.iter().filter_map(token).map(|token| format!("{{{token}}}")).collect();
        Some(format!(r#"{{{},"top_logprobs":[{}]}}"#, token(chosen)?, top.join(",")))
    };
    let content: Vec<String> = result.chosen_candidates.as_deref()?.iter().enumerate().filter_map(one).collect();
    Some(format!(r#"{{"content":[{}],"refusal":null}}"#, content.join(",")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Logprobs<'a> {
    #[serde(borrow, default)]
    top_candidates: Option<Vec<Tops<'a>>>,
    #[serde(borrow, default)]
    chosen_candidates: Option<Vec<Chosen<'a>>>,
}

#[derive(Deserialize)]
struct Tops<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Chosen<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chosen<'a> {
    #[serde(borrow, default)]
    token: Option<&'a RawValue>,
    #[serde(borrow, default)]
    log_probability: Option<&'a RawValue>,
}
