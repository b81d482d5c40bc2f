//! The record of a run, step by step: what it asked, what was called, what was refused and why.

mod id;
mod json;
mod kept;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use smallvec::SmallVec;
use toolgate_config::class::DataClass;
use toolgate_config::money::NanoUsd;
use toolgate_config::names::ModelName;
use toolgate_policies::egress::EgressRefusal;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate::{Judged, Reason};
use toolgate_policies::limits::Limit;
use toolgate_policies::redact::{Counts, Redactor};
use toolgate_tools::toolbox;

pub use self::id::TraceId;
pub use self::json::{ms, usd, verdict_json};
pub use self::kept::Traces;
use crate::fit::Context;
use crate::talk::Truncation;
use crate::targets::Target;
use crate::tokens::Tally;
use crate::wire::Usage;

/// One request taken through the loop.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its name.
    pub id: TraceId,
    /// When it began.
    pub started: SystemTime,
    /// Who asked; `None`: nobody that was recognised.
    pub caller: Option<Caller>,
    /// What was asked for.
    pub model: Option<ModelName>,
    /// How it ended.
    pub status: Status,
    /// How long it took.
    pub took: Duration,
    /// When the first byte for the caller was ready.
    pub first_byte: Option<Duration>,
    /// The HTTP status that the caller got.
    pub http_status: u16,
    /// Model calls, each counted once, however often it was tried.
    pub asked: u32,
    /// Model calls, in order, every attempt of them.
    pub rounds: Rounds,
    /// What the gate said of each tool when tools were offered.
    pub gate: Verdicts,
    /// What else a reader should know.
    pub notes: Vec<Cow<'static, str>>,
    /// The limits that refused something.
    pub denied: Vec<Arc<Limit>>,
    /// What was taken out of its answer.
    pub redactions: Counts,
    /// Whether it is a run that is kept, and no look-up, nor a request that was turned away at the door: a flood of those would push out the
    /// runs of others.
    pub is_kept: bool,
}

/// The model calls of a run. Most have one, which then lives in the record itself: ten thousand records that are kept must not scatter the
/// memory that the next requests are given.
pub type Rounds = SmallVec<[Round; 1]>;

/// What the gate said, tool by tool.
pub type Verdicts = SmallVec<[Judged; 4]>;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// With its answer.
    Completed,
    /// Brought to its end before the model was done: by what.
    Truncated(Truncation),
    /// With an error: its code.
    Failed(String),
    /// The caller went away.
    Cancelled,
}

impl Status {
    /// The words of headers, logs and traces: status and reason.
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Completed => ("completed", None),
            Self::Truncated(reason) => ("truncated", Some(reason.as_str())),
            Self::Failed(code) => ("failed", Some(code)),
            Self::Cancelled => ("failed", Some("caller_gone")),
        }
    }
}

/// One attempt at a model call, and the tool calls that it asked for.
#[derive(Clone, Debug)]
pub struct Round {
    /// Whom it went to, and under what name.
    pub target: Arc<Target>,
    /// 1 for the first try.
    pub attempt: u32,
    /// How it went.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
    /// Why the model stopped, as it said.
    pub finish_reason: Option<Cow<'static, str>>,
    /// What it used.
    pub usage: Option<Usage>,
    /// The usage was counted here.
    pub estimated: bool,
    /// What its usage is made from, until that is done.
    pub tally: Option<Box<Tally>>,
    /// What it cost; `None`: nobody knows.
    pub cost: Option<NanoUsd>,
    /// The output limit that it was given, because the budgets had no room for more.
    pub lowered: Option<u64>,
    /// What the model's window holds, where it had to be counted.
    pub context: Option<Box<Context>>,
    /// The tool calls that it asked for.
    pub tool_calls: Vec<ToolCall>,
}

/// How a model call went; the words of `toolgate_upstream_requests_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Ok,
    /// 4xx, or a redirect, which is not followed: the same request would be answered alike.
    ClientError,
    /// 429.
    RateLimited,
    /// 5xx, or no HTTP, or no chat completion.
    ServerError,
    /// Too slow.
    Timeout,
    /// Never reached.
    ConnectError,
    /// Broken off by the provider.
    Cut,
    /// Broken off by the caller.
    Cancelled,
}

impl Outcome {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ClientError => "client_error",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
            Self::Timeout => "timeout",
            Self::ConnectError => "connect_error",
            Self::Cut => "cut",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One tool call.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// As the model named it.
    pub id: String,
    /// The tool that was asked for.
    pub tool: String,
    /// Its group, where there is such a tool.
    pub group: Option<String>,
    /// The arguments as the model wrote them, or what is wrong with them. Of a run that is kept, no more than their beginning.
    pub arguments: String,
    /// How it went; `None`: it was under way when the run was broken off.
    pub outcome: Option<toolbox::Outcome>,
    /// Why it was refused.
    pub reason: Option<Refusal>,
    /// Why the group's egress refused it.
    pub egress: Option<EgressRefusal>,
    /// It was answered from memory: the tool was not asked.
    pub cached: bool,
    /// How long it took.
    pub took: Duration,
    /// What the tool returned, in bytes, before it was bounded.
    pub bytes: usize,
    /// How sensitive that was.
    pub data_class: Option<DataClass>,
    /// What was taken out of what it returned, and of what it was sent.
    pub redactions: Counts,
    /// What running it costs.
    pub price: Option<NanoUsd>,
    /// What it cost: its price, where it was run.
    pub cost: Option<NanoUsd>,
    /// The tool may change something.
    pub is_write: bool,
    /// It is with the tool now, or has been run by it; set while calls run side by side, before anybody has looked at what came of them.
    pub at_tool: Arc<AtomicBool>,
}

/// Why a tool call was refused, or its result withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The gate does not let the run have it.
    Gate(Reason),
    /// The run itself is at its end.
    Run(Truncation),
    /// Its arguments were not valid too often in a row.
    Misfits,
}

impl Refusal {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gate(reason) => reason.as_str(),
            Self::Run(truncation) => truncation.as_str(),
            Self::Misfits => "invalid_arguments",
        }
    }
}

impl Run {
    /// The output limit of the call under way was lowered, and the trace says so.
    pub fn note_lowered(&mut self) {
        if let Some(tokens) = self.rounds.last().and_then(|round| round.lowered) {
            self.notes.push(format!("the output limit was lowered to {tokens} tokens: the budgets have no room for more").into());
        }
    }

    /// Whether a tool that may change something was asked.
    pub fn has_written(&self) -> bool {
        let mut calls = self.rounds.iter().flat_map(|round| &round.tool_calls);
        let was_asked = |call: &ToolCall| call.outcome.map_or(call.at_tool.load(Ordering::Relaxed), toolbox::Outcome::was_run);
        calls.any(|call| call.is_write && was_asked(call))
    }

    /// Takes secrets out of what a model or its provider chose to call things, beside the arguments of calls.
    fn hide(&mut self, redactor: &Redactor) {
        let mut counts = Counts::default();
        let mut hide = |text: &mut String| {
            if let Cow::Owned(hidden) = redactor.text(text, &mut counts) {
                *text = hidden;
            }
        };
        for round in &mut self.rounds {
            // The usual reasons are not of a provider's making.
            if let Some(Cow::Owned(reason)) = &mut round.finish_reason {
                hide(reason);
            }
            for call in &mut round.tool_calls {
                hide(&mut call.id);
                if call.group.is_none() {
                    hide(&mut call.tool);
                }
            }
        }
    }

    /// A run that begins now. Until something else is known, its caller has gone: that is what it is when nobody is left to close it.
    pub fn begin(id: TraceId) -> Self {
        Self {
            id,
            started: SystemTime::now(),
            caller: None,
            model: None,
            status: Status::Cancelled,
            took: Duration::ZERO,
            first_byte: None,
            http_status: 499,
            asked: 0,
            rounds: Rounds::new(),
            gate: Verdicts::new(),
            notes: Vec::new(),
            denied: Vec::new(),
            redactions: Counts::default(),
            is_kept: false,
        }
    }

    /// What it cost, its tools included; `None`: of a part of it nobody knows.
    pub fn cost(&self) -> Option<NanoUsd> {
        let rounds = self.rounds.iter().map(|round| round.cost);
        let tools = self.rounds.iter().flat_map(|round| &round.tool_calls).filter_map(|call| call.cost).map(Some);
        rounds.chain(tools).try_fold(NanoUsd::default(), |sum, cost| Some(sum.plus(cost?)))
    }

    /// What all rounds used together.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.rounds.iter().filter_map(|round| round.usage.as_ref()).for_each(|usage| sum.add(usage));
        sum
    }
}
