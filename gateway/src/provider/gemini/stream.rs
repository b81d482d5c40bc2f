//! A stream of chunks as a stream of the canon's. The API has no end mark and no last chunk: an answer is complete when it has said why it
//! ends and the connection then ended. One that just stops has said nothing of the kind, and neither is it here.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes};
use serde_json::value::RawValue;
use smallvec::SmallVec;
use toolgate_config::provider::Provider;

use super::super::chunks::{self, Chunks, end_mark};
use super::super::{Stamp, ids, signer};
use super::read::{self, Answer, Candidate, End, Part, Said};
use crate::wire::object::{place, quoted};
use crate::wire::sse::Event;

/// A stream under way.
pub(in super::super) struct Stream {
    stamp: Stamp,
    signer: String,
    chunks: Option<Chunks>,
    choices: SmallVec<[Choice; 1]>,
    /// The totals that came last: they grow from chunk to chunk.
    usage: Option<Bytes>,
    /// How many calls there were, for ids that no other call has.
    calls: usize,
    /// Whether it has failed, or has been ended.
    is_over: bool,
}

/// One answer of a stream.
#[derive(Default)]
struct Choice {
    has_role: bool,
    calls: usize,
    signatures: usize,
    end: Option<End>,
}

impl Stream {
    pub(in super::super) fn new(provider: &Provider, stamp: Stamp) -> Self {
        let signer = signer(provider);
        Self { stamp, signer, chunks: None, choices: SmallVec::new(), usage: None, calls: 0, is_over: false }
    }

    /// Takes an event of the provider's; what it means goes behind `ready`.
    pub(in super::super) fn hear(&mut self, event: Event, ready: &mut VecDeque<Event>) {
        let answer: Answer<'_> = match serde_json::from_slice(&event.data) {
            Ok(answer) => answer,
            Err(_) => return self.fail(event.data.clone(), event.is_error, ready),
        };
        let is_error = answer.error.is_some_and(|error| error.get() != "null") || answer.is_broken();
        let says_nothing = answer.candidates.is_none() && answer.usage_metadata.is_none() && answer.prompt_feedback.is_none();
        if is_error || event.is_error || says_nothing {
            return self.fail(event.data.clone(), is_error || event.is_error, ready);
        }
        if let Some(usage) = place(&event.data, answer.usage_metadata) {
            self.usage = Some(event.data.slice(usage));
        }
        self.begin(&answer);
        for candidate in answer.candidates() {
            self.candidate(candidate, ready);
        }
        if answer.candidates().is_empty()
            && let Some(refusal) = answer.refusal()
        {
            self.refuse(&refusal, ready);
        }
    }

    /// The connection has ended: if the answer had, this is its end.
    pub(in super::super) fn end(&mut self, ready: &mut VecDeque<Event>) {
        let has_ended = !self.choices.is_empty() && self.choices.iter().all(|choice| choice.end.is_some());
        if self.is_over || !has_ended {
            return;
        }
        self.is_over = true;
        let Some(chunks) = &mut self.chunks else { return };
        for (index, choice) in self.choices.iter().enumerate() {
            let word = choice.end.unwrap_or(End::Stop).word(choice.calls > 0);
            ready.push_back(chunks.finish(index as u32, !choice.has_role, word));
        }
        if let Some(usage) = self.usage.as_deref().and_then(read::usage) {
            ready.push_back(chunks.usage(&usage));
        }
        ready.push_back(end_mark());
    }

    /// What is no chunk goes on as it is, and nothing after it makes the answer whole again.
    fn fail(&mut self, data: Bytes, is_error: bool, ready: &mut VecDeque<Event>) {
        self.is_over = true;
        ready.push_back(Event { data, is_error });
    }

    fn begin(&mut self, answer: &Answer<'_>) {
        if self.chunks.is_none() {
            let (id, model) = answer.names(self.stamp);
            self.chunks = Some(Chunks::new(&id, self.stamp.created, model));
        }
    }

    fn candidate(&mut self, candidate: &Candidate<'_>, ready: &mut VecDeque<Event>) {
        let index = candidate.index.unwrap_or(0);
        let Some(choice) = choice(&mut self.choices, index) else { return };
        choice.end = candidate.end().or(choice.end);
        let Some(chunks) = &mut self.chunks else { return };
        let mut writer = Writer { chunks, choice, index, signer: &self.signer, stamp: self.stamp, calls: &mut self.calls };
        for part in candidate.parts() {
            writer.part(part, ready);
        }
        if let Some(logprobs) = candidate.logprobs_result.and_then(read::logprobs) {
            ready.push_back(writer.chunks.beside(index, &format!(r#""logprobs":{logprobs}"#)));
        }
    }

    fn refuse(&mut self, refusal: &str, ready: &mut VecDeque<Event>) {
        let (Some(choice), Some(chunks)) = (choice(&mut self.choices, 0), &mut self.chunks) else { return };
        choice.end = Some(End::Filtered);
        let said = chunks.delta(0, !choice.has_role, |out| {
            out.put_slice(br#""content":null,"refusal":"#);
            out.put_slice(quoted(refusal).as_bytes());
        });
        choice.has_role = true;
        ready.push_back(said);
    }
}

/// The answer of this number, with those before it.
fn choice(choices: &mut SmallVec<[Choice; 1]>, index: u32) -> Option<&mut Choice> {
    if index as usize >= read::MOST_CHOICES {
        return None;
    }
    while choices.len() <= index as usize {
        choices.push(Choice::default());
    }
    choices.get_mut(index as usize)
}

/// Writes the parts of one candidate.
struct Writer<'w> {
    chunks: &'w mut Chunks,
    choice: &'w mut Choice,
    index: u32,
    signer: &'w str,
    stamp: Stamp,
    calls: &'w mut usize,
}

impl Writer<'_> {
    fn part(&mut self, part: &Part<'_>, ready: &mut VecDeque<Event>) {
        let signature = part.signature();
        match part.said() {
            Said::Text(text) => self.text(br#""content":"#, text, ready),
            Said::Thought(text) => self.text(br#""reasoning_content":"#, text, ready),
            Said::Picture(url) => {
                let picture = read::picture(&url);
                self.say(ready, |out| {
                    out.put_slice(br#""images":["#);
                    out.put_slice(picture.as_bytes());
                    out.put_u8(b']');
                });
            }
            Said::Call(call) => {
                let made = call.id().is_empty().then(|| ids::made(self.stamp, *self.calls));
                let id = made.unwrap_or_else(|| call.id().into_owned());
                let text = chunks::call(Some(self.choice.calls), &id, call.name(), call.arguments());
                *self.calls += 1;
                self.choice.calls += 1;
                let detail = signature.map(|signature| self.detail(Some(&id), signature));
                return self.say(ready, |out| {
                    out.put_slice(br#""tool_calls":["#);
                    out.put_slice(text.as_bytes());
                    out.put_u8(b']');
                    if let Some(detail) = detail {
                        out.put_u8(b',');
                        put_details(&detail, out);
                    }
                });
            }
            Said::Nothing => {}
        }
        if let Some(signature) = signature {
            let detail = self.detail(None, signature);
            self.say(ready, |out| put_details(&detail, out));
        }
    }

    fn text(&mut self, member: &[u8], text: &RawValue, ready: &mut VecDeque<Event>) {
        self.say(ready, |out| {
            out.put_slice(member);
            out.put_slice(text.get().as_bytes());
        });
    }

    fn say(&mut self, ready: &mut VecDeque<Event>, write: impl FnOnce(&mut bytes::BytesMut)) {
        let is_first = !std::mem::replace(&mut self.choice.has_role, true);
        ready.push_back(self.chunks.delta(self.index, is_first, write));
    }

    fn detail(&mut self, id: Option<&str>, signature: &RawValue) -> String {
        let index = self.choice.signatures;
        self.choice.signatures += 1;
        read::detail(id, signature, self.signer, index)
    }
}

fn put_details(detail: &str, out: &mut bytes::BytesMut) {
    out.put_slice(br#""reasoning_details":["#);
    out.put_slice(detail.as_bytes());
    out.put_u8(b']');
}
