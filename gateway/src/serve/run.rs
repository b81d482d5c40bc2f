//! A run under way: what it knows, and the steps that the loop in `chat` takes with it. What comes next is never decided here but by the
//! [`Talk`]; this asks the gate, sends, hears, and keeps the record.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{json, value::RawValue};
use tokio::time::Instant;
use toolgate_config::model::Model;
use toolgate_config::provider::Provider;
use toolgate_policies::facts::{Caller, Requested, RunFacts};
use toolgate_policies::gate;
use toolgate_policies::zone::Mark;
use toolgate_tools::toolbox::Call;

use super::hearing::{self, Hearing};
use super::last_words::completion;
use super::record::Recording;
use super::screen::{RunUsage, Screen};
use super::tools;
use crate::failure::Failure;
use crate::gateway::{Gateway, InForce};
use crate::intake::Wishes;
use crate::reply::{Ended, Outlet, Whole};
use crate::talk::{Ending, Kind, Leftover, Limits, SaidNothing, Talk, Turn};
use crate::targets::{Target, Targets};
use crate::telemetry::metrics::model_label;
use crate::trace::{Status, verdict_json};
use crate::upstream::{Answering, Ask};
use crate::wire::request::ToolChoice;
use crate::wire::{Reply, Request, Round, Splice, Usage, object};

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
    /// The JSON list of the offered tools; empty: none.
    offer: Bytes,
    system: Option<Bytes>,
    talk: Talk,
    /// The messages of earlier rounds as they are appended to the transcript, each with its comma.
    added: Vec<Bytes>,
    screen: Screen,
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
        wishes: &Wishes,
        outlet: &Outlet,
        record: &'r mut Recording,
    ) -> Result<Self, Failure> {
        let InForce { config, prepared } = in_force;
        let targets = Targets::of(config, &model);
        let requested = if leaves_no_room(&request, record) { Requested::nothing() } else { wishes.requested.clone() };
        let facts = RunFacts {
            caller,
            model: model.name.clone(),
            providers: targets.iter().map(|target| target.provider.name.clone()).collect(),
            requested,
            mark: Mark::CLEAN,
        };
        record.run.gate = gate::offer(config, &facts).collect();
        let offer = prepared.offer(&record.run.gate);
        if offer.is_empty() && !request.own_tools && request.tool_choice == ToolChoice::Required {
            let why = "asks for a tool, but this request has none: send `tools`, or use a model and a key that grant some";
            return Err(Failure::InvalidRequest("tool_choice", why.to_owned()));
        }
        let max_rounds = wishes.max_rounds.map_or(model.caps.max_rounds, |wish| wish.min(model.caps.max_rounds));
        let limits = Limits { max_rounds, max_calls: model.caps.max_calls, max_time: model.caps.max_time };
        Ok(Self {
            talk: Talk::new(limits, !offer.is_empty()),
            screen: Screen::new(outlet.clone(), object::quoted(&request.model)),
            system: prepared.system(model_label(config, model.name.as_str())).cloned(),
            request_timeout: config.server.request_timeout,
            added: Vec::new(),
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
        for message in &self.talk.added()[self.added.len()..] {
            self.added.push(Bytes::from(format!(",{message}")));
        }
        self.record.run.asked += 1;
        let config = self.gateway.config();
        let ask = Ask {
            net: &self.gateway.net,
            config: &config,
            run: &self.facts,
            headers: self.headers,
            stream: self.request.stream,
            begin_by: self.begin_by(round),
        };
        let compose =
            |target: &Target| self.request.compose(&splice(target, &self.model, &self.system, &self.offer), round, &self.added);
        let answering = match ask.send(&mut self.targets, compose, &mut self.record.run.rounds).await {
            Ok(answering) => answering,
            Err(failure) => return self.out_of_time(failure),
        };
        if answering.is_stream { self.listen(answering, round).await } else { self.read(answering, round).await }
    }

    /// Runs the calls that the model asked for, and tells the talk what came of them.
    pub(super) async fn run_tools(&mut self, calls: Vec<Call>) {
        let (parallel, not_after) = (self.model.caps.parallel, self.ends_at());
        let learned = tools::run(self.gateway, &mut self.facts, calls, parallel, not_after, self.record).await;
        if let Some(entries) = self.record.calls() {
            entries.extend(tools::barred(&self.talk));
        }
        self.talk.learn(learned);
    }

    /// The run is over: the answer, or the rest of it.
    pub(super) fn end(self, ending: Ending) -> Result<Ended, Failure> {
        let status = ending.truncated.map_or(Status::Completed, Status::Truncated);
        let (mut screen, record) = (self.screen, self.record);
        match self.last {
            Last::Nothing => Err(Failure::Internal("the end of a run")),
            Last::Whole(reply, headers) => {
                let whole = completion(&reply, ending, &self.talk, &object::quoted(&self.request.model)).with_headers(headers);
                record.close(status, 200);
                Ok(Ended::Whole(whole))
            }
            Last::Streamed(left) => {
                let usage = RunUsage { sum: self.talk.usage(), rounds: self.talk.asked() };
                screen.end(ending, &left, self.request.include_usage.then_some(usage));
                record.close(status, 200);
                Ok(Ended::Streamed)
            }
        }
    }

    /// In place of a run: what would be sent, and what the gate says.
    pub(super) fn dry_run(self) -> Result<Ended, Failure> {
        let target = self.targets.current();
        let body = self.request.compose(&splice(target, &self.model, &self.system, &self.offer), Round::First, &[]).concat();
        let estimate = Usage::estimate(body.len(), 0);
        let upstream: Box<RawValue> = serde_json::from_slice(&body).map_err(|_| Failure::Internal("a dry run"))?;
        let answer = json!({
            "object": "toolgate.dry_run",
            "model": self.request.model,
            "provider": target.provider.name.as_str(),
            "upstream_request": null,
            "gate": self.record.run.gate.iter().map(verdict_json).collect::<Vec<_>>(),
            "estimate": { "input_tokens": estimate.prompt, "max_cost_usd": null },
        });
        // Spliced in as text: a value in between would round the caller's numbers.
        let edits = [object::Edit::Set("upstream_request", upstream.get())];
        let answer = object::edited(answer.to_string().as_bytes(), &edits).map_err(|_| Failure::Internal("a dry run"))?;
        self.record.close(Status::Completed, 200);
        Ok(Ended::Whole(Whole::json(answer)))
    }

    /// A round that the run's time cut off is dropped, and the closing call follows; any other failure is one.
    fn out_of_time(&mut self, failure: Failure) -> Result<(), Failure> {
        let by_time = matches!(failure, Failure::UpstreamTimeout(_)) && self.record.began().elapsed() >= self.model.caps.max_time;
        if by_time && self.talk.ran_out_of_time() { Ok(()) } else { Err(failure) }
    }

    async fn read(&mut self, answering: Answering, round: Round) -> Result<(), Failure> {
        let Answering { asked, headers, provider, body, .. } = answering;
        let read = hearing::read(&provider, body, self.begin_by(round)).await;
        let reply = match hearing::settled(self.record, asked, read) {
            Ok(reply) => reply,
            Err(failure) => return self.out_of_time(failure),
        };
        if self.request.stream {
            return self.show_whole(&reply, round, &provider);
        }
        let (reply, answer) = hearing::answer_of(reply, self.prompt_bytes(), self.talk.asked());
        hearing::note(self.record, &answer, reply.finish());
        self.record.run.first_byte = Some(self.record.began().elapsed());
        self.last = Last::Whole(Box::new(reply), headers);
        self.talk.heard(answer).map_err(said_nothing)
    }

    /// A provider that answers a request for a stream with one document: the caller gets its stream all the same.
    fn show_whole(&mut self, reply: &Reply, round: Round, provider: &Provider) -> Result<(), Failure> {
        let mut hearing = self.hearing(round);
        for event in reply.as_events() {
            hearing.hear(event, provider, &mut self.screen, self.record)?;
        }
        self.heard(hearing)
    }

    async fn listen(&mut self, answering: Answering, round: Round) -> Result<(), Failure> {
        let mut hearing = self.hearing(round);
        let asked = answering.asked;
        let heard = hearing.listen(answering, &mut self.screen, self.record).await;
        hearing::settled(self.record, asked, heard)?;
        self.heard(hearing)
    }

    fn heard(&mut self, hearing: Hearing) -> Result<(), Failure> {
        let (answer, left) = hearing.end(self.record, self.talk.asked())?;
        let finish = left.finish.as_ref().and_then(|chunk| chunk.finish().map(str::to_owned));
        hearing::note(self.record, &answer, finish.as_deref());
        self.last = Last::Streamed(Box::new(left));
        self.talk.heard(answer).map_err(said_nothing)
    }

    fn hearing(&self, round: Round) -> Hearing {
        let kind = match round {
            _ if self.offer.is_empty() => Kind::Open,
            Round::Closing => Kind::Closing,
            Round::First | Round::Later => Kind::MayTurn(self.model.stream_hold),
        };
        Hearing::new(kind, self.prompt_bytes(), self.gateway.config())
    }

    /// When the run's own time is over.
    fn ends_at(&self) -> Instant {
        self.record.began() + self.model.caps.max_time
    }

    /// When the answer to a model call must have begun.
    fn begin_by(&self, round: Round) -> Instant {
        match round {
            _ if self.offer.is_empty() => self.record.began() + self.request_timeout,
            Round::Closing => self.ends_at() + CLOSING_TIME,
            Round::First | Round::Later => self.ends_at(),
        }
    }

    fn prompt_bytes(&self) -> usize {
        self.request.transcript_bytes() + self.added.iter().map(Bytes::len).sum::<usize>() + self.offer.len()
    }
}

/// Whether a request is of a kind that no gateway tool can be added to; the record says why.
fn leaves_no_room(request: &Request, record: &mut Recording) -> bool {
    let reasons = [
        (request.own_tools, "the request brings its own tools: it is served with those alone"),
        (request.several, "the request asks for several answers at once: no tools are offered"),
        (request.legacy_functions, "the request uses the functions of old: no tools are offered"),
    ];
    record.run.notes.extend(reasons.iter().filter(|(applies, _)| *applies).map(|(_, note)| note));
    reasons.iter().any(|(applies, _)| *applies)
}

fn splice<'s>(target: &'s Target, model: &'s Model, system: &'s Option<Bytes>, offer: &Bytes) -> Splice<'s> {
    Splice { upstream_model: &target.upstream_model, system: system.as_deref(), params: &model.params, tools: offer.clone() }
}

fn said_nothing(_: SaidNothing) -> Failure {
    Failure::Upstream("the model said that it asks for tools, asked for none, and said nothing".to_owned())
}
