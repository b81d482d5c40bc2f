//! Ollama's own `/api/chat`.

use bytes::Bytes;
use toolgate_tools::net::Segments;

use super::{Encoded, Stamp, Unsupported};
use crate::targets::Target;
use crate::wire::sse::{self, Event, TooLong};

pub(super) fn encode(_target: &Target, _body: &Segments, _stream: bool) -> Result<Encoded, Unsupported> {
    Err(Unsupported { field: "model", why: "names a model whose provider cannot be spoken to yet".to_owned() })
}

pub(super) fn decode(body: Bytes, _stamp: Stamp) -> Bytes {
    body
}

/// A stream of lines under way.
pub struct Lines(sse::Decoder);

impl Lines {
    pub(super) fn new(_stamp: Stamp) -> Self {
        Self(sse::Decoder::default())
    }

    pub(super) fn feed(&mut self, bytes: Bytes) -> Result<(), TooLong> {
        self.0.feed(bytes)
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.0.next_event()
    }

    pub(super) fn end(&mut self) -> Option<Event> {
        self.0.end()
    }
}
