//! Why a model's answer ended, as the wire has it and as the loop cares about it.

/// The raw `finish_reason` of an answer that ran into a limit.
pub const LENGTH: &str = "\"length\"";

/// The raw `finish_reason` of an answer that asks for tools.
pub const TOOL_CALLS: &str = "\"tool_calls\"";

/// The raw `finish_reason` of an answer that is complete.
pub const STOP: &str = "\"stop\"";

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// It ran into the output limit.
    Length,
    /// It says that it asks for tools.
    ToolCalls,
    /// Anything else, nothing included.
    #[default]
    Other,
}

impl Finish {
    /// From the raw value of `finish_reason`.
    pub fn from_raw(raw: Option<&str>) -> Self {
        match raw {
            Some(LENGTH) => Self::Length,
            Some(TOOL_CALLS) => Self::ToolCalls,
            _ => Self::Other,
        }
    }
}
