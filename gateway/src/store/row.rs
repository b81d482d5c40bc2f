//! What the ledger knows of one call.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;

use crate::targets::Target;
use crate::trace::TraceId;

/// One row: an attempt at a model call, or a tool call that has a price.
#[derive(Clone, Debug)]
pub struct Row {
    /// When it ended.
    pub at: Timestamp,
    /// The run.
    pub trace: TraceId,
    /// The model call of the run, from 1, that it was or that asked for it.
    pub round: u32,
    /// The caller's key, `anonymous` without one.
    pub key: Arc<str>,
    /// The end user that it acted for.
    pub user: Option<Arc<str>>,
    /// What the caller asked for, by its name in the file (`*` for a name without an entry): the model whose budgets count it. The entry
    /// that answered is `what`'s, and another one where a fallback did.
    pub model: Arc<str>,
    /// What was called.
    pub what: What,
    /// Its tokens by price.
    pub tokens: Billed,
    /// The part of the output that was reasoning.
    pub reasoning: u64,
    /// The tokens were counted here, not by the provider.
    pub estimated: bool,
    /// What it cost; `None`: not known, which is not nothing.
    pub cost: Option<NanoUsd>,
    /// What the provider says that it cost.
    pub reported: Option<NanoUsd>,
    /// How it went: the words of `toolgate_upstream_requests_total` and `toolgate_tool_calls_total`.
    pub outcome: &'static str,
    /// 1: the first row of its request that counts as one in budgets of requests.
    pub requests: u32,
}

/// What was called.
#[derive(Clone, Debug)]
pub enum What {
    /// A model: whose, and under what name.
    Model {
        /// Whom it went to.
        target: Arc<Target>,
        /// 1 for the first try.
        attempt: u32,
    },
    /// A tool.
    Tool {
        /// Its name.
        name: Cow<'static, str>,
    },
}

/// What a row says of what was called, column by column.
pub(super) struct Called<'r> {
    pub(super) attempt: Option<u32>,
    pub(super) served: &'r str,
    pub(super) provider: Option<&'r str>,
    pub(super) upstream_model: Option<&'r str>,
    pub(super) tool: Option<&'r str>,
}

impl Row {
    pub(super) fn called(&self) -> Called<'_> {
        match &self.what {
            What::Model { target, attempt } => Called {
                attempt: Some(*attempt),
                served: &target.label,
                provider: Some(target.provider.name.as_str()),
                upstream_model: Some(&target.upstream_model),
                tool: None,
            },
            What::Tool { name } => {
                Called { attempt: None, served: &self.model, provider: None, upstream_model: None, tool: Some(name) }
            }
        }
    }
}

/// The sum of many rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The provider; empty for a tool.
    pub provider: String,
    /// The model that was asked for.
    pub model: String,
    /// The entry that answered (the label of its target); for a tool the model that was asked for.
    pub served: String,
    /// The key.
    pub key: String,
    /// The tool; empty for a model.
    pub tool: String,
    /// Rows.
    pub calls: u64,
    /// Requests of callers.
    pub requests: u64,
    /// Tokens by price.
    pub tokens: Billed,
    /// The part of the output that was reasoning.
    pub reasoning: u64,
    /// What is known of the cost.
    pub cost: NanoUsd,
    /// Rows whose cost is not known.
    pub unknown: u64,
    /// Rows whose tokens were counted here.
    pub estimated: u64,
}
