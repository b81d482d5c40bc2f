//! What a model gets of a call: the answer's text, or a sentence of ours.

use tokio::time::Instant;
use toolgate_config::tool::{Effect, McpWork, Tool};
use toolgate_policies::zone::Mark;

use super::answer::{Answer, Piece};
use super::error::CallError;
use super::hub::Hub;
use crate::arguments::Arguments;
use crate::bound::{self, Total};
use crate::said::Said;
use crate::toolbox::{Outcome, Output};

/// Calls the tool; `due` is when its time is over.
pub(crate) async fn run(hub: &Hub, tool: &Tool, work: &McpWork, arguments: &Arguments, due: Instant) -> Output {
    match hub.call(work, arguments, tool.effect, due).await {
        Ok(answer) => answered(tool, answer),
        Err(error) => {
            tracing::info!(tool = tool.name.as_str(), %error, "a tool did not answer");
            failed(tool, error)
        }
    }
}

fn answered(tool: &Tool, answer: Answer) -> Output {
    let own = answer.pieces.iter().all(|piece| matches!(piece, Piece::Note(_)));
    let texts: Vec<&str> = answer.pieces.iter().map(Piece::as_str).collect();
    let text = texts.join("\n");
    let text = bound::text(&text, tool.max_result, Total::Exactly(text.len())).into_owned();
    Output {
        own: if own { text.len() } else { 0 },
        text,
        media: answer.media,
        mark: Mark { class: tool.data_class, personal: tool.personal }.raised(answer.mark),
        bytes: answer.bytes,
        ..Output::said(if answer.is_error { Outcome::Error } else { Outcome::Ok }, &Said::Failed, tool.name.as_str())
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
