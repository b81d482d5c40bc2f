//! Hearing a model out: one document or a stream of events, and what the record keeps of it.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_config::Config;
use toolgate_config::provider::Provider;
use toolgate_tools::bound;
use toolgate_tools::net::{AnswerBody, NetError};

use super::record::Recording;
use super::screen::Screen;
use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::provider::{self, Decoder, Stamp};
use crate::reply::Outlet;
use crate::talk::{Answer, Broken, Kind, Leftover, Listening, Own};
use crate::tokens::{Tally, Used};
use crate::trace::Outcome;
use crate::upstream::{Answering, WHOLE, net_failure};
use crate::veil::LULL;
use crate::wire::reply::NoReply;
use crate::wire::sse::{Event, LONGEST_SILENCE};
use crate::wire::{Finish, Reply};

/// The longest plain answer that is read, and the most that is kept of a stream until its round ends, in bytes.
pub(super) const LONGEST_REPLY: usize = 64 * 1024 * 1024;

/// How long the headers of a stream wait for its first event: an error that comes first still has its status then.
pub(super) const FIRST_EVENT: Duration = Duration::from_millis(50);

/// How long a stream that has said its end mark may stay open.
pub(super) const AFTER_THE_END: Duration = Duration::from_millis(500);

/// How much may wait for a slow caller before no more is read.
pub(super) const MOST_WAITING: usize = 64 * 1024;

/// How much of a finish reason that nobody knows is kept, in bytes.
const LONGEST_REASON: usize = 64;

/// A failure, and how the call is recorded.
pub(super) type Failed = (Failure, Outcome);

/// Reads a plain answer.
pub(super) async fn read(provider: &Provider, body: AnswerBody, stamp: Stamp, by: Instant) -> Result<Reply, Failed> {
    let whole = tokio::time::timeout_at(by, body.whole(LONGEST_REPLY, provider.idle_timeout));
    let body = whole.await.map_err(|_| too_late())?.map_err(net_failure)?;
    Reply::parse(provider::decode(provider, body.clone(), stamp)).map_err(|no_reply| match no_reply {
        NoReply::Garbage => (Failure::Upstream("the provider's answer is no chat completion".to_owned()), Outcome::ServerError),
        NoReply::Error => inside(provider, &body),
    })
}

/// The time of the whole request was over first.
fn too_late() -> Failed {
    (Failure::UpstreamTimeout(WHOLE), Outcome::Timeout)
}

/// What a plain answer says, and what it used.
pub(super) async fn answer_of(mut reply: Reply, gateway: &Gateway, record: &mut Recording, round: u32) -> (Reply, Answer) {
    if let Some(tally) = tally(record) {
        let usage = reply.usage();
        if usage.is_none_or(|usage| usage.output() == 0) {
            tally.keep_all();
            reply.texts(&mut |said| tally.say(said));
        }
        if let Some(usage) = usage {
            tally.report(usage);
        }
    }
    let used = charged(gateway, record).await;
    let calls = std::mem::take(&mut reply.calls);
    let mut answer = Answer {
        // Only a round that goes on needs its text again.
        content: if calls.is_empty() { None } else { reply.content().map(str::to_owned) },
        has_text: reply.has_text,
        thoughts: if calls.is_empty() { None } else { reply.thoughts().map(str::to_owned) },
        aloud: if calls.is_empty() { None } else { reply.aloud().map(str::to_owned) },
        is_cut: calls.is_cut(),
        calls: calls.finish(round),
        finish: Finish::from_raw(reply.finish()),
        usage: used.usage,
        estimated: used.estimated,
        cost: 0,
    };
    keep_thoughts(record, &mut answer);
    (reply, answer)
}

/// What the model thought aloud goes back to its provider with its calls, where it gave nothing else to be given back.
fn keep_thoughts(record: &Recording, answer: &mut Answer) {
    let Some(round) = record.run.rounds.last().filter(|_| answer.thoughts.is_none() && !answer.calls.is_empty()) else { return };
    answer.thoughts = answer.aloud.take().and_then(|aloud| provider::thought_aloud(&round.target.provider, &aloud));
}

/// What there is to count of the call under way.
pub(super) fn tally(record: &mut Recording) -> Option<&mut Tally> {
    record.run.rounds.last_mut()?.tally.as_deref_mut()
}

/// What the call under way has used, now that its outcome is known.
pub(super) async fn charged(gateway: &Gateway, record: &mut Recording) -> Used {
    let Some(round) = record.run.rounds.last_mut() else { return Used::default() };
    gateway.tokens.charge(round).await;
    Used { usage: round.usage.unwrap_or_default(), estimated: round.estimated }
}

/// A stream that is being heard.
pub(super) struct Hearing {
    listening: Listening,
    config: Arc<Config>,
    /// The names of the caller's own tools.
    own: Own,
    /// How much came while chunks were held back, in bytes: they keep what they came in.
    held: usize,
    /// How much came since the last event, in bytes.
    silent: usize,
    has_begun: bool,
}

impl Hearing {
    pub(super) fn new(kind: Kind, config: Arc<Config>, own: Own) -> Self {
        Self { listening: Listening::new(kind), config, own, held: 0, silent: 0, has_begun: false }
    }

    /// Hears a stream to its end, showing what may be shown as it comes.
    pub(super) async fn listen(
        &mut self,
        answering: Answering,
        screen: &mut Screen,
        record: &mut Recording,
    ) -> Result<(), Failed> {
        let Answering { provider, mut body, stamp, begin_by, .. } = answering;
        let mut decoder = Decoder::new(&provider, stamp);
        let (mut over, mut has_let_go) = (None, false);
        if let Some(round) = record.run.rounds.last_mut()
            && let Some(tally) = &mut round.tally
        {
            tally.listen(&round.target.upstream_model);
        }
        loop {
            if self.listening.is_over() {
                over.get_or_insert_with(Instant::now);
                if self.listening.shows_all() {
                    screen.clear();
                }
            }
            let late = !self.has_begun && Instant::now() >= begin_by;
            let idle = match over {
                Some(over) => AFTER_THE_END.saturating_sub(over.elapsed()),
                None if late => return Err(too_late()),
                None if self.has_begun => provider.idle_timeout,
                None => provider.idle_timeout.min(begin_by.saturating_duration_since(Instant::now())),
            };
            if idle.is_zero() {
                break;
            }
            let next = if screen.outlet().has_begun() && screen.holds() && !has_let_go {
                has_let_go = true;
                let Ok(next) = tokio::time::timeout(LULL, body.chunk(idle)).await else {
                    screen.let_go();
                    continue;
                };
                next
            } else if screen.outlet().has_begun() {
                body.chunk(idle).await
            } else if let Ok(next) = tokio::time::timeout(FIRST_EVENT, body.chunk(idle)).await {
                next
            } else {
                screen.outlet().begin();
                continue;
            };
            let bytes = match next {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                // All was said: that the connection broke after it takes nothing of it back.
                Err(_) if self.listening.is_over() || !self.listening.is_cut() => break,
                Err(NetError::IdleTimeout) if !self.has_begun && Instant::now() >= begin_by => return Err(too_late()),
                Err(error) => return Err(net_failure(error)),
            };
            has_let_go = false;
            self.take(&mut decoder, bytes, &provider, screen, record)?;
            if screen.outlet().waiting() > MOST_WAITING {
                sent(screen.outlet()).await;
            }
        }
        while let Some(event) = decoder.end() {
            self.hear_event(event, &provider, screen, record)?;
        }
        Ok(())
    }

    /// Whether the stream has said anything yet.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// One event of a stream that is whole already.
    pub(super) fn hear(
        &mut self,
        event: Event,
        provider: &Provider,
        screen: &mut Screen,
        record: &mut Recording,
    ) -> Result<(), Failure> {
        record.run.first_byte.get_or_insert(record.began().elapsed());
        tally(record).into_iter().for_each(Tally::keep_all);
        self.hear_event(event, provider, screen, record).map_err(|(failure, _)| failure)
    }

    /// The stream is over: what it said, and what is left to show.
    pub(super) async fn end(self, gateway: &Gateway, record: &mut Recording, round: u32) -> Result<(Answer, Leftover), Failure> {
        if self.listening.is_cut()
            && let Some(round) = record.run.rounds.last_mut()
        {
            round.outcome = Outcome::Cut;
        }
        let used = charged(gateway, record).await;
        let (mut answer, left) = self.listening.end(used, round).map_err(|_| {
            record.enter();
            Failure::Upstream("the provider's stream ended before its answer did".to_owned())
        })?;
        keep_thoughts(record, &mut answer);
        Ok((answer, left))
    }

    fn take(
        &mut self,
        decoder: &mut Decoder,
        bytes: Bytes,
        provider: &Provider,
        screen: &mut Screen,
        record: &mut Recording,
    ) -> Result<(), Failed> {
        let endless =
            |what: &str| (Failure::Upstream(format!("the provider's stream holds {what} without end")), Outcome::ServerError);
        let length = bytes.len();
        decoder.feed(bytes).map_err(|_| endless("an event"))?;
        self.silent += length;
        let heard = loop {
            let Some(event) = decoder.next_event() else { break Ok(()) };
            (self.silent, self.has_begun) = (0, true);
            if let Err(failed) = self.hear_event(event, provider, screen, record) {
                break Err(failed);
            }
            screen.outlet().begin();
        };
        self.held = if self.listening.holds() { self.held + length } else { 0 };
        record.run.redactions.merge(&screen.take_counts());
        if self.held + self.listening.kept() + screen.held() > LONGEST_REPLY {
            return Err(endless("a round"));
        }
        if self.silent > LONGEST_SILENCE {
            return Err(endless("nothing"));
        }
        record.run.first_byte.get_or_insert(record.began().elapsed());
        heard
    }

    fn hear_event(
        &mut self,
        event: Event,
        provider: &Provider,
        screen: &mut Screen,
        record: &mut Recording,
    ) -> Result<(), Failed> {
        let (tools, own, mut nobody) = (&self.config.tools, &self.own, Tally::default());
        // In the record, for a caller may leave at any moment: what came so far is what was used so far.
        let tally = tally(record).unwrap_or(&mut nobody);
        let heard = self.listening.hear(
            event,
            |name| tools.find(name).is_some() || own.contains(name),
            tally,
            |chunk| screen.show(chunk),
        );
        heard.map_err(|broken| match broken {
            Broken::Error(data) => inside(provider, data.as_bytes()),
            Broken::Garbage => {
                (Failure::Upstream("the provider's stream holds what is no chunk".to_owned()), Outcome::ServerError)
            }
            Broken::Cut => (Failure::Upstream("the provider's stream was cut".to_owned()), Outcome::Cut),
        })
    }
}

/// Lets the server send what waits before more is read: the body that polls this takes it and polls again.
pub(super) async fn sent(outlet: &Outlet) {
    std::future::poll_fn(|_| if outlet.waiting() > MOST_WAITING { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// Closes the entry of a call that has ended, well or badly. What a bad one used goes onto the tab.
pub(super) async fn settled<T>(
    gateway: &Gateway,
    record: &mut Recording,
    asked: Instant,
    result: Result<T, Failed>,
) -> Result<T, Failure> {
    if let Some(round) = record.run.rounds.last_mut() {
        round.took = asked.elapsed();
        round.outcome = result.as_ref().map_or_else(|(_, outcome)| *outcome, |_| Outcome::Ok);
    }
    if result.is_err() {
        charged(gateway, record).await;
        record.enter();
    }
    result.map_err(|(failure, _)| failure)
}

/// Puts why a model stopped into the entry of its call, and the call onto the tab. Returns what it cost in nano-dollars, as far as that is
/// known.
pub(super) fn note(record: &mut Recording, finish: Option<&str>) -> u64 {
    let Some(round) = record.run.rounds.last_mut() else { return 0 };
    round.finish_reason = finish.map(reason);
    record.enter();
    record.run.rounds.last().and_then(|round| round.cost).unwrap_or_default().0
}

/// A raw finish reason as a trace has it. The usual ones are not kept once more for each run.
fn reason(raw: &str) -> Cow<'static, str> {
    const USUAL: [&str; 4] = ["stop", "tool_calls", "length", "content_filter"];
    let word = raw.trim_matches('"');
    USUAL
        .into_iter()
        .find(|usual| *usual == word)
        .map_or_else(|| Cow::Owned(bound::head(word, LONGEST_REASON).to_owned()), Cow::Borrowed)
}

pub(super) fn inside(provider: &Provider, body: &[u8]) -> Failed {
    let failure = provider::explain_inside(provider, body);
    let outcome = match failure {
        Failure::UpstreamRateLimited(_) => Outcome::RateLimited,
        Failure::UpstreamRefused { .. } => Outcome::ClientError,
        _ => Outcome::ServerError,
    };
    (failure, outcome)
}
