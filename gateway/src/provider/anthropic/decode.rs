//! A plain answer of Anthropic's as a chat completion.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_config::provider::Provider;

use super::super::{Stamp, signer};
use super::parts::push;
use super::usage::Used;
use super::{finish, put_id, thoughts_of};
use crate::wire::object::{as_str, push_quoted};

/// The answer as a completion. What is none goes on as it is.
pub(in super::super) fn decode(provider: &Provider, body: Bytes, stamp: Stamp) -> Bytes {
    let message = std::str::from_utf8(&body).ok().and_then(|text| serde_json::from_str::<Message<'_>>(text).ok());
    match message {
        Some(Message { content: Some(content), error: None, .. }) if !content.get().starts_with('[') => body,
        Some(message @ Message { content: Some(_), error: None, .. }) => {
            completion(&message, &signer(provider), stamp).map_or_else(|| body.clone(), Bytes::from)
        }
        _ => body,
    }
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow, default)]
    id: Option<&'m RawValue>,
    #[serde(borrow, default)]
    model: Option<&'m RawValue>,
    #[serde(borrow, default)]
    content: Option<&'m RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<&'m RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'m RawValue>,
    #[serde(borrow, default)]
    error: Option<&'m RawValue>,
}

#[derive(Deserialize)]
struct Block<'m> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'m, str>,
    #[serde(borrow, default)]
    text: Option<&'m RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'m RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'m RawValue>,
    #[serde(borrow, default)]
    data: Option<&'m RawValue>,
    #[serde(borrow, default)]
    id: Option<&'m RawValue>,
    #[serde(borrow, default)]
    name: Option<&'m RawValue>,
    #[serde(borrow, default)]
    input: Option<&'m RawValue>,
}

/// What the blocks say, as the insides of JSON strings and lists.
#[derive(Default)]
struct Words {
    text: String,
    thoughts: String,
    details: String,
    calls: String,
    has_calls: bool,
}

fn completion(message: &Message<'_>, signer: &str, stamp: Stamp) -> Option<String> {
    let blocks: Vec<&RawValue> = serde_json::from_str(message.content?.get()).ok()?;
    let reason = message.stop_reason.and_then(as_str);
    let is_cut = finish::is_cut(reason.as_deref());
    let mut words = Words::default();
    let last = blocks.len().saturating_sub(1);
    for (at, raw) in blocks.iter().enumerate() {
        let block: Block<'_> = serde_json::from_str(raw.get()).ok()?;
        words.take(&block, at, signer, is_cut && at == last);
    }
    let mut out = String::with_capacity(words.text.len() + words.calls.len() + 2 * words.thoughts.len() + 512);
    out.push_str("{\"id\":");
    put_id(&mut out, message.id, stamp);
    out.push_str(r#","object":"chat.completion","created":"#);
    out.push_str(&stamp.created.to_string());
    if let Some(model) = message.model.filter(|model| model.get().starts_with('"')) {
        out.extend([",\"model\":", model.get()]);
    }
    out.push_str(r#","choices":[{"index":0,"message":"#);
    words.write(&mut out);
    out.extend([",\"logprobs\":null,\"finish_reason\":\"", finish::canonical(reason.as_deref(), words.has_calls), "\"}]"]);
    let mut used = Used::default();
    used.take(message.usage);
    if let Some(usage) = used.render() {
        out.extend([",\"usage\":", &usage]);
    }
    out.push('}');
    Some(out)
}

impl Words {
    fn take(&mut self, block: &Block<'_>, at: usize, signer: &str, is_cut: bool) {
        let index = u64::try_from(at).unwrap_or_default();
        match &*block.kind {
            "text" => self.text.push_str(inner(block.text)),
            "tool_use" => self.call(block, is_cut),
            "thinking" => {
                self.thoughts.push_str(inner(block.thinking));
                if let Some(signature) = block.signature.filter(|signature| signature.get().len() > 2) {
                    let text = block.thinking.map_or("\"\"", RawValue::get);
                    push(&mut self.details, &thoughts_of::said(text, signature.get(), index, signer));
                }
            }
            "redacted_thinking" => {
                if let Some(data) = block.data {
                    push(&mut self.details, &thoughts_of::hidden(data.get(), index, signer));
                }
            }
            // Blocks of the provider's own tools, and whatever else there will be.
            _ => {}
        }
    }

    fn call(&mut self, block: &Block<'_>, is_cut: bool) {
        let raw = |raw: Option<&RawValue>| raw.filter(|raw| raw.get().starts_with('"')).map_or("\"\"", RawValue::get).to_owned();
        let input = block.input.map(RawValue::get).filter(|input| input.starts_with('{')).unwrap_or("{}");
        // A call that was cut is shown as one: what is there of its arguments is not what the model meant.
        let input = if is_cut { input.strip_suffix('}').unwrap_or_default() } else { input };
        push(&mut self.calls, r#"{"id":"#);
        self.calls.extend([
            raw(block.id).as_str(),
            r#","type":"function","function":{"name":"#,
            &raw(block.name),
            r#","arguments":"#,
        ]);
        push_quoted(&mut self.calls, input);
        self.calls.push_str("}}");
        self.has_calls = true;
    }

    fn write(&self, out: &mut String) {
        out.push_str(r#"{"role":"assistant","content":"#);
        if self.text.is_empty() && self.has_calls {
            out.push_str("null");
        } else {
            out.extend(["\"", &self.text, "\""]);
        }
        out.push_str(r#","refusal":null"#);
        if !self.thoughts.is_empty() {
            out.extend([r#","reasoning_content":""#, &self.thoughts, "\""]);
        }
        for (name, items) in [("reasoning_details", &self.details), ("tool_calls", &self.calls)] {
            if !items.is_empty() {
                out.extend([",\"", name, "\":[", items, "]"]);
            }
        }
        out.push('}');
    }
}

fn inner(raw: Option<&RawValue>) -> &str {
    let text = raw.map_or("", RawValue::get);
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
}
