//! `models:`: providers, grants, caps, fallbacks.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::declared;
use super::limits::{Users, limits};
use super::mcp::Found;
use super::openapi;
use super::prices::price;
use crate::model::{Caps, Grant, Model, Models, StreamHold};
use crate::names::{GroupName, ModelName, ProviderName, ToolName};
use crate::place::{Faults, Place};
use crate::provider::Provider;
use crate::raw::section::unwritten;
use crate::raw::shape::Hold;
use crate::raw::{self, At, File, Given, Text, member};

/// The model that stands for every name without an entry of its own.
pub(super) const ANY: &str = "*";

type Providers = BTreeMap<ProviderName, Arc<Provider>>;

pub(super) fn models(file: &File, providers: &Providers, request_timeout: Option<Duration>, faults: &mut Faults) -> Models {
    let mut models = Models::default();
    for (name, raw) in file.models.value().into_iter().flat_map(|named| &named.0) {
        if name.value == ANY {
            any_has_no_own(raw, faults);
        }
        let Some(model) = model(&name.value, raw, file, providers, request_timeout, faults) else { continue };
        match name.value.as_str() {
            // What it stands for is looked up under the name that a caller sends.
            ANY => models.any = Some(Arc::new(model)),
            _ => drop(models.named.insert(model.name.clone(), Arc::new(model.listed()))),
        }
    }
    no_loops(file, faults);
    models
}

fn model(
    name: &str,
    raw: &raw::Model,
    file: &File,
    providers: &Providers,
    request_timeout: Option<Duration>,
    faults: &mut Faults,
) -> Option<Model> {
    let provider = raw.provider.get().and_then(|provider| declared(provider, "provider", names(&file.providers), faults));
    let fallback: Vec<_> = raw.fallback.value().into_iter().flatten().filter_map(|other| fallback(other, file, faults)).collect();
    let params = params(&raw.params, faults);
    let upstream_model = upstream_model(name, raw, faults);
    let limits = limits(&raw.budgets, &raw.rate, Users::OfKeysOnly, faults);
    let tools = raw.tools.optional().map(|tools| tools.map(|at| &at.value));
    let grant = tools.flatten().map(|tools| grant(&tools.groups, &tools.names, file, faults));
    Some(Model {
        name: ModelName::new(name),
        provider: Arc::clone(providers.get(provider?.as_str())?),
        upstream_model: upstream_model?,
        system_prompt: raw.system_prompt.optional()?.map(|at| at.value.whole().into_owned()),
        params: params?,
        price: price(&raw.price)?,
        context_window: raw.context_window.optional()?.map(|at| at.value.0),
        max_output: None,
        limits: limits?,
        grant,
        caps: match tools? {
            Some(tools) => caps(tools, request_timeout?)?,
            None => caps(&unwritten(&raw.place)?, request_timeout?)?,
        },
        stream_hold: match raw.stream_hold.value()? {
            Hold::Characters(count) => StreamHold::Characters(*count as usize),
            Hold::All => StreamHold::All,
        },
        fallback,
    })
}

fn upstream_model(name: &str, raw: &raw::Model, faults: &mut Faults) -> Option<String> {
    let Some(At { value, place }) = raw.upstream_model.optional()? else { return Some(name.to_owned()) };
    let upstream = value.whole().into_owned();
    if upstream.is_empty() {
        faults.add(place, "the name is empty");
        return None;
    }
    Some(upstream)
}

fn caps(tools: &raw::ModelTools, request_timeout: Duration) -> Option<Caps> {
    Some(Caps {
        max_rounds: tools.max_rounds.value()?.0,
        max_calls: tools.max_calls.value()?.0,
        max_cost: tools.max_cost_usd.optional()?.map(|at| at.value.0),
        max_time: tools.max_time.or(request_timeout)?,
        parallel: tools.parallel.value()?.0 as usize,
    })
}

/// The names of a mapping, also of those entries that are faulty.
pub(super) fn names<T>(named: &Given<raw::Named<T>>) -> impl Iterator<Item = &str> {
    named.value().into_iter().flat_map(raw::Named::names)
}

/// A grant; names that do not exist are reported.
pub(super) fn grant(groups: &Given<Vec<At<Text>>>, tools: &Given<Vec<At<Text>>>, file: &File, faults: &mut Faults) -> Grant {
    let found = Found::of(file);
    let known = file.tools.value().into_iter().flatten().filter_map(|tool| tool.value.name.value()).map(Text::whole);
    let of_openapi = openapi::offered(file).map(|(name, _)| Cow::Owned(name));
    let known: Vec<_> = known.chain(of_openapi).chain(found.names()).collect();
    let groups = groups.value().into_iter().flatten();
    let groups = groups.filter_map(|group| declared(group, "group", names(&file.groups), faults)).map(GroupName::new).collect();
    let mut name = |tool: &At<Text>| match tool.value.whole() {
        name if found.may_have(&name) => Some(name.into_owned()),
        _ => declared(tool, "tool", known.iter().map(AsRef::as_ref), faults),
    };
    let names = tools.value().into_iter().flatten().filter_map(&mut name).map(ToolName::new).collect();
    Grant { groups, names }
}

fn any_has_no_own(raw: &raw::Model, faults: &mut Faults) {
    let mut refuse = |place: Option<&Place>, why: &str| {
        if let Some(place) = place {
            faults.add(place, format!("`\"*\"` {why}"));
        }
    };
    refuse(raw.tools.get().map(|at| &at.place), "passes through without tools");
    refuse(raw.upstream_model.get().map(|at| &at.place), "passes each name through as it is");
}

/// Members of a request that are the caller's or the gateway's business.
const NOT_PARAMS: [&str; 9] =
    ["messages", "model", "stream", "stream_options", "tools", "tool_choice", "n", "functions", "function_call"];

fn params(raw: &Given<Map<String, Value>>, faults: &mut Faults) -> Option<Map<String, Value>> {
    let At { value, place } = raw.get()?;
    for name in NOT_PARAMS.iter().filter(|name| value.contains_key(**name)) {
        let place = Place { path: member(&place.path, name), ..place.clone() };
        faults.add(&place, format!("`{name}` cannot be set for every request; never allowed here: {}", NOT_PARAMS.join(", ")));
    }
    Some(value.clone())
}

fn fallback(other: &At<Text>, file: &File, faults: &mut Faults) -> Option<ModelName> {
    let known = names(&file.models).filter(|name| *name != ANY);
    declared(other, "model", known, faults).map(ModelName::new)
}

/// Follows the fallbacks of each model; one that leads back to it is reported where it starts.
fn no_loops(file: &File, faults: &mut Faults) {
    let all: BTreeMap<&str, &raw::Model> =
        file.models.value().into_iter().flat_map(|named| &named.0).map(|(name, raw)| (name.value.as_str(), raw)).collect();
    for (&start, model) in &all {
        for first in model.fallback.value().into_iter().flatten() {
            if let Some(way) = way_back(&all, &first.value.whole(), start, &mut BTreeSet::new()) {
                faults.add(&first.place, format!("the fallbacks go in a circle: {start} -> {}", way.join(" -> ")));
            }
        }
    }
}

/// The models from `from` to `to`, both included, if fallbacks lead there.
fn way_back(all: &BTreeMap<&str, &raw::Model>, from: &str, to: &str, seen: &mut BTreeSet<String>) -> Option<Vec<String>> {
    if from == to {
        return Some(vec![from.to_owned()]);
    }
    if !seen.insert(from.to_owned()) {
        return None;
    }
    let next = all.get(from)?.fallback.value()?;
    next.iter().find_map(|next| way_back(all, &next.value.whole(), to, seen)).map(|mut way| {
        way.insert(0, from.to_owned());
        way
    })
}
