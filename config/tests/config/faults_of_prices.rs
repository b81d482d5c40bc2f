//! A limit in dollars needs prices: where a model on its path has none, it is refused.

use super::{accepted, refused};

/// `listed` and `priced` have a price, `free` is meant to have none to pay, and of `new` nobody knows.
const MODELS: &str = "  listed: { provider: p, upstream_model: gpt-4o-mini }\n  priced: { provider: own, price: { input: 1, output: 1 } }\n  free: { provider: own, price: free }\n";
const PROVIDERS: &str = "providers: { p: { kind: openai }, own: { kind: openai_compatible, base_url: 'http://127.0.0.1:1' } }\n";
const KEY: &str = "keys:\n  - name: a\n    act_for: true\n    hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa'\n";

/// The models come first, from the second line on. `MODELS` takes three lines, `KEY` four.
fn text(models: &str, rest: &str) -> String {
    format!("models:\n{}{}{PROVIDERS}", models.replace("MODELS\n", MODELS), rest.replace("KEY\n", KEY))
}

const NEEDS: &str = "a limit in dollars needs the price of every model that it covers, and none is known of";
const ALLOWED: &str = "allowed for a model: `price: { input: …, output: … }` in USD per million tokens, `price: free`";

/// Models, the rest of the file, and the places of limits with the models that lack a price.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

#[track_caller]
fn unpriced<const N: usize>(cases: [Case<'_>; N]) {
    for (models, rest, faults) in cases {
        let expected: Vec<_> = faults.iter().map(|(place, names)| format!("{place}: {NEEDS}: {names}; {ALLOWED}")).collect();
        refused([(&text(models, rest), &expected.join("\n"))]);
    }
}

#[test]
fn case_32_everybodys_dollars_need_the_price_of_every_model() {
    unpriced([
        (
            "MODELS\n  vendor/new-x: { provider: own }\n",
            "limits: { budgets: [ { per: day, usd: 5 }, { per: day, tokens: 5 }, { per: month, usd: 5 } ] }\n",
            &[("6:22: limits.budgets[0]", "vendor/new-x"), ("6:69: limits.budgets[2]", "vendor/new-x")],
        ),
        (
            "MODELS\n  known-4.1: { provider: p, upstream_model: known-4.1 }\n  typo: { provider: p, upstream_model: openai/gpt-4o-mini }\n  later: { provider: p, upstream_model: gpt-4o-mini-2099-01-01 }\n",
            "limits: { budgets: [ { per: day, usd: 5 } ] }\n",
            &[("8:22: limits.budgets[0]", "known-4.1, later, typo")],
        ),
        ("  '*': { provider: own }\n", "limits: { budgets: [ { per: day, usd: 5 } ] }\n", &[("3:22: limits.budgets[0]", "*")]),
    ]);
}

#[test]
fn case_32_a_keys_dollars_need_the_price_of_the_models_that_it_may_name_and_of_their_fallbacks() {
    unpriced([
        (
            "MODELS\n  new: { provider: own }\n",
            "KEY\n    budgets: [ { per: day, usd: 5 }, { per: day, usd: 1, per_user: true }, { per: day, requests: 1 } ]\n",
            &[("10:16: keys[0].budgets[0]", "new"), ("10:38: keys[0].budgets[1]", "new")],
        ),
        (
            "MODELS\n  new: { provider: own }\n  way: { provider: p, upstream_model: gpt-4o, fallback: [free, new] }\n",
            "KEY\n    models: [listed, way]\n    budgets: [ { per: total, usd: 5 } ]\n",
            &[("12:16: keys[0].budgets[0]", "new")],
        ),
        (
            "  '*': { provider: p }\n",
            "KEY\n    models: [gpt-4o, gpt-4o-typo]\n    budgets: [ { per: total, usd: 5 } ]\n",
            &[("8:16: keys[0].budgets[0]", "gpt-4o-typo")],
        ),
    ]);
}

#[test]
fn case_32_a_models_dollars_need_its_price_and_those_of_its_fallbacks() {
    unpriced([
        (
            "MODELS\n  new: { provider: own, budgets: [ { per: day, usd: 1 } ], tools: { max_cost_usd: 0.1 } }\n",
            "",
            &[("5:36: models.new.budgets[0]", "new"), ("5:83: models.new.tools.max_cost_usd", "new")],
        ),
        (
            "MODELS\n  new: { provider: own }\n  old: { provider: own, fallback: [new, free], budgets: [ { per: day, usd: 1 } ], tools: { max_cost_usd: 0.1 } }\n",
            "",
            &[("6:59: models.old.budgets[0]", "new, old"), ("6:106: models.old.tools.max_cost_usd", "new, old")],
        ),
        ("MODELS\n  '*': { provider: own, budgets: [ { per: day, usd: 1 } ] }\n", "", &[("5:36: models[\"*\"].budgets[0]", "*")]),
        (
            "MODELS\n  new: { provider: own }\n  '*': { provider: p, fallback: [new], budgets: [ { per: day, usd: 1 } ] }\n",
            "",
            &[("6:51: models[\"*\"].budgets[0]", "new")],
        ),
    ]);
}

#[test]
fn many_models_without_a_price_are_named_up_to_a_bound() {
    let models: String = (10..40).map(|n| format!("  m{n}: {{ provider: own }}\n")).collect();
    let names: Vec<_> = (10..34).map(|n| format!("m{n}")).collect();
    let names = format!("{} and 6 more", names.join(", "));
    unpriced([(&models, "limits: { budgets: [ { per: day, usd: 5 } ] }\n", &[("32:22: limits.budgets[0]", &names)])]);
}

#[test]
fn case_32_where_every_price_is_known_or_nothing_is_counted_in_dollars_nothing_is_refused() {
    for (models, rest) in [
        ("MODELS\n", "limits: { budgets: [ { per: day, usd: 5 } ] }\nKEY\n    budgets: [ { per: day, usd: 5 } ]\n"),
        ("MODELS\n  new: { provider: own, budgets: [ { per: day, tokens: 1 }, { per: day, requests: 1 } ] }\n", ""),
        (
            "MODELS\n  new: { provider: own }\n",
            "KEY\n    models: [listed, priced, free]\n    budgets: [ { per: day, usd: 5 } ]\n",
        ),
        (
            "MODELS\n  new: { provider: own }\n  way: { provider: own, price: free, fallback: [listed], tools: { max_cost_usd: 1 } }\n",
            "",
        ),
        // The names behind it are looked up when they are asked for.
        (
            "MODELS\n  '*': { provider: p, budgets: [ { per: day, usd: 1 } ] }\n",
            "limits: { budgets: [ { per: day, usd: 5 } ] }\n",
        ),
        ("MODELS\n  '*': { provider: own, price: free }\n", "limits: { budgets: [ { per: day, usd: 5 } ] }\n"),
        ("MODELS\n  '*': { provider: p }\n", "KEY\n    models: [gpt-4o]\n    budgets: [ { per: day, usd: 5 } ]\n"),
    ] {
        accepted(&text(models, rest));
    }
}

#[test]
fn a_model_that_is_faulty_itself_is_reported_for_that_alone() {
    refused([(
        &text("  new: { provider: own, price: 5 }\n", "limits: { budgets: [ { per: day, usd: 5 } ] }\n"),
        "2:32: models.new.price: wrong type: a number; allowed: a mapping with `input` and `output`, or the word free",
    )]);
}
