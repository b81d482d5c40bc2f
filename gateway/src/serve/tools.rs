//! The tool calls of one round: cleared, run, judged, recorded; answered in the order of the calls.

use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::Instant;
use toolgate_config::Config;
use toolgate_config::tool::Effect;
use toolgate_policies::facts::RunFacts;
use toolgate_policies::gate::{self, Cleared, DeniedUse, Judgement, ToolUse};
use toolgate_tools::bound;
use toolgate_tools::said::Said;
use toolgate_tools::toolbox::{Call, Outcome, Output, Toolbox};

use super::record::Recording;
use crate::gateway::Gateway;
use crate::talk::{Learned, Talk};
use crate::trace::{Refusal, ToolCall};

/// How much of an id or a name that a model made up is kept, in bytes.
const LONGEST_NAME: usize = 256;

/// A call that the gate let through, or did not.
type Asked = Result<Cleared<ToolUse<Call>>, Box<DeniedUse<Call>>>;

/// Runs the calls of a round, until `not_after` at the latest. Neighbours that only read run side by side, up to `parallel` of them; writes
/// run alone, in their place. The gate is asked before each such batch, with the mark that all earlier results have left.
pub(super) async fn run(
    gateway: &Gateway,
    facts: &mut RunFacts,
    calls: Vec<Call>,
    parallel: usize,
    not_after: Instant,
    record: &mut Recording,
) -> Vec<Learned> {
    let mut learned = Vec::with_capacity(calls.len());
    let Some(entries) = record.calls() else { return learned };
    for batch in batches(&gateway.config(), calls) {
        let config = gateway.config();
        let first = entries.len();
        let asked: Vec<Asked> = batch.into_iter().map(|call| gate::clear_tool(&config, facts, call)).collect();
        entries.extend(asked.iter().map(opened));
        let running = asked.into_iter().map(|asked| one(&gateway.toolbox, asked, not_after));
        let outputs: Vec<Output> = stream::iter(running).buffered(parallel.max(1)).collect().await;
        for (output, entry) in outputs.into_iter().zip(&mut entries[first..]) {
            learned.push(judged(&gateway.config(), facts, output, entry));
        }
    }
    learned
}

/// The calls that a cap or a rule of the talk keeps from being run, as a trace shows them.
pub(super) fn barred(talk: &Talk) -> impl Iterator<Item = ToolCall> {
    talk.barred().map(|(call, truncation)| entry(call, None, Some(Outcome::Refused), Some(Refusal::Run(truncation))))
}

/// Neighbouring reads together, every write alone.
fn batches(config: &Config, calls: Vec<Call>) -> Vec<Vec<Call>> {
    let mut batches: Vec<Vec<Call>> = Vec::new();
    let mut after_read = false;
    for call in calls {
        // A call of no tool at all is refused, which changes nothing.
        let reads = config.tools.find(&call.name).is_none_or(|tool| tool.effect == Effect::ReadOnly);
        match batches.last_mut() {
            Some(batch) if after_read && reads => batch.push(call),
            _ => batches.push(vec![call]),
        }
        after_read = reads;
    }
    batches
}

async fn one(toolbox: &Toolbox, asked: Asked, not_after: Instant) -> Output {
    match asked {
        Ok(cleared) => toolbox.run(cleared, Some(not_after)).await,
        Err(denied) => Output::said(Outcome::Refused, &Said::NotAvailable, &denied.call.name),
    }
}

/// What the gate says of a result, and what the model reads of it.
fn judged(config: &Config, facts: &mut RunFacts, output: Output, entry: &mut ToolCall) -> Learned {
    let executed = output.outcome.was_run();
    (entry.outcome, entry.took, entry.bytes) = (Some(output.outcome), output.took, output.bytes);
    entry.egress = output.egress_denied;
    entry.data_class = executed.then_some(output.mark.class);
    match gate::clear_result(config, facts, output) {
        Judgement::Passed(cleared) => Learned { text: cleared.into_inner().text, executed },
        Judgement::Withheld(_) => {
            (entry.outcome, entry.reason) = (Some(Outcome::Refused), Some(Refusal::Gate(gate::Reason::TrustZone)));
            Learned { text: Said::NotAvailable.about(&entry.tool), executed }
        }
    }
}

/// A call before it is run: whatever ends the run meanwhile, it was asked for.
fn opened(asked: &Asked) -> ToolCall {
    match asked {
        Ok(cleared) => {
            let ToolUse { tool, call, .. } = cleared.get();
            entry(call, Some(tool.group.name.as_str()), None, None)
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
        took: std::time::Duration::ZERO,
        bytes: 0,
        data_class: None,
    }
}
