//! A stream of Anthropic's events as chunks of a chat completion. It runs for every token: what an event says is copied as it was escaped,
//! into one buffer that the chunks share.

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;
use toolgate_config::provider::Provider;

use super::super::{Stamp, signer};
use super::usage::Used;
use super::{finish, put_id, thoughts_of};
use crate::wire::object::{as_str, quoted};
use crate::wire::sse::{END_MARK, Event};

/// How much of a stream's chunks is allocated at once, in bytes.
const BUFFER: usize = 4096;

/// The most blocks that are open at once; the API opens one after the other.
const MOST_OPEN: usize = 64;

/// The longest thought that is kept to be sent back, in bytes.
const LONGEST_THOUGHT: usize = 16 * 1024 * 1024;

/// A stream under way.
pub(in super::super) struct Stream {
    signer: String,
    stamp: Stamp,
    /// What every chunk begins with, up to its delta.
    head: String,
    buffer: BytesMut,
    open: SmallVec<[Block; 1]>,
    calls: u32,
    /// The last call has no arguments so far: it has none at all, unless the answer was cut there.
    unsaid: Option<u32>,
    used: Used,
    finished: bool,
    told: Option<String>,
}

/// A block whose end has not come.
struct Block {
    index: u64,
    kind: Kind,
}

enum Kind {
    Text,
    /// A call: which one of the answer, and its arguments if they came with its name.
    Call {
        at: u32,
        whole: Option<String>,
        has_said: bool,
    },
    /// A thought: the insides of two JSON strings.
    Thought {
        text: String,
        signature: String,
    },
    /// Nothing that a caller could make use of.
    Other,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Start<'a>>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

impl Stream {
    /// One that begins.
    pub(in super::super) fn new(provider: &Provider, stamp: Stamp) -> Self {
        Self {
            signer: signer(provider),
            stamp,
            head: String::new(),
            buffer: BytesMut::with_capacity(BUFFER),
            open: SmallVec::new(),
            calls: 0,
            unsaid: None,
            used: Used::default(),
            finished: false,
            told: None,
        }
    }

    /// Takes an event of the provider's; what it means goes behind `ready`. What is no event of this API goes on as it is.
    pub(in super::super) fn hear(&mut self, event: Event, ready: &mut VecDeque<Event>) {
        let said = std::str::from_utf8(&event.data).ok().and_then(|text| serde_json::from_str::<Said<'_>>(text).ok());
        match said {
            Some(said) if said.kind == "error" || said.error.is_some() => ready.push_back(Event { is_error: true, ..event }),
            Some(said) if !event.is_error && !said.kind.is_empty() => self.take(said, ready),
            _ => ready.push_back(event),
        }
    }

    fn take(&mut self, said: Said<'_>, ready: &mut VecDeque<Event>) {
        match &*said.kind {
            "content_block_delta" => self.more(said.index.unwrap_or(0), said.delta.unwrap_or_default(), ready),
            "content_block_start" => {
                if let Some(start) = said.content_block {
                    self.start(said.index.unwrap_or(0), start, ready);
                }
            }
            "content_block_stop" => self.stop(said.index.unwrap_or(0), ready),
            "message_start" => self.begin(said.message, ready),
            "message_delta" => {
                self.used.take(said.usage);
                if let Some(reason) = said.delta.and_then(|delta| delta.stop_reason).filter(|reason| reason.get() != "null") {
                    self.finish(as_str(reason).as_deref(), ready);
                    self.tell_usage(ready);
                }
            }
            "message_stop" => {
                self.finish(None, ready);
                self.tell_usage(ready);
                ready.push_back(Event { data: Bytes::from_static(END_MARK), is_error: false });
            }
            // Pings, and whatever else there will be.
            _ => {}
        }
    }

    fn begin(&mut self, message: Option<Message<'_>>, ready: &mut VecDeque<Event>) {
        if let Some(message) = message {
            self.used.take(message.usage);
            self.head = head(message.id, message.model, self.stamp);
        }
        self.chunk(r#"{"role":"assistant","content":""}"#, "null", ready);
    }

    fn start(&mut self, index: u64, start: Start<'_>, ready: &mut VecDeque<Event>) {
        let is_there = |raw: &&RawValue| raw.get().starts_with('"') && raw.get().len() > 2;
        self.complete(ready);
        let kind = match &*start.kind {
            "text" => {
                start.text.filter(is_there).into_iter().for_each(|text| self.delta("content", text.get(), ready));
                Kind::Text
            }
            "tool_use" => self.start_call(&start, ready),
            "thinking" => {
                let text = start.thinking.filter(is_there);
                text.into_iter().for_each(|text| self.delta("reasoning_content", text.get(), ready));
                let of = |raw: Option<&RawValue>| raw.map(inner).unwrap_or_default().to_owned();
                Kind::Thought { text: of(text), signature: of(start.signature) }
            }
            "redacted_thinking" => {
                if let Some(data) = start.data.filter(is_there) {
                    let entry = thoughts_of::hidden(data.get(), index, &self.signer);
                    self.details(&entry, ready);
                }
                Kind::Other
            }
            _ => Kind::Other,
        };
        if self.open.len() < MOST_OPEN {
            self.open.push(Block { index, kind });
        }
    }

    fn start_call(&mut self, start: &Start<'_>, ready: &mut VecDeque<Event>) -> Kind {
        let at = self.calls;
        self.calls += 1;
        let raw = |raw: Option<&RawValue>| raw.filter(|raw| raw.get().starts_with('"')).map_or("\"\"", RawValue::get).to_owned();
        let (id, name) = (raw(start.id), raw(start.name));
        let call = format!(
            r#"{{"tool_calls":[{{"index":{at},"id":{id},"type":"function","function":{{"name":{name},"arguments":""}}}}]}}"#
        );
        self.chunk(&call, "null", ready);
        // An empty object is the place that deltas will fill.
        let whole = start.input.map(RawValue::get).filter(|input| input.starts_with('{') && input[1..].trim_start() != "}");
        Kind::Call { at, whole: whole.map(str::to_owned), has_said: false }
    }

    fn more(&mut self, index: u64, delta: Delta<'_>, ready: &mut VecDeque<Event>) {
        let block = self.open.iter_mut().rev().find(|block| block.index == index).map(|block| &mut block.kind);
        match (&*delta.kind, block) {
            // A text whose block was not opened is a text all the same.
            ("text_delta", Some(Kind::Text) | None) => {
                delta.text.into_iter().for_each(|text| self.delta("content", text.get(), ready));
            }
            ("input_json_delta", Some(Kind::Call { at, has_said, .. })) => {
                let Some(piece) = delta.partial_json.filter(|piece| piece.get().len() > 2) else { return };
                *has_said = true;
                let at = *at;
                self.arguments(at, piece.get(), ready);
            }
            ("thinking_delta", Some(Kind::Thought { text, .. })) => {
                let Some(thought) = delta.thinking else { return };
                if text.len() <= LONGEST_THOUGHT {
                    text.push_str(inner(thought));
                }
                self.delta("reasoning_content", thought.get(), ready);
            }
            ("signature_delta", Some(Kind::Thought { signature, .. })) if signature.len() <= LONGEST_THOUGHT => {
                delta.signature.into_iter().for_each(|piece| signature.push_str(inner(piece)));
            }
            _ => {}
        }
    }

    fn stop(&mut self, index: u64, ready: &mut VecDeque<Event>) {
        let Some(at) = self.open.iter().rposition(|block| block.index == index) else { return };
        match self.open.remove(at).kind {
            Kind::Call { at, whole: Some(whole), has_said: false } => self.arguments(at, &quoted(&whole), ready),
            Kind::Call { at, whole: None, has_said: false } => self.unsaid = Some(at),
            // What is not signed cannot be sent back, so nobody needs to keep it.
            Kind::Thought { text, signature } if !signature.is_empty() && text.len() <= LONGEST_THOUGHT => {
                let entry = thoughts_of::said(&in_quotes(&text), &in_quotes(&signature), index, &self.signer);
                self.details(&entry, ready);
            }
            Kind::Call { .. } | Kind::Thought { .. } | Kind::Text | Kind::Other => {}
        }
    }

    /// Something came after a call without arguments, so it has none.
    fn complete(&mut self, ready: &mut VecDeque<Event>) {
        if let Some(at) = self.unsaid.take() {
            self.arguments(at, "\"{}\"", ready);
        }
    }

    fn finish(&mut self, reason: Option<&str>, ready: &mut VecDeque<Event>) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if finish::is_cut(reason) {
            self.unsaid = None;
        }
        self.complete(ready);
        self.chunk("{}", &format!("\"{}\"", finish::canonical(reason, self.calls > 0)), ready);
    }

    /// The usage, once for each new total.
    fn tell_usage(&mut self, ready: &mut VecDeque<Event>) {
        let usage = self.used.render();
        if usage.is_none() || usage == self.told {
            return;
        }
        let text = [self.head_without_choices(), "[],\"usage\":", usage.as_deref().unwrap_or_default(), "}"].concat();
        ready.push_back(Event { data: text.into(), is_error: false });
        self.told = usage;
    }

    fn delta(&mut self, member: &str, raw: &str, ready: &mut VecDeque<Event>) {
        if raw.starts_with('"') {
            self.write(&["{\"", member, "\":", raw, "}"], "null", ready);
        }
    }

    fn arguments(&mut self, at: u32, raw: &str, ready: &mut VecDeque<Event>) {
        let call = format!(r#"{{"tool_calls":[{{"index":{at},"function":{{"arguments":"#);
        self.write(&[&call, raw, "}}]}"], "null", ready);
    }

    fn details(&mut self, entry: &str, ready: &mut VecDeque<Event>) {
        self.write(&[r#"{"reasoning_details":["#, entry, "]}"], "null", ready);
    }

    fn chunk(&mut self, delta: &str, finish: &str, ready: &mut VecDeque<Event>) {
        self.write(&[delta], finish, ready);
    }

    fn write(&mut self, delta: &[&str], finish: &str, ready: &mut VecDeque<Event>) {
        if self.head.is_empty() {
            self.head = head(None, None, self.stamp);
        }
        let length = delta.iter().map(|part| part.len()).sum::<usize>() + self.head.len() + finish.len() + 20;
        self.buffer.reserve(length);
        self.buffer.extend_from_slice(self.head.as_bytes());
        delta.iter().for_each(|part| self.buffer.extend_from_slice(part.as_bytes()));
        self.buffer.extend_from_slice(b",\"finish_reason\":");
        self.buffer.extend_from_slice(finish.as_bytes());
        self.buffer.extend_from_slice(b"}]}");
        ready.push_back(Event { data: self.buffer.split().freeze(), is_error: false });
    }

    fn head_without_choices(&self) -> &str {
        self.head.strip_suffix(CHOICE).unwrap_or_default()
    }
}

const CHOICE: &str = r#"[{"index":0,"delta":"#;

fn head(id: Option<&RawValue>, model: Option<&RawValue>, stamp: Stamp) -> String {
    let mut head = "{\"id\":".to_owned();
    put_id(&mut head, id, stamp);
    head.push_str(r#","object":"chat.completion.chunk","created":"#);
    head.push_str(&stamp.created.to_string());
    if let Some(model) = model.filter(|model| model.get().starts_with('"')) {
        head.push_str(",\"model\":");
        head.push_str(model.get());
    }
    head.push_str(",\"choices\":");
    head.push_str(CHOICE);
    head
}

fn inner(raw: &RawValue) -> &str {
    raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
}

fn in_quotes(inner: &str) -> String {
    ["\"", inner, "\""].concat()
}
