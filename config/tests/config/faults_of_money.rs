//! Faults of `budgets:`, `rate:` and `price:`.

use super::refused;

const PROVIDERS: &str = "providers: { p: { kind: openai }, own: { kind: openai_compatible, base_url: 'http://127.0.0.1:1' } }\n";
const HASH: &str = "hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa'";

/// Each text stands before two providers, one with a catalogue and one without; `HASH` is a hash.
#[track_caller]
fn refused_money<const N: usize>(cases: [(&str, &str); N]) {
    for (text, expected) in cases {
        refused([(&format!("{}{PROVIDERS}", text.replace("HASH", HASH)), expected)]);
    }
}

#[test]
fn a_budget_has_a_window_and_one_amount() {
    refused_money([
        (
            "limits:\n  budgets:\n    - {}\n    - { per: day }\n    - { tokens: 5 }\n    - { per: day, usd: 1, tokens: 5, requests: 0 }\n    - 5\n",
            "3:7: limits.budgets[0]: `per` is missing\n\
             3:7: limits.budgets[0]: a budget has exactly one of: usd, tokens, requests; here: none\n\
             4:7: limits.budgets[1]: a budget has exactly one of: usd, tokens, requests; here: none\n\
             5:7: limits.budgets[2]: `per` is missing\n\
             6:7: limits.budgets[3]: a budget has exactly one of: usd, tokens, requests; here: usd, tokens, requests\n\
             6:48: limits.budgets[3].requests: 0 is not a whole number from 1\n\
             7:7: limits.budgets[4]: wrong type: a number; allowed: a mapping",
        ),
        ("limits: { budgets: { per: day, usd: 1 } }\n", "1:20: limits.budgets: wrong type: a mapping; allowed: a list"),
        (
            "limits: { budgets: [ { per: days, tokens: 1 }, { per: yearly, tokens: 1 }, { per: 60s, tokens: 1 } ] }\n",
            "1:29: limits.budgets[0].per: unknown word `days`; allowed: minute, hour, day, week, month, total; nearest: day\n\
             1:55: limits.budgets[1].per: unknown word `yearly`; allowed: minute, hour, day, week, month, total\n\
             1:83: limits.budgets[2].per: unknown word `60s`; allowed: minute, hour, day, week, month, total",
        ),
        (
            "limits: { budget: [], rates: {} }\n",
            "1:11: limits.budget: unknown key; allowed: budgets, rate; nearest: budgets\n\
             1:23: limits.rates: unknown key; allowed: budgets, rate; nearest: rate",
        ),
        (
            "limits: { budgets: [ { per: day, eur: 1 } ] }\n",
            "1:22: limits.budgets[0]: a budget has exactly one of: usd, tokens, requests; here: none\n\
             1:34: limits.budgets[0].eur: unknown key; allowed: per, usd, tokens, requests, timezone, per_user; nearest: per",
        ),
    ]);
}

#[test]
fn an_amount_is_read_digit_for_digit() {
    refused_money([
        (
            "limits:\n  budgets:\n    - { per: day, usd: 0 }\n    - { per: day, usd: -1 }\n    - { per: day, usd: 0.0000000001 }\n    - { per: day, usd: '1' }\n    - { per: day, usd: '${BAD}' }\n    - { per: day, usd: 9223372036.854775808 }\n    - { per: day, usd: 1.0000000000000000001 }\n    - { per: day, usd: true }\n    - { per: day, usd: $5 }\n",
            "3:24: limits.budgets[0].usd: 0 is not an amount of US dollars above 0, with up to 9 decimals\n\
             4:24: limits.budgets[1].usd: -1 is not an amount of US dollars above 0, with up to 9 decimals\n\
             5:24: limits.budgets[2].usd: 0.0000000001 is not an amount of US dollars above 0, with up to 9 decimals\n\
             6:24: limits.budgets[3].usd: wrong type: text; allowed: an amount of US dollars above 0, with up to 9 decimals\n\
             7:24: limits.budgets[4].usd: `${BAD}` is not an amount of US dollars above 0, with up to 9 decimals\n\
             8:24: limits.budgets[5].usd: 9223372036.854775808 is not an amount of US dollars above 0, with up to 9 decimals\n\
             9:24: limits.budgets[6].usd: 1.0000000000000000001 is not an amount of US dollars above 0, with up to 9 decimals\n\
             10:24: limits.budgets[7].usd: wrong type: true or false; allowed: an amount of US dollars above 0, with up to 9 decimals\n\
             11:24: limits.budgets[8].usd: wrong type: text; allowed: an amount of US dollars above 0, with up to 9 decimals",
        ),
        (
            "limits: { budgets: [ { per: day, tokens: 1.5 }, { per: day, tokens: -5 }, { per: day, requests: 99999999999999999999 }, { per: day, requests: many } ] }\n",
            "1:42: limits.budgets[0].tokens: 1.5 is not a whole number from 1\n\
             1:69: limits.budgets[1].tokens: -5 is not a whole number from 1\n\
             1:97: limits.budgets[2].requests: 99999999999999999999 is not a whole number from 1\n\
             1:143: limits.budgets[3].requests: wrong type: text; allowed: a whole number from 1",
        ),
        (
            "limits: { budgets: [ { per: day, usd: .inf } ] }\n",
            "1:39: this is not YAML: non-finite float `.inf` rejected by the configured policy",
        ),
        (
            "models: { m: { provider: p, upstream_model: gpt-4o, tools: { max_cost_usd: 0 } } }\ntools: [ { name: t, group: g, price: -0.1, http: { url: 'http://127.0.0.1/' } } ]\ngroups: { g: { data_class: public, egress: ['127.0.0.1:80'] } }\n",
            "1:76: models.m.tools.max_cost_usd: 0 is not an amount of US dollars above 0, with up to 9 decimals\n\
             2:38: tools[0].price: -0.1 is not an amount of US dollars from 0, with up to 9 decimals",
        ),
    ]);
}

#[test]
fn a_time_zone_has_a_name() {
    refused_money([(
        "limits:\n  budgets:\n    - { per: day, tokens: 1, timezone: Europe/Berln }\n    - { per: day, tokens: 1, timezone: berlin }\n    - { per: day, tokens: 1, timezone: New York }\n    - { per: day, tokens: 1, timezone: '' }\n    - { per: day, tokens: 1, timezone: +02:00 }\n    - { per: day, tokens: 1, timezone: 2 }\n    - { per: day, tokens: 1, timezone: ../../etc/passwd }\n",
        "3:40: limits.budgets[0].timezone: no time zone is named `Europe/Berln`; allowed: the names of the IANA time zone database, such as UTC, Europe/Berlin; nearest: Europe/Berlin\n\
             4:40: limits.budgets[1].timezone: no time zone is named `berlin`; allowed: the names of the IANA time zone database, such as UTC, Europe/Berlin; nearest: Europe/Berlin\n\
             5:40: limits.budgets[2].timezone: no time zone is named `New York`; allowed: the names of the IANA time zone database, such as UTC, Europe/Berlin; nearest: America/New_York\n\
             6:40: limits.budgets[3].timezone: no time zone is named ``; allowed: the names of the IANA time zone database, such as UTC, Europe/Berlin\n\
             7:40: limits.budgets[4].timezone: no time zone is named `+02:00`; allowed: the names of the IANA time zone database, such as UTC, Europe/Berlin\n\
             8:40: limits.budgets[5].timezone: wrong type: a number; allowed: text (in quotes, if it looks like something else)\n\
             9:40: limits.budgets[6].timezone: no time zone is named `../../etc/passwd`; allowed: the names of the IANA time zone database, such as UTC, Europe/Berlin",
    )]);
}

#[test]
fn end_users_are_those_of_a_key_that_may_name_them() {
    refused_money([
        (
            "limits:\n  budgets: [ { per: day, tokens: 1, per_user: true } ]\n  rate: { concurrent: 1, per_user: true }\n\
             models:\n  m: { provider: p, budgets: [ { per: day, tokens: 1, per_user: true } ], rate: [ { concurrent: 1, per_user: true } ] }\n",
            "2:47: limits.budgets[0].per_user: end users are those of a key; `per_user: true` is allowed in `keys` only\n\
             3:36: limits.rate.per_user: end users are those of a key; `per_user: true` is allowed in `keys` only\n\
             5:65: models.m.budgets[0].per_user: end users are those of a key; `per_user: true` is allowed in `keys` only\n\
             5:110: models.m.rate[0].per_user: end users are those of a key; `per_user: true` is allowed in `keys` only",
        ),
        (
            "keys:\n  - name: a\n    HASH\n    budgets: [ { per: day, tokens: 1, per_user: true } ]\n    rate: { concurrent: 1, per_user: true }\n",
            "4:49: keys[0].budgets[0].per_user: this key cannot name an end user; `per_user: true` goes with `act_for: true`\n\
             5:38: keys[0].rate.per_user: this key cannot name an end user; `per_user: true` goes with `act_for: true`",
        ),
    ]);
}

#[test]
fn a_rate_limits_something() {
    refused_money([
        (
            "limits: { rate: {} }\n",
            "1:11: limits.rate: a rate has at least one of: requests_per_minute, tokens_per_minute, concurrent; here: none",
        ),
        (
            "limits:\n  rate:\n    - { requests_per_minute: 0, tokens_per_minute: 4294967296, concurrent: 1.5 }\n    - { per_user: false }\n    - {requests_per_second: 1 }\n    - 60\n",
            "3:30: limits.rate[0].requests_per_minute: 0 is not a whole number from 1\n\
             3:52: limits.rate[0].tokens_per_minute: 4294967296 is not a whole number from 1\n\
             3:76: limits.rate[0].concurrent: 1.5 is not a whole number from 1\n\
             4:7: limits.rate[1]: a rate has at least one of: requests_per_minute, tokens_per_minute, concurrent; here: none\n\
             5:7: limits.rate[2]: a rate has at least one of: requests_per_minute, tokens_per_minute, concurrent; here: none\n\
             5:8: limits.rate[2].requests_per_second: unknown key; allowed: requests_per_minute, tokens_per_minute, concurrent, per_user; nearest: requests_per_minute\n\
             6:7: limits.rate[3]: wrong type: a number; allowed: a mapping",
        ),
        ("limits: { rate: 60 }\n", "1:17: limits.rate: wrong type: a number; allowed: a mapping, or a list of them"),
    ]);
}

#[test]
fn one_limit_does_not_hide_another() {
    refused_money([
        (
            "limits:\n  budgets:\n    - { per: day, tokens: 1 }\n    - { per: day, tokens: 2, timezone: utc }\n    - { per: day, tokens: 2, timezone: Europe/Berlin }\n    - { per: hour, tokens: 2 }\n    - { per: day, requests: 2 }\n",
            "4:7: limits.budgets[1]: two budgets of tokens per day in UTC; the first is `limits.budgets[0]` at line 3, column 7",
        ),
        (
            "keys:\n  - name: a\n    act_for: true\n    HASH\n    budgets:\n      - { per: day, tokens: 1, per_user: true, timezone: Europe/Berlin }\n      - { per: day, tokens: 1, timezone: Europe/Berlin }\n      - { per: day, tokens: 1, per_user: true, timezone: europe/berlin }\n",
            "8:9: keys[0].budgets[2]: two budgets of tokens per day in Europe/Berlin for each end user; the first is `keys[0].budgets[0]` at line 6, column 9",
        ),
        (
            "keys:\n  - name: a\n    act_for: true\n    HASH\n    rate:\n      - { requests_per_minute: 1, concurrent: 1 }\n      - { requests_per_minute: 2, tokens_per_minute: 1 }\n      - { concurrent: 1, per_user: true }\n      - { concurrent: 1, requests_per_minute: 1, per_user: true }\n",
            "7:32: keys[0].rate[1].requests_per_minute: two rates of requests_per_minute; the first is `keys[0].rate[0].requests_per_minute` at line 6, column 32\n\
             9:23: keys[0].rate[3].concurrent: two rates of concurrent for each end user; the first is `keys[0].rate[2].concurrent` at line 8, column 23",
        ),
    ]);
}

#[test]
fn a_price_is_two_numbers_or_free() {
    refused_money([
        (
            "models:\n  m: { provider: p, price: {} }\n",
            "2:21: models.m.price: `input` is missing\n2:21: models.m.price: `output` is missing",
        ),
        (
            "models:\n  m: { provider: p, price: { input: 1, ouput: 2 } }\n",
            "2:21: models.m.price: `output` is missing\n\
             2:40: models.m.price.ouput: unknown key; allowed: input, cached_input, cache_write, output; nearest: output",
        ),
        (
            "models:\n  m: { provider: p, price: fre }\n  n: { provider: p, price: 0 }\n  o: { provider: p, price: none }\n  q: { provider: p, price: [] }\n",
            "2:28: models.m.price: unknown word `fre`; allowed: a mapping with `input` and `output`, or the word free; nearest: free\n\
             3:28: models.n.price: wrong type: a number; allowed: a mapping with `input` and `output`, or the word free\n\
             4:28: models.o.price: unknown word `none`; allowed: a mapping with `input` and `output`, or the word free\n\
             5:28: models.q.price: wrong type: a list; allowed: a mapping with `input` and `output`, or the word free",
        ),
        (
            "models:\n  m: { provider: p, context_window: 0, price: { input: 0.1234567, output: -1, cached_input: x, cache_write: '${BAD}' } }\n",
            "2:37: models.m.context_window: 0 is not a whole number from 1\n\
             2:56: models.m.price.input: 0.1234567 is not US dollars for a million tokens: from 0, with up to 6 decimals\n\
             2:75: models.m.price.output: -1 is not US dollars for a million tokens: from 0, with up to 6 decimals\n\
             2:93: models.m.price.cached_input: wrong type: text; allowed: US dollars for a million tokens: from 0, with up to 6 decimals\n\
             2:109: models.m.price.cache_write: `${BAD}` is not US dollars for a million tokens: from 0, with up to 6 decimals",
        ),
    ]);
}
