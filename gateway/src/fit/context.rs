//! The account of a window, as a trace keeps it.

use super::room::Room;

/// The account of a window, in tokens: what it holds, and what went so that it does. The parts add up to the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The whole window.
    pub window: u64,
    /// What is left free for the answer.
    pub reserve: u64,
    /// What is left free because counts are estimates.
    pub safety: u64,
    /// How much the prompt may have.
    pub budget: u64,
    /// Nobody knows the window: it is only guessed, and what the caller sent is not counted.
    pub is_guess: bool,
    /// The messages that are sent, but for the system texts.
    pub transcript: u64,
    /// The tools, and what else stands around the messages.
    pub tools: u64,
    /// The system texts, the operator's and the caller's.
    pub system: u64,
    /// How many turns were left out.
    pub dropped_turns: usize,
    /// How many messages these were.
    pub dropped_messages: usize,
    /// Which results were shortened.
    pub shortened: Vec<Shortened>,
}

/// A result that was shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// The call that it answers.
    pub call: String,
    /// How many bytes of it were left out.
    pub left_out: usize,
}

impl Context {
    pub(super) fn of(room: Room, budget: u64, is_guess: bool) -> Self {
        let Room { window, reserve, safety } = room;
        Self {
            window,
            reserve,
            safety,
            budget,
            is_guess,
            transcript: 0,
            tools: 0,
            system: 0,
            dropped_turns: 0,
            dropped_messages: 0,
            shortened: Vec::new(),
        }
    }

    /// The tokens of the prompt.
    pub fn prompt(&self) -> u64 {
        self.transcript + self.tools + self.system
    }

    /// How many bytes of results were left out.
    pub fn left_out(&self) -> usize {
        self.shortened.iter().map(|shortened| shortened.left_out).sum()
    }
}
