//! The one record of a request, and the one place where it is written: to the metrics, the log and the traces.

use std::sync::Arc;

use tokio::time::Instant;
use toolgate_policies::gate::Reason;
use tracing::info;

use crate::failure::Failure;
use crate::gateway::{Departed, Gateway, InFlight};
use crate::money::{Closed, Refused, Tab};
use crate::telemetry::metrics::{Metrics, Spender, Tokens, model_label};
use crate::trace::{self, Refusal, Run, Status, ToolCall, TraceId};
use crate::wire::Usage;

/// A record that is being written. Whoever ends the request closes it; dropped open, its caller has gone, and it goes to whoever settles
/// those.
pub(super) struct Recording {
    gateway: Arc<Gateway>,
    began: Instant,
    closed: bool,
    /// What is known so far.
    pub(super) run: Run,
    /// What it holds and has spent, once it is known who pays.
    pub(super) tab: Option<Tab>,
    /// Its place among the requests in flight, which it keeps until it is settled.
    pub(super) place: Option<InFlight>,
    /// It has waited for its rows in vain, and does not wait again.
    has_waited: bool,
}

impl Recording {
    pub(super) fn begin(gateway: &Arc<Gateway>, id: TraceId) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            began: Instant::now(),
            closed: false,
            run: Run::begin(id),
            tab: None,
            place: None,
            has_waited: false,
        }
    }

    /// When the request began.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// The tool calls of the round under way.
    pub(super) fn calls(&mut self) -> Option<&mut Vec<ToolCall>> {
        self.run.rounds.last_mut().map(|round| &mut round.tool_calls)
    }

    /// Waits until all that was spent is on the disk, and gives back what the run held. The last byte of an answer leaves after this.
    ///
    /// # Errors
    /// [`Failure::Closed`]: nobody gets an answer whose cost is not written down.
    pub(super) async fn settled(&mut self) -> Result<(), Failure> {
        let Some(tab) = self.tab.as_mut().filter(|_| !self.has_waited) else { return Ok(()) };
        let settled = tab.settled(&self.gateway.money, &self.gateway.in_force()).await;
        self.has_waited = settled.is_err();
        settled.map_err(|Closed(why)| Failure::Closed(why))
    }

    /// An answer has ended, as its entry says: what it used goes onto the tab, and whoever asks next knows how that went.
    pub(super) fn enter(&mut self) {
        if let Some(round) = self.run.rounds.last() {
            self.gateway.breakers.ended(&round.target, round.outcome);
        }
        if let (Some(tab), Some(round)) = (&mut self.tab, self.run.rounds.last_mut()) {
            tab.enter(&self.gateway.money, &self.gateway.in_force(), self.run.asked, round);
        }
    }

    /// The run has failed: what was under way goes onto the tab as far as it came, and what was set aside is given back.
    pub(super) fn abandon(&mut self) {
        if let Some(tab) = &mut self.tab {
            tab.abandon(&self.gateway.money, &self.gateway.in_force(), &mut self.run);
        }
    }

    /// A limit or a missing price refused something: the trace says which, and the metrics count it.
    pub(super) fn refused(&mut self, refused: &Refused) {
        match refused {
            Refused::By(denied) => {
                self.run.notes.push(format!("refused by {}", denied.limit.described()).into());
                self.run.denied.push(Arc::clone(&denied.limit));
            }
            Refused::Unpriced => {
                self.run.notes.push("refused: a budget in USD applies, and the model's price is not known".into())
            }
            Refused::Closed(Closed(why)) => self.run.notes.push(format!("refused: {why}").into()),
        }
    }

    /// A failure without secrets in what a provider said.
    pub(super) fn without_secrets(&mut self, failure: &Failure) -> Failure {
        let answers = Arc::clone(&self.gateway.in_force().answers);
        failure.hiding(|said| answers.text(said, &mut self.run.redactions).into_owned())
    }

    /// The request is over, and this is how.
    pub(super) fn close(&mut self, status: Status, http_status: u16) {
        self.closed = true;
        let run = self.take();
        settle(&self.gateway, Run { status, http_status, ..run });
    }

    fn take(&mut self) -> Run {
        let id = self.run.id;
        let run = std::mem::replace(&mut self.run, Run::begin(id));
        Run { took: self.began.elapsed(), ..run }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.closed {
            let run = self.take();
            let departed = Departed { run, tab: self.tab.take(), _place: self.place.take() };
            self.gateway.departed(departed);
        }
    }
}

/// Writes a record down.
pub(crate) fn settle(gateway: &Gateway, run: Run) {
    let in_force = gateway.in_force();
    let config = &in_force.config;
    let model = run.model.as_ref().map_or("unknown", |model| model_label(config, model.as_str()));
    let key = run.caller.as_ref().map_or("unknown", |caller| caller.label());
    count(&gateway.metrics, &run, model, key);
    log(&run, key);
    if run.is_kept {
        gateway.traces.keep(run, &config.store, &in_force.tool_results);
    }
}

fn count(metrics: &Metrics, run: &Run, model: &str, key: &str) {
    metrics.request(model, key, run.http_status, run.took);
    if let Some(after) = run.first_byte {
        metrics.first_byte(model, after);
    }
    if let Status::Truncated(reason) = run.status {
        metrics.truncated(reason.as_str());
    }
    count_withheld(metrics, run);
    metrics.redactions(&run.redactions);
    run.denied.iter().for_each(|limit| metrics.denied_by(limit));
    if run.asked > 0 {
        metrics.rounds(model, run.asked);
    }
    for round in &run.rounds {
        let (provider, label) = (round.target.provider.name.as_str(), round.target.label.as_str());
        metrics.upstream(provider, label, round.outcome.as_str(), round.took);
        if let Some(usage) = &round.usage {
            metrics.tokens(provider, label, key, tokens(usage));
        }
        metrics.spend(Spender { provider, model: label, key }, round.cost);
        for call in &round.tool_calls {
            count_call(metrics, call);
            if let Some(cost) = call.cost {
                metrics.spend(Spender { provider: "", model, key }, Some(cost));
            }
        }
    }
}

fn count_withheld(metrics: &Metrics, run: &Run) {
    for (_, verdict) in run.gate.iter().filter(|(_, verdict)| !verdict.allows()) {
        metrics.withheld(verdict.reason().map_or("", Reason::as_str), 1);
    }
}

fn count_call(metrics: &Metrics, call: &ToolCall) {
    let group = call.group.as_deref();
    if let Some(outcome) = call.outcome {
        // A model can make up any name; only those of real tools are labels.
        let tool = group.map_or("unknown", |_| call.tool.as_str());
        metrics.tool_call(tool, group.unwrap_or("unknown"), outcome, call.took);
    }
    metrics.redactions(&call.redactions);
    if let Some(Refusal::Gate(reason)) = call.reason {
        metrics.denied(reason.as_str());
    }
    if let (Some(group), Some(refusal)) = (group, call.egress) {
        metrics.egress_denied(group, refusal.as_str());
    }
}

fn tokens(usage: &Usage) -> Tokens {
    let billed = usage.billed();
    // What was written into the provider's cache was fresh.
    let fresh = billed.fresh.saturating_add(billed.cache_write);
    Tokens { fresh, cached: billed.cached, output: billed.output, reasoning: usage.reasoning() }
}

fn log(run: &Run, key: &str) {
    let (status, reason) = run.status.words();
    let calls: usize = run.rounds.iter().map(|round| round.tool_calls.len()).sum();
    info!(
        trace = %run.id,
        key,
        model = run.model.as_ref().map_or("", |model| model.as_str()),
        status,
        reason = reason.unwrap_or_default(),
        http_status = run.http_status,
        rounds = run.asked,
        tool_calls = calls,
        ms = trace::ms(run.took),
        "request"
    );
}
