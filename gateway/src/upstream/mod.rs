//! The one place that asks a model. Here stands the road over all targets of a run; `call` is that to one of them, and each rule on the way is
//! a file: `retry` (again, and when), `fallback` (the next one, and what is told in the end), `breaker` (not at all for a while), `deadlines`.
//! What is sent was cleared by the gate.
//!
//! After the first byte of an answer nothing is tried again: what has begun to be told cannot be told otherwise. Tools are not run here, so
//! no repeated call runs one twice.

mod breaker;
mod breakers;
mod call;
mod deadlines;
mod fallback;
mod retry;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;
use toolgate_config::provider::Provider;
use toolgate_policies::facts::RunFacts;
use toolgate_tools::net::{AnswerBody, Net};

use crate::failure::Failure;
use crate::gateway::InForce;
use crate::money::{Money, Refused, Tab};
use crate::provider::{Endpoint, Stamp};
use crate::reply::Outlet;
use crate::targets::{Target, Targets};
use crate::tokens::Tokens;
use crate::trace::Rounds;
use crate::upload::Upload;

pub use self::breakers::{Breakers, Labels, Resting};
pub use self::deadlines::{WHOLE, net_failure};
use self::fallback::Told;

/// One model call: everything but the body, which depends on who is asked.
pub struct Ask<'a> {
    /// Outgoing connections.
    pub net: &'a Net,
    /// Which providers are not asked at the moment.
    pub breakers: &'a Breakers,
    /// What counts tokens.
    pub tokens: &'a Tokens,
    /// The configuration in force.
    pub in_force: &'a InForce,
    /// Who counts and writes down what it costs.
    pub money: &'a Money,
    /// The caller's answer, whose head tells how its rates stand.
    pub outlet: &'a Outlet,
    /// What is known of the run.
    pub run: &'a RunFacts,
    /// What the caller's own headers were.
    pub headers: &'a HeaderMap,
    /// What is asked of it.
    pub endpoint: Endpoint,
    /// A form that comes while it is sent: it is the body then, and what is composed is nothing.
    pub upload: Option<&'a Upload>,
    /// Whether a stream is wanted.
    pub stream: bool,
    /// The answer must begin by then.
    pub begin_by: Instant,
    /// How long the caller, or the model's `params`, let the answer be.
    pub output_limit: Option<u64>,
    /// How many answers are asked for at once.
    pub answers: u64,
}

/// Where a call is written down.
pub struct Books<'b> {
    /// The attempts of the run so far.
    pub rounds: &'b mut Rounds,
    /// What else a reader of its trace should know.
    pub notes: &'b mut Vec<Cow<'static, str>>,
    /// What the run holds and has spent.
    pub tab: &'b mut Tab,
    /// Which model call of the run it is, from 1.
    pub number: u32,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// A limit refused the call; nothing was sent.
    Refused(Refused),
    /// It failed.
    Failed(Failure),
}

impl From<Refused> for NoAnswer {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// An answer that has begun.
pub struct Answering {
    /// Who answers.
    pub provider: Arc<Provider>,
    /// What of its headers may reach the caller.
    pub headers: HeaderMap,
    /// Whether it is a stream of events; otherwise it is one JSON document, whatever was asked for.
    pub is_stream: bool,
    /// Its media type.
    pub content_type: Option<HeaderValue>,
    /// What it says.
    pub body: AnswerBody,
    /// When it was asked.
    pub asked: Instant,
    /// Until when it must have said something.
    pub begin_by: Instant,
    /// With what its parts are stamped where the provider says nothing.
    pub stamp: Stamp,
}

impl Ask<'_> {
    /// Asks, again where a second try can help, and the next target where this one cannot. Before a provider is asked, the worst cost of the
    /// call is set aside. Every attempt is put into the books; the last one is still open when this returns an answer.
    ///
    /// # Errors
    /// What of all that went wrong helps the caller most.
    pub async fn send(
        &self,
        targets: &mut Targets,
        compose: impl Fn(&Target, Option<u64>) -> Vec<Bytes>,
        mut books: Books<'_>,
    ) -> Result<Answering, NoAnswer> {
        let mut told = Told::default();
        loop {
            let no_answer = match self.send_to(targets.current(), &compose, &mut books).await {
                Ok(answering) => return Ok(answering),
                Err(no_answer) => no_answer,
            };
            let note = fallback::note(&targets.current().provider, &no_answer);
            let goes_on = told.add(no_answer, SystemTime::now());
            let goes_on = goes_on && !self.is_used_up() && Instant::now() < self.begin_by;
            if !goes_on || !targets.advance() {
                return Err(told.into_inner());
            }
            books.notes.extend(note.map(Cow::Owned));
        }
    }

    /// Whether what is sent has been taken already, so that there is nothing to try again with.
    fn is_used_up(&self) -> bool {
        self.upload.is_some_and(Upload::has_begun)
    }
}
