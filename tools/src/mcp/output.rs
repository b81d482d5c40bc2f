//! What a model gets of a call: the answer's text, or a sentence of ours.

use std::borrow::Cow;

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
    match hub.call(work, arguments, tool.effect, due).await {
        Ok(answer) => answered(tool, answer, redactor),
        Err(error) => {
            tracing::info!(tool = tool.name.as_str(), %error, "a tool did not answer");
            failed(tool, error)
        }
    }
}

/// The road of an HTTP tool's result, for one that comes in pieces: each without its secrets, then all of it cut.
fn answered(tool: &Tool, answer: Answer, redactor: &Redactor) -> Output {
    let mut redactions = Counts::default();
    let is_own = answer.pieces.iter().all(|piece| matches!(piece, Piece::Note(_)));
    let texts: Vec<Cow<'_, str>> = answer.pieces.iter().map(|piece| cleaned(piece, tool, redactor, &mut redactions)).collect();
    let text = texts.join("\n");
    let text = bound::text(&text, tool.max_result, Total::Exactly(text.len()));
    let said = if answer.is_error { format!("{}\n", Said::Failed.about(tool.name.as_str())) } else { String::new() };
    Output {
        own: said.len() + if is_own { text.len() } else { 0 },
        text: said + &text,
        media: answer.media,
        redactions,
        mark: Mark { class: tool.data_class, personal: tool.personal }.raised(answer.mark),
        bytes: answer.bytes,
        ..Output::said(if answer.is_error { Outcome::Error } else { Outcome::Ok }, &Said::Failed, tool.name.as_str())
    }
}

fn cleaned<'p>(piece: &'p Piece, tool: &Tool, redactor: &Redactor, counts: &mut Counts) -> Cow<'p, str> {
    match piece {
        Piece::Text(text) | Piece::Json(text) => result::clean(text, tool, redactor, counts),
        Piece::Note(text) => Cow::Borrowed(text),
    }
}

fn failed(tool: &Tool, error: CallError) -> Output {
    let writes = tool.effect != Effect::ReadOnly;
    let (outcome, said, reached) = match error {
        CallError::Down => (Outcome::Error, Said::Failed, false),
        CallError::Failed => (Outcome::Error, Said::Failed, true),
        CallError::Unknown => (Outcome::Error, Said::FailedUnknown, true),
        CallError::TimedOut { sent: true } if writes => (Outcome::Timeout, Said::FailedUnknown, true),
        CallError::TimedOut { sent } => (Outcome::Timeout, Said::TimedOut, sent),
    };
    Output { reached, ..Output::said(outcome, &said, tool.name.as_str()) }
}
