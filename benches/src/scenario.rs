//! The loads: what is asked, over how many connections, and what an answer must hold.

use clap::ValueEnum;

/// One kind of load, or of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// A small request, a small answer
    Plain,
    /// A stream of 60 chunks, each written by itself, without a pause
    Stream,
    /// A stream of 60 chunks, 10 ms apart
    Paced,
    /// Two rounds of two tool calls
    Loop,
    /// A transcript of 100 KB, a small answer
    Long,
    /// Two rounds of two tool calls on a transcript of 100 KB
    LongLoop,
    /// Time from start to the first answer, and resident memory: idle, with 1,000 open streams, and afterwards
    Memory,
}

/// What one request of a scenario is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// A request, an answer.
    Plain,
    /// A request, a stream of chunks.
    Stream,
    /// A conversation with tool calls: run by the gateway where it can, else by the caller.
    Loop,
}

impl Scenario {
    /// The model that is asked.
    pub(crate) const fn model(self) -> &'static str {
        match self {
            Self::Plain | Self::Long => "plain",
            Self::Stream => "stream",
            Self::Paced => "paced",
            Self::Loop | Self::LongLoop => "loop",
            Self::Memory => "open",
        }
    }

    /// The heading of its table.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Plain => "Plain: 290-byte request, 1.6 KB answer, 32 connections",
            Self::Stream => "Stream: 60 chunks, each its own write, 16 connections",
            Self::Paced => "Paced stream: 60 chunks 10 ms apart, 4 connections",
            Self::Loop => "Tool loop: 2 rounds of 2 calls, 8 connections",
            Self::Long => "100 KB transcript, plain, 8 connections",
            Self::LongLoop => "100 KB transcript, 2 rounds of 2 calls, 8 connections",
            Self::Memory => "Start and memory",
        }
    }

    /// Callers at the same time, each waiting for its answer before it asks again.
    pub(crate) const fn connections(self) -> usize {
        match self {
            Self::Plain => 32,
            Self::Stream => 16,
            Self::Paced => 4,
            Self::Loop | Self::Long | Self::LongLoop => 8,
            Self::Memory => 1000,
        }
    }

    pub(crate) const fn exchange(self) -> Exchange {
        match self {
            Self::Plain | Self::Long => Exchange::Plain,
            Self::Stream | Self::Paced | Self::Memory => Exchange::Stream,
            Self::Loop | Self::LongLoop => Exchange::Loop,
        }
    }

    /// Whether the conversation is a long one.
    pub(crate) const fn long(self) -> bool {
        matches!(self, Self::Long | Self::LongLoop)
    }

    /// Chunks with text in its stream.
    pub(crate) const fn chunks(self) -> usize {
        match self {
            Self::Memory => crate::payload::OPEN_CHUNKS,
            _ => crate::payload::CHUNKS,
        }
    }
}
