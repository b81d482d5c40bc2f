//! The one place that asks a model: which provider, how often, how long. What is sent was cleared by the gate.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use tokio::time::{Instant, timeout_at};
use toolgate_config::provider::Provider;
use toolgate_config::secret::Secret;
use toolgate_config::server::Auth;
use toolgate_policies::facts::RunFacts;
use toolgate_policies::gate::{self, Cleared};
use toolgate_tools::net::{Answer, AnswerBody, Net, NetError, Outgoing, Patience, Segments};

use crate::failure::Failure;
use crate::gateway::InForce;
use crate::money::{Closed, Money, Order, Refused, Tab, rate_headers};
use crate::provider::{self, Encoded, Endpoint, Stamp};
use crate::reply::Outlet;
use crate::targets::{Target, Targets};
use crate::tokens::{Tally, Tokens};
use crate::trace::{Outcome, Round, Rounds};
use crate::upload::Upload;

/// The longest error body that is read, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// The longest time that a provider may ask us to wait before a second try, or take to say what was wrong.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The limit whose end says that a provider had the request in hand; one word, for the log and for what is charged.
const FIRST_BYTE: &str = "first_byte_timeout";

/// The first pause between two tries; it doubles from try to try.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// One model call: everything but the body, which depends on who is asked.
pub struct Ask<'a> {
    /// Outgoing connections.
    pub net: &'a Net,
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
    /// With what its parts are stamped where the provider says nothing.
    pub stamp: Stamp,
}

impl Ask<'_> {
    /// Asks, again where a second try can help, and the next provider where this one cannot. Before a provider is asked, the worst cost of the
    /// call is set aside. Every attempt is put into the books; the last one is still open when this returns an answer.
    ///
    /// # Errors
    /// Why the last attempt failed.
    pub async fn send(
        &self,
        targets: &mut Targets,
        compose: impl Fn(&Target, Option<u64>) -> Vec<Bytes>,
        mut books: Books<'_>,
    ) -> Result<Answering, NoAnswer> {
        loop {
            let failure = match self.send_to(targets.current(), &compose, &mut books).await {
                Ok(answering) => return Ok(answering),
                Err(NoAnswer::Refused(refused)) => return Err(refused.into()),
                Err(NoAnswer::Failed(failure)) => failure,
            };
            if self.is_used_up() || !another_may_do_better(&failure) || Instant::now() >= self.begin_by || !targets.advance() {
                return Err(failure.into());
            }
        }
    }

    async fn send_to(
        &self,
        target: &Arc<Target>,
        compose: &impl Fn(&Target, Option<u64>) -> Vec<Bytes>,
        books: &mut Books<'_>,
    ) -> Result<Answering, NoAnswer> {
        let mut body = Segments::from(compose(target, None));
        // Before anything is held: what a provider cannot do costs nothing.
        let mut encoded = self.encode(target, &body)?;
        let reserved = timeout_at(self.begin_by, books.tab.reserve(self.money, &self.order(target, &body))).await;
        if books.number == 1 {
            // Now, for the head of a stream goes out with the first sign of life.
            self.outlet.set_head(rate_headers(books.tab.rates()));
        }
        let lowered = reserved.map_err(|_| Refused::Closed(Closed("what is held took too long".to_owned())))??;
        if lowered.is_some() {
            body = Segments::from(compose(target, lowered));
            encoded = self.encode(target, &body)?;
        }
        for attempt in 1.. {
            let Some(held) = books.tab.held() else { break };
            let call =
                gate::clear_model(&self.in_force.config, self.run, &target.provider.name, held, self.outgoing(target, &encoded));
            let call = call.map_err(Failure::from)?;
            books.open(Round { lowered, ..opened(target, attempt, self.tally(&body)) });
            let asked = Instant::now();
            let tried = self.attempt(&target.provider, &encoded.path, call, asked).await;
            let Err((failure, outcome, wait)) = tried else { return tried.map_err(|(failure, ..)| failure.into()) };
            books.failed(self, outcome, asked.elapsed(), may_have_cost(&failure)).await;
            let pause = wait.unwrap_or_else(|| pause_before(attempt));
            let last =
                attempt > target.provider.retries || self.is_used_up() || !worth_another_try(outcome) || pause > LONGEST_WAIT;
            if last || Instant::now() + pause >= self.begin_by {
                return Err(failure.into());
            }
            tokio::time::sleep(pause).await;
        }
        Err(Failure::Internal("upstream").into())
    }

    fn order<'o>(&'o self, target: &'o Target, sent: &'o Segments) -> Order<'o> {
        let Self { tokens, in_force, output_limit, answers, .. } = *self;
        let prompt = self.upload.map(Upload::most_tokens);
        Order { tokens, in_force, target, sent, prompt, output_limit, answers }
    }

    fn encode(&self, target: &Target, body: &Segments) -> Result<Encoded, Failure> {
        Ok(provider::encode(target, self.endpoint, body, self.stream)?)
    }

    /// Whether what is sent has been taken already, so that there is nothing to try again with.
    fn is_used_up(&self) -> bool {
        self.upload.is_some_and(Upload::has_begun)
    }

    fn outgoing(&self, target: &Target, encoded: &Encoded) -> Outgoing {
        match self.upload {
            Some(upload) => upload.body(&target.upstream_model),
            None => encoded.body.clone().into(),
        }
    }

    fn tally(&self, sent: &Segments) -> Tally {
        Tally::of(sent.clone()).with_prompt(self.upload.map(|upload| Arc::clone(upload.tokens())))
    }

    async fn attempt(
        &self,
        provider: &Arc<Provider>,
        path: &str,
        call: Cleared<Outgoing>,
        asked: Instant,
    ) -> Result<Answering, (Failure, Outcome, Option<Duration>)> {
        let request = self.request(provider, path, call).map_err(|failure| (failure, Outcome::ConnectError, None))?;
        let patience = Patience {
            connect: provider.connect_timeout.min(self.begin_by - asked),
            first_byte: provider.first_byte_timeout.min(self.begin_by - asked),
        };
        let answer = self.net.send(&provider.base_url.origin, request, patience).await.map_err(|error| {
            // A form that turned out to be none was not the provider's fault.
            let (failure, outcome) = match self.upload.and_then(Upload::failure) {
                Some(failure) => (failure, Outcome::ClientError),
                None => net_failure(error),
            };
            (failure, outcome, None)
        })?;
        if !answer.head.status.is_success() {
            return Err(refusal(provider, answer).await);
        }
        let content_type = answer.head.headers.get(CONTENT_TYPE).cloned();
        let is_json = content_type.as_ref().is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        let is_stream = self.stream && !is_json;
        let headers = provider::passed_on(&answer.head.headers);
        Ok(Answering {
            provider: Arc::clone(provider),
            headers,
            is_stream,
            content_type,
            body: answer.body,
            asked,
            stamp: stamp(),
        })
    }

    fn request(&self, provider: &Provider, path: &str, call: Cleared<Outgoing>) -> Result<Request<Outgoing>, Failure> {
        let mut request = Request::new(call.into_inner());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::try_from(path).map_err(|_| Failure::Internal("a provider's path"))?;
        *request.headers_mut() =
            provider::headers(provider, self.key_for(provider), self.run.caller.bearer.is_some(), self.headers, self.stream);
        if let (Endpoint::PassThrough(_), false) = (self.endpoint, self.stream) {
            // Sound, text, JSON: whatever the caller asks for in the body.
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        }
        if let Some(upload) = self.upload {
            request.headers_mut().insert(CONTENT_TYPE, upload.content_type().clone());
        }
        Ok(request)
    }

    /// Whose key is shown to the provider: the operator's, or, where bearers pass through, the caller's and no other.
    fn key_for<'k>(&'k self, provider: &'k Provider) -> Option<&'k Secret> {
        match self.in_force.config.auth {
            Auth::Passthrough => self.run.caller.bearer.as_ref(),
            Auth::Keys | Auth::None => provider.api_key.as_ref(),
        }
    }
}

impl Books<'_> {
    fn open(&mut self, round: Round) {
        self.rounds.push(round);
        self.tab.sent();
    }

    /// The attempt came to nothing. An error costs nothing; a provider that we stopped waiting for has read the prompt.
    async fn failed(&mut self, ask: &Ask<'_>, outcome: Outcome, took: Duration, may_have_cost: bool) {
        let Some(round) = self.rounds.last_mut() else { return };
        (round.outcome, round.took) = (outcome, took);
        round.tally = round.tally.take().filter(|_| may_have_cost);
        ask.tokens.charge(round).await;
        self.tab.enter(ask.money, ask.in_force, self.number, round);
    }
}

fn stamp() -> Stamp {
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Stamp { created, seed: RandomState::new().hash_one(created) }
}

fn opened(target: &Arc<Target>, attempt: u32, tally: Tally) -> Round {
    Round {
        target: Arc::clone(target),
        attempt,
        // What is true until something else is known: a run that is dropped here was broken off by its caller, after its prompt was sent.
        outcome: Outcome::Cancelled,
        usage: None,
        estimated: false,
        tally: Some(Box::new(tally)),
        cost: None,
        lowered: None,
        took: Duration::ZERO,
        finish_reason: None,
        tool_calls: Vec::new(),
    }
}

/// Whether a call that failed before anything came may have been worked on, and so be on the provider's bill.
fn may_have_cost(failure: &Failure) -> bool {
    matches!(failure, Failure::UpstreamTimeout(FIRST_BYTE))
}

async fn refusal(provider: &Provider, answer: Answer) -> (Failure, Outcome, Option<Duration>) {
    let (status, headers) = (answer.head.status, answer.head.headers);
    let outcome = match status.as_u16() {
        429 => Outcome::RateLimited,
        500.. => Outcome::ServerError,
        _ => Outcome::ClientError,
    };
    let wait = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let wait = wait.and_then(|value| retry_after(value, SystemTime::now()));
    let body = tokio::time::timeout(LONGEST_WAIT, answer.body.whole(LONGEST_ERROR, provider.idle_timeout)).await;
    let body = body.map_or_else(|_| Bytes::new(), Result::unwrap_or_default);
    (provider::explain(provider, status, &headers, &body), outcome, wait)
}

/// What a broken connection means: for the caller, and for the record of the call.
pub fn net_failure(error: NetError) -> (Failure, Outcome) {
    match error {
        NetError::ConnectTimeout => (Failure::UpstreamTimeout("connect_timeout"), Outcome::Timeout),
        NetError::FirstByteTimeout => (Failure::UpstreamTimeout(FIRST_BYTE), Outcome::Timeout),
        NetError::IdleTimeout => (Failure::UpstreamTimeout("idle_timeout"), Outcome::Timeout),
        NetError::Resolve | NetError::Connect(_) | NetError::Tls => (Failure::Upstream(error.to_string()), Outcome::ConnectError),
        NetError::Closed | NetError::Cut => (Failure::Upstream(error.to_string()), Outcome::Cut),
        NetError::TooLarge | NetError::Protocol | NetError::Packing => {
            (Failure::Upstream(error.to_string()), Outcome::ServerError)
        }
    }
}

/// Whether the same provider may do better: a broken connection, a 5xx, a 429.
fn worth_another_try(outcome: Outcome) -> bool {
    match outcome {
        Outcome::ConnectError | Outcome::Cut | Outcome::ServerError | Outcome::RateLimited => true,
        Outcome::Ok | Outcome::ClientError | Outcome::Timeout | Outcome::Cancelled => false,
    }
}

/// Whether another provider may do better: not where the request itself was refused.
fn another_may_do_better(failure: &Failure) -> bool {
    matches!(failure, Failure::Upstream(_) | Failure::UpstreamTimeout(_) | Failure::UpstreamRateLimited(_))
}

/// The pause before the try after this one: doubled each time, and spread, so that many callers do not come back at once.
fn pause_before(attempt: u32) -> Duration {
    let pause = FIRST_PAUSE * 2u32.saturating_pow(attempt.saturating_sub(1).min(5));
    let spread = RandomState::new().hash_one(attempt) % 50;
    pause + pause * u32::try_from(spread).unwrap_or_default() / 100
}

/// How long a `Retry-After` asks to wait, in either of its forms; a date is counted from `now`.
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let table =
            [("30", Some(30)), (" 0 ", Some(0)), ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)), ("soon", None), ("-1", None)];
        for (value, expected) in table {
            assert_eq!(retry_after(value, now).map(|after| after.as_secs()), expected, "{value}");
        }
    }

    #[test]
    fn each_broken_connection_has_its_status_and_its_word() {
        let table = [
            (NetError::Resolve, 502, Outcome::ConnectError),
            (NetError::Connect(ErrorKind::ConnectionRefused), 502, Outcome::ConnectError),
            (NetError::Tls, 502, Outcome::ConnectError),
            (NetError::ConnectTimeout, 504, Outcome::Timeout),
            (NetError::FirstByteTimeout, 504, Outcome::Timeout),
            (NetError::IdleTimeout, 504, Outcome::Timeout),
            (NetError::Closed, 502, Outcome::Cut),
            (NetError::Cut, 502, Outcome::Cut),
            (NetError::TooLarge, 502, Outcome::ServerError),
            (NetError::Protocol, 502, Outcome::ServerError),
            (NetError::Packing, 502, Outcome::ServerError),
        ];
        for (error, status, outcome) in table {
            let (failure, seen) = net_failure(error);
            assert_eq!((failure.status().as_u16(), seen), (status, outcome), "{error}");
        }
    }

    #[test]
    fn another_provider_is_asked_where_the_request_itself_was_not_refused() {
        let refused =
            Failure::UpstreamRefused { status: http::StatusCode::BAD_REQUEST, message: String::new(), code: None, param: None };
        let table = [
            (Failure::Upstream(String::new()), true),
            (Failure::UpstreamTimeout("idle_timeout"), true),
            (Failure::UpstreamRateLimited(None), true),
            (refused, false),
            (Failure::Refused(gate::Refused::UnknownKey), false),
        ];
        for (failure, expected) in table {
            assert_eq!(another_may_do_better(&failure), expected, "{failure:?}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_are_spread_by_half_at_most() {
        for (attempt, millis) in [(1, 100), (2, 200), (3, 400), (6, 3200), (7, 3200), (u32::MAX, 3200)] {
            let (pause, least) = (pause_before(attempt), Duration::from_millis(millis));
            assert!(pause >= least && pause < least + least / 2, "{attempt}: {pause:?}");
        }
    }
}
