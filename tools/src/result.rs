//! The road of a result, from what a tool sent to what a model may read, log and trace included: nobody sees it before its secrets are out.

use std::borrow::Cow;

use toolgate_config::tool::Tool;
use toolgate_policies::redact::{Counts, Redactor};

use crate::bound::{self, Total};
use crate::http::select;

/// Of an answer that was not read to its end, so much of what was read is thrown away, in bytes: a secret may have begun in it that nobody can
/// know, for the rest of it was not read.
const MARGIN: usize = 8 * 1024;

/// What a tool sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'t> {
    /// Unpacked, as it came.
    pub(crate) bytes: &'t [u8],
    /// It was read to its end.
    pub(crate) is_whole: bool,
    /// A JSON pointer to what of it is wanted.
    pub(crate) select: Option<&'t str>,
}

/// What may be read of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Readable {
    /// The text, at most so long as the tool's results may be.
    pub(crate) text: String,
    /// What was taken out.
    pub(crate) redactions: Counts,
}

impl Sent<'_> {
    /// Valid text, of that the part that is wanted, without secrets, cut to what the tool's results may have. `None`: there is no such part, or
    /// none can be found for certain.
    pub(crate) fn readable(self, tool: &Tool, redactor: &Redactor) -> Option<Readable> {
        let text = String::from_utf8_lossy(self.bytes);
        let is_valid = matches!(text, Cow::Borrowed(_));
        let part = self.selected(&text, is_valid)?;
        let mut redactions = Counts::default();
        let clean = clean(part, tool, redactor, &mut redactions);
        Some(Readable { text: self.cut(&clean, tool.rule.max_result), redactions })
    }

    fn selected<'s>(&self, text: &'s str, is_valid: bool) -> Option<&'s str> {
        let Some(pointer) = self.select else { return Some(text) };
        (self.is_whole && is_valid).then(|| select(text, pointer)).flatten()
    }

    fn cut(&self, clean: &str, max: usize) -> String {
        if self.is_whole {
            return bound::text(clean, max, Total::Exactly(clean.len())).into_owned();
        }
        let sure = bound::head(clean, clean.len().saturating_sub(MARGIN));
        bound::text(sure, max, Total::MoreThan(self.bytes.len())).into_owned()
    }
}

/// A text without what the rules take out; JSON by what its strings mean.
pub(crate) fn clean<'t>(text: &'t str, tool: &Tool, redactor: &Redactor, counts: &mut Counts) -> Cow<'t, str> {
    if !tool.rule.redacted {
        return Cow::Borrowed(text);
    }
    redactor.json(text, counts)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use toolgate_config::check::{Source, read};

    use super::*;

    const KEY: &str = "AKIAIOSFODNN7EXAMPLQ";
    const MASK: &str = "[redacted:aws_key]";

    fn tool(more: &str) -> Arc<Tool> {
        let file = format!(
            "groups: {{ g: {{ data_class: public, egress: [\"127.0.0.1:9\"] }} }}\n\
             tools: [ {{ name: t, group: g, description: T, parameters: {{ type: object }}, http: {{ url: \"http://127.0.0.1:9/\" }}, {more} }} ]\n"
        );
        let config = read(&Source { path: Path::new("toolgate.yaml"), text: &file, env: &|_| None }).unwrap();
        config.tools.iter().next().cloned().unwrap()
    }

    fn readable(text: &str, is_whole: bool, more: &str) -> Readable {
        let redactor = Redactor::new(&toolgate_config::redaction::Redaction::default().tool_results);
        Sent { bytes: text.as_bytes(), is_whole, select: None }.readable(&tool(more), &redactor).unwrap()
    }

    #[test]
    fn case_70_no_part_of_a_secret_is_left_where_a_result_is_cut() {
        let max = 200;
        for at in 100..=220 {
            let text = format!("{} {KEY} {}", "é".repeat(at / 2), "y".repeat(400));
            let Readable { text: shown, redactions } = readable(&text, true, "max_result: 200");
            assert!(shown.len() <= max && !shown.contains("AKIA"), "{at}: {shown}");
            assert!(shown.contains("bytes shown]"), "{shown}");
            assert_eq!(redactions.iter().map(|(kind, count)| (kind.as_str(), count)).collect::<Vec<_>>(), [("aws_key", 1)]);
        }
    }

    #[test]
    fn case_70_nor_where_it_was_not_read_on() {
        for cut in 0..KEY.len() {
            let text = format!("{} {}", "y ".repeat(MARGIN), &KEY[..cut]);
            let Readable { text: shown, .. } = readable(&text, false, "max_result: 1MiB");
            assert!(!shown.contains("AK"), "{cut}");
            assert!(shown.ends_with("bytes shown]") && shown.contains("of more than"), "{}", &shown[shown.len() - 80..]);
        }
    }

    #[test]
    fn json_is_redacted_by_what_it_means_and_stays_json() {
        let text = r#"{ "n": 1.50, "\u0041KIAIOSFODNN7EXAMPLQ": "key \u0041KIAIOSFODNN7EXAMPLQ", "ok": "é" }"#;
        let expected = format!(r#"{{ "n": 1.50, "{MASK}": "key {MASK}", "ok": "é" }}"#);
        assert_eq!(readable(text, true, "max_result: 1KiB").text, expected);
    }

    #[test]
    fn a_tool_that_is_not_redacted_is_left_alone() {
        let mut tool = Arc::into_inner(tool("max_result: 1KiB")).unwrap();
        tool.rule.redacted = false;
        let text = format!("{KEY} ann@example.org");
        let redactor = Redactor::new(&toolgate_config::redaction::Redaction::default().tool_results);
        let sent = Sent { bytes: text.as_bytes(), is_whole: true, select: None };
        assert_eq!(sent.readable(&tool, &redactor), Some(Readable { text: text.clone(), redactions: Counts::default() }));
    }
}
