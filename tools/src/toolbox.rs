//! The way of one call: arguments, egress, deadline, the tool itself, and what of its answer the model may read. Whatever goes wrong becomes
//! a sentence for the model; nothing here ends a run.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use toolgate_config::mcp::Reach;
use toolgate_config::tool::{McpWork, Tool, Work};
use toolgate_policies::Cleared;
use toolgate_policies::egress::{Credentials, EgressRefusal};
use toolgate_policies::facts::Caller;
use toolgate_policies::gate::{self, AsksForTool, HasMark, ToolUse};
use toolgate_policies::redact::{Counts, Redactor};
use toolgate_policies::zone::Mark;

use crate::arguments::{Arguments, BadArguments};
use crate::cache::{Ask, Cache};
use crate::http;
use crate::mcp::{self, Hub};
use crate::media::Media;
use crate::net::Net;
use crate::said::Said;

/// A call as a model asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The id that ties the result to it.
    pub id: String,
    /// The tool, as the model wrote it.
    pub name: String,
    /// What it sends, or what is wrong with that.
    pub arguments: Result<Arguments, BadArguments>,
}

impl AsksForTool for Call {
    fn tool_name(&self) -> &str {
        &self.name
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has a result.
    Ok,
    /// It went wrong.
    Error,
    /// It took too long.
    Timeout,
    /// It was not run: its arguments do not fit.
    InvalidArguments,
    /// It was not run: it may not.
    Refused,
}

impl Outcome {
    /// Whether the tool was asked at all.
    pub const fn was_run(self) -> bool {
        match self {
            Self::Ok | Self::Error | Self::Timeout => true,
            Self::InvalidArguments | Self::Refused => false,
        }
    }

    /// The word of metrics and traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::InvalidArguments => "invalid_arguments",
            Self::Refused => "refused",
        }
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// What the model may read: never empty, at most the tool's `max_result` bytes and one sentence of our own.
    pub text: String,
    /// How many bytes at the start of `text` are a sentence of our own; what follows them is the tool's.
    pub own: usize,
    /// What else it returned, which is no text.
    pub media: Vec<Media>,
    /// What was taken out of what it returned.
    pub redactions: Counts,
    /// What was taken out of its arguments before they left.
    pub kept_back: Counts,
    /// How it ended.
    pub outcome: Outcome,
    /// The tool was reached, as far as can be known: whoever asks a price for a call may ask it for this one.
    pub reached: bool,
    /// How sensitive the result is. Where the tool said nothing, it is clean.
    pub mark: Mark,
    /// How many bytes the tool answered, before anything was cut.
    pub bytes: usize,
    /// From the start of the call to its end.
    pub took: Duration,
    /// The status of the tool's answer.
    pub status: Option<u16>,
    /// Why the tool may not connect where it wanted to.
    pub egress_denied: Option<EgressRefusal>,
    /// It was answered from memory.
    pub cached: bool,
}

impl Output {
    /// A call that was not run, or that came to nothing.
    pub fn said(outcome: Outcome, said: &Said, tool: &str) -> Self {
        let text = said.about(tool);
        Self {
            own: text.len(),
            text,
            media: Vec::new(),
            redactions: Counts::default(),
            kept_back: Counts::default(),
            outcome,
            reached: outcome.was_run(),
            mark: Mark::CLEAN,
            bytes: 0,
            took: Duration::ZERO,
            status: None,
            egress_denied: None,
            cached: false,
        }
    }

    /// A call that may not go where it wanted to. Whoever runs the gateway learns why; the model does not.
    pub(crate) fn denied(refusal: EgressRefusal, tool: &Tool) -> Self {
        tracing::warn!(tool = tool.name.as_str(), group = %tool.group.name, reason = refusal.as_str(), "a tool may not go there");
        let said = Self::said(Outcome::Refused, &Said::NotAvailable, tool.name.as_str());
        Self { egress_denied: Some(refusal), ..said }
    }

    /// Our own sentence and the tool's text, either of which may be empty.
    pub fn parts(&self) -> (&str, &str) {
        self.text.split_at_checked(self.own).unwrap_or((&self.text, ""))
    }
}

impl HasMark for Output {
    fn mark(&self) -> Mark {
        self.mark
    }
}

/// What is taken out around a call.
#[derive(Clone, Copy, Debug)]
pub struct Redaction<'r> {
    /// Of what the tool returns, before anybody reads it.
    pub result: &'r Redactor,
    /// Of its arguments, where they go to somebody who is trusted less than the run.
    pub arguments: Option<&'r Redactor>,
    /// What never leaves in a URL or a header, whoever is asked.
    pub credentials: &'r Credentials,
}

/// Runs calls that the gate has cleared.
#[derive(Clone, Debug)]
pub struct Toolbox {
    net: Arc<Net>,
    hub: Arc<Hub>,
    cache: Arc<Cache>,
}

impl Toolbox {
    /// A toolbox whose tools go out through this client.
    pub fn new(net: Arc<Net>) -> Self {
        Self { hub: Hub::new(Arc::clone(&net)), net, cache: Arc::default() }
    }

    /// The sessions with the MCP servers.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Runs a call to its end, or until the tool's time or `not_after` is over. Dropping the future closes what it had opened.
    pub async fn run(&self, cleared: Cleared<ToolUse<Call>>, redaction: Redaction<'_>, not_after: Option<Instant>) -> Output {
        let ToolUse { tool, call, caller, .. } = cleared.into_inner();
        let start = Instant::now();
        let due = not_after.into_iter().fold(start + tool.rule.timeout, Instant::min);
        let mut output = match fitting(&tool, &call, redaction) {
            Ok(Fitting { arguments, kept_back }) => {
                let output = self.work(&tool, &caller, &arguments, redaction, due).await;
                Output { kept_back, ..output }
            }
            Err(why) => invalid(&call, &why, redaction.result),
        };
        output.took = start.elapsed();
        output
    }

    /// Answers from memory, or asks.
    async fn work(
        &self,
        tool: &Arc<Tool>,
        caller: &Caller,
        arguments: &Arguments,
        redaction: Redaction<'_>,
        due: Instant,
    ) -> Output {
        match tool.rule.cache {
            None => self.ask(tool, arguments, redaction, due).await,
            Some(holds) => {
                let ask = Ask { tool, holds, arguments, caller, due };
                self.cache.answer(ask, || self.ask(tool, arguments, redaction, due)).await
            }
        }
    }

    /// Asks the tool itself.
    async fn ask(&self, tool: &Tool, arguments: &Arguments, redaction: Redaction<'_>, due: Instant) -> Output {
        match &tool.work {
            Work::Http(work) => match gate::clear_egress(tool, &work.origin) {
                Ok(permit) => http::run(&self.net, permit, tool, work, arguments, redaction, due).await,
                Err(refusal) => Output::denied(refusal, tool),
            },
            Work::Mcp(work) => match clear_server(tool, work) {
                Ok(()) => mcp::run(&self.hub, tool, work, arguments, redaction.result, due).await,
                Err(refusal) => Output::denied(refusal, tool),
            },
        }
    }
}

/// Whether the tool's server may be reached over the network, where that is how it is reached.
fn clear_server(tool: &Tool, work: &McpWork) -> Result<(), EgressRefusal> {
    match &work.server.reach {
        Reach::Http { url, .. } => gate::clear_egress(tool, &url.origin).map(drop),
        Reach::Stdio { .. } => Ok(()),
    }
}

/// Arguments on their way to a tool.
struct Fitting<'c> {
    arguments: Cow<'c, Arguments>,
    kept_back: Counts,
}

/// The arguments, if they are what the tool takes: with what it wants as an object or a list unwrapped where that came as a string, and
/// without what may not go to where it is. What is left must still fit.
fn fitting<'c>(tool: &Tool, call: &'c Call, redaction: Redaction<'_>) -> Result<Fitting<'c>, String> {
    let written = call.arguments.as_ref().map_err(ToString::to_string)?;
    let arguments = match tool.parameters.validate(written.value()) {
        Ok(()) => Cow::Borrowed(written),
        Err(why) => Cow::Owned(written.unwrapped(&tool.parameters, why)?),
    };
    let mut kept_back = Counts::default();
    let Some(redactor) = redaction.arguments.filter(|_| tool.rule.redacted) else { return Ok(Fitting { arguments, kept_back }) };
    let left = match redactor.json(arguments.text(), &mut kept_back) {
        Cow::Borrowed(_) => return Ok(Fitting { arguments, kept_back }),
        Cow::Owned(left) => left,
    };
    let left = Arguments::parse(&left).ok().filter(|left| tool.parameters.validate(left.value()).is_ok());
    let arguments = Cow::Owned(left.ok_or("they hold what may not be sent to this tool")?);
    Ok(Fitting { arguments, kept_back })
}

/// The sentence repeats a little of what the model wrote, which may be a secret.
fn invalid(call: &Call, why: &str, redactor: &Redactor) -> Output {
    let why = redactor.text(why, &mut Counts::default()).into_owned();
    Output::said(Outcome::InvalidArguments, &Said::InvalidArguments(why), &call.name)
}
