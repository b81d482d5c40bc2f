//! The tables of `limits:`, `budgets:`, `rate:` and `price:`, and how amounts of money are read: digit for digit, never as a float.

use serde_json::{Value as Json, json};

use crate::limit::Per;
use crate::money::{NanoUsd, PicoUsd};
use crate::place::{Faults, Place};
use crate::raw::nearest;
use crate::raw::section::{At, section};
use crate::raw::shape::{Count, Shape, not_a, or_filled, spot_of, wrong};
use crate::raw::text::Text;
use crate::raw::yaml::{Entry, Node, Value};

section! {
    /// What is allowed to everybody together.
    Limits {
        /// How much may be used in a calendar window.
        budgets: Vec<At<Budget>> = "[]",
        /// How fast requests may come.
        rate: Rates = "[]",
    }
}

section! {
    /// How much may be used in a calendar window: dollars, tokens or requests, one of them.
    Budget {
        /// The window, by the calendar; a week begins on Monday, `total` never ends.
        per: Per = required,
        /// How many US dollars, with up to 9 decimals.
        usd: Usd<1>,
        /// How many tokens, in and out.
        tokens: Whole,
        /// How many requests of callers.
        requests: Whole,
        /// Whose calendar: a name of the IANA time zone database.
        timezone: Text = "UTC",
        /// Each end user has a budget of its own: for keys with `act_for: true`.
        per_user: bool = "false",
    }
}

section! {
    /// How fast requests may come: at least one of the three.
    Rate {
        /// Requests in any 60 seconds.
        requests_per_minute: Count<1, { u32::MAX }>,
        /// Tokens in any 60 seconds, in and out.
        tokens_per_minute: Count<1, { u32::MAX }>,
        /// Requests at the same time.
        concurrent: Count<1, { u32::MAX }>,
        /// Each end user has a rate of its own: for keys with `act_for: true`.
        per_user: bool = "false",
    }
}

section! {
    /// What tokens cost: US dollars for a million, with up to 6 decimals.
    Prices {
        /// Input.
        input: PerMillion = required,
        /// Input that the provider had in its cache. Default: as `input`.
        cached_input: PerMillion,
        /// Input that it put into its cache. Default: as `input`.
        cache_write: PerMillion,
        /// Output, reasoning included.
        output: PerMillion = required,
    }
}

/// One rate, or several.
#[derive(Clone, Debug)]
pub(crate) struct Rates(pub(crate) Vec<At<Rate>>);

impl Shape for Rates {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Map(_) => Rate::read(node, place, faults).map(|value| Self(vec![At { value, place: place.clone() }])),
            Value::List(_) => Vec::read(node, place, faults).map(Self),
            _ => wrong(node, place, "a mapping, or a list of them", faults),
        }
    }

    fn schema() -> Json {
        json!({ "anyOf": [Rate::schema(), Vec::<At<Rate>>::schema()] })
    }

    fn read_entry(entry: &Entry<Text>, path: &str, faults: &mut Faults) -> Option<At<Self>> {
        let place = Place::at(spot_of(entry), path);
        Self::read(&entry.value, &place, faults).map(|value| At { value, place })
    }
}

/// What a model costs.
#[derive(Clone, Debug)]
pub(crate) enum Price {
    /// Nothing, and that is meant.
    Free,
    /// Something.
    Paid(Box<Prices>),
}

const FREE: &str = "free";

impl Shape for Price {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        const WANTED: &str = "a mapping with `input` and `output`, or the word free";
        match &node.value {
            Value::Text(text) if text.whole() == FREE => Some(Self::Free),
            Value::Text(text) => {
                let near = nearest(&text.written, [FREE]).map_or("", |_| "; nearest: free");
                faults.add(place, format!("unknown word `{}`; allowed: {WANTED}{near}", text.written));
                None
            }
            Value::Map(_) => Prices::read(node, place, faults).map(Box::new).map(Self::Paid),
            _ => wrong(node, place, WANTED, faults),
        }
    }

    fn schema() -> Json {
        json!({ "anyOf": [Prices::schema(), or_filled(&json!({ "const": FREE }))] })
    }

    fn read_entry(entry: &Entry<Text>, path: &str, faults: &mut Faults) -> Option<At<Self>> {
        let place = Place::at(spot_of(entry), path);
        Self::read(&entry.value, &place, faults).map(|value| At { value, place })
    }
}

/// An amount of dollars; `MIN` is the least, in billionths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usd<const MIN: u64>(pub(crate) NanoUsd);

impl<const MIN: u64> Shape for Usd<MIN> {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let wanted = if MIN == 0 {
            "an amount of US dollars from 0, with up to 9 decimals"
        } else {
            "an amount of US dollars above 0, with up to 9 decimals"
        };
        let amount = |text: &str| NanoUsd::from_decimal(text).filter(|amount| (MIN..=MOST).contains(&amount.0)).map(Self);
        decimal(node, place, wanted, amount, faults)
    }

    fn schema() -> Json {
        let least = if MIN == 0 { "minimum" } else { "exclusiveMinimum" };
        or_filled(&json!({ "type": "number", least: 0 }))
    }
}

/// The most that can be counted: what databases can hold.
const MOST: u64 = i64::MAX.unsigned_abs();

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerMillion(pub(crate) PicoUsd);

impl Shape for PerMillion {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let price = |text: &str| PicoUsd::from_decimal_per_million(text).filter(|price| price.0 <= MOST).map(Self);
        decimal(node, place, "US dollars for a million tokens: from 0, with up to 6 decimals", price, faults)
    }

    fn schema() -> Json {
        or_filled(&json!({ "type": "number", "minimum": 0 }))
    }
}

/// Reads a decimal, written or filled in.
fn decimal<T>(
    node: &Node<Text>,
    place: &Place,
    wanted: &str,
    parse: impl Fn(&str) -> Option<T>,
    faults: &mut Faults,
) -> Option<T> {
    match &node.value {
        Value::Number(number) => number.plain().as_deref().and_then(parse).or_else(|| {
            faults.add(place, format!("{number} is not {wanted}"));
            None
        }),
        Value::Text(text) if !text.is_literal() => parse(text.whole().trim()).or_else(|| not_a(text, place, wanted, faults)),
        _ => wrong(node, place, wanted, faults),
    }
}

/// A whole number from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole(pub(crate) u64);

impl Shape for Whole {
    fn read(node: &Node<Text>, place: &Place, faults: &mut Faults) -> Option<Self> {
        let whole = |text: &str| text.parse().ok().filter(|number| (1..=MOST).contains(number)).map(Self);
        decimal(node, place, "a whole number from 1", whole, faults)
    }

    fn schema() -> Json {
        or_filled(&json!({ "type": "integer", "minimum": 1 }))
    }
}
