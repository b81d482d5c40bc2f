//! A run under way: what it knows, and the steps that the loop in `chat` takes with it. What comes next is never decided here but by the
//! [`Talk`]; this asks the gate, sends, hears, and keeps the record.

mod window;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_config::model::{Caps, Model};
use toolgate_config::provider::Provider;
use toolgate_policies::facts::{Caller, Requested, RunFacts};
use toolgate_policies::gate::{self, Judged};
use toolgate_policies::redact::Redactor;
use toolgate_tools::toolbox::Call;

use super::dry_run;
use super::hearing::{self, Hearing};
use super::last_words::{Told, completion};
use super::pause::{self, TakenUp};
use super::record::Recording;
use super::screen::{RunUsage, Screen};
use super::tools;
use crate::failure::Failure;
use crate::fit::{Fitted, Fitting};
use crate::gateway::{Gateway, InForce};
use crate::intake::Wishes;
use crate::money::{Order, Payer, Refused, Tab};
use crate::prepared::Prepared;
use crate::provider::{self, Encoded, Endpoint, Unsupported};
use crate::reply::{Ended, Outlet};
use crate::talk::{Ending, Kind, Leftover, Limits, Own, SaidNothing, Talk, Turn, Words};
use crate::targets::{Target, Targets};
use crate::telemetry::metrics::model_label;
use crate::trace::Status;
use crate::upstream::{Answering, Ask, Books, NoAnswer};
use crate::veil;
use crate::wire::request::{OutputLimit, ToolChoice};
use crate::wire::{Reply, Request, Round, Splice, object};

/// What the closing call of a run has left when the run's own time is over.
const CLOSING_TIME: Duration = Duration::from_secs(30);

/// A run under way.
pub(super) struct Run<'r> {
    gateway: &'r Gateway,
    headers: &'r HeaderMap,
    record: &'r mut Recording,
    request: Request,
    model: Arc<Model>,
    facts: RunFacts,
    targets: Targets,
    /// The JSON list of the offered tools; empty: none, or none any more.
    offer: Bytes,
    /// Whether any were offered when it began.
    offers: bool,
    system: Option<Bytes>,
    talk: Talk,
    /// The transcript of the next call, as the inside of its list: what the caller sent, then what earlier rounds added.
    messages: Vec<Bytes>,
    /// How many messages of earlier rounds are in it.
    added: usize,
    fitting: Fitting,
    outlet: Outlet,
    screen: Screen,
    /// What takes secrets out of what the caller sees.
    answers: Arc<Redactor>,
    last: Last,
    /// The time limit of a run without tools.
    request_timeout: Duration,
}

/// What the model said last.
enum Last {
    Nothing,
    Whole(Box<Reply>, HeaderMap),
    Streamed(Box<Leftover>),
}

impl<'r> Run<'r> {
    #[allow(clippy::too_many_arguments, reason = "this is where all that a run begins with comes together, once")]
    pub(super) fn open(
        gateway: &'r Gateway,
        in_force: &InForce,
        model: Arc<Model>,
        caller: Caller,
        headers: &'r HeaderMap,
        request: Request,
        taken_up: TakenUp,
        wishes: &Wishes,
        outlet: &Outlet,
        record: &'r mut Recording,
    ) -> Result<Self, Failure> {
        let InForce { config, prepared, answers, .. } = in_force;
        let targets = Targets::of(config, &model);
        let requested = if leaves_no_room(&request, record) { Requested::nothing() } else { wishes.requested.clone() };
        let facts = RunFacts {
            caller,
            model: model.name.clone(),
            providers: targets.iter().map(|target| target.provider.name.clone()).collect(),
            requested,
            mark: taken_up.mark,
        };
        record.run.gate = gate::offer(config, &facts).collect();
        let offer = prepared.offer(&record.run.gate);
        let own = own_tools(&request, &record.run.gate)?;
        if offer.is_empty() && !request.own_tools && request.tool_choice == ToolChoice::Required {
            let why = "asks for a tool, but this request has none: send `tools`, or use a model and a key that grant some";
            return Err(Failure::InvalidRequest("tool_choice", why.to_owned()));
        }
        let max_rounds = wishes.max_rounds.map_or(model.caps.max_rounds, |wish| wish.min(model.caps.max_rounds));
        let Caps { max_calls, max_time, max_cost, .. } = model.caps;
        let limits = Limits { max_rounds, max_calls, max_time, max_cost: max_cost.map(|most| most.0) };
        let offers = !offer.is_empty();
        let talk = match taken_up.paused {
            Some(paused) => {
                record.run.notes.push(format!("goes on from the trace {}", paused.trace).into());
                paused.talk.resumed(limits, offers, own)
            }
            None => Talk::new(limits, offers, own),
        };
        let label: Arc<str> = model_label(config, model.name.as_str()).into();
        record.tab = Some(Tab::open(Payer { trace: record.run.id, caller: facts.caller.clone(), model: label }));
        let offer = still_offered(offer, &talk);
        Ok(Self {
            talk,
            offers,
            outlet: outlet.clone(),
            screen: Screen::new(outlet.clone(), object::quoted(&request.model), answers),
            answers: Arc::clone(answers),
            system: prepared.system(model_label(config, model.name.as_str())).cloned(),
            request_timeout: config.server.request_timeout,
            messages: taken_up.messages,
            added: 0,
            fitting: Fitting::default(),
            last: Last::Nothing,
            gateway,
            headers,
            record,
            request,
            model,
            facts,
            targets,
            offer,
        })
    }

    /// What to do next.
    pub(super) fn turn(&mut self) -> Turn {
        self.talk.turn(self.record.began().elapsed())
    }

    /// Asks the model, hears it out, and tells the talk what it said.
    pub(super) async fn ask(&mut self, round: Round) -> Result<(), Failure> {
        let asked = self.ask_model(round).await;
        if asked.is_err() {
            self.screen.break_off();
        }
        asked
    }

    async fn ask_model(&mut self, round: Round) -> Result<(), Failure> {
        for message in &self.talk.added()[self.added..] {
            self.messages.push(Bytes::from(format!(",{message}")));
        }
        self.added = self.talk.added().len();
        let fitted = self.fit(round).await;
        if self.ran_out_of_context(&fitted) {
            return Ok(());
        }
        self.record.run.asked += 1;
        let attempts = self.record.run.rounds.len();
        let in_force = self.gateway.in_force();
        let mut sent = self.send(&in_force, round, &fitted).await;
        if self.may_be_shortened(&sent)
            && let Some(shorter) = self.shorter(round).await
        {
            sent = self.send(&in_force, round, &shorter).await;
        }
        let answering = match sent {
            Ok(answering) => answering,
            Err(no_answer) => {
                // What a limit refused, or a provider cannot do, was not asked.
                self.record.run.asked -= u32::from(self.record.run.rounds.len() == attempts);
                return match no_answer {
                    NoAnswer::Failed(failure) => self.out_of_time(failure),
                    NoAnswer::Refused(refused) => self.refused(refused),
                };
            }
        };
        if answering.is_stream { self.listen(answering, round).await } else { self.read(answering, round).await }
    }

    async fn send(&mut self, in_force: &InForce, round: Round, fitted: &Fitted) -> Result<Answering, NoAnswer> {
        let (begin_by, output_limit) = (self.begin_by(round), self.request.output_limit(&self.model.params));
        let Self { request, model, system, offer, messages, outlet, fitting, .. } = self;
        let ask = Ask {
            net: &self.gateway.net,
            breakers: &self.gateway.breakers,
            tokens: &self.gateway.tokens,
            in_force,
            money: &self.gateway.money,
            outlet,
            run: &self.facts,
            headers: self.headers,
            endpoint: Endpoint::Chat,
            upload: None,
            stream: request.stream,
            begin_by,
            output_limit,
            answers: request.answers,
        };
        let frame = |target: &Target| {
            let params = provider::params(target, &model.params);
            window::frame(request, splice(target, &params, system, offer, None), round)
        };
        let call = window::call(&self.gateway.tokens, request, model, messages, window::Around { system, offer, frame: &frame });
        let first = Arc::clone(self.targets.current());
        let compose = |target: &Target, lowered| {
            let params = provider::params(target, &model.params);
            let splice = splice(target, &params, system, offer, lowered);
            if std::ptr::eq(target, &*first) {
                return request.compose(&splice, round, &fitted.messages_for(target, messages));
            }
            request.compose(&splice, round, &fitting.fit_at_once(target, &call).messages_for(target, messages))
        };
        let Recording { run, tab, .. } = &mut *self.record;
        let Some(tab) = tab else { return Err(Failure::Internal("a run without a tab").into()) };
        let attempts = run.rounds.len();
        let books = Books { rounds: &mut run.rounds, notes: &mut run.notes, tab, number: run.asked };
        let sent = ask.send(&mut self.targets, compose, books).await;
        for entry in &mut run.rounds[attempts..] {
            let is_first = Arc::ptr_eq(&entry.target, &first);
            let other = (!is_first).then(|| fitting.fit_at_once(&entry.target, &call));
            entry.context = other.as_ref().unwrap_or(fitted).context().cloned().map(Box::new);
        }
        if sent.is_ok() {
            run.note_lowered();
        }
        sent
    }

    /// A limit is in the way of the next call: the end of a run that has something to show, a failure of one that has not begun.
    fn refused(&mut self, refused: Refused) -> Result<(), Failure> {
        self.record.refused(&refused);
        let by_budget = matches!(&refused, Refused::By(_));
        if by_budget && self.talk.ran_out_of_budget() { Ok(()) } else { Err(Failure::of_money(refused, &self.request.model)) }
    }

    /// Runs the calls that the model asked for, and tells the talk what came of them.
    pub(super) async fn run_tools(&mut self, calls: Vec<Call>) {
        let running = tools::Running {
            gateway: self.gateway,
            parallel: self.model.caps.parallel,
            not_after: self.ends_at(),
            cost_left: self.talk.cost_left(),
            targets: &self.targets,
        };
        let learned = tools::run(running, &mut self.facts, calls, self.record).await;
        if let Some(entries) = self.record.calls() {
            entries.extend(tools::barred(&self.talk));
        }
        let withdrawn = self.talk.withdrawn().count();
        self.talk.learn(learned);
        if self.talk.withdrawn().count() > withdrawn {
            let note =
                |name: &str| format!("`{name}` is offered no longer: its arguments were not valid three times in a row").into();
            self.record.run.notes.extend(self.talk.withdrawn().skip(withdrawn).map(note));
            self.offer = still_offered(std::mem::take(&mut self.offer), &self.talk);
        }
    }

    /// The run is over: the answer, or the rest of it.
    pub(super) async fn end(mut self, ending: Ending) -> Result<Ended, Failure> {
        if let Err(failure) = self.settle(ending).await {
            self.screen.break_off();
            return Err(failure);
        }
        let status = ending.truncated.map_or(Status::Completed, Status::Truncated);
        let (mut screen, record) = (self.screen, self.record);
        let cost = record.run.cost();
        match self.last {
            Last::Nothing => Err(Failure::Internal("the end of a run")),
            Last::Whole(reply, headers) => {
                let reply = veil::whole(*reply, &self.answers, &mut record.run.redactions);
                let whole = completion(&reply, ending, &Told { talk: &self.talk, cost }, &object::quoted(&self.request.model));
                let whole = whole.with_headers(headers);
                record.close(status, 200);
                Ok(Ended::Whole(whole))
            }
            Last::Streamed(left) => {
                let usage = RunUsage { sum: self.talk.usage(), rounds: self.talk.asked() };
                screen.end(ending, &self.talk, &left, self.request.include_usage.then_some(usage));
                record.run.redactions.merge(&screen.take_counts());
                record.close(status, 200);
                Ok(Ended::Streamed)
            }
        }
    }

    /// What must be written down before the answer's last byte.
    async fn settle(&mut self, ending: Ending) -> Result<(), Failure> {
        if ending.words == Words::OwnCalls {
            self.put_aside().await?;
        }
        self.record.settled().await
    }

    /// Calls go back to the caller: what it does not see of the run waits until it comes back with their results.
    async fn put_aside(&mut self) -> Result<(), Failure> {
        self.talk.put_aside(self.record.began().elapsed());
        let trace = self.record.run.id.to_string();
        pause::put_aside(self.gateway, &self.facts.caller, &self.request, &mut self.talk, self.facts.mark, &trace).await
    }

    /// In place of a run: what would be sent, and what the gate says.
    pub(super) async fn dry_run(mut self) -> Result<Ended, Failure> {
        let mut unfit = None;
        let (body, encoded) = loop {
            let fitted = self.fit(Round::First).await;
            match self.encoded(&fitted) {
                Ok(encoded) => break encoded,
                // A fallback that can take it would be asked in its place.
                Err(unsupported) => drop(unfit.get_or_insert(unsupported)),
            }
            if !self.targets.advance() {
                return Err(unfit.map_or(Failure::Internal("a dry run"), Failure::from));
            }
        };
        let target = self.targets.current();
        let order = Order {
            tokens: &self.gateway.tokens,
            in_force: &self.gateway.in_force(),
            target,
            sent: &body.clone().into(),
            prompt: None,
            output_limit: self.request.output_limit(&self.model.params),
            answers: self.request.answers,
        };
        dry_run::answer(self.record, &self.request.model, &order, &encoded.body.pieces().concat()).await
    }

    /// The first request to the target that is asked next: the canonical one, and what it is sent.
    fn encoded(&self, fitted: &Fitted) -> Result<(Bytes, Encoded), Unsupported> {
        let target = self.targets.current();
        let params = provider::params(target, &self.model.params);
        let splice = splice(target, &params, &self.system, &self.offer, None);
        let body =
            Bytes::from(self.request.compose(&splice, Round::First, &fitted.messages_for(target, &self.messages)).concat());
        let encoded = provider::encode(target, Endpoint::Chat, &body.clone().into(), self.request.stream)?;
        Ok((body, encoded))
    }

    /// A round that the run's time cut off is dropped, and the closing call follows; any other failure is one.
    fn out_of_time(&mut self, failure: Failure) -> Result<(), Failure> {
        let by_time = matches!(failure, Failure::UpstreamTimeout(_)) && self.record.began().elapsed() >= self.talk.time_left();
        if by_time && self.talk.ran_out_of_time() { Ok(()) } else { Err(failure) }
    }

    async fn read(&mut self, answering: Answering, round: Round) -> Result<(), Failure> {
        let Answering { asked, headers, provider, body, stamp, .. } = answering;
        let read = hearing::read(&provider, body, stamp, self.begin_by(round)).await;
        let reply = match hearing::settled(self.gateway, self.record, asked, read).await {
            Ok(reply) => reply,
            Err(failure) => return self.out_of_time(failure),
        };
        if self.request.stream {
            return self.show_whole(&reply, round, &provider).await;
        }
        let (reply, mut answer) = hearing::answer_of(reply, self.gateway, self.record, self.talk.asked()).await;
        answer.cost = hearing::note(self.record, reply.finish());
        self.record.run.first_byte = Some(self.record.began().elapsed());
        self.last = Last::Whole(Box::new(reply), headers);
        self.talk.heard(answer).map_err(said_nothing)
    }

    /// A provider that answers a request for a stream with one document: the caller gets its stream all the same.
    async fn show_whole(&mut self, reply: &Reply, round: Round, provider: &Provider) -> Result<(), Failure> {
        let mut hearing = self.hearing(round);
        for event in reply.as_events() {
            hearing.hear(event, provider, &mut self.screen, self.record)?;
        }
        self.heard(hearing).await
    }

    async fn listen(&mut self, answering: Answering, round: Round) -> Result<(), Failure> {
        let mut hearing = self.hearing(round);
        let asked = answering.asked;
        let heard = hearing.listen(answering, &mut self.screen, self.record).await;
        match hearing::settled(self.gateway, self.record, asked, heard).await {
            Ok(()) => self.heard(hearing).await,
            Err(failure) if hearing.has_begun() => Err(failure),
            Err(failure) => self.out_of_time(failure),
        }
    }

    async fn heard(&mut self, hearing: Hearing) -> Result<(), Failure> {
        let (mut answer, left) = hearing.end(self.gateway, self.record, self.talk.asked()).await?;
        let finish = left.finish.as_ref().and_then(|chunk| chunk.finish().map(str::to_owned));
        answer.cost = hearing::note(self.record, finish.as_deref());
        self.last = Last::Streamed(Box::new(left));
        self.talk.heard(answer).map_err(said_nothing)
    }

    fn hearing(&self, round: Round) -> Hearing {
        let kind = match round {
            Round::Closing => Kind::Closing,
            Round::First | Round::Later if !self.offers => Kind::Open,
            Round::First | Round::Later if self.request.own_tools => Kind::Mixed(self.model.stream_hold),
            Round::First | Round::Later => Kind::MayTurn(self.model.stream_hold),
        };
        Hearing::new(kind, self.gateway.config(), self.request.own_names())
    }

    /// When the run's own time is over.
    fn ends_at(&self) -> Instant {
        self.record.began() + self.talk.time_left()
    }

    /// When the answer to a model call must have begun.
    fn begin_by(&self, round: Round) -> Instant {
        match round {
            Round::Closing => self.ends_at() + CLOSING_TIME,
            Round::First | Round::Later if !self.offers => self.record.began() + self.request_timeout,
            Round::First | Round::Later => self.ends_at(),
        }
    }
}

/// Whether a request is of a kind that no gateway tool can be added to; the record says why.
fn leaves_no_room(request: &Request, record: &mut Recording) -> bool {
    let reasons = [
        (request.brings_custom_tools(), "the request brings custom tools: it is served with its own tools alone"),
        (request.answers > 1, "the request asks for several answers at once: no tools are offered"),
        (request.legacy_functions, "the request uses the functions of old: no tools are offered"),
    ];
    record.run.notes.extend(reasons.iter().filter(|(applies, _)| *applies).map(|(_, note)| (*note).into()));
    reasons.iter().any(|(applies, _)| *applies)
}

/// What is still offered of what was: a run has some tools no longer.
fn still_offered(offer: Bytes, talk: &Talk) -> Bytes {
    if talk.withdrawn().next().is_none() {
        return offer;
    }
    Prepared::without(&offer, |name| talk.withdrawn().any(|gone| gone == name))
}

/// The names of the caller's own tools; none of them may be that of a tool which is offered.
fn own_tools(request: &Request, judged: &[Judged]) -> Result<Own, Failure> {
    let own = request.own_names();
    let mut offered = judged.iter().filter(|(_, verdict)| verdict.allows()).map(|(tool, _)| tool.name.as_str());
    offered.find(|name| own.contains(*name)).map_or(Ok(own), |name| Err(Failure::ToolNameConflict(name.to_owned())))
}

fn splice<'s>(
    target: &'s Target,
    params: &'s Map<String, Value>,
    system: &'s Option<Bytes>,
    offer: &Bytes,
    lowered: Option<u64>,
) -> Splice<'s> {
    let member = provider::output_limit(&target.provider);
    Splice {
        upstream_model: &target.upstream_model,
        system: system.as_deref(),
        params,
        tools: offer.clone(),
        output_limit: lowered.map(|tokens| OutputLimit { member, tokens }),
        closes_with_tools: provider::closes_with_tools(&target.provider),
    }
}

fn said_nothing(_: SaidNothing) -> Failure {
    Failure::Upstream("the model said that it asks for tools, asked for none, and said nothing".to_owned())
}
