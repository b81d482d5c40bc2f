//! The tool calls of one round: cleared, run, judged, recorded; answered in the order of the calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::Instant;
use toolgate_config::Config;
use toolgate_config::class::TrustZone;
use toolgate_config::tool::Effect;
use toolgate_policies::counters::Hold;
use toolgate_policies::facts::RunFacts;
use toolgate_policies::gate::{self, Cleared, DeniedUse, Judgement, ToolUse};
use toolgate_policies::redact::Counts;
use toolgate_policies::zone;
use toolgate_tools::bound;
use toolgate_tools::media::Media;
use toolgate_tools::said::Said;
use toolgate_tools::toolbox::{Call, Outcome, Output, Redaction};

use super::record::Recording;
use crate::gateway::{Gateway, InForce};
use crate::provider;
use crate::talk::{Bar, Learned, Talk, Truncation};
use crate::targets::Targets;
use crate::trace::{Refusal, ToolCall};

/// How much of an id or a name that a model made up is kept, in bytes.
const LONGEST_NAME: usize = 256;

/// A call that the gate let through, or did not.
type Asked = Result<Cleared<ToolUse<Call>>, Box<DeniedUse<Call>>>;

/// What the calls of a round are run with.
pub(super) struct Running<'r> {
    /// What all requests share.
    pub(super) gateway: &'r Gateway,
    /// How many calls that only read run side by side.
    pub(super) parallel: usize,
    /// When the run's time is over.
    pub(super) not_after: Instant,
    /// What is left of the run's own cost cap, in nano-dollars.
    pub(super) cost_left: Option<u64>,
    /// Who may read what comes of them.
    pub(super) targets: &'r Targets,
}

/// Runs the calls of a round, until `not_after` at the latest. Neighbours that only read run side by side, up to `parallel` of them; writes
/// run alone, in their place. The gate is asked before each such batch, with the mark that all earlier results have left.
pub(super) async fn run(
    mut running: Running<'_>,
    facts: &mut RunFacts,
    calls: Vec<Call>,
    record: &mut Recording,
) -> Vec<Learned> {
    let mut learned = Vec::with_capacity(calls.len());
    for batch in batches(&running.gateway.config(), calls) {
        learned.extend(running.batch(facts, batch, record).await);
    }
    learned
}

impl Running<'_> {
    async fn batch(&mut self, facts: &mut RunFacts, batch: Vec<Call>, record: &mut Recording) -> Vec<Learned> {
        let in_force = self.gateway.in_force();
        let asked: Vec<Asked> = batch.into_iter().map(|call| gate::clear_tool(&in_force.config, facts, call)).collect();
        let mut opened: Vec<ToolCall> = asked.iter().map(opened).collect();
        let mut paid = Vec::with_capacity(asked.len());
        for entry in &mut opened {
            let payment = self.pay(&in_force, entry, record).await;
            if let Paid::Not(truncation) = payment {
                (entry.outcome, entry.reason) = (Some(Outcome::Refused), Some(Refusal::Run(truncation)));
            }
            paid.push(payment);
        }
        let at_tool = |(entry, paid): (&ToolCall, &Paid)| match paid {
            Paid::Free | Paid::Held(_) => Some(Arc::clone(&entry.at_tool)),
            Paid::Not(_) => None,
        };
        let may_run: Vec<_> = opened.iter().zip(&paid).map(at_tool).collect();
        let first = record.calls().map_or(0, |entries| {
            entries.extend(opened);
            entries.len() - asked.len()
        });
        let zone = zone::of_run(&in_force.config, &facts.providers);
        let one = |(asked, at_tool)| self.one(&in_force, zone, asked, at_tool);
        let running = asked.into_iter().zip(may_run).map(one);
        let outputs: Vec<Output> = stream::iter(running).buffered(self.parallel.max(1)).collect().await;
        let mut learned = Vec::with_capacity(outputs.len());
        for (at, (output, paid)) in outputs.into_iter().zip(paid).enumerate() {
            learned.push(self.learn(facts, output, paid, first + at, record));
        }
        learned
    }

    /// Runs a call of a run in this zone, if it may be run: `at_tool` then tells where it is.
    async fn one(&self, in_force: &InForce, zone: TrustZone, asked: Asked, at_tool: Option<Arc<AtomicBool>>) -> Output {
        match (asked, at_tool) {
            (Ok(cleared), Some(at_tool)) => {
                at_tool.store(true, Ordering::Relaxed);
                let arguments = in_force.arguments.between(zone, cleared.get().tool.group.trust_zone);
                let redaction = Redaction { result: &in_force.tool_results, arguments, credentials: &in_force.credentials };
                let output = self.gateway.toolbox.run(cleared, redaction, Some(self.not_after)).await;
                at_tool.store(output.reached, Ordering::Relaxed);
                output
            }
            (Ok(cleared), None) => Output::said(Outcome::Refused, &Said::LimitReached, &cleared.get().call.name),
            (Err(denied), _) => Output::said(Outcome::Refused, &Said::NotAvailable, &denied.call.name),
        }
    }

    /// Sets the price of a call aside, where it has one: in the run's own cap, and in every budget on the path.
    async fn pay(&mut self, in_force: &InForce, entry: &ToolCall, record: &mut Recording) -> Paid {
        let (Some(price), None, Some(tab)) = (entry.price, entry.outcome, &record.tab) else { return Paid::Free };
        if self.cost_left.is_some_and(|left| left < price.0) {
            return Paid::Not(Truncation::MaxCost);
        }
        match tab.reserve_tool(&self.gateway.money, in_force, price).await {
            Ok(hold) => {
                self.cost_left = self.cost_left.map(|left| left.saturating_sub(price.0));
                Paid::Held(hold)
            }
            Err(refused) => {
                record.refused(&refused);
                Paid::Not(Truncation::Budget)
            }
        }
    }

    fn learn(&mut self, facts: &mut RunFacts, output: Output, paid: Paid, at: usize, record: &mut Recording) -> Learned {
        let number = record.run.asked;
        let Recording { run, tab, .. } = record;
        let entry = run.rounds.last_mut().and_then(|round| round.tool_calls.get_mut(at));
        let Some(entry) = entry else { return Learned::said(Said::Failed.about("tool")) };
        let reached = output.reached;
        if !output.kept_back.is_empty() {
            run.notes.push(kept_back(&entry.tool, &output.kept_back).into());
        }
        let mut learned = self.judged(facts, output, entry);
        match paid {
            Paid::Held(hold) if reached => {
                if let Some(tab) = tab {
                    tab.enter_tool(&self.gateway.money, number, entry, Some(hold));
                }
                learned.cost = entry.price.map_or(0, |price| price.0);
            }
            Paid::Held(_) | Paid::Free => {}
            Paid::Not(truncation) => {
                entry.reason = Some(Refusal::Run(truncation));
                learned.unpaid = Some(truncation);
            }
        }
        learned
    }
}

impl Running<'_> {
    /// What the gate says of a result, and what the model reads of it.
    fn judged(&self, facts: &mut RunFacts, output: Output, entry: &mut ToolCall) -> Learned {
        let executed = output.outcome.was_run();
        (entry.outcome, entry.took, entry.bytes) = (Some(output.outcome), output.took, output.bytes);
        (entry.egress, entry.cached) = (output.egress_denied, output.cached);
        entry.data_class = executed.then_some(output.mark.class);
        entry.redactions = output.redactions.clone();
        entry.redactions.merge(&output.kept_back);
        match gate::clear_result(&self.gateway.config(), facts, &entry.tool, output) {
            Judgement::Passed(cleared) => {
                let shown = |media: &Media| self.targets.iter().all(|target| provider::takes_in_results(&target.provider, media));
                Learned::returned(cleared.into_inner(), shown)
            }
            Judgement::Withheld(_) => {
                (entry.outcome, entry.reason) = (Some(Outcome::Refused), Some(Refusal::Gate(gate::Reason::TrustZone)));
                Learned { executed, ..Learned::said(Said::NotAvailable.about(&entry.tool)) }
            }
        }
    }
}

/// Whether a call is paid for.
enum Paid {
    /// It costs nothing, or is not run.
    Free,
    /// Its price is set aside.
    Held(Hold),
    /// Nothing is left to pay for it.
    Not(Truncation),
}

/// The calls that a cap or a rule of the talk keeps from being run, as a trace shows them.
pub(super) fn barred(talk: &Talk) -> impl Iterator<Item = ToolCall> {
    talk.barred().map(|(call, bar)| {
        let refusal = match bar {
            Bar::Cap(truncation) => Refusal::Run(truncation),
            Bar::Misfits => Refusal::Misfits,
        };
        entry(call, None, Some(Outcome::Refused), Some(refusal))
    })
}

/// Neighbouring reads together, every write alone.
fn batches(config: &Config, calls: Vec<Call>) -> Vec<Vec<Call>> {
    let mut batches: Vec<Vec<Call>> = Vec::new();
    let mut after_read = false;
    for call in calls {
        // A call of no tool at all is refused, which changes nothing.
        let reads = config.tools.find(&call.name).is_none_or(|tool| tool.rule.effect == Effect::ReadOnly);
        match batches.last_mut() {
            Some(batch) if after_read && reads => batch.push(call),
            _ => batches.push(vec![call]),
        }
        after_read = reads;
    }
    batches
}

/// What a trace says of arguments that lost something on their way.
fn kept_back(tool: &str, counts: &Counts) -> String {
    let kinds: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    format!("taken out of the arguments of `{tool}`, whose group is trusted less than the run: {}", kinds.join(", "))
}

/// A call before it is run: whatever ends the run meanwhile, it was asked for.
fn opened(asked: &Asked) -> ToolCall {
    match asked {
        Ok(cleared) => {
            let ToolUse { tool, call, .. } = cleared.get();
            let is_write = tool.rule.effect != Effect::ReadOnly;
            ToolCall { price: tool.rule.price, is_write, ..entry(call, Some(tool.group.name.as_str()), None, None) }
        }
        Err(denied) => {
            let group = denied.tool.as_ref().map(|tool| tool.group.name.as_str());
            entry(&denied.call, group, Some(Outcome::Refused), Some(Refusal::Gate(denied.reason)))
        }
    }
}

fn entry(call: &Call, group: Option<&str>, outcome: Option<Outcome>, reason: Option<Refusal>) -> ToolCall {
    ToolCall {
        id: bound::head(&call.id, LONGEST_NAME).to_owned(),
        tool: bound::head(&call.name, LONGEST_NAME).to_owned(),
        group: group.map(str::to_owned),
        arguments: call.arguments.as_ref().map_or_else(ToString::to_string, |arguments| arguments.text().to_owned()),
        outcome,
        reason,
        egress: None,
        cached: false,
        took: std::time::Duration::ZERO,
        bytes: 0,
        data_class: None,
        redactions: Counts::default(),
        price: None,
        cost: None,
        is_write: false,
        at_tool: Arc::default(),
    }
}
