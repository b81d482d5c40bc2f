//! `models:`: a name that callers send, and what it stands for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::catalog;
use crate::limit::Limits;
use crate::money::NanoUsd;
use crate::names::{GroupName, ModelName, ToolName};
use crate::price::Price;
use crate::provider::Provider;

/// Provider, upstream model, policy and tool grant under one name.
#[derive(Clone, Debug)]
pub struct Model {
    /// What callers send.
    pub name: ModelName,
    /// Who answers.
    pub provider: Arc<Provider>,
    /// What the provider calls it.
    pub upstream_model: String,
    /// Goes first; the caller's own system text is kept after it.
    pub system_prompt: Option<String>,
    /// Members of the request that are used where the caller is silent.
    pub params: Map<String, Value>,
    /// What its tokens cost; `None`: not known, which is not nothing.
    pub price: Option<Price>,
    /// How many tokens fit into it.
    pub context_window: Option<u32>,
    /// How many tokens it can answer with; `None`: as many as fit.
    pub max_output: Option<u32>,
    /// What may be spent on it, and how fast.
    pub limits: Limits,
    /// Which tools a run may be offered; `None`: no tools.
    pub grant: Option<Grant>,
    /// How far a run may go.
    pub caps: Caps,
    /// How much text of a streamed round is held back until it is clear that the round is the answer.
    pub stream_hold: StreamHold,
    /// Models that answer in its place when its provider fails, in order.
    pub fallback: Vec<ModelName>,
}

impl Model {
    /// The model, with what the catalogue knows of it where the file is silent.
    #[must_use]
    pub fn listed(mut self) -> Self {
        if let Some(listing) = catalog::find(self.provider.kind, &self.upstream_model) {
            self.price = self.price.or(listing.price);
            self.context_window = self.context_window.or(listing.context_window);
            self.max_output = self.max_output.or(listing.max_output);
        }
        self
    }

    /// How many tokens fit into it.
    pub fn window(&self) -> u32 {
        self.context_window.unwrap_or(CONTEXT_WINDOW)
    }
}

/// How many tokens fit into a model that neither the file nor the catalogue knows.
pub const CONTEXT_WINDOW: u32 = 8192;

/// The models of the file.
#[derive(Clone, Debug, Default)]
pub struct Models {
    /// Those with a name of their own.
    pub named: BTreeMap<ModelName, Arc<Model>>,
    /// `"*"`: any other name passes through under its own name, without tools.
    pub any: Option<Arc<Model>>,
}

impl Models {
    /// The model of that name, else what `"*"` stands for under that name.
    pub fn find(&self, name: &str) -> Option<Arc<Model>> {
        if let Some(model) = self.named.get(name) {
            return Some(Arc::clone(model));
        }
        let any = self.any.as_ref().filter(|_| name != "*" && !name.is_empty())?;
        Some(Arc::new(Model { name: ModelName::new(name), upstream_model: name.to_owned(), ..Model::clone(any) }.listed()))
    }
}

/// Tools by group and by name: a tool is in it when its group or its name is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Whole groups.
    pub groups: BTreeSet<GroupName>,
    /// Single tools.
    pub names: BTreeSet<ToolName>,
}

impl Grant {
    /// Whether a tool of this name and group is granted.
    pub fn covers(&self, name: &ToolName, group: &GroupName) -> bool {
        self.groups.contains(group) || self.names.contains(name)
    }
}

/// How far a run may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Rounds that may ask for tools, 1 to 20; the closing call is not counted.
    pub max_rounds: u32,
    /// Tool calls in one run.
    pub max_calls: u32,
    /// What one run may cost.
    pub max_cost: Option<NanoUsd>,
    /// Time of one run; the closing call has 30 s more.
    pub max_time: Duration,
    /// Read-only calls of one round that run side by side.
    pub parallel: usize,
}

/// How much text of a streamed round is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamHold {
    /// This many characters; 0 never holds.
    Characters(usize),
    /// Until the round ends.
    All,
}
