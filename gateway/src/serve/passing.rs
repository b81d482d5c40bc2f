//! A stream that passes through: completions event by event, with the caller's name for the model and the usage that it asked for; any other
//! events as they came; and whatever is no text as the bytes that come. None of it is held longer than the next piece needs.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout};
use toolgate_config::provider::Provider;
use toolgate_tools::net::{AnswerBody, NetError};

use super::hearing::{self, AFTER_THE_END, FIRST_EVENT, Failed, MOST_WAITING, sent};
use super::pass::Cargo;
use super::passage::{hear, not_json};
use super::record::Recording;
use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::reply::{Ended, Outlet};
use crate::tokens::made;
use crate::trace::{Outcome, Status};
use crate::upstream::{Answering, net_failure};
use crate::veil::{LULL, Veil};
use crate::wire::pass::{Events, Said};
use crate::wire::reply::NoReply;
use crate::wire::spoken::Change;
use crate::wire::sse::{self, Decoder, Event, TooLong};

/// An answer on its way.
pub(super) struct Passing<'r> {
    pub(super) gateway: &'r Gateway,
    pub(super) record: &'r mut Recording,
    pub(super) cargo: &'r Cargo,
    pub(super) outlet: Outlet,
    /// The caller's name for the model, as a JSON string.
    pub(super) model: String,
    /// Takes secrets out of completions.
    pub(super) veil: Veil<Said, ()>,
    /// Nothing has come since it let go of a few letters.
    pub(super) has_let_go: bool,
}

/// What is known of a stream so far.
#[derive(Default)]
struct Heard {
    decoder: Decoder,
    /// Events that go on as they came are cut here.
    events: Events,
    /// It said its end mark, then.
    over: Option<Instant>,
    finish: Option<String>,
    told_usage: bool,
    /// The last chunk, after whose likeness others can be made.
    last: Option<Said>,
    /// How much sound there was, in bytes.
    sound: u64,
}

impl Passing<'_> {
    /// A stream of events.
    pub(super) async fn events(mut self, answering: Answering) -> Result<Ended, Failure> {
        let Answering { provider, headers, mut body, asked, .. } = answering;
        self.outlet.expect_stream();
        self.outlet.add_head(headers);
        let mut heard = Heard::default();
        let end = self.hear_events(&provider, &mut body, &mut heard).await;
        if end.is_err() {
            self.veil.break_off(put(&self.outlet, &self.model, self.cargo));
        }
        hearing::settled(self.gateway, self.record, asked, end).await?;
        self.finish(heard).await
    }

    async fn hear_events(&mut self, provider: &Provider, body: &mut AnswerBody, heard: &mut Heard) -> Result<(), Failed> {
        loop {
            let idle = heard.over.map_or(provider.idle_timeout, |over| AFTER_THE_END.saturating_sub(over.elapsed()));
            if idle.is_zero() {
                break;
            }
            let Some(next) = self.next(body, idle).await else { continue };
            match next {
                Ok(Some(bytes)) => {
                    self.has_let_go = false;
                    self.take(bytes, provider, heard)?;
                }
                Ok(None) => break,
                Err(_) if heard.over.is_some() => break,
                Err(error) => return Err(net_failure(error)),
            }
            if self.outlet.waiting() > MOST_WAITING {
                sent(&self.outlet).await;
            }
        }
        while let Some(event) = heard.decoder.end() {
            self.hear_event(&event, provider, heard)?;
        }
        let is_cut = self.cargo.is_stream() && heard.over.is_none() && heard.finish.is_none();
        let cut = || (Failure::Upstream("the provider's stream ended before its answer did".to_owned()), Outcome::Cut);
        if is_cut { Err(cut()) } else { Ok(()) }
    }

    /// The next piece; `None`: it takes its time, and the caller shall have its headers meanwhile.
    async fn next(&mut self, body: &mut AnswerBody, idle: Duration) -> Option<Result<Option<Bytes>, NetError>> {
        if self.veil.holds() && !std::mem::replace(&mut self.has_let_go, true) {
            let next = timeout(LULL, body.chunk(idle)).await.ok();
            if next.is_none() {
                self.veil.let_go(put(&self.outlet, &self.model, self.cargo));
            }
            return next;
        }
        if self.outlet.has_begun() {
            return Some(body.chunk(idle).await);
        }
        let first = timeout(FIRST_EVENT, body.chunk(idle)).await.ok();
        if first.is_none() {
            self.outlet.begin();
        }
        first
    }

    fn take(&mut self, bytes: Bytes, provider: &Provider, heard: &mut Heard) -> Result<(), Failed> {
        let endless =
            |TooLong| (Failure::Upstream("the provider's stream holds an event without end".to_owned()), Outcome::ServerError);
        self.record.run.first_byte.get_or_insert(self.record.began().elapsed());
        let whole = if self.cargo.is_stream() { Bytes::new() } else { heard.events.feed(&bytes).map_err(endless)? };
        heard.decoder.feed(bytes).map_err(endless)?;
        let mut failed = None;
        while let Some(event) = heard.decoder.next_event() {
            // The rest of what came must be taken out all the same.
            if failed.is_none() {
                failed = self.hear_event(&event, provider, heard).err();
            }
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        if !whole.is_empty() {
            self.outlet.write(|out| out.extend_from_slice(&whole));
        }
        Ok(())
    }

    fn hear_event(&mut self, event: &Event, provider: &Provider, heard: &mut Heard) -> Result<(), Failed> {
        if event.is_end_mark() {
            heard.over.get_or_insert_with(Instant::now);
            return Ok(());
        }
        let said = match Said::parse(event.data.clone()) {
            Ok(said) if !event.is_error => said,
            Ok(_) | Err(NoReply::Error) => return Err(hearing::inside(provider, &event.data)),
            Err(NoReply::Garbage) if self.cargo.is_stream() => return Err(not_json()),
            Err(NoReply::Garbage) => return Ok(()),
        };
        self.hear(&said, heard);
        if self.cargo.is_stream() {
            self.show(&said, heard);
            heard.last = Some(said);
        }
        Ok(())
    }

    fn hear(&mut self, said: &Said, heard: &mut Heard) {
        heard.sound += said.sound as u64 * 3 / 4;
        hear(self.record, self.cargo, said, false);
        if said.sound > 0
            && let Some(tally) = hearing::tally(self.record)
        {
            tally.make(made::spoken(heard.sound));
        }
        if let Some(finish) = said.finish() {
            heard.finish = Some(finish.to_owned());
        }
    }

    /// Shows a chunk of a completion. What was used is for callers who asked for it.
    fn show(&mut self, said: &Said, heard: &mut Heard) {
        let wants = self.cargo.wants_usage();
        heard.told_usage |= wants && said.usage().is_some();
        if !said.is_bare || wants {
            self.veil.take(said, (), put(&self.outlet, &self.model, self.cargo));
        }
        self.record.run.redactions.merge(&self.veil.take_counts());
    }

    /// A provider that answers a request for a stream with one document: the caller gets its stream all the same.
    pub(super) async fn whole_stream(mut self, said: Said) -> Result<Ended, Failure> {
        let mut heard = Heard::default();
        self.record.run.first_byte.get_or_insert(self.record.began().elapsed());
        self.hear(&said, &mut heard);
        self.show(&said, &mut heard);
        heard.last = Some(said);
        self.finish(heard).await
    }

    /// All has come: what it used is written down, and then the caller sees the end.
    async fn finish(mut self, heard: Heard) -> Result<Ended, Failure> {
        self.veil.finish(put(&self.outlet, &self.model, self.cargo));
        self.record.run.redactions.merge(&self.veil.take_counts());
        let used = hearing::charged(self.gateway, self.record).await;
        hearing::note(self.record, heard.finish.as_deref());
        self.record.settled().await?;
        if self.cargo.is_stream() {
            if let Some(last) = heard.last.filter(|_| self.cargo.wants_usage() && !heard.told_usage) {
                let chunk = last.as_usage(&self.model, &used.usage);
                self.outlet.write(|out| sse::write(out, |out| out.extend_from_slice(&chunk)));
            }
            self.outlet.write(|out| sse::write(out, |out| out.extend_from_slice(sse::END_MARK)));
        } else {
            let rest = heard.events.end();
            self.outlet.write(|out| out.extend_from_slice(&rest));
        }
        self.record.close(Status::Completed, 200);
        Ok(Ended::Streamed)
    }

    /// Whatever it is, as it comes.
    pub(super) async fn bytes(mut self, answering: Answering) -> Result<Ended, Failure> {
        let Answering { provider, headers, mut body, asked, content_type, .. } = answering;
        let content_type = content_type.unwrap_or(HeaderValue::from_static("application/octet-stream"));
        let is_text = content_type.as_bytes().starts_with(b"text/");
        self.outlet.add_head(headers);
        self.outlet.begin_as([(CONTENT_TYPE, content_type)].into_iter().collect());
        self.record.run.first_byte.get_or_insert(self.record.began().elapsed());
        let end = self.pass_bytes(&provider, &mut body, is_text).await;
        hearing::settled(self.gateway, self.record, asked, end).await?;
        hearing::charged(self.gateway, self.record).await;
        hearing::note(self.record, None);
        self.record.settled().await?;
        self.record.close(Status::Completed, 200);
        Ok(Ended::Streamed)
    }

    async fn pass_bytes(&mut self, provider: &Provider, body: &mut AnswerBody, is_text: bool) -> Result<(), Failed> {
        let mut passed = 0;
        while let Some(bytes) = body.chunk(provider.idle_timeout).await.map_err(net_failure)? {
            passed += bytes.len() as u64;
            if let Some(tally) = hearing::tally(self.record) {
                match is_text {
                    true => tally.say(&String::from_utf8_lossy(&bytes)),
                    false => tally.make(made::spoken(passed)),
                }
            }
            self.outlet.write(|out| out.extend_from_slice(&bytes));
            if self.outlet.waiting() > MOST_WAITING {
                sent(&self.outlet).await;
            }
        }
        Ok(())
    }
}

/// Puts a chunk of a completion into the stream.
fn put(outlet: &Outlet, model: &str, cargo: &Cargo) -> impl FnMut(&Said, (), &[Change]) {
    move |said, (), changes| {
        let chunk = said.render(model, cargo.wants_usage(), true, changes);
        outlet.write(|out| sse::write(out, |out| out.extend_from_slice(&chunk)));
    }
}
