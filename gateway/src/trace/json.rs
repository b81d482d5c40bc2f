//! A run as the reader of its trace gets it.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_config::class::DataClass;
use toolgate_config::money::NanoUsd;
use toolgate_config::names::ModelName;
use toolgate_policies::egress::EgressRefusal;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate::{Judged, Reason};
use toolgate_policies::redact::Counts;
use toolgate_tools::toolbox::Outcome;

use super::{Refusal, Round, Run, ToolCall};
use crate::fit::{Context, Shortened};

impl Run {
    /// The trace as its reader gets it.
    pub fn to_json(&self) -> Value {
        let (status, reason) = self.status.words();
        let mut trace = json!({
            "id": self.id.to_string(),
            "status": status,
            "reason": reason,
            "key": self.caller.as_ref().map(Caller::label),
            "user": self.caller.as_ref().and_then(|caller| caller.user.as_deref()),
            "model": self.model.as_ref().map(ModelName::as_str),
            "started": rfc3339(self.started),
            "ms": ms(self.took),
            "usage": self.usage(),
            "cost_usd": self.cost().map(usd),
            "rounds": self.rounds.iter().map(Round::to_json).collect::<Vec<_>>(),
            "gate": self.gate.iter().map(judged_json).collect::<Vec<_>>(),
        });
        if !self.notes.is_empty() {
            trace["notes"] = json!(self.notes);
        }
        trace
    }
}

impl Round {
    fn to_json(&self) -> Value {
        let mut round = json!({
            "provider": self.target.provider.name.as_str(),
            "upstream_model": self.target.upstream_model,
            "attempt": self.attempt,
            "outcome": self.outcome.as_str(),
            "ms": ms(self.took),
            "finish_reason": self.finish_reason,
            "usage": self.usage,
            "estimated": self.estimated,
            "cost_usd": self.cost.map(usd),
            "tool_calls": self.tool_calls.iter().map(ToolCall::to_json).collect::<Vec<_>>(),
        });
        if let Some(lowered) = self.lowered {
            round["output_limit"] = lowered.into();
        }
        if let Some(context) = &self.context {
            round["context"] = context_json(context);
        }
        round
    }
}

fn context_json(context: &Context) -> Value {
    let shortened = |short: &Shortened| json!({ "tool_call_id": short.call, "left_out": short.left_out });
    let mut account = json!({
        "window": context.window,
        "reserve": context.reserve,
        "safety": context.safety,
        "budget": context.budget,
        "prompt": context.prompt(),
        "transcript": context.transcript,
        "tools": context.tools,
        "system": context.system,
        "dropped_turns": context.dropped_turns,
        "dropped_messages": context.dropped_messages,
        "shortened": context.shortened.iter().map(shortened).collect::<Vec<_>>(),
        "shortened_bytes": context.left_out(),
    });
    if context.is_guess {
        account["assumed"] = true.into();
    }
    account
}

impl ToolCall {
    fn to_json(&self) -> Value {
        let mut call = json!({
            "id": self.id,
            "tool": self.tool,
            "group": self.group,
            "arguments": self.arguments,
            "outcome": self.outcome.map_or("cancelled", Outcome::as_str),
            "reason": self.reason.map(Refusal::as_str).or(self.egress.map(EgressRefusal::as_str)),
            "ms": ms(self.took),
            "bytes": self.bytes,
            "data_class": self.data_class.map(DataClass::as_str),
            "redactions": redactions_json(&self.redactions),
        });
        if self.cached {
            call["cached"] = true.into();
        }
        if let Some(cost) = self.cost {
            call["cost_usd"] = usd(cost);
        }
        call
    }
}

/// What was taken out: each kind with its number.
fn redactions_json(counts: &Counts) -> Value {
    counts.iter().map(|(kind, count)| (kind.as_str().to_owned(), json!(count))).collect()
}

fn judged_json((tool, verdict): &Judged) -> Value {
    json!({ "tool": tool.name.as_str(), "verdict": verdict.as_str(), "reason": verdict.reason().map(Reason::as_str) })
}

/// A verdict as dry runs show it.
pub fn verdict_json((tool, verdict): &Judged) -> Value {
    json!({
        "tool": tool.name.as_str(),
        "group": tool.group.name.as_str(),
        "verdict": verdict.as_str(),
        "reason": verdict.reason().map(Reason::as_str),
    })
}

/// Dollars, digit for digit.
pub fn usd(amount: NanoUsd) -> Value {
    // Nano-dollars up to nine million dollars are exact in a double, and are written with the digits that they have.
    json!(amount.0 as f64 / 1e9)
}

/// Milliseconds with three decimals.
pub fn ms(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
}

/// A moment as RFC 3339 in UTC, with milliseconds.
fn rfc3339(moment: SystemTime) -> String {
    Timestamp::try_from(moment).map_or_else(|_| String::new(), |moment| format!("{moment:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_people_expect() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_500, "2000-02-29T12:34:56.500Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
        ];
        for (millis, expected) in table {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)), expected);
        }
    }
}
