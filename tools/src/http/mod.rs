//! A tool of the file: one HTTP request, and what of its answer the model may read. Redirects are never followed.

mod reading;
mod request;
mod select;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ::http::Request;
use ::http::response::Parts;
use tokio::time::{Instant, timeout_at};
use toolgate_config::class::DataClass;
use toolgate_config::tool::{Effect, Errors, HttpWork, Tool};
use toolgate_policies::egress::{EgressRefusal, Permit};
use toolgate_policies::redact::Redactor;
use toolgate_policies::zone::{self, Mark};

use self::reading::{Read, Reading};
pub(crate) use self::select::select;
use crate::arguments::Arguments;
use crate::net::{Answer, Net, NetError, Patience, Segments};
use crate::result::Readable;
use crate::said::{NO_CONTENT, Said};
use crate::toolbox::{Outcome, Output, Redaction};

/// The longest that a tool may take to accept a connection, however long its answer may take.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

/// How much later than the steps within it the whole of a call ends, so that the step says which it was.
const SLACK: Duration = Duration::from_millis(5);

/// Asks the tool once, where it was permitted to be asked; `due` is when its time is over.
pub(crate) async fn run(
    net: &Net,
    permit: Permit<'_>,
    tool: &Tool,
    work: &HttpWork,
    arguments: &Arguments,
    redaction: Redaction<'_>,
    due: Instant,
) -> Output {
    if request::leaks(work, arguments, redaction.credentials) {
        return Output::denied(EgressRefusal::Secret, tool);
    }
    let request = match request::build(work, arguments) {
        Ok(request) => request,
        Err(why) => {
            return Output::said(Outcome::InvalidArguments, &Said::InvalidArguments(why.to_string()), tool.name.as_str());
        }
    };
    // A call that is cut off here may have been sent.
    let late = Failure { error: NetError::IdleTimeout, head: None };
    let ended = timeout_at(due + SLACK, ask(net, permit, tool, work, request, due)).await.unwrap_or(Err(late));
    match ended {
        Ok(answered) => answered.output(tool, work, redaction.result),
        Err(failure) => failure.output(tool),
    }
}

/// The request that a call means, for whoever wants to look at it without sending it.
///
/// # Errors
/// Why the arguments make none, as the model is told.
pub fn request_of(work: &HttpWork, arguments: &Arguments) -> Result<Request<Segments>, String> {
    request::build(work, arguments).map_err(|unfit| unfit.to_string())
}

/// A tool's answer, as far as it was read.
struct Answered {
    head: Parts,
    read: Read,
}

/// Why there is no answer, and its head if that had come.
struct Failure {
    error: NetError,
    head: Option<Box<Parts>>,
}

async fn ask(
    net: &Net,
    permit: Permit<'_>,
    tool: &Tool,
    work: &HttpWork,
    request: Request<Segments>,
    due: Instant,
) -> Result<Answered, Failure> {
    let again = (tool.rule.effect != Effect::NonIdempotentWrite).then(|| request.clone());
    let first = net.send_permitted(permit, request, patience(due)).await;
    let answer = match (first, again) {
        // The server closed the connection under the request. Twice is as good as once, and the other connections are fresh.
        (Err(NetError::Closed), Some(request)) => net.send_permitted(permit, request, patience(due)).await,
        (first, _) => first,
    };
    let Answer { head, body } = answer.map_err(|error| Failure { error, head: None })?;
    match Reading::of(tool, work).read(body, due).await {
        Ok(read) => Ok(Answered { head, read }),
        Err(error) => Err(Failure { error, head: Some(Box::new(head)) }),
    }
}

fn patience(due: Instant) -> Patience {
    let left = due.saturating_duration_since(Instant::now());
    Patience { connect: left.min(LONGEST_CONNECT), first_byte: left }
}

impl Answered {
    fn output(self, tool: &Tool, work: &HttpWork, redactor: &Redactor) -> Output {
        let status = self.head.status.as_u16();
        let said = match status {
            ..=299 => return self.result(tool, work, redactor),
            500.. if tool.rule.effect != Effect::ReadOnly => Said::FailedUnknown,
            _ => Said::Status(status),
        };
        let mut output = Output::said(Outcome::Error, &said, tool.name.as_str());
        // A redirect's body is only an address.
        let is_told = work.errors == Errors::Body && !self.head.status.is_redirection() && !self.read.bytes.is_empty();
        if let Some(readable) = is_told.then(|| self.read.readable(None, tool, redactor)).flatten() {
            output.text.push('\n');
            output.own = output.text.len();
            output.text.push_str(&readable.text);
            output.redactions = readable.redactions;
        }
        answered(output, tool, &self.head, self.read.bytes.len())
    }

    fn result(self, tool: &Tool, work: &HttpWork, redactor: &Redactor) -> Output {
        let Self { head, read } = self;
        let size = read.bytes.len();
        let output = Output::said(Outcome::Ok, &Said::Failed, tool.name.as_str());
        if head.status.as_u16() == 204 || size == 0 {
            let text = nothing(&head);
            return answered(Output { own: text.len(), text, ..output }, tool, &head, size);
        }
        match read.readable(work.select.as_deref(), tool, redactor) {
            Some(Readable { text, redactions }) => answered(Output { own: 0, text, redactions, ..output }, tool, &head, size),
            None => answered(failed(tool), tool, &head, size),
        }
    }
}

/// What stands for an answer without a body. For HEAD the status is the answer.
fn nothing(head: &Parts) -> String {
    format!("{NO_CONTENT} status {}", head.status.as_u16())
}

impl Failure {
    fn output(self, tool: &Tool) -> Output {
        if let NetError::Refused(refusal) = self.error {
            return Output::denied(refusal, tool);
        }
        let unknown = tool.rule.effect != Effect::ReadOnly && !self.error.is_connect();
        let (outcome, said) = match (self.error.is_timeout(), unknown) {
            (true, true) => (Outcome::Timeout, Said::FailedUnknown),
            (true, false) => (Outcome::Timeout, Said::TimedOut),
            (false, true) => (Outcome::Error, Said::FailedUnknown),
            (false, false) => (Outcome::Error, Said::Failed),
        };
        tracing::info!(tool = tool.name.as_str(), error = %self.error, "a tool did not answer");
        let reached = !self.error.is_connect();
        let output = Output { reached, ..Output::said(outcome, &said, tool.name.as_str()) };
        match self.head {
            Some(head) => answered(output, tool, &head, 0),
            None => output,
        }
    }
}

/// The answer was read, but is not what it should be. Nothing is unknown: the tool has said that it was done.
fn failed(tool: &Tool) -> Output {
    Output::said(Outcome::Error, &Said::Failed, tool.name.as_str())
}

fn answered(output: Output, tool: &Tool, head: &Parts, bytes: usize) -> Output {
    Output { mark: mark(tool, head), bytes, status: Some(head.status.as_u16()), ..output }
}

/// The tool's mark, raised by what the answer says of itself.
fn mark(tool: &Tool, head: &Parts) -> Mark {
    let own = Mark { class: tool.rule.data_class, personal: tool.rule.personal };
    let declared = head.headers.get_all("x-data-class").iter();
    declared.fold(own, |mark, word| {
        let class = word.to_str().map_or(DataClass::Secret, zone::declared);
        mark.raised(Mark { class, personal: false })
    })
}
