//! Faults of `providers:` and `models:`.

use super::refused;

#[test]
fn a_provider_has_a_kind_and_an_address() {
    refused([
        ("providers:\n  p: {}\n", "2:3: providers.p: `kind` is missing"),
        (
            "providers:\n  p: { kind: openai_compatible }\n",
            "2:3: providers.p: `base_url` is missing; `openai_compatible` has no address of its own",
        ),
        (
            "providers: { p: { kind: opnai, base_url: 'api.example.org' } }\n",
            "1:25: providers.p.kind: unknown word `opnai`; allowed: openai, anthropic, gemini, groq, mistral, openrouter, ollama, openai_compatible; nearest: openai\n\
             1:42: providers.p.base_url: this is no base URL: it has no scheme; http:// or https://",
        ),
        (
            "providers: { p: { kind: openai, base_url: 'ftp://a/' }, q: { kind: openai, base_url: 'https://u:s3cret@a/' } }\n",
            "1:43: providers.p.base_url: this is no base URL: its scheme is neither http nor https\n\
             1:86: providers.q.base_url: this is no base URL: it carries a user name or a password",
        ),
        (
            "providers: { p: { kind: openai, base_url: 'https://a/?x=1' }, q: { kind: openai, base_url: 'https://a:0/' } }\n",
            "1:43: providers.p.base_url: this is no base URL: it has a query or a fragment\n\
             1:92: providers.q.base_url: this is no base URL: its port is no number from 1 to 65535",
        ),
    ]);
}

#[test]
fn a_key_in_clear_is_for_loopback_only() {
    refused([
        (
            "providers: { p: { kind: openai, api_key: sk-s3cret } }\n",
            "1:42: providers.p.api_key: a key in clear for a provider that is not on loopback; allowed: ${NAME}, ${file:PATH}",
        ),
        (
            "providers: { p: { kind: openai_compatible, base_url: 'http://10.0.0.1/v1', api_key: sk-s3cret } }\n",
            "1:85: providers.p.api_key: a key in clear for a provider that is not on loopback; allowed: ${NAME}, ${file:PATH}",
        ),
        ("providers: { p: { kind: openai, api_key: '${EMPTY}' } }\n", "1:42: providers.p.api_key: the credential is empty"),
    ]);
}

const PROVIDER: &str = "providers: { openai: { kind: openai } }\n";

#[track_caller]
fn refused_models<const N: usize>(cases: [(&str, &str); N]) {
    for (text, expected) in cases {
        refused([(&format!("{text}{PROVIDER}"), expected)]);
    }
}

#[test]
fn what_a_model_names_exists() {
    refused_models([
        ("models:\n  m: {}\n", "2:3: models.m: `provider` is missing"),
        (
            "models:\n  m: { provider: opnai }\n",
            "2:18: models.m.provider: no provider is named `opnai`; allowed: openai; nearest: openai",
        ),
        (
            "models:\n  m: { provider: openai, upstream_model: '', tools: { groups: [orders], names: [get_order] } }\n",
            "2:42: models.m.upstream_model: the name is empty\n\
             2:64: models.m.tools.groups[0]: no group is named `orders`; there are none\n\
             2:81: models.m.tools.names[0]: no tool is named `get_order`; there are none",
        ),
        (
            "models:\n  m: { provider: openai, tools: { groups: [order], names: [get-order] } }\ngroups: { orders: { data_class: public, egress: ['a:443'] } }\ntools: [ { name: get_order, group: orders, http: { url: 'https://a/' } } ]\n",
            "2:44: models.m.tools.groups[0]: no group is named `order`; allowed: orders; nearest: orders\n\
             2:60: models.m.tools.names[0]: no tool is named `get-order`; allowed: get_order; nearest: get_order",
        ),
    ]);
}

#[test]
fn fallbacks_exist_and_lead_on() {
    refused_models([
        (
            "models:\n  m: { provider: openai, fallback: [x, '*'] }\n  '*': { provider: openai }\n",
            "2:37: models.m.fallback[0]: no model is named `x`; allowed: m\n\
             2:40: models.m.fallback[1]: no model is named `*`; allowed: m",
        ),
        (
            "models:\n  a: { provider: openai, fallback: [a] }\n",
            "2:37: models.a.fallback[0]: the fallbacks go in a circle: a -> a",
        ),
        (
            "models:\n  a: { provider: openai, fallback: [b] }\n  b: { provider: openai, fallback: [c] }\n  c: { provider: openai, fallback: [b] }\n",
            "3:37: models.b.fallback[0]: the fallbacks go in a circle: b -> c -> b\n\
             4:37: models.c.fallback[0]: the fallbacks go in a circle: c -> b -> c",
        ),
    ]);
}

#[test]
fn the_model_for_every_other_name_has_nothing_of_its_own() {
    refused_models([(
        "models:\n  '*': { provider: openai, tools: {}, upstream_model: x }\n",
        "2:28: models[\"*\"].tools: `\"*\"` passes through without tools\n\
             2:55: models[\"*\"].upstream_model: `\"*\"` passes each name through as it is",
    )]);
}

#[test]
fn params_are_not_what_the_caller_or_the_gateway_says() {
    refused_models([(
        "models: { m: { provider: openai, params: { stream: true, tools: [], temperature: 1 } } }\n",
        "1:42: models.m.params.stream: `stream` cannot be set for every request; never allowed here: messages, model, stream, stream_options, tools, tool_choice, n, functions, function_call\n\
             1:42: models.m.params.tools: `tools` cannot be set for every request; never allowed here: messages, model, stream, stream_options, tools, tool_choice, n, functions, function_call",
    )]);
}
