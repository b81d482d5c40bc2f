//! A provider's stream as canonical events, whatever it sends and wherever the network cut it.

use std::collections::VecDeque;

use bytes::Bytes;
use toolgate_config::provider::{Provider, ProviderKind};

use super::{Stamp, anthropic, gemini, ollama, openai};
use crate::wire::sse::{self, Event, TooLong};

/// Cuts what comes into events and makes each canonical. A provider that speaks the canon costs nothing more than the cutting.
pub enum Decoder {
    /// OpenAI's own form.
    Canonical(sse::Decoder),
    /// Nearly that form: here and there an event is another.
    Adapted(sse::Decoder, fn(Event) -> Event),
    /// Server-sent events of another dialect.
    Translated(Box<Translated>),
    /// Ollama's lines of JSON.
    Lines(Box<ollama::Lines>),
}

/// Events of another dialect, and what was made of them.
pub struct Translated {
    events: sse::Decoder,
    dialect: Dialect,
    ready: VecDeque<Event>,
}

enum Dialect {
    Anthropic(Box<anthropic::Stream>),
    Gemini(gemini::Stream),
}

impl Decoder {
    /// One for a stream that begins.
    pub fn new(provider: &Provider, stamp: Stamp) -> Self {
        let translated = |dialect| {
            let translated = Translated { events: sse::Decoder::default(), dialect, ready: VecDeque::new() };
            Self::Translated(Box::new(translated))
        };
        match provider.kind {
            ProviderKind::Anthropic => translated(Dialect::Anthropic(Box::new(anthropic::Stream::new(provider, stamp)))),
            ProviderKind::Gemini => translated(Dialect::Gemini(gemini::Stream::new(provider, stamp))),
            ProviderKind::Ollama => Self::Lines(Box::new(ollama::Lines::new(stamp))),
            ProviderKind::OpenAi
            | ProviderKind::Groq
            | ProviderKind::Mistral
            | ProviderKind::OpenRouter
            | ProviderKind::OpenAiCompatible => {
                let events = sse::Decoder::default();
                match openai::adapting(provider.kind) {
                    Some(adapt) => Self::Adapted(events, adapt),
                    None => Self::Canonical(events),
                }
            }
        }
    }

    /// Takes the next bytes of the stream. The events before them have been taken out.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn feed(&mut self, bytes: Bytes) -> Result<(), TooLong> {
        match self {
            Self::Canonical(events) | Self::Adapted(events, _) => events.feed(bytes),
            Self::Translated(translated) => translated.events.feed(bytes),
            Self::Lines(lines) => lines.feed(bytes),
        }
    }

    /// The next canonical event, if there is one.
    pub fn next_event(&mut self) -> Option<Event> {
        match self {
            Self::Canonical(events) => events.next_event(),
            Self::Adapted(events, adapt) => events.next_event().map(*adapt),
            Self::Translated(translated) => translated.next(sse::Decoder::next_event),
            Self::Lines(lines) => lines.next_event(),
        }
    }

    /// What is left when the stream has ended: to be asked until there is nothing.
    pub fn end(&mut self) -> Option<Event> {
        match self {
            Self::Canonical(events) => events.end(),
            Self::Adapted(events, adapt) => events.end().map(*adapt),
            Self::Translated(translated) => translated.end(),
            Self::Lines(lines) => lines.end(),
        }
    }
}

impl Translated {
    /// What was left, and then what a dialect has to say when its stream has ended.
    fn end(&mut self) -> Option<Event> {
        if let Some(event) = self.next(sse::Decoder::end) {
            return Some(event);
        }
        match &mut self.dialect {
            Dialect::Anthropic(_) => {}
            Dialect::Gemini(stream) => stream.end(&mut self.ready),
        }
        self.ready.pop_front()
    }

    fn next(&mut self, cut: impl Fn(&mut sse::Decoder) -> Option<Event>) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let event = cut(&mut self.events)?;
            match &mut self.dialect {
                Dialect::Anthropic(stream) => stream.hear(event, &mut self.ready),
                Dialect::Gemini(stream) => stream.hear(event, &mut self.ready),
            }
        }
    }
}
