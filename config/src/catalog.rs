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
        ProviderKind::Anthropic => Some("anthropic"),
        ProviderKind::Gemini => Some("gemini"),
        ProviderKind::Groq => Some("groq"),
        ProviderKind::Mistral => Some("mistral"),
        ProviderKind::OpenRouter | ProviderKind::Ollama | ProviderKind::OpenAiCompatible => None,
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The lines of the list, the heading left out.
    fn lines() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        LIST.lines().skip(1).map(|line| (line, line.split(',').collect()))
    }

    #[test]
    fn every_line_is_read_whole() {
        for (line, fields) in lines() {
            assert_eq!(fields.len(), 11, "{line}");
            assert!(fields[..3].iter().all(|field| !field.is_empty() && field.trim() == *field), "{line}");
            assert!(matches!(fields[2], "chat" | "embedding"), "{line}");
            assert!(
                fields[3..7].iter().all(|price| price.is_empty() || PicoUsd::from_decimal_per_million(price).is_some()),
                "{line}"
            );
            assert!(
                fields[7..9].iter().all(|count| count.is_empty() || count.parse::<u32>().is_ok_and(|count| count > 0)),
                "{line}"
            );
            assert!(fields[9..].iter().all(|flag| matches!(*flag, "yes" | "no")), "{line}");
        }
        assert!(lines().count() > 500);
    }

    #[test]
    fn no_model_is_listed_twice() {
        let mut seen = HashSet::new();
        for (line, fields) in lines() {
            assert!(seen.insert((fields[0], fields[1])), "{line}");
        }
        assert_eq!(CATALOG.values().map(HashMap::len).sum::<usize>(), seen.len());
    }

    #[test]
    fn a_price_is_known_of_every_model_that_is_listed() {
        for (line, fields) in lines() {
            let (_, _, listing) = listing(line).unwrap();
            let price = listing.price.unwrap_or_else(|| panic!("{line}"));
            assert!(price.cached_input <= price.input, "what is cached costs more: {line}");
            if fields[0] == "openai" {
                assert!(price.input.0 > 0 && (price.output.0 > 0 || fields[2] == "embedding"), "nothing is free there: {line}");
                assert!(
                    listing.max_output.is_none_or(|most| listing.context_window.is_some_and(|window| most <= window)),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn some_prices_by_heart() {
        let pico = |price: Price| [price.input, price.cached_input, price.cache_write, price.output].map(|price| price.0);
        for (model, expected, window, most) in [
            ("gpt-4o-mini", [150_000, 75_000, 150_000, 600_000], 128_000, Some(16_384)),
            ("gpt-4o", [2_500_000, 1_250_000, 2_500_000, 10_000_000], 128_000, Some(16_384)),
            ("o3-mini", [1_100_000, 550_000, 1_100_000, 4_400_000], 200_000, Some(100_000)),
            ("gpt-5.6", [4_000_000, 400_000, 5_000_000, 20_000_000], 922_000, Some(128_000)),
            ("text-embedding-3-small", [20_000, 20_000, 20_000, 0], 8_191, None),
        ] {
            let listing = find(ProviderKind::OpenAi, model).unwrap();
            assert_eq!(listing.price.map(pico), Some(expected), "{model}");
            assert_eq!((listing.context_window, listing.max_output), (Some(window), most), "{model}");
        }
    }

    #[test]
    fn case_32_a_name_is_found_only_as_it_is_listed() {
        assert!(find(ProviderKind::OpenAi, "gpt-4o-mini-2024-07-18").is_some());
        for name in [
            "gpt-4o-mini-2099-01-01",
            "openai/gpt-4o-mini",
            "GPT-4o-mini",
            "gpt-4o-mini ",
            "gpt-4o-min",
            "gpt-4.o-mini",
            "gpt-4-1",
            "known-4.1",
            "ft:gpt-4o-mini:shop",
            "",
            "*",
            "model",
        ] {
            assert_eq!(find(ProviderKind::OpenAi, name), None, "{name}");
        }
        assert!(find(ProviderKind::OpenAi, "gpt-4.1").is_some());
    }

    #[test]
    fn each_kind_finds_its_own_models_and_those_that_sell_others_find_none() {
        for (kind, model) in [
            (ProviderKind::OpenAi, "gpt-4o-mini"),
            (ProviderKind::Anthropic, "claude-haiku-4-5"),
            (ProviderKind::Gemini, "gemini-2.5-flash"),
            (ProviderKind::Groq, "openai/gpt-oss-120b"),
            (ProviderKind::Mistral, "mistral-large-latest"),
        ] {
            assert!(has(kind) && find(kind, model).is_some_and(|listing| listing.price.is_some()), "{model}");
        }
        for kind in [ProviderKind::OpenRouter, ProviderKind::Ollama, ProviderKind::OpenAiCompatible] {
            for model in ["gpt-4o-mini", "openai/gpt-4o-mini", "mistral-large-latest"] {
                assert_eq!((has(kind), find(kind, model)), (false, None), "{model}");
            }
        }
    }

    #[test]
    fn what_the_list_leaves_open_is_not_known() {
        for (line, price, window) in [
            ("openai,x,chat,1,0.5,2,4,10,5,no,no", Some([1_000_000, 500_000, 2_000_000, 4_000_000]), Some(10)),
            ("openai,x,chat,1,,,4,10,5,no,no", Some([1_000_000, 1_000_000, 1_000_000, 4_000_000]), Some(10)),
            ("openai,x,chat,0,,,0,,,no,no", Some([0; 4]), None),
            ("openai,x,chat,1,,,,10,5,no,no", None, Some(10)),
            ("openai,x,chat,,,,4,10,5,no,no", None, Some(10)),
            ("openai,x,embedding,1,,,,10,,no,no", Some([1_000_000, 1_000_000, 1_000_000, 0]), Some(10)),
        ] {
            let (_, _, listing) = listing(line).unwrap();
            let pico = |price: Price| [price.input, price.cached_input, price.cache_write, price.output].map(|price| price.0);
            assert_eq!((listing.price.map(pico), listing.context_window), (price, window), "{line}");
        }
        assert!(listing("openai,x,chat").is_none());
    }
}
