//! `price:`, and where there must be one: a limit in dollars is kept by prices, so it is refused on the path of a model that has none.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::models::ANY;
use crate::catalog;
use crate::model::{Model, Models};
use crate::place::{Faults, Place};
use crate::price::Price;
use crate::raw::money::PerMillion;
use crate::raw::{self, At, File, Given, listed};

/// A model's price, as it is written. `Some(None)`: it is not.
pub(super) fn price(raw: &Given<raw::Price>) -> Option<Option<Price>> {
    match raw.optional()?.map(|at| &at.value) {
        None => Some(None),
        Some(raw::Price::Free) => Some(Some(Price::FREE)),
        Some(raw::Price::Paid(prices)) => paid(prices).map(Some),
    }
}

fn paid(raw: &raw::Prices) -> Option<Price> {
    let input = raw.input.value()?.0;
    Some(Price {
        input,
        cached_input: raw.cached_input.or(PerMillion(input))?.0,
        cache_write: raw.cache_write.or(PerMillion(input))?.0,
        output: raw.output.value()?.0,
    })
}

/// Reports each limit in dollars that a model without a price would run past.
pub(super) fn priced(file: &File, models: &Models, faults: &mut Faults) {
    let everything: Vec<_> = models.named.values().chain(&models.any).cloned().collect();
    if let Some(limits) = file.limits.value() {
        demand(dollars(&limits.budgets), &everything, models, faults);
    }
    for (name, raw) in file.models.value().into_iter().flat_map(|named| &named.0) {
        let model = if name.value == ANY { models.any.as_ref() } else { models.named.get(name.value.as_str()) };
        let max_cost = raw.tools.value().and_then(|tools| tools.max_cost_usd.get()).map(|at| &at.place);
        demand(dollars(&raw.budgets).chain(max_cost), model.map(std::slice::from_ref).unwrap_or_default(), models, faults);
    }
    for At { value: key, .. } in file.keys.value().into_iter().flatten() {
        let named = key.models.value().map(|names| names.iter().filter_map(|name| models.find(&name.value.whole())).collect());
        let may_name: &[_] = match (&named, key.models.is_absent()) {
            (Some(named), _) => Vec::as_slice(named),
            (None, true) => &everything,
            (None, false) => &[],
        };
        demand(dollars(&key.budgets), may_name, models, faults);
    }
}

/// Where the budgets in dollars of a list stand.
fn dollars(budgets: &Given<Vec<At<raw::Budget>>>) -> impl Iterator<Item = &Place> {
    let budgets = budgets.value().into_iter().flatten();
    budgets.filter(|budget| budget.value.usd.get().is_some()).map(|budget| &budget.place)
}

/// Reports limits in dollars where one of these models, or of their fallbacks, has no price.
fn demand<'a>(limits: impl Iterator<Item = &'a Place>, on: &[Arc<Model>], models: &Models, faults: &mut Faults) {
    let fallbacks = on.iter().flat_map(|model| &model.fallback).filter_map(|name| models.named.get(name));
    let unpriced: BTreeSet<_> =
        on.iter().chain(fallbacks).filter(|model| is_unpriced(model)).map(|model| model.name.as_str()).collect();
    if unpriced.is_empty() {
        return;
    }
    let names = listed(&unpriced.into_iter().collect::<Vec<_>>());
    for place in limits {
        let message = format!(
            "a limit in dollars needs the price of every model that it covers, and none is known of: {names}; allowed for a model: `price: {{ input: …, output: … }}` in USD per million tokens, `price: free`"
        );
        faults.add(place, message);
    }
}

/// What callers name behind `"*"` is looked up when they do: where there is a catalogue to look in, its price may yet be known.
fn is_unpriced(model: &Model) -> bool {
    let looked_up_later = model.name.as_str() == ANY && catalog::has(model.provider.kind);
    model.price.is_none() && !looked_up_later
}
