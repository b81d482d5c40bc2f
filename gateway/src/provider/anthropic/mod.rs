//! Anthropic's Messages.

use std::collections::VecDeque;

use bytes::Bytes;
use http::HeaderMap;
use toolgate_config::provider::Provider;
use toolgate_config::secret::Secret;
use toolgate_tools::net::Segments;

use super::{Encoded, Stamp, Unsupported, openai};
use crate::targets::Target;
use crate::wire::sse::Event;

pub(super) fn encode(_target: &Target, _body: &Segments, _stream: bool) -> Result<Encoded, Unsupported> {
    Err(Unsupported { field: "model", why: "names a model whose provider cannot be spoken to yet".to_owned() })
}

pub(super) fn headers(key: Option<&Secret>, caller: &HeaderMap, stream: bool) -> HeaderMap {
    openai::headers(key, false, caller, stream)
}

pub(super) fn decode(_provider: &Provider, body: Bytes, _stamp: Stamp) -> Bytes {
    body
}

/// A stream under way.
pub(super) struct Stream;

impl Stream {
    pub(super) fn new(_provider: &Provider, _stamp: Stamp) -> Self {
        Self
    }

    /// Takes an event of the provider's; what it means goes behind `ready`.
    pub(super) fn hear(&mut self, event: Event, ready: &mut VecDeque<Event>) {
        ready.push_back(event);
    }
}
