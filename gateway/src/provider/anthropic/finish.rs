//! Why an answer ended.

/// The reason in OpenAI's words. An answer that asks for tools says so, whatever it was labelled with, unless something cut it short: those
/// who run the tools look there.
pub(super) fn canonical(reason: Option<&str>, has_calls: bool) -> &'static str {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded") => "length",
        Some("refusal") => "content_filter",
        Some("tool_use") => "tool_calls",
        // The end of a turn, a stop sequence, a pause of the provider's own tools, and whatever else there will be.
        _ if has_calls => "tool_calls",
        _ => "stop",
    }
}

/// Whether the answer was cut where it had no more room.
pub(super) fn is_cut(reason: Option<&str>) -> bool {
    canonical(reason, false) == "length"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_05_the_label_of_an_end_does_not_hide_its_calls() {
        let table = [
            ("end_turn", "stop", "tool_calls"),
            ("stop_sequence", "stop", "tool_calls"),
            ("tool_use", "tool_calls", "tool_calls"),
            ("max_tokens", "length", "length"),
            ("model_context_window_exceeded", "length", "length"),
            ("refusal", "content_filter", "content_filter"),
            ("pause_turn", "stop", "tool_calls"),
            ("something new", "stop", "tool_calls"),
        ];
        for (reason, without, with) in table {
            assert_eq!((canonical(Some(reason), false), canonical(Some(reason), true)), (without, with), "{reason}");
        }
        assert_eq!((canonical(None, false), canonical(None, true)), ("stop", "tool_calls"));
    }
}
