//! Which tools are called with arguments that do not fit, over and over: the third time in a row is the last.

use serde::{Deserialize, Serialize};

/// A tool whose last this many calls did not fit is not called again.
const ENOUGH: u32 = 3;

/// The tools whose last calls did not fit, with how many in a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Misfits(Vec<(String, u32)>);

impl Misfits {
    /// Takes how a call of this tool went. A call that fits makes good what was before, unless it was too late.
    pub(super) fn note(&mut self, tool: &str, is_misfit: bool) {
        if self.has_ended(tool) {
            return;
        }
        match self.0.iter_mut().find(|(name, _)| name == tool) {
            Some((_, times)) => *times = if is_misfit { *times + 1 } else { 0 },
            None if is_misfit => self.0.push((tool.to_owned(), 1)),
            None => {}
        }
    }

    /// Whether the run has this tool no longer.
    pub(super) fn has_ended(&self, tool: &str) -> bool {
        self.0.iter().any(|(name, times)| name == tool && *times >= ENOUGH)
    }

    /// The tools that the run has no longer, in the order in which they were called first.
    pub(super) fn ended(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, times)| *times >= ENOUGH).map(|(name, _)| name.as_str())
    }
}
