//! What a model gets of a call: the answer's text, or a sentence of ours.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use tokio::time::Instant;
use toolgate_config::tool::{Effect, McpWork, Tool};
use toolgate_policies::redact::{Counts, Redactor};
use toolgate_policies::zone::Mark;

use super::answer::{Answer, Piece};
use super::error::CallError;
use super::hub::Hub;
use crate::arguments::Arguments;
use crate::bound::{self, Total};
use crate::result;
use crate::said::Said;
use crate::toolbox::{Outcome, Output};

/// Calls the tool; `due` is when its time is over.
pub(crate) async fn run(
    hub: &Hub,
    tool: &Tool,
    work: &McpWork,
    arguments: &Arguments,
    redactor: &Redactor,
    due: Instant,
) -> Output {
    match hub.call(work, arguments, tool.rule.effect, due).await {
        Ok(answer) => answered(tool, answer, redactor),
        Err(error) => {
            tracing::info!(tool = tool.name.as_str(), %error, "a tool did not answer");
            failed(tool, error)
        }
    }
}

/// The road of an HTTP tool's result, for one that comes in pieces: without its secrets, then cut.
fn answered(tool: &Tool, answer: Answer, redactor: &Redactor) -> Output {
    let mut redactions = Counts::default();
    let is_own = answer.pieces.iter().all(|piece| matches!(piece, Piece::Note(_)));
    let text = readable(&answer.pieces, tool, redactor, &mut redactions);
    let text = bound::text(&text, tool.rule.max_result, Total::Exactly(text.len()));
    let said = if answer.is_error { format!("{}\n", Said::Failed.about(tool.name.as_str())) } else { String::new() };
    Output {
        own: said.len() + if is_own { text.len() } else { 0 },
        text: said + &text,
        media: answer.media,
        redactions,
        mark: Mark { class: tool.rule.data_class, personal: tool.rule.personal }.raised(answer.mark),
        bytes: answer.bytes,
        ..Output::said(if answer.is_error { Outcome::Error } else { Outcome::Ok }, &Said::Failed, tool.name.as_str())
    }
}

/// The pieces one below the other, without their secrets. Neighbouring texts are one to whoever reads them, so a secret may lie across them;
/// what is JSON is looked at by itself, for there it goes by what its strings mean.
fn readable(pieces: &[Piece], tool: &Tool, redactor: &Redactor, counts: &mut Counts) -> String {
    let is_prose = |piece: &Piece| matches!(piece, Piece::Text(text) if serde_json::from_str::<IgnoredAny>(text).is_err());
    let runs = pieces.chunk_by(|one, next| is_prose(one) && is_prose(next)).map(|run| match run {
        [only] => cleaned(only, tool, redactor, counts).into_owned(),
        many => {
            let text = many.iter().map(Piece::as_str).collect::<Vec<_>>().join("\n");
            result::clean(&text, tool, redactor, counts).into_owned()
        }
    });
    runs.collect::<Vec<_>>().join("\n")
}

fn cleaned<'p>(piece: &'p Piece, tool: &Tool, redactor: &Redactor, counts: &mut Counts) -> Cow<'p, str> {
    match piece {
        Piece::Text(text) | Piece::Json(text) => result::clean(text, tool, redactor, counts),
        Piece::Note(text) => Cow::Borrowed(text),
    }
}

fn failed(tool: &Tool, error: CallError) -> Output {
    let writes = tool.rule.effect != Effect::ReadOnly;
    let (outcome, said, reached) = match error {
        CallError::Denied(refusal) => return Output::denied(refusal, tool),
        CallError::Down => (Outcome::Error, Said::Failed, false),
        CallError::Failed => (Outcome::Error, Said::Failed, true),
        CallError::Unknown => (Outcome::Error, Said::FailedUnknown, true),
        CallError::TimedOut { sent: true } if writes => (Outcome::Timeout, Said::FailedUnknown, true),
        CallError::TimedOut { sent } => (Outcome::Timeout, Said::TimedOut, sent),
    };
    Output { reached, ..Output::said(outcome, &said, tool.name.as_str()) }
}

#[cfg(test)]
mod tests {
    use toolgate_config::redaction::Redaction;

    use super::*;
    use crate::definitions::tests::any_tool;

    #[test]
    fn a_secret_that_lies_across_texts_or_behind_a_long_one_is_found() {
        let key = [
            "[log] -----BEGIN PRIVATE",
            " KEY-----\n",
            &"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(4),
            "-----END PRIVATE",
            " KEY-----",
        ]
        .concat();
        let lines: Vec<_> = key.lines().map(|line| serde_json::json!({ "type": "text", "text": line })).collect();
        let result = serde_json::json!({ "content": lines, "structuredContent": null }).to_string();
        let (tool, redactor) = (any_tool(), Redactor::new(&Redaction::default().tool_results));
        let output = answered(&tool, Answer::read(&result).unwrap(), &redactor);
        assert!(!output.text.contains("MIIE"), "{}", output.text);
        let secret = ["AKIA", "IOSFODNN7EXAMPLQ"].concat();
        for before in 4070..4100 {
            let output = answered(&tool, Answer::refused(&format!("{} {secret}", "y ".repeat(before / 2))), &redactor);
            assert!(!output.text.contains("AKIA"), "{before}");
        }
    }

    #[test]
    fn files_are_counted_and_data_beside_a_link_is_not_lost() {
        let picture = serde_json::json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" });
        let link = serde_json::json!({ "type": "resource_link", "uri": "file:///a", "name": "a" });
        let content: Vec<_> = std::iter::repeat_n(picture, 300).chain([link]).collect();
        let result = serde_json::json!({ "content": content, "structuredContent": { "n": 1 } }).to_string();
        let answer = Answer::read(&result).unwrap();
        let pieces: Vec<_> = answer.pieces.iter().map(Piece::as_str).collect();
        assert_eq!(pieces, [r#"{"n":1}"#, "[link: a file:///a]", "[280 more files: not shown]"]);
        assert_eq!(answer.media.len(), 20);
    }
}
