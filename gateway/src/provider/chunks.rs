//! Canonical chunks as a dialect's stream writes them: everything that is the same in each is made once.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::value::RawValue;

use crate::wire::sse::{END_MARK, Event};

/// A call whose model left its name out: nobody has such a tool, so the model is told; and a history that holds it is taken by every provider.
pub(super) const NAMELESS: &str = "nameless";

/// How much is allocated at a time, in bytes: room for a dozen chunks of a few words.
const PIECE: usize = 4096;

/// The longest name or id of a provider's that is repeated in each chunk, in bytes.
const LONGEST_NAME: usize = 256;

/// A provider's name for something, raw, where it is fit to be repeated.
pub(super) fn named(raw: Option<&RawValue>) -> Option<&str> {
    raw.map(RawValue::get).filter(|name| name.starts_with('"') && (3..=LONGEST_NAME).contains(&name.len()))
}

/// Writes the chunks of one answer.
pub(super) struct Chunks {
    /// Up to the list of choices.
    head: Vec<u8>,
    out: BytesMut,
}

impl Chunks {
    /// For an answer of this id and of this model, both raw JSON.
    pub(super) fn new(id: &str, created: u64, model: &str) -> Self {
        let head = format!(r#"{{"id":{id},"object":"chat.completion.chunk","created":{created},"model":{model},"choices":["#);
        Self { head: head.into_bytes(), out: BytesMut::new() }
    }

    /// A chunk in which choice `index` says something: `role_first` where nobody has said whose words they are, then what `write` adds,
    /// which ends in no comma.
    pub(super) fn delta(&mut self, index: u32, role_first: bool, write: impl FnOnce(&mut BytesMut)) -> Event {
        self.begin(index);
        if role_first {
            self.out.put_slice(br#""role":"assistant","#);
        }
        write(&mut self.out);
        self.out.put_slice(br#"},"finish_reason":null}]}"#);
        self.event()
    }

    /// A chunk in which something stands beside the delta of a choice: a raw member.
    pub(super) fn beside(&mut self, index: u32, member: &str) -> Event {
        self.begin(index);
        self.out.put_slice(b"},");
        self.out.put_slice(member.as_bytes());
        self.out.put_slice(br#","finish_reason":null}]}"#);
        self.event()
    }

    /// The chunk that ends a choice.
    pub(super) fn finish(&mut self, index: u32, role_first: bool, reason: &str) -> Event {
        self.begin(index);
        if role_first {
            self.out.put_slice(br#""role":"assistant","content":"""#);
        }
        self.out.put_slice(br#"},"finish_reason":""#);
        self.out.put_slice(reason.as_bytes());
        self.out.put_slice(br#""}]}"#);
        self.event()
    }

    /// The chunk that says what was used: a raw object.
    pub(super) fn usage(&mut self, usage: &str) -> Event {
        self.out.put_slice(&self.head);
        self.out.put_slice(br#"],"usage":"#);
        self.out.put_slice(usage.as_bytes());
        self.out.put_u8(b'}');
        self.event()
    }

    fn begin(&mut self, index: u32) {
        if self.out.capacity() < PIECE / 8 {
            self.out.reserve(PIECE);
        }
        self.out.put_slice(&self.head);
        self.out.put_slice(br#"{"index":"#);
        if index == 0 {
            self.out.put_u8(b'0')
        } else {
            self.out.put_slice(index.to_string().as_bytes())
        }
        self.out.put_slice(br#","delta":{"#);
    }

    fn event(&mut self) -> Event {
        Event { data: self.out.split().freeze(), is_error: false }
    }
}

/// The mark that says that a stream is complete.
pub(super) fn end_mark() -> Event {
    Event { data: Bytes::from_static(END_MARK), is_error: false }
}

/// What a call used, as its provider told it: the prompt holds the cached tokens, the completion the reasoning ones. A prompt that was not
/// told is left out, which is something else than none.
pub(super) fn usage(prompt: Option<u64>, cached: u64, completion: u64, reasoning: u64) -> String {
    let total = prompt.unwrap_or(0).saturating_add(completion);
    let prompt = prompt.map(|prompt| format!(r#""prompt_tokens":{prompt},"#)).unwrap_or_default();
    let cached = if cached > 0 { format!(r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#) } else { String::new() };
    let reasoning =
        if reasoning > 0 { format!(r#","completion_tokens_details":{{"reasoning_tokens":{reasoning}}}"#) } else { String::new() };
    format!(r#"{{{prompt}"completion_tokens":{completion},"total_tokens":{total}{cached}{reasoning}}}"#)
}

/// A call of a tool as a member of a delta or a message, from its raw parts; `arguments` is the object itself.
pub(super) fn call(index: Option<usize>, id: &str, name: &str, arguments: &str) -> String {
    use crate::wire::object::push_quoted;
    let mut out = String::with_capacity(96 + id.len() + name.len() + arguments.len() * 5 / 4);
    out.push('{');
    if let Some(index) = index {
        out.push_str(&format!(r#""index":{index},"#));
    }
    out.push_str(r#""id":"#);
    push_quoted(&mut out, id);
    out.push_str(r#","type":"function","function":{"name":"#);
    push_quoted(&mut out, name);
    out.push_str(r#","arguments":"#);
    push_quoted(&mut out, arguments);
    out.push_str("}}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Usage;

    #[test]
    fn what_was_used_is_read_back() {
        let table = [(Some(100), 64, 20, 12), (Some(3), 0, 4, 0), (None, 0, 4, 0)];
        for (prompt, cached, completion, reasoning) in table {
            let text = usage(prompt, cached, completion, reasoning);
            let read = Usage::parse(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((read.prompt, read.cached()), (prompt.unwrap_or(0), cached));
            assert_eq!((read.completion, read.reasoning(), read.output()), (completion, reasoning, completion));
            assert_eq!(read.lacks_prompt(), prompt.is_none());
        }
    }

    #[test]
    fn chunks_are_written_whole() {
        let mut chunks = Chunks::new("\"x\"", 7, "\"m\"");
        let head = r#"{"id":"x","object":"chat.completion.chunk","created":7,"model":"m","choices":["#;
        let said = chunks.delta(0, true, |out| out.put_slice(br#""content":"a""#));
        let expected = format!("{head}{}", r#"{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}"#);
        assert_eq!(said.data, expected);
        let expected = format!("{head}{}", r#"{"index":2,"delta":{},"finish_reason":"stop"}]}"#);
        assert_eq!(chunks.finish(2, false, "stop").data, expected);
        assert_eq!(chunks.usage("{}").data, format!(r#"{head}],"usage":{{}}}}"#));
    }
}
