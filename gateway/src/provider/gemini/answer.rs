//! A plain answer as one completion.

use serde_json::value::RawValue;

use super::super::{Stamp, chunks, ids};
use super::read::{self, Answer, Candidate, End, Said};
use crate::wire::object::{push_quoted, quoted};

/// The completion. `None`: the body is no answer.
pub(super) fn completion(body: &[u8], signer: &str, stamp: Stamp) -> Option<String> {
    let answer: Answer<'_> = serde_json::from_slice(body).ok()?;
    if answer.error.is_some_and(|error| error.get() != "null") || answer.is_broken() {
        return None;
    }
    let mut calls = 0;
    let candidates = answer.candidates();
    let mut choices: Vec<String> = candidates
        .iter()
        .take(read::MOST_CHOICES)
        .enumerate()
        .map(|(at, candidate)| choice(at, candidate, signer, stamp, &mut calls))
        .collect();
    if choices.is_empty() {
        choices.push(refused(&answer.refusal()?));
    }
    let (id, model) = answer.names(stamp);
    let usage = answer.usage_metadata.and_then(|usage| read::usage(usage.get().as_bytes()));
    let usage = usage.map(|usage| format!(r#","usage":{usage}"#)).unwrap_or_default();
    Some(format!(
        r#"{{"id":{id},"object":"chat.completion","created":{},"model":{model},"choices":[{}]{usage}}}"#,
        stamp.created,
        choices.join(",")
    ))
}

fn refused(refusal: &str) -> String {
    let refusal = quoted(refusal);
    format!(
        r#"{{"index":0,"message":{{"role":"assistant","content":null,"refusal":{refusal}}},"logprobs":null,"finish_reason":"content_filter"}}"#
    )
}

/// What the parts of an answer add up to.
#[derive(Default)]
struct Message {
    /// The insides of JSON strings.
    content: Option<String>,
    thoughts: String,
    calls: Vec<String>,
    details: Vec<String>,
    pictures: Vec<String>,
}

fn choice(at: usize, candidate: &Candidate<'_>, signer: &str, stamp: Stamp, calls: &mut usize) -> String {
    let mut message = Message::default();
    for part in candidate.parts() {
        let signature = part.signature();
        let mut id = None;
        match part.said() {
            Said::Text(text) => message.content.get_or_insert_default().push_str(inner(text)),
            Said::Thought(text) => message.thoughts.push_str(inner(text)),
            Said::Picture(url) => message.pictures.push(read::picture(&url)),
            Said::Call(call) => {
                let own = call.id().into_owned();
                let made = if own.is_empty() { ids::made(stamp, *calls) } else { own };
                *calls += 1;
                message.calls.push(chunks::call(None, &made, call.name(), call.arguments()));
                id = Some(made);
            }
            Said::Nothing => {}
        }
        if let Some(signature) = signature {
            message.details.push(read::detail(id.as_deref(), signature, signer, message.details.len()));
        }
    }
    let end = candidate.end().unwrap_or(End::Stop).word(!message.calls.is_empty());
    let logprobs = candidate.logprobs_result.and_then(read::logprobs).unwrap_or_else(|| "null".to_owned());
    let index = candidate.index.unwrap_or(at as u32);
    format!(r#"{{"index":{index},"message":{},"logprobs":{logprobs},"finish_reason":"{end}"}}"#, written(&message))
}

/// The inside of a raw string.
fn inner(raw: &RawValue) -> &str {
    let text = raw.get();
    text.get(1..text.len() - 1).unwrap_or_default()
}

fn written(message: &Message) -> String {
    let mut out = String::from(r#"{"role":"assistant","content":"#);
    match &message.content {
        Some(text) => out.push_str(&format!("\"{text}\"")),
        None if message.calls.is_empty() => push_quoted(&mut out, ""),
        None => out.push_str("null"),
    }
    out.push_str(r#","refusal":null"#);
    if !message.thoughts.is_empty() {
        out.push_str(&format!(r#","reasoning_content":"{}""#, message.thoughts));
    }
    for (name, list) in [("tool_calls", &message.calls), ("reasoning_details", &message.details), ("images", &message.pictures)] {
        if !list.is_empty() {
            out.push_str(&format!(r#","{name}":[{}]"#, list.join(",")));
        }
    }
    out.push('}');
    out
}
