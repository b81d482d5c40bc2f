//! What a file means: defaults, and how addresses, templates and what is filled in come out.

use std::path::PathBuf;
use std::time::Duration;

use toolgate_config::class::{DataClass, TrustZone};
use toolgate_config::model::{Caps, StreamHold};
use toolgate_config::server::{Auth, Enforcement, LogFormat, Privacy};
use toolgate_config::template::{Part, Template};
use toolgate_config::tool::{Body, Effect, Errors, HttpWork, Tool, Work};

use super::accepted;

#[test]
fn what_is_not_written_has_its_default() {
    let config = accepted("providers: { p: { kind: openai } }\nmodels: { m: { provider: p, tools: {} } }\n");
    let server = &config.server;
    assert_eq!(format!("{:?} {:?}", server.listen, server.admin_listen), "Tcp(127.0.0.1:8080) Tcp(127.0.0.1:9080)");
    assert_eq!((server.max_body, server.max_concurrent), (10 << 20, 1024));
    assert_eq!(
        (server.header_timeout, server.request_timeout, server.shutdown_grace),
        (Duration::from_secs(10), Duration::from_secs(600), Duration::from_secs(30))
    );
    assert!(server.tls.is_none() && server.admin_token.is_none());
    let provider = &config.providers["p"];
    assert_eq!(
        (provider.base_url.origin.address.to_string().as_str(), provider.base_url.path.as_str()),
        ("api.openai.com:443", "/v1")
    );
    assert_eq!((provider.trust_zone, provider.retries), (TrustZone::ExternalGlobal, 2));
    assert_eq!(
        (provider.connect_timeout, provider.first_byte_timeout, provider.idle_timeout),
        (Duration::from_secs(5), Duration::from_secs(120), Duration::from_secs(60))
    );
    let model = config.model("m").unwrap();
    assert_eq!((model.upstream_model.as_str(), model.stream_hold), ("m", StreamHold::Characters(256)));
    assert_eq!(
        model.caps,
        Caps { max_rounds: 5, max_calls: 32, max_cost: None, max_time: Duration::from_secs(600), parallel: 8 }
    );
    assert!(model.grant.is_some() && model.params.is_empty() && model.fallback.is_empty() && model.system_prompt.is_none());
    assert_eq!(
        (config.enforcement, config.store.privacy, config.telemetry.log),
        (Enforcement::Enforce, Privacy::Redacted, LogFormat::Json)
    );
}

#[test]
fn each_kind_of_provider_has_its_own_address() {
    let table = [
        ("openai", "api.openai.com:443 /v1"),
        ("anthropic", "api.anthropic.com:443 /v1"),
        ("gemini", "generativelanguage.googleapis.com:443 /v1beta"),
        ("groq", "api.groq.com:443 /openai/v1"),
        ("mistral", "api.mistral.ai:443 /v1"),
        ("openrouter", "openrouter.ai:443 /api/v1"),
        ("ollama", "127.0.0.1:11434 "),
    ];
    for (kind, expected) in table {
        let config =
            accepted(&format!("providers: {{ p: {{ kind: {kind} }}, q: {{ kind: {kind}, base_url: 'https://a.test/x' }} }}\n"));
        let shown = |name: &str| {
            let base = &config.providers[name].base_url;
            format!("{} {}", base.origin.address, base.path)
        };
        assert_eq!((shown("p").as_str(), shown("q").as_str()), (expected, "a.test:443 /x"), "{kind}");
    }
}

#[test]
fn a_model_without_tools_has_the_same_caps_and_no_grant() {
    let config = accepted("providers: { p: { kind: openai } }\nmodels: { m: { provider: p }, n: { provider: p, tools: {} } }\n");
    assert!(config.model("m").unwrap().grant.is_none());
    assert_eq!(config.model("m").unwrap().caps, config.model("n").unwrap().caps);
}

#[test]
fn callers_are_asked_for_keys_where_there_are_any() {
    const KEY: &str = "keys: [ { name: a, hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa' } ]\n";
    assert_eq!(accepted("server: {}\n").auth, Auth::None);
    assert_eq!(accepted(KEY).auth, Auth::Keys);
    assert_eq!(accepted(&format!("auth: none\n{KEY}")).auth, Auth::None);
    assert_eq!(accepted("auth: passthrough\nserver: { listen: 'unix:/run/t.sock' }\n").auth, Auth::Passthrough);
    let mut hash = [0; 32];
    hash[31] = 0xaa;
    let keys = accepted(KEY).keys;
    let key = keys.by_hash(&hash).unwrap();
    assert_eq!(key.name.as_str(), "a");
    assert!(key.models.is_none() && key.tools.is_none() && key.scopes.is_empty() && !key.admin && !key.act_for);
}

#[test]
fn a_key_may_name_any_model_that_passes_through() {
    let config = accepted(
        "keys: [ { name: a, hash: 'sha256:00000000000000000000000000000000000000000000000000000000000000aa', models: [gpt-4o] } ]\n\
         providers: { p: { kind: openai } }\nmodels: { '*': { provider: p } }\n",
    );
    assert!(config.keys.iter().all(|key| key.models.as_ref().is_some_and(|models| models.contains("gpt-4o"))));
}

#[test]
fn what_is_filled_in_stands_for_any_scalar() {
    let config = accepted(
        "server:\n  max_concurrent: ${NUMBER}\n  header_timeout: ${NUMBER}m\n  max_body: ${NUMBER}\n  admin_token: x-${SECRET}\n  listen: 127.0.0.1:${NUMBER}\n",
    );
    assert_eq!((config.server.max_concurrent, config.server.max_body), (7, 7));
    assert_eq!(config.server.header_timeout, Duration::from_secs(7 * 60));
    assert_eq!(config.server.admin_token.unwrap().expose(), "x-s3cret");
}

#[test]
fn other_files_are_read_from_the_folder_of_the_file_and_watched() {
    let config = accepted("server: { admin_token: 'x${file:tests/config/token.txt}' }\n");
    assert_eq!(config.server.admin_token.unwrap().expose(), "xfrom-a-file");
    assert_eq!(config.watched, ["tests/config/token.txt"].map(PathBuf::from));
}

#[test]
fn tls_files_are_watched_too() {
    let config = accepted(
        "server: { tls: { cert: tests/config/cert.pem, key: tests/config/key.pem, client_ca: tests/config/cert.pem } }\n",
    );
    assert_eq!(config.watched, ["tests/config/cert.pem", "tests/config/key.pem", "tests/config/cert.pem"].map(PathBuf::from));
}

const GROUP: &str = "groups: { g: { data_class: public, personal: false, egress: ['shop.example.org:443'] } }\n";

/// Gives the one tool of a configuration to a check.
fn tool(lines: &str, check: impl FnOnce(&Tool, &HttpWork)) {
    let text = format!(
        "tools:\n  - name: t\n    group: g\n    parameters: {{ type: object, properties: {{ id: {{}}, page: {{}} }} }}\n{lines}{GROUP}"
    );
    let config = accepted(&text);
    let tool = config.tools.find("t").unwrap();
    let Work::Http(work) = &tool.work else { panic!("{tool:?}") };
    check(tool, work);
}

#[test]
fn a_tool_is_on_and_free_when_it_reads_and_off_and_asked_for_when_it_writes() {
    for (method, effect, on, body) in [
        ("GET", Effect::ReadOnly, true, Body::None),
        ("HEAD", Effect::ReadOnly, true, Body::None),
        ("POST", Effect::NonIdempotentWrite, false, Body::Json),
        ("PUT", Effect::NonIdempotentWrite, false, Body::Json),
        ("PATCH", Effect::NonIdempotentWrite, false, Body::Json),
        ("DELETE", Effect::NonIdempotentWrite, false, Body::None),
    ] {
        tool(&format!("    http: {{ method: {method}, url: 'https://shop.example.org' }}\n"), |tool, work| {
            assert_eq!(
                (tool.rule.effect, tool.rule.enabled, tool.rule.requires_approval, work.body),
                (effect, on, !on, body),
                "{method}"
            );
        });
    }
}

#[test]
fn an_effect_that_is_said_decides_over_the_method() {
    tool("    effect: read_only\n    http: { method: POST, url: 'https://shop.example.org' }\n", |tool, _| {
        assert_eq!((tool.rule.enabled, tool.rule.requires_approval), (true, false));
    });
    tool("    effect: idempotent_write\n    enabled: true\n    http: { url: 'https://shop.example.org' }\n", |tool, _| {
        assert_eq!((tool.rule.enabled, tool.rule.requires_approval), (true, true));
    });
}

#[test]
fn the_other_defaults_of_a_tool() {
    tool("    http: { url: 'https://shop.example.org' }\n", |tool, work| {
        assert_eq!((tool.rule.data_class, tool.rule.personal, tool.rule.requires_admin), (DataClass::Public, false, false));
        assert_eq!((tool.rule.timeout, tool.rule.max_result, tool.description.as_str()), (Duration::from_secs(30), 50_000, ""));
        assert_eq!((work.errors, &work.select, shown(&work.path).as_str()), (Errors::Generic, &None, "/"));
        assert!(tool.rule.scopes.is_empty() && work.query.is_empty() && work.headers.is_empty());
    });
}

/// A template as `text<parameter>text`.
fn shown(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Parameter(name) => format!("<{name}>"),
    };
    template.parts.iter().map(part).collect()
}

#[test]
fn a_url_comes_apart_into_origin_path_and_pairs() {
    for (url, path, query) in [
        ("https://SHOP.example.org./a/{id}/b", "/a/<id>/b", ""),
        ("https://shop.example.org?q={id}", "/", "q=<id>"),
        (
            "https://shop.example.org:443/a{id}.json?q=x%20y+z&p=-{page}-&flag&e=a=b&",
            "/a<id>.json",
            "q=x y z p=-<page>- flag= e=a=b",
        ),
        ("https://shop.example.org/a b/ü%2F{{x}}", "/a%20b/%C3%BC%2F%7Bx%7D", ""),
        ("${ORIGIN}&x={id}", "/base", "from=env x=<id>"),
        ("https://shop.example.org/${BRACES}?k=${AMPERSAND}&b=${BRACES}", "/%7Bid%7D", "k=a&b=c%41+# b={id}"),
        ("https://shop.example.org/$${id}", "/$%7Bid%7D", ""),
    ] {
        tool(&format!("    http: {{ url: '{url}' }}\n"), |_, work| {
            assert_eq!(work.origin.address.to_string(), "shop.example.org:443", "{url}");
            let pairs: Vec<_> = work.query.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
            assert_eq!((shown(&work.path).as_str(), pairs.join(" ").as_str()), (path, query), "{url}");
        });
    }
}

#[test]
fn the_urls_own_pairs_go_first_and_header_names_are_in_lower_case() {
    tool(
        "    http:\n      url: 'https://shop.example.org/?a=1'\n      query: { b: 2, c: '{page}', d: true }\n      headers: { X-Token: 'Bearer ${SECRET}', x-braces: '{{${BRACES}}}' }\n",
        |_, work| {
            let pairs: Vec<_> = work.query.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
            assert_eq!(pairs, ["a=1", "b=2", "c=<page>", "d=true"]);
            let headers: Vec<_> = work.headers.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
            assert_eq!(headers, ["x-token: Bearer s3cret", "x-braces: {{id}}"]);
        },
    );
}

#[test]
fn a_secret_shows_in_no_debug_print() {
    let config = accepted(
        "server: { admin_token: '${SECRET}' }\nproviders: { p: { kind: openai, api_key: '${SECRET}' } }\n\
         groups: { g: { data_class: public, egress: ['a:443'] } }\n\
         tools: [ { name: t, group: g, http: { url: 'https://a/?k=${SECRET}', headers: { authorization: '${SECRET}' } } } ]\n",
    );
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn what_is_taken_out_of_texts() {
    let config = accepted(
        "redaction: { tool_results: { personal: [ip] }, answers: { secrets: false }, patterns: [ { name: ticket, regex: 'TCK-[0-9]{6}' } ] }\n",
    );
    let (results, answers) = (&config.redaction.tool_results, &config.redaction.answers);
    assert!(results.secrets && !answers.secrets);
    assert_eq!((results.personal.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(), answers.personal.len()), (vec!["ip"], 0));
    assert_eq!((&*results.patterns[0].name, &*answers.patterns[0].regex), ("ticket", "TCK-[0-9]{6}"));
    let default = accepted("models: {}\n").redaction;
    assert!(default.tool_results.secrets && default.answers.secrets);
    assert_eq!((default.tool_results.personal.len(), default.answers.personal.len()), (5, 0));
}
