//! A stream of lines of JSON as canonical events. The line that says `done` is the last; a stream without it was cut.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use memchr::memchr;

use super::super::chunks::{self, Chunks, end_mark};
use super::super::{Stamp, ids};
use super::read::{Line, Message, answer_id};
use crate::wire::sse::{Event, LONGEST_EVENT, TooLong};

/// A stream of lines under way.
pub struct Lines {
    /// Bytes that are not yet read as lines.
    rest: Bytes,
    /// The beginning of a line whose end has not come.
    begun: BytesMut,
    stream: Stream,
    ready: VecDeque<Event>,
}

impl Lines {
    /// One for a stream that begins.
    pub(in super::super) fn new(stamp: Stamp) -> Self {
        let stream = Stream { stamp, chunks: None, has_role: false, calls: 0, is_over: false };
        Self { rest: Bytes::new(), begun: BytesMut::new(), stream, ready: VecDeque::new() }
    }

    /// Takes the next bytes of the stream. The events before them have been taken out.
    pub(in super::super) fn feed(&mut self, bytes: Bytes) -> Result<(), TooLong> {
        debug_assert!(self.rest.is_empty(), "lines are left");
        self.rest = bytes;
        if self.rest.len() + self.begun.len() > LONGEST_EVENT { Err(TooLong) } else { Ok(()) }
    }

    /// The next event, if there is one.
    pub(in super::super) fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let line = self.line()?;
            self.stream.hear(line, &mut self.ready);
        }
    }

    /// What is left when the stream has ended: a last line without its end.
    pub(in super::super) fn end(&mut self) -> Option<Event> {
        let line = self.begun.split().freeze();
        self.stream.hear(line, &mut self.ready);
        self.ready.pop_front()
    }

    fn line(&mut self) -> Option<Bytes> {
        let Some(end) = memchr(b'\n', &self.rest) else {
            self.begun.extend_from_slice(&std::mem::take(&mut self.rest));
            return None;
        };
        let line = self.rest.split_to(end);
        self.rest.advance(1);
        if self.begun.is_empty() {
            return Some(line);
        }
        self.begun.extend_from_slice(&line);
        Some(self.begun.split().freeze())
    }
}

/// What was said so far.
struct Stream {
    stamp: Stamp,
    chunks: Option<Chunks>,
    has_role: bool,
    calls: usize,
    /// Whether the last line has come, or what is no line.
    is_over: bool,
}

impl Stream {
    fn hear(&mut self, line: Bytes, ready: &mut VecDeque<Event>) {
        if line.trim_ascii().is_empty() || self.is_over {
            return;
        }
        let read: Line<'_> = match serde_json::from_slice(&line) {
            Ok(read) => read,
            Err(_) => return self.fail(line.clone(), false, ready),
        };
        if read.is_error() || (read.message.is_none() && read.done != Some(true)) {
            let is_error = read.is_error();
            return self.fail(line.clone(), is_error, ready);
        }
        let (stamp, model) = (self.stamp, chunks::named(read.model).unwrap_or("null"));
        let mut chunks = self.chunks.take().unwrap_or_else(|| Chunks::new(&answer_id(stamp), stamp.created, model));
        if let Some(message) = &read.message {
            self.message(message, &mut chunks, ready);
        }
        if read.done == Some(true) {
            self.is_over = true;
            ready.push_back(chunks.finish(0, !self.has_role, read.finish(self.calls > 0)));
            if let Some(usage) = read.usage() {
                ready.push_back(chunks.usage(&usage));
            }
            ready.push_back(end_mark());
        }
        self.chunks = Some(chunks);
    }

    fn message(&mut self, message: &Message<'_>, chunks: &mut Chunks, ready: &mut VecDeque<Event>) {
        for (member, text) in [(&br#""reasoning_content":"#[..], message.thinking()), (&br#""content":"#[..], message.content())]
        {
            if let Some(text) = text {
                ready.push_back(chunks.delta(0, !self.has_role, |out| {
                    out.put_slice(member);
                    out.put_slice(text.get().as_bytes());
                }));
                self.has_role = true;
            }
        }
        for (name, arguments) in message.calls() {
            let call = chunks::call(Some(self.calls), &ids::made(self.stamp, self.calls), &name, &arguments);
            self.calls += 1;
            ready.push_back(chunks.delta(0, !self.has_role, |out| {
                out.put_slice(br#""tool_calls":["#);
                out.put_slice(call.as_bytes());
                out.put_u8(b']');
            }));
            self.has_role = true;
        }
    }

    /// What is no line goes on as it is, and nothing after it makes the answer whole again.
    fn fail(&mut self, data: Bytes, is_error: bool, ready: &mut VecDeque<Event>) {
        self.is_over = true;
        ready.push_back(Event { data, is_error });
    }
}
