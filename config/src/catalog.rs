//! The embedded catalogue: what models cost and how much fits into them, by the name that their provider has for them.
//!
//! A name that is not in it is not known: nothing is guessed from what it looks like. An empty field of the list is not known either, which
//! is not zero.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::money::PicoUsd;
use crate::price::Price;
use crate::provider::ProviderKind;

/// What the catalogue says of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What its tokens cost; `None`: the catalogue does not know.
    pub price: Option<Price>,
    /// How many tokens fit into it.
    pub context_window: Option<u32>,
    /// How many it can answer with.
    pub max_output: Option<u32>,
}

/// The model of this name at providers of this kind.
pub fn find(kind: ProviderKind, model: &str) -> Option<&'static Listing> {
    CATALOG.get(word(kind)?)?.get(model)
}

/// Whether it lists models of providers of this kind.
pub const fn has(kind: ProviderKind) -> bool {
    word(kind).is_some()
}

const LIST: &str = include_str!("../data/models.csv");

/// By the catalogue's word for the kind, then by name.
type Catalog = HashMap<&'static str, HashMap<&'static str, Listing>>;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut catalog = Catalog::new();
    for (kind, model, listing) in LIST.lines().skip(1).filter_map(listing) {
        catalog.entry(kind).or_default().insert(model, listing);
    }
    catalog
});

/// The catalogue's word for a kind. A server that merely speaks the dialect has prices of its own.
const fn word(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::OpenAi => Some("openai"),
        ProviderKind::OpenAiCompatible => None,
    }
}

fn listing(line: &'static str) -> Option<(&'static str, &'static str, Listing)> {
    let fields: Vec<&str> = line.split(',').collect();
    let [kind, model, mode, input, cached, cache_write, output, window, max_output, ..] = fields[..] else { return None };
    let listing = Listing {
        price: price(mode, input, cached, cache_write, output),
        context_window: window.parse().ok(),
        max_output: max_output.parse().ok(),
    };
    Some((kind, model, listing))
}

fn price(mode: &str, input: &str, cached: &str, cache_write: &str, output: &str) -> Option<Price> {
    let input = PicoUsd::from_decimal_per_million(input)?;
    let or_input = |text| PicoUsd::from_decimal_per_million(text).unwrap_or(input);
    // An embedding has no output to pay for.
    let output = if mode == "embedding" { PicoUsd(0) } else { PicoUsd::from_decimal_per_million(output)? };
    Some(Price { input, cached_input: or_input(cached), cache_write: or_input(cache_write), output })
}
