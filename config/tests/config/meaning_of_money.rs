//! What the money keys mean: amounts, windows, rates, prices from the file and from the catalogue, the store.

use std::path::Path;
use std::time::Duration;

use toolgate_config::limit::{Amount, Budget, Limits, Per, Rate};
use toolgate_config::model::CONTEXT_WINDOW;
use toolgate_config::money::{NanoUsd, PicoUsd};
use toolgate_config::price::Price;
use toolgate_config::store::{CountersUrl, OnCounterFailure, StoreUrl};

use super::accepted;

/// A budget in one line.
fn shown(budget: &Budget) -> String {
    let Budget { limit, per, timezone, per_user } = budget;
    format!(
        "{} {} {} {}{}",
        limit.unit().as_str(),
        limit.count(),
        per.as_str(),
        timezone.name(),
        if *per_user { " each" } else { "" }
    )
}

fn budgets(limits: &Limits) -> Vec<String> {
    limits.budgets.iter().map(shown).collect()
}

#[test]
fn budgets_and_rates_stand_where_they_are_written() {
    let config = accepted(
        "limits:\n  budgets: [ { per: month, usd: 2000, timezone: Europe/Berlin } ]\n  rate: { requests_per_minute: 6000 }\n\
         models:\n  m: { provider: p, price: free, budgets: [ { per: total, requests: 3 } ], rate: [ { tokens_per_minute: 5 } ] }\n\
         keys:\n  - name: shop\n    hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa'\n    act_for: true\n\
         \x20   budgets: [ { per: day, usd: 0.000000001 }, { per: week, tokens: 9007199254740993, per_user: true, timezone: asia/KATHMANDU } ]\n\
         \x20   rate: [ { requests_per_minute: 1, tokens_per_minute: 2, concurrent: 3 }, { concurrent: 1, per_user: true } ]\n\
         providers: { p: { kind: openai } }\n",
    );
    assert_eq!(budgets(&config.limits), ["usd 2000000000000 month Europe/Berlin"]);
    assert_eq!(config.limits.rates, [Rate { requests_per_minute: Some(6000), ..Rate::default() }]);
    let model = config.model("m").unwrap();
    assert_eq!(budgets(&model.limits), ["requests 3 total UTC"]);
    assert_eq!(model.limits.rates, [Rate { tokens_per_minute: Some(5), ..Rate::default() }]);
    let key = config.keys.iter().next().unwrap();
    assert_eq!(budgets(&key.limits), ["usd 1 day UTC", "tokens 9007199254740993 week Asia/Kathmandu each"]);
    assert_eq!(
        key.limits.rates,
        [
            Rate { requests_per_minute: Some(1), tokens_per_minute: Some(2), concurrent: Some(3), per_user: false },
            Rate { concurrent: Some(1), per_user: true, ..Rate::default() },
        ]
    );
}

#[test]
fn what_is_not_written_is_not_limited() {
    let config =
        accepted("limits: {}\nproviders: { p: { kind: openai } }\nmodels: { m: { provider: p, budgets: [], rate: [] } }\n");
    assert!(config.limits.budgets.is_empty() && config.limits.rates.is_empty());
    let limits = &config.model("m").unwrap().limits;
    assert!(limits.budgets.is_empty() && limits.rates.is_empty());
}

#[test]
fn an_amount_is_what_is_written_digit_for_digit() {
    for (written, nano) in [
        ("20", 20_000_000_000),
        ("20.0", 20_000_000_000),
        ("0.1", 100_000_000),
        ("9007199.254740993", 9_007_199_254_740_993),
        ("9223372036.854775807", i64::MAX.unsigned_abs()),
        ("1.10000000000000000000", 1_100_000_000),
        ("1e-9", 1),
        ("2.5e3", 2_500_000_000_000),
        ("${NUMBER}", 7_000_000_000),
        ("0.${NUMBER}5", 750_000_000),
    ] {
        let config = accepted(&format!("limits:\n  budgets:\n  - per: day\n    usd: {written}\n"));
        assert_eq!(config.limits.budgets[0].limit, Amount::Usd(NanoUsd(nano)), "{written}");
    }
}

#[test]
fn every_window_has_its_word() {
    for per in Per::ALL {
        let config = accepted(&format!("limits: {{ budgets: [ {{ per: {}, tokens: '${{NUMBER}}' }} ] }}\n", per.as_str()));
        assert_eq!((config.limits.budgets[0].per, config.limits.budgets[0].limit), (per, Amount::Tokens(7)));
    }
}

const PROVIDERS: &str = "providers: { p: { kind: openai }, own: { kind: openai_compatible, base_url: 'http://127.0.0.1:1' } }\n";

/// A price as its four numbers: input, cached, cache write, output.
fn pico(price: Price) -> [u64; 4] {
    [price.input, price.cached_input, price.cache_write, price.output].map(|PicoUsd(pico)| pico)
}

#[test]
fn a_price_is_that_of_the_file_then_that_of_the_catalogue_then_not_known() {
    for (model, price, window, most) in [
        ("provider: p, upstream_model: gpt-4o-mini", Some([150_000, 75_000, 150_000, 600_000]), 128_000, Some(16_384)),
        ("provider: p, upstream_model: gpt-4o-mini, price: free", Some([0; 4]), 128_000, Some(16_384)),
        (
            "provider: p, upstream_model: gpt-4o-mini, context_window: 9",
            Some([150_000, 75_000, 150_000, 600_000]),
            9,
            Some(16_384),
        ),
        (
            "provider: p, price: { input: 1.5, output: 0.000001 }",
            Some([1_500_000, 1_500_000, 1_500_000, 1]),
            CONTEXT_WINDOW,
            None,
        ),
        (
            "provider: own, price: { input: 0, cached_input: '${NUMBER}', cache_write: 3, output: 2.50 }",
            Some([0, 7_000_000, 3_000_000, 2_500_000]),
            CONTEXT_WINDOW,
            None,
        ),
        ("provider: own, upstream_model: gpt-4o-mini", None, CONTEXT_WINDOW, None),
        ("provider: p, upstream_model: gpt-4o-mini-2099-01-01", None, CONTEXT_WINDOW, None),
        ("provider: p, upstream_model: openai/gpt-4o-mini", None, CONTEXT_WINDOW, None),
    ] {
        let config = accepted(&format!("models: {{ m: {{ {model} }} }}\n{PROVIDERS}"));
        let found = config.model("m").unwrap();
        assert_eq!(found.price.map(pico), price, "{model}");
        assert_eq!((found.window(), found.max_output), (window, most), "{model}");
    }
}

#[test]
fn a_name_behind_the_asterisk_has_a_price_of_its_own() {
    let config = accepted(&format!("models: {{ '*': {{ provider: p }} }}\n{PROVIDERS}"));
    let price = |name| config.model(name).unwrap().price.map(pico);
    assert_eq!(price("gpt-4o"), Some([2_500_000, 1_250_000, 2_500_000, 10_000_000]));
    assert_eq!(price("gpt-4o-typo"), None);
    assert_eq!(config.models.any.as_ref().unwrap().price, None);
    let config = accepted(&format!("models: {{ '*': {{ provider: p, price: {{ input: 1, output: 2 }} }} }}\n{PROVIDERS}"));
    assert_eq!(config.model("gpt-4o").unwrap().price.map(pico), Some([1_000_000, 1_000_000, 1_000_000, 2_000_000]));
}

#[test]
fn a_run_and_a_tool_may_have_a_price() {
    let config = accepted(&format!(
        "models: {{ m: {{ provider: p, price: free, tools: {{ max_cost_usd: 0.50 }} }}, n: {{ provider: p }} }}\n\
         groups: {{ g: {{ data_class: public, egress: ['127.0.0.1:80'] }} }}\n\
         tools:\n  - {{ name: a, group: g, price: 0.002, http: {{ url: 'http://127.0.0.1/' }} }}\n\
         \x20 - {{ name: b, group: g, price: 0, http: {{ url: 'http://127.0.0.1/' }} }}\n\
         \x20 - {{ name: c, group: g, http: {{ url: 'http://127.0.0.1/' }} }}\n{PROVIDERS}"
    ));
    assert_eq!(config.model("m").unwrap().caps.max_cost, Some(NanoUsd(500_000_000)));
    assert_eq!(config.model("n").unwrap().caps.max_cost, None);
    let prices: Vec<_> = config.tools.iter().map(|tool| tool.rule.price).collect();
    assert_eq!(prices, [Some(NanoUsd(2_000_000)), None, None]);
}

#[test]
fn a_store_is_a_file_beside_the_configuration_unless_it_is_said() {
    let store = accepted("server: {}\n").store;
    assert!(matches!(&store.url, StoreUrl::Sqlite(path) if path == Path::new("toolgate.db")));
    assert!(matches!(store.counters, CountersUrl::Memory));
    assert_eq!(store.on_counter_failure, OnCounterFailure::Refuse);
    assert_eq!((store.keep_traces, store.keep_ledger), (days(30), days(400)));
    let store = accepted(
        "store: { url: 'postgres://u:${SECRET}@h/d', counters: 'redis://h/1', on_counter_failure: local, keep: { ledger: 1d } }\n",
    )
    .store;
    assert!(matches!(&store.url, StoreUrl::Postgres(url) if url.expose() == "postgres://u:s3cret@h/d"));
    assert!(matches!(&store.counters, CountersUrl::Redis(url) if url.expose() == "redis://h/1"));
    assert_eq!(store.on_counter_failure, OnCounterFailure::Local);
    assert_eq!((store.keep_traces, store.keep_ledger), (days(30), days(1)));
    assert!(matches!(accepted("store: { url: none }\n").store.url, StoreUrl::None));
}

const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

#[test]
fn the_path_of_a_store_is_relative_to_the_file() {
    use toolgate_config::check::{Source, read};
    for (url, path) in [
        ("sqlite:toolgate.db", "/etc/toolgate/toolgate.db"),
        ("sqlite:../lib/t.db", "/etc/toolgate/../lib/t.db"),
        ("sqlite:/var/lib/t.db", "/var/lib/t.db"),
        ("sqlite://t.db", "/etc/toolgate/t.db"),
        ("sqlite:///var/lib/t.db", "/var/lib/t.db"),
        ("sqlite:${NAME}.db", "/etc/toolgate/x.db"),
    ] {
        let text = format!("store: {{ url: '{url}' }}\n");
        let source = Source { path: Path::new("/etc/toolgate/toolgate.yaml"), text: &text, env: &|_| Some("x".to_owned()) };
        let store = read(&source).unwrap().store;
        assert!(matches!(&store.url, StoreUrl::Sqlite(seen) if seen == Path::new(path)), "{url}: {store:?}");
    }
}
