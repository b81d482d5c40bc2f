//! A passage under way: what it knows, and the steps that the road in `pass` takes with it: asking a provider, and passing on what it says.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use serde_json::json;
use tokio::time::{Instant, timeout_at};
use toolgate_config::model::Model;
use toolgate_policies::facts::{Caller, Requested, RunFacts};
use toolgate_policies::redact::Redactor;
use toolgate_policies::zone::Mark;
use toolgate_tools::net::{NetError, Segments};

use super::dry_run;
use super::hearing::{self, Failed, LONGEST_REPLY};
use super::last_words;
use super::pass::Cargo;
use super::passing::Passing;
use super::record::Recording;
use crate::failure::Failure;
use crate::gateway::{Gateway, InForce};
use crate::money::{Order, Payer, Tab};
use crate::provider::{self, Endpoint};
use crate::reply::{Ended, Outlet, Whole};
use crate::targets::{Target, Targets};
use crate::telemetry::metrics::model_label;
use crate::tokens::made;
use crate::trace::{Outcome, Status};
use crate::upstream::{Answering, Ask, Books, NoAnswer, WHOLE, net_failure};
use crate::veil::{self, Veil};
use crate::wire::object;
use crate::wire::pass::{Made, Path, Said};
use crate::wire::reply::NoReply;

/// A passage under way.
pub(super) struct Passage<'r> {
    gateway: &'r Gateway,
    headers: &'r HeaderMap,
    record: &'r mut Recording,
    path: Path,
    cargo: &'r Cargo,
    facts: RunFacts,
    targets: Targets,
    outlet: Outlet,
    /// What takes secrets out of completions.
    answers: Arc<Redactor>,
    /// The answer must have begun by then, and one that is not streamed be over.
    by: Instant,
}

/// In what form an answer goes on.
enum Form {
    /// As a document, which is read whole.
    Document,
    /// As a stream of events.
    Events,
    /// As whatever it is, as it comes.
    Bytes,
}

impl<'r> Passage<'r> {
    #[allow(clippy::too_many_arguments, reason = "this is where all that a passage begins with comes together, once")]
    pub(super) fn open(
        gateway: &'r Gateway,
        in_force: &InForce,
        model: &Model,
        caller: Caller,
        (path, cargo): (Path, &'r Cargo),
        headers: &'r HeaderMap,
        outlet: &Outlet,
        record: &'r mut Recording,
    ) -> Self {
        let targets = Targets::of(&in_force.config, model);
        let facts = RunFacts {
            caller,
            model: model.name.clone(),
            providers: targets.iter().map(|target| target.provider.name.clone()).collect(),
            requested: Requested::nothing(),
            mark: Mark::CLEAN,
        };
        let label = model_label(&in_force.config, model.name.as_str()).into();
        record.tab = Some(Tab::open(Payer { trace: record.run.id, caller: facts.caller.clone(), model: label }));
        let by = record.began() + in_force.config.server.request_timeout;
        Self {
            gateway,
            headers,
            record,
            path,
            cargo,
            facts,
            targets,
            outlet: outlet.clone(),
            answers: Arc::clone(&in_force.answers),
            by,
        }
    }

    /// Asks the model's provider, and its fallbacks where it fails.
    pub(super) async fn ask(&mut self) -> Result<Answering, Failure> {
        self.record.run.asked = 1;
        let (in_force, demand) = (self.gateway.in_force(), self.cargo.demand());
        let ask = Ask {
            net: &self.gateway.net,
            breakers: &self.gateway.breakers,
            tokens: &self.gateway.tokens,
            in_force: &in_force,
            money: &self.gateway.money,
            outlet: &self.outlet,
            run: &self.facts,
            headers: self.headers,
            endpoint: Endpoint::PassThrough(self.path.as_str()),
            upload: self.cargo.upload(),
            stream: self.cargo.is_stream(),
            begin_by: self.by,
            output_limit: made::most(demand.made),
            answers: demand.answers,
        };
        let Recording { run, tab, .. } = &mut *self.record;
        let Some(tab) = tab else { return Err(Failure::Internal("a passage without a tab")) };
        let compose = |target: &Target, lowered| self.cargo.compose(&target.upstream_model, lowered);
        let books = Books { rounds: &mut run.rounds, notes: &mut run.notes, tab, number: 1 };
        let asking = ask.send(&mut self.targets, compose, books);
        // A form can take as long as its sender likes, but for this.
        match timeout_at(self.by, asking).await.unwrap_or(Err(Failure::UpstreamTimeout(WHOLE).into())) {
            Ok(answering) => {
                self.record.run.note_lowered();
                Ok(answering)
            }
            Err(NoAnswer::Failed(failure)) => Err(failure),
            Err(NoAnswer::Refused(refused)) => {
                self.record.refused(&refused);
                self.record.run.asked = u32::from(!self.record.run.rounds.is_empty());
                Err(Failure::of_money(refused, self.cargo.model()))
            }
        }
    }

    /// Passes on what the provider says.
    pub(super) async fn answer(self, answering: Answering) -> Result<Ended, Failure> {
        match self.form(answering.content_type.as_ref()) {
            Form::Document => self.document(answering).await,
            Form::Events => self.passing().events(answering).await,
            Form::Bytes => self.passing().bytes(answering).await,
        }
    }

    fn form(&self, content_type: Option<&HeaderValue>) -> Form {
        let kind = content_type.map_or(&b""[..], |value| value.as_bytes());
        let kind = kind.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        match kind.as_slice() {
            b"text/event-stream" if self.path.may_stream() => Form::Events,
            b"application/json" => Form::Document,
            // Nobody writes JSON for a stream of completions under another name.
            _ if self.cargo.is_stream() => Form::Events,
            // Speech has no other form; whatever else there is says what it is, or is JSON.
            b"" if self.path == Path::Speech => Form::Bytes,
            b"text/html" | b"" => Form::Document,
            _ if self.path.answers_freely() => Form::Bytes,
            _ => Form::Document,
        }
    }

    fn passing(self) -> Passing<'r> {
        Passing {
            gateway: self.gateway,
            record: self.record,
            cargo: self.cargo,
            outlet: self.outlet,
            model: object::quoted(self.cargo.model()),
            veil: Veil::new(&self.answers),
            has_let_go: false,
        }
    }

    async fn document(self, answering: Answering) -> Result<Ended, Failure> {
        let Answering { provider, headers, body, asked, .. } = answering;
        let whole = timeout_at(self.by, body.whole(LONGEST_REPLY, provider.idle_timeout)).await;
        let read = whole.unwrap_or(Err(NetError::IdleTimeout)).map_err(net_failure).and_then(|body| {
            Said::parse(body.clone()).map_err(|no_reply| match no_reply {
                NoReply::Garbage => not_json(),
                NoReply::Error => hearing::inside(&provider, &body),
            })
        });
        let said = hearing::settled(self.gateway, self.record, asked, read).await?;
        if self.cargo.is_stream() {
            return self.passing().whole_stream(said).await;
        }
        hear(self.record, self.cargo, &said, true);
        hearing::charged(self.gateway, self.record).await;
        hearing::note(self.record, said.finish());
        self.record.run.first_byte = Some(self.record.began().elapsed());
        self.record.settled().await?;
        let changes = veil::changes(&self.answers, said.body(), said.spoken(), &mut self.record.run.redactions);
        let body = said.render(&object::quoted(self.cargo.model()), true, false, &changes);
        let mut whole = Whole::json(body).with_headers(headers);
        last_words::tell_of_passage(&self.record.run, whole.response.headers_mut());
        self.record.close(Status::Completed, 200);
        Ok(Ended::Whole(whole))
    }

    /// In place of it all: what would be sent. Of a form that is its model, for the rest is not read.
    pub(super) async fn dry_run(self) -> Result<Ended, Failure> {
        let (target, demand) = (self.targets.current(), self.cargo.demand());
        // What its provider cannot do is told here too.
        provider::encode(target, Endpoint::PassThrough(self.path.as_str()), &Segments::none(), false)?;
        let body = match self.cargo {
            Cargo::Document(request) => request.compose(&target.upstream_model, None),
            Cargo::Form(_) => json!({ "model": target.upstream_model }).to_string().into(),
        };
        let order = Order {
            tokens: &self.gateway.tokens,
            in_force: &self.gateway.in_force(),
            target,
            sent: &body.clone().into(),
            prompt: self.cargo.upload().map(|upload| upload.most_tokens()),
            output_limit: made::most(demand.made),
            answers: demand.answers,
        };
        dry_run::answer(self.record, self.cargo.model(), &order, &body).await
    }
}

pub(super) fn not_json() -> Failed {
    (Failure::Upstream("the provider's answer is not the JSON that was asked for".to_owned()), Outcome::ServerError)
}

/// Takes note of what a document says that was used, or of what is to be counted in place of that.
pub(super) fn hear(record: &mut Recording, cargo: &Cargo, said: &Said, is_whole: bool) {
    let Some(tally) = hearing::tally(record) else { return };
    let usage = said.usage();
    if usage.is_none_or(|usage| usage.output() == 0) {
        if is_whole {
            tally.keep_all();
        }
        said.texts(&mut |text| tally.say(text));
        if let Made::Picture(quality) = cargo.demand().made {
            tally.make(said.items.saturating_mul(made::picture(quality)));
        }
    }
    if let Some(usage) = usage {
        tally.report(usage);
    }
}
