//! Faults of single values: types, words, keys, what is filled in, what is not there yet.

use super::refused;

#[test]
fn no_fault_hides_another_and_all_are_in_the_order_of_the_file() {
    refused([(
        "tools:\n  - { name: t, group: labb, http: { url: 'https://{x}/' }, timeout: 5 }\n\
         models:\n  m: { provider: mok, tool: {}, tools: { max_rounds: 21 } }\n\
         providers:\n  mock: { kind: openai_compatable, api_key: '${NOWHERE}' }\n\
         groups:\n  lab: { data_clas: internal }\n\
         server: { listen: here }\n",
        "2:23: tools[0].group: no group is named `labb`; allowed: lab; nearest: lab\n\
         2:42: tools[0].http.url: scheme, host and port hold no parameter: where a request goes is not the model's business\n\
         2:69: tools[0].timeout: wrong type: a number; allowed: a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
         4:18: models.m.provider: no provider is named `mok`; allowed: mock; nearest: mock\n\
         4:23: models.m.tool: unknown key; allowed: provider, upstream_model, system_prompt, params, price, context_window, tools, stream_hold, fallback, budgets, rate; nearest: tools\n\
         4:54: models.m.tools.max_rounds: 21 is not a whole number from 1 to 20\n\
         6:17: providers.mock.kind: unknown word `openai_compatable`; allowed: openai, anthropic, gemini, groq, mistral, openrouter, ollama, openai_compatible; nearest: openai_compatible\n\
         6:45: providers.mock.api_key: the environment variable `NOWHERE` is not set\n\
         8:10: groups.lab.data_clas: unknown key; allowed: enabled, data_class, personal, egress, trust_zone; nearest: data_class\n\
         9:19: server.listen: `here` is no address; allowed: 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080, unix:/path",
    )]);
}

#[test]
fn a_file_that_cannot_be_read_is_a_fault_of_the_file() {
    let faults = toolgate_config::check::load(std::path::Path::new("/nowhere/toolgate.yaml")).unwrap_err();
    let shown: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["/nowhere/toolgate.yaml:1:1: the file cannot be read: No such file or directory (os error 2)"]);
}

#[test]
fn what_is_no_mapping_is_no_configuration() {
    refused([
        ("", "1:1: wrong type: nothing; allowed: a mapping"),
        ("# nothing yet\n", "1:1: wrong type: nothing; allowed: a mapping"),
        ("- a\n", "1:1: wrong type: a list; allowed: a mapping"),
        ("a: [1\nb: 2\n", "2:2: this is not YAML: illegal placement of ':' indicator"),
        ("auth: none\n---\nauth: keys\n", "3:1: a second document begins here; the file is one document"),
    ]);
}

#[test]
fn an_unknown_key_is_answered_with_those_that_are_known() {
    refused([
        (
            "sever: {}\n",
            "1:1: sever: unknown key; allowed: server, auth, providers, models, keys, limits, groups, tools, mcp_servers, openapi, enforcement, redaction, store, telemetry; nearest: server",
        ),
        (
            "server:\n  listn: 127.0.0.1:1\n  xyzzy: 1\n",
            "2:3: server.listn: unknown key; allowed: listen, admin_listen, admin_token, tls, max_body, header_timeout, request_timeout, max_concurrent, shutdown_grace; nearest: listen\n\
             3:3: server.xyzzy: unknown key; allowed: listen, admin_listen, admin_token, tls, max_body, header_timeout, request_timeout, max_concurrent, shutdown_grace",
        ),
        (
            "providers:\n  'a.b': { kind: openai, model: x }\n",
            "2:26: providers[\"a.b\"].model: unknown key; allowed: kind, base_url, api_key, trust_zone, connect_timeout, first_byte_timeout, idle_timeout, retries",
        ),
        (
            "groups: { g: { egress: [ { host: 'a:1', privat: true } ] } }\n",
            "1:41: groups.g.egress[0].privat: unknown key; allowed: host, private; nearest: private",
        ),
    ]);
}

#[test]
fn a_key_that_is_here_twice_is_named_with_both_places() {
    refused([
        ("auth: none\nserver: {}\nauth: keys\n", "3:1: auth: this key is here twice; the first is at line 1, column 1"),
        (
            "groups:\n  a: { data_class: public }\n  a: {}\n",
            "3:3: groups.a: this key is here twice; the first is at line 2, column 3",
        ),
        (
            "models: { m: { provider: p, params: { temperature: 1, temperature: 2 } } }\nproviders: { p: { kind: openai } }\n",
            "1:55: models.m.params.temperature: this key is here twice; the first is at line 1, column 39",
        ),
    ]);
}

#[test]
fn a_wrong_type_says_what_is_wanted() {
    refused([
        ("server: []\n", "1:1: server: wrong type: a list; allowed: a mapping"),
        ("server:\n", "1:1: server: wrong type: nothing; allowed: a mapping"),
        (
            "providers: []\ntools: {}\nauth: [keys]\n",
            "1:12: providers: wrong type: a list; allowed: a mapping\n\
             2:8: tools: wrong type: a mapping; allowed: a list\n\
             3:7: auth: wrong type: a list; allowed: keys, none, passthrough",
        ),
        (
            "server:\n  listen: 8080\n  max_concurrent: '5'\n  max_body: true\n  header_timeout: 30\n  admin_token: 12345\n",
            "2:11: server.listen: wrong type: a number; allowed: text (in quotes, if it looks like something else)\n\
             3:19: server.max_concurrent: wrong type: text; allowed: a whole number from 1\n\
             4:13: server.max_body: wrong type: true or false; allowed: a size: a number of bytes from 1, or 64KiB, 10MiB, 1GiB\n\
             5:19: server.header_timeout: wrong type: a number; allowed: a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             6:16: server.admin_token: wrong type: a number; allowed: text (in quotes, if it looks like something else)",
        ),
        (
            "groups:\n  g: { enabled: 'true', personal: 1, data_class: [public], egress: [7] }\n",
            "2:17: groups.g.enabled: wrong type: text; allowed: true, false\n\
             2:35: groups.g.personal: wrong type: a number; allowed: true, false\n\
             2:50: groups.g.data_class: wrong type: a list; allowed: public, internal, source_code, configuration, diagnostics, secret\n\
             2:69: groups.g.egress[0]: wrong type: a number; allowed: `host:port`, or a mapping with `host` and `private`",
        ),
        (
            "models:\n  m: { provider: p, params: [], stream_hold: -1, fallback: m, tools: true }\nproviders: { p: { kind: openai } }\n",
            "2:29: models.m.params: wrong type: a list; allowed: a mapping\n\
             2:46: models.m.stream_hold: wrong type: a number; allowed: a number of characters from 0, or the word `all`\n\
             2:60: models.m.fallback: wrong type: text; allowed: a list\n\
             2:63: models.m.tools: wrong type: true or false; allowed: a mapping",
        ),
    ]);
}

#[test]
fn numbers_durations_and_sizes_have_their_bounds_and_units() {
    refused([
        (
            "server:\n  max_concurrent: 0\n  header_timeout: 10\n  request_timeout: 10 minutes\n  shutdown_grace: 0s\n  max_body: 10MB\n",
            "2:19: server.max_concurrent: 0 is not a whole number from 1\n\
             3:19: server.header_timeout: wrong type: a number; allowed: a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             4:20: server.request_timeout: `10 minutes` is not a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             5:19: server.shutdown_grace: `0s` is not a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             6:13: server.max_body: `10MB` is not a size: a number of bytes from 1, or 64KiB, 10MiB, 1GiB",
        ),
        (
            "server: { max_concurrent: 1.5, max_body: 0, header_timeout: -1s, request_timeout: 99999999999999999d }\n",
            "1:27: server.max_concurrent: 1.5 is not a whole number from 1\n\
             1:42: server.max_body: 0 is not a size: a number of bytes from 1, or 64KiB, 10MiB, 1GiB\n\
             1:61: server.header_timeout: `-1s` is not a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             1:83: server.request_timeout: `99999999999999999d` is not a duration longer than zero: 250ms, 10s, 5m, 1h, 30d",
        ),
        (
            "server: { max_concurrent: 4294967296, max_body: -1 }\n",
            "1:27: server.max_concurrent: 4294967296 is not a whole number from 1\n\
             1:49: server.max_body: -1 is not a size: a number of bytes from 1, or 64KiB, 10MiB, 1GiB",
        ),
        (
            "models:\n  m: { provider: p, tools: { max_rounds: 21, max_calls: 0, parallel: 0 }, stream_hold: some }\nproviders: { p: { kind: openai, retries: 11 } }\n",
            "2:42: models.m.tools.max_rounds: 21 is not a whole number from 1 to 20\n\
             2:57: models.m.tools.max_calls: 0 is not a whole number from 1\n\
             2:70: models.m.tools.parallel: 0 is not a whole number from 1 to 1024\n\
             2:88: models.m.stream_hold: `some` is not a number of characters from 0, or the word `all`\n\
             3:42: providers.p.retries: 11 is not a whole number from 0 to 10",
        ),
    ]);
}

#[test]
fn an_unknown_word_is_answered_with_the_words() {
    refused([
        ("auth: key\n", "1:7: auth: unknown word `key`; allowed: keys, none, passthrough; nearest: keys"),
        ("auth: No\n", "1:7: auth: unknown word `No`; allowed: keys, none, passthrough"),
        (
            "telemetry: { log: xml }\nstore: { privacy: redact }\nenforcement: { trust_zone: off }\n",
            "1:19: telemetry.log: unknown word `xml`; allowed: json, text\n\
             2:19: store.privacy: unknown word `redact`; allowed: none, metadata, redacted, full; nearest: redacted\n\
             3:28: enforcement.trust_zone: unknown word `off`; allowed: enforce, observe",
        ),
        (
            "groups: { g: { data_class: intrenal, trust_zone: global, egress: all } }\n",
            "1:28: groups.g.data_class: unknown word `intrenal`; allowed: public, internal, source_code, configuration, diagnostics, secret; nearest: internal\n\
             1:50: groups.g.trust_zone: unknown word `global`; allowed: local, private, external_eu, external_global; nearest: local\n\
             1:66: groups.g.egress: wrong type: text; allowed: a list of `host:port`, or the word none",
        ),
        ("auth: ${SECRET}\n", "1:7: auth: unknown word `${SECRET}`; allowed: keys, none, passthrough"),
    ]);
}

#[test]
fn what_is_filled_in_must_be_there() {
    refused([
        (
            "server:\n  admin_token: ${NOWHERE}\n  listen: '${ALSO_NOT}:1'\n",
            "2:16: server.admin_token: the environment variable `NOWHERE` is not set\n\
             3:11: server.listen: the environment variable `ALSO_NOT` is not set",
        ),
        (
            "server: { admin_token: '${file:/nowhere/token}' }\n",
            "1:24: server.admin_token: the file `/nowhere/token` cannot be read: No such file or directory (os error 2)",
        ),
        (
            "server: { admin_token: '${not a name}' }\n",
            "1:24: server.admin_token: `${not a name}` is neither `${NAME}` nor `${file:PATH}`; a literal `${` is written `$${`",
        ),
        (
            "server: { admin_token: '${OPEN' }\n",
            "1:24: server.admin_token: `${` without its `}`; a literal `${` is written `$${`",
        ),
    ]);
}

#[test]
fn what_is_filled_in_is_never_printed() {
    refused([
        (
            "server:\n  listen: ${BAD}\n  max_concurrent: ${BAD}\n  max_body: ${BAD}\n  header_timeout: ${BAD}\n  admin_token: ${BAD}\n",
            "2:11: server.listen: `${BAD}` is no address; allowed: 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080, unix:/path\n\
             3:19: server.max_concurrent: `${BAD}` is not a whole number from 1\n\
             4:13: server.max_body: `${BAD}` is not a size: a number of bytes from 1, or 64KiB, 10MiB, 1GiB\n\
             5:19: server.header_timeout: `${BAD}` is not a duration longer than zero: 250ms, 10s, 5m, 1h, 30d\n\
             6:16: server.admin_token: the credential holds a blank, a line break or something else that is no visible ASCII character",
        ),
        (
            "groups: { g: { enabled: '${BAD}', egress: ['${BAD}'] } }\n",
            "1:25: groups.g.enabled: `${BAD}` is not true or false\n\
             1:44: groups.g.egress[0]: `${BAD}` is no `host:port`: its port is no number from 1 to 65535",
        ),
        (
            "providers: { p: { kind: openai, base_url: '${BAD}', api_key: '${BAD}' } }\nmodels: { m: { provider: '${BAD}', stream_hold: '${BAD}' } }\n",
            "1:43: providers.p.base_url: this is no base URL: it has no scheme; http:// or https://\n\
             1:62: providers.p.api_key: the credential holds a blank, a line break or something else that is no visible ASCII character\n\
             2:26: models.m.provider: no provider is named `${BAD}`; allowed: p\n\
             2:49: models.m.stream_hold: `${BAD}` is not a number of characters from 0, or the word `all`",
        ),
    ]);
}

#[test]
fn what_is_not_supported_yet_is_refused_by_name() {
    refused([
        ("builtin: {}\n", "1:1: builtin: not supported yet"),
        ("telemetry: { otlp: 'http://127.0.0.1:4318' }\n", "1:14: telemetry.otlp: not supported yet"),
        (
            "groups: { g: { egress: own_site } }\n",
            "1:24: groups.g.egress: `own_site` means the sites of `builtin.system.sites`, and `builtin` is not supported yet; allowed: a list of `host:port`, or the word none",
        ),
    ]);
}
