//! The call to one target: whether it is asked at all, what is set aside for it, its tries, and what they are in the books.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Uri};
use tokio::time::{Instant, timeout_at};
use toolgate_config::money::NanoUsd;
use toolgate_config::provider::Provider;
use toolgate_config::secret::Secret;
use toolgate_config::server::Auth;
use toolgate_policies::gate::{self, Cleared};
use toolgate_tools::net::{Answer, NetError, Outgoing, Segments};

use super::deadlines::{LONGEST_EXPLANATION, WHOLE, may_have_cost, net_failure, patience};
use super::{Answering, Ask, Books, NoAnswer, Resting, retry};
use crate::failure::Failure;
use crate::money::{Closed, Order, Refused, rate_headers};
use crate::provider::{self, Encoded, Endpoint, Stamp};
use crate::targets::Target;
use crate::tokens::Tally;
use crate::trace::{Outcome, Round};
use crate::upload::Upload;

/// The longest error body that is read, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// A try that brought nothing.
struct Missed {
    failure: Failure,
    outcome: Outcome,
    /// How long the provider asks to wait.
    asked: Option<Duration>,
    may_have_cost: bool,
}

impl Ask<'_> {
    /// Asks one target, as often as it is worth it.
    pub(super) async fn send_to(
        &self,
        target: &Arc<Target>,
        compose: &impl Fn(&Target, Option<u64>) -> Vec<Bytes>,
        books: &mut Books<'_>,
    ) -> Result<Answering, NoAnswer> {
        let mut body = Segments::from(compose(target, None));
        // Before anything is held: what a provider cannot do costs nothing.
        let mut encoded = self.encode(target, &body)?;
        let pass = self.breakers.enter(target).map_err(|resting| books.not_asked(target, resting))?;
        let lowered = self.reserve(target, &body, books).await?;
        if lowered.is_some() {
            body = Segments::from(compose(target, lowered));
            encoded = self.encode(target, &body)?;
        }
        books.note(encoded.note);
        for attempt in 1.. {
            let Some(held) = books.tab.held() else { break };
            let outgoing = self.outgoing(target, &encoded);
            let call = gate::clear_model(&self.in_force.config, self.run, &target.provider.name, held, outgoing);
            let call = call.map_err(Failure::from)?;
            books.open(Round { lowered, ..opened(target, attempt, self.tally(&body)) });
            let begun = Instant::now();
            let missed = match self.attempt(&target.provider, &encoded.path, call, begun).await {
                Ok(answering) => {
                    pass.begun();
                    return Ok(answering);
                }
                Err(missed) => missed,
            };
            books.failed(self, &missed, begun.elapsed()).await;
            // One that only looks whether a provider answers again looks once, and what others have found out meanwhile is believed.
            let is_last = self.is_used_up() || pass.is_probe() || self.breakers.is_open(target);
            let retries = if is_last { 0 } else { target.provider.retries };
            let pause = retry::pause(missed.outcome, missed.asked, attempt, retries, chance());
            match pause.filter(|pause| Instant::now() + *pause < self.begin_by) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => {
                    // Time that the request did not have says nothing of the provider.
                    let is_out_of_time = missed.outcome == Outcome::Timeout && Instant::now() >= self.begin_by;
                    pass.failed(if is_out_of_time { Outcome::Cancelled } else { missed.outcome });
                    return Err(missed.failure.into());
                }
            }
        }
        Err(Failure::Internal("upstream").into())
    }

    fn encode(&self, target: &Target, body: &Segments) -> Result<Encoded, Failure> {
        Ok(provider::encode(target, self.endpoint, body, self.stream)?)
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

    /// Sets the worst cost of the call aside. Returns the output limit that it must have, where the budgets have no room for more.
    async fn reserve(&self, target: &Target, sent: &Segments, books: &mut Books<'_>) -> Result<Option<u64>, Refused> {
        let Self { tokens, in_force, output_limit, answers, .. } = *self;
        let prompt = self.upload.map(Upload::most_tokens);
        let order = Order { tokens, in_force, target, sent, prompt, output_limit, answers };
        let reserved = timeout_at(self.begin_by, books.tab.reserve(self.money, &order)).await;
        if books.number == 1 {
            // Now, for the head of a stream goes out with the first sign of life.
            self.outlet.set_head(rate_headers(books.tab.rates()));
        }
        reserved.unwrap_or_else(|_| Err(Refused::Closed(Closed("what is held took too long".to_owned()))))
    }

    async fn attempt(
        &self,
        provider: &Arc<Provider>,
        path: &str,
        call: Cleared<Outgoing>,
        asked: Instant,
    ) -> Result<Answering, Missed> {
        let request = self.request(provider, path, call).map_err(Missed::before)?;
        let sent = self.net.send(&provider.base_url.origin, request, patience(provider, self.begin_by, asked)).await;
        let answer = sent.map_err(|error| match self.upload.and_then(Upload::failure) {
            // A form that turned out to be none was not the provider's fault.
            Some(failure) => Missed { failure, outcome: Outcome::ClientError, asked: None, may_have_cost: false },
            None => Missed::by(error, self.begin_by),
        })?;
        if !answer.head.status.is_success() {
            return Err(refusal(provider, answer).await);
        }
        let content_type = answer.head.headers.get(CONTENT_TYPE).cloned();
        let is_json = content_type.as_ref().is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        Ok(Answering {
            provider: Arc::clone(provider),
            headers: provider::passed_on(&answer.head.headers),
            is_stream: self.stream && !is_json,
            content_type,
            body: answer.body,
            asked,
            begin_by: self.begin_by,
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

impl Missed {
    /// Nothing was sent, for a fault of ours.
    fn before(failure: Failure) -> Self {
        Self { failure, outcome: Outcome::ConnectError, asked: None, may_have_cost: false }
    }

    /// The connection failed, or the time was over: the provider's, or the whole request's.
    fn by(error: NetError, begin_by: Instant) -> Self {
        let (mut failure, outcome) = net_failure(error);
        if error.is_timeout() && Instant::now() >= begin_by {
            failure = Failure::UpstreamTimeout(WHOLE);
        }
        Self { failure, outcome, asked: None, may_have_cost: may_have_cost(error) }
    }
}

/// What an answer that is no success says.
async fn refusal(provider: &Provider, answer: Answer) -> Missed {
    let (status, headers, now) = (answer.head.status, answer.head.headers, SystemTime::now());
    let outcome = match status.as_u16() {
        429 => Outcome::RateLimited,
        500.. => Outcome::ServerError,
        _ => Outcome::ClientError,
    };
    let body = tokio::time::timeout(LONGEST_EXPLANATION, answer.body.whole(LONGEST_ERROR, provider.idle_timeout)).await;
    let body = body.map_or_else(|_| Bytes::new(), Result::unwrap_or_default);
    let asked = retry::asked(&headers, now);
    let failure = retry::with_time(provider::explain(provider, status, &headers, &body), asked, now);
    let asked = asked.or_else(|| failure.retry_after().and_then(|after| retry::wait(&after, now)));
    Missed { failure, outcome, asked, may_have_cost: false }
}

impl Books<'_> {
    /// Puts a sentence into the trace, once.
    fn note(&mut self, note: Option<&'static str>) {
        self.notes.extend(note.filter(|note| !self.notes.iter().any(|said| said == note)).map(Cow::Borrowed));
    }

    fn open(&mut self, round: Round) {
        self.rounds.push(round);
        self.tab.sent();
    }

    /// The attempt came to nothing. An error costs nothing; a provider that we stopped waiting for has read the prompt.
    async fn failed(&mut self, ask: &Ask<'_>, missed: &Missed, took: Duration) {
        let Some(round) = self.rounds.last_mut() else { return };
        (round.outcome, round.took) = (missed.outcome, took);
        round.tally = round.tally.take().filter(|_| missed.may_have_cost);
        ask.tokens.charge(round).await;
        self.tab.enter(ask.money, ask.in_force, self.number, round);
    }

    /// A provider that keeps failing was not asked. That is an attempt that never reached it; there is nothing to pay for, so the ledger has
    /// no row of it.
    fn not_asked(&mut self, target: &Arc<Target>, Resting(again): Resting) -> Failure {
        let round = opened(target, 1, Tally::default());
        self.rounds.push(Round { outcome: Outcome::ConnectError, tally: None, cost: Some(NanoUsd(0)), ..round });
        Failure::UpstreamResting(again)
    }
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
        context: None,
        took: Duration::ZERO,
        finish_reason: None,
        tool_calls: Vec::new(),
    }
}

fn stamp() -> Stamp {
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Stamp { created, seed: RandomState::new().hash_one(created) }
}

/// A number from 0 to below 1, another one each time.
fn chance() -> f64 {
    f64::from(u32::try_from(RandomState::new().hash_one(0u8) >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
