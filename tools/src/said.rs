//! Every sentence of our own that a model reads. None of them holds an address, a credential, or anything that a tool said.

use crate::bound;

/// How much of a tool's name is repeated, in bytes. A registered name is never longer.
const LONGEST_NAME: usize = 64;

/// How much of a reason is repeated, in bytes.
const LONGEST_WHY: usize = 300;

/// What stands for a tool's answer without contents: a model makes nothing of an empty text.
pub const NO_CONTENT: &str = "(no content)";

/// What a model is told of a call that has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It may not be run, there is no such tool, or what it returned may not be read in this run: the model cannot tell which.
    NotAvailable,
    /// It went wrong, and nothing has changed.
    Failed,
    /// It went wrong, and it may have changed something.
    FailedUnknown,
    /// It took too long, and nothing has changed.
    TimedOut,
    /// It answered, with this status.
    Status(u16),
    /// What the model sent is not what the tool takes.
    InvalidArguments(String),
    /// The run has used up its calls, rounds or time.
    LimitReached,
    /// The same call gave the same result before, and again.
    Repeated,
}

impl Said {
    /// The sentence about the tool of this name, which is taken as the model wrote it.
    pub fn about(&self, tool: &str) -> String {
        let name = bound::word(tool, LONGEST_NAME);
        match self {
            Self::NotAvailable => format!("Error: tool \"{name}\" is not available."),
            Self::Failed => format!("Error: tool \"{name}\" failed."),
            Self::FailedUnknown => format!("Error: tool \"{name}\" failed; whether it took effect is not known."),
            Self::TimedOut => format!("Error: tool \"{name}\" timed out."),
            Self::Status(status) => format!("Error: tool \"{name}\" answered with status {status}."),
            Self::InvalidArguments(why) => {
                let why = bound::word(why, LONGEST_WHY);
                format!("Error: tool \"{name}\" was not run: its arguments are not valid: {why}.")
            }
            Self::LimitReached => format!("Error: tool \"{name}\" was not run: the limit of tool calls is reached."),
            Self::Repeated => {
                format!("Error: tool \"{name}\" was not run: it was repeated with the same arguments and gave the same result.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentences_are_these() {
        let table = [
            (Said::NotAvailable, "Error: tool \"t\" is not available."),
            (Said::Failed, "Error: tool \"t\" failed."),
            (Said::FailedUnknown, "Error: tool \"t\" failed; whether it took effect is not known."),
            (Said::TimedOut, "Error: tool \"t\" timed out."),
            (Said::Status(404), "Error: tool \"t\" answered with status 404."),
            (
                Said::InvalidArguments("not valid JSON".to_owned()),
                "Error: tool \"t\" was not run: its arguments are not valid: not valid JSON.",
            ),
            (Said::LimitReached, "Error: tool \"t\" was not run: the limit of tool calls is reached."),
            (Said::Repeated, "Error: tool \"t\" was not run: it was repeated with the same arguments and gave the same result."),
        ];
        for (said, expected) in table {
            assert_eq!(said.about("t"), expected);
        }
    }

    #[test]
    fn names_and_reasons_are_clean_and_short() {
        let said = Said::InvalidArguments("y\n".repeat(5000)).about(&"x\r\n\0".repeat(5000));
        assert!(said.len() < 450 && !said.contains(char::is_control), "{said}");
    }
}
