//! What a run may have, what it may read, and where it may go.

use std::sync::Arc;

use toolgate_config::Config;
use toolgate_config::class::DataClass;
use toolgate_config::names::{ModelName, ProviderName, ToolName};
use toolgate_config::schema::Schema;
use toolgate_config::tool::{Definition, McpWork, Source, Tool, Work};
use toolgate_policies::counters::Hold;
use toolgate_policies::counters::memory::Memory;
use toolgate_policies::facts::{Caller, Requested, RunFacts};
use toolgate_policies::gate::{self, AsksForTool, HasMark, Judgement, Reason, Refused, Verdict};
use toolgate_policies::zone::Mark;

/// Every rule is broken for the tool `t`, as the key `k` asks model `m` for it. Each line that mends one rule stands in [`MENDED`].
const BROKEN: &str = r#"
providers:
  far: { kind: openai_compatible, base_url: "http://127.0.0.1:1", trust_zone: external_global }
  near: { kind: openai_compatible, base_url: "http://127.0.0.1:2", trust_zone: local }
models:
  m: { provider: far, tools: { names: [other] } }
keys:
  - { name: k, hash: "sha256:HASH", admin: false, scopes: [read], tools: { names: [other] } }
groups:
  g: { enabled: false, data_class: source_code, egress: ["127.0.0.1:9"], trust_zone: external_global }
tools:
  - name: t
    group: g
    description: d
    parameters: { type: object }
    http: { url: "http://127.0.0.1:9/" }
    effect: read_only
    enabled: false
    requires_admin: true
    scopes: [read, write]
    requires_approval: true
  - { name: other, group: g, description: d, parameters: { type: object }, http: { url: "http://127.0.0.1:9/" } }
"#;

/// What the file says, what it says instead, and the reason that is gone with it; in the order of reporting.
const MENDED: [(&str, &str, Reason); 7] = [
    ("    enabled: false", "    enabled: true", Reason::ToolDisabled),
    ("g: { enabled: false", "g: { enabled: true", Reason::GroupDisabled),
    ("admin: false", "admin: true", Reason::RequiresAdmin),
    ("scopes: [read],", "scopes: [read, write],", Reason::MissingScope),
    ("provider: far, tools: { names: [other] }", "provider: far, tools: { groups: [g] }", Reason::NotGranted),
    ("scopes: [read, write], tools: { names: [other] }", "scopes: [read, write], tools: { names: [t] }", Reason::KeyNotGranted),
    ("    requires_approval: true", "    requires_approval: false", Reason::RequiresApproval),
];

/// What is set aside where no limit is on the path.
fn nothing_held() -> Hold {
    Hold::new(Arc::new(Memory::default()), Vec::new())
}

fn config(text: &str) -> Config {
    crate::config(&text.replace("HASH", &crate::hash("tg-of-the-key")))
}

/// The broken file with the first so many faults mended, and the text that is changed besides.
fn mended(count: usize, also: &[(&str, &str)]) -> Config {
    let lines = MENDED[..count].iter().map(|(was, is, _)| (*was, *is));
    let replace = |text: String, (was, is): (&str, &str)| {
        assert!(text.contains(was), "{was} is not in the file");
        text.replacen(was, is, 1)
    };
    config(&lines.chain(also.iter().copied()).fold(BROKEN.to_owned(), replace))
}

fn caller(key: &str) -> Caller {
    Caller { key: Some(toolgate_config::names::KeyName::new(key)), user: None, bearer: None }
}

fn run(providers: &[&str]) -> RunFacts {
    RunFacts {
        caller: caller("k"),
        model: ModelName::new("m"),
        providers: providers.iter().map(|name| ProviderName::new(*name)).collect(),
        requested: Requested::All,
        mark: Mark::CLEAN,
    }
}

fn verdict(config: &Config, run: &RunFacts) -> Verdict {
    gate::judge(config, run, config.tools.find("t").unwrap())
}

const fn mark(class: DataClass, personal: bool) -> Mark {
    Mark { class, personal }
}

#[test]
fn the_first_broken_rule_is_reported_and_the_next_when_it_is_mended() {
    let mut facts = RunFacts { requested: Requested::nothing(), mark: mark(DataClass::Secret, false), ..run(&["far"]) };
    for (count, (_, _, reason)) in MENDED[..6].iter().enumerate() {
        assert_eq!(verdict(&mended(count, &[]), &facts), Verdict::Deny(*reason));
    }
    // The rest lies with the request and the run, save the last.
    let config = mended(6, &[]);
    assert_eq!(verdict(&config, &facts), Verdict::Deny(Reason::NotRequested));
    facts.requested = Requested::from_header("x, t");
    assert_eq!(verdict(&config, &facts), Verdict::Deny(Reason::TrustZone));
    facts.providers = vec![ProviderName::new("near")];
    assert_eq!(verdict(&config, &facts), Verdict::Deny(Reason::Flow));
    facts.mark = mark(DataClass::Internal, false);
    assert_eq!(verdict(&config, &facts), Verdict::Deny(Reason::RequiresApproval));
    assert_eq!(verdict(&mended(7, &[]), &facts), Verdict::Allow);
}

#[test]
fn each_rule_alone_withholds_the_tool() {
    for (was, is, reason) in MENDED {
        // Mend all, then break this one again.
        let config = mended(7, &[(is, was)]);
        assert_eq!(verdict(&config, &run(&["near"])), Verdict::Deny(reason));
    }
    let config = mended(7, &[]);
    assert_eq!(verdict(&config, &run(&["far"])), Verdict::Deny(Reason::TrustZone));
    let nothing = RunFacts { requested: Requested::from_header("none"), ..run(&["near"]) };
    assert_eq!(verdict(&config, &nothing), Verdict::Deny(Reason::NotRequested));
}

#[test]
fn reasons_are_in_the_order_of_their_list() {
    assert!(Reason::ALL.is_sorted());
    let words: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let expected = [
        "not_registered",
        "tool_disabled",
        "group_disabled",
        "requires_admin",
        "missing_scope",
        "not_granted",
        "key_not_granted",
        "not_requested",
        "trust_zone",
        "flow",
        "requires_approval",
        "definition_changed",
    ];
    assert_eq!(words, expected);
}

#[test]
fn a_request_names_tools_to_narrow_and_never_to_widen() {
    let table = [
        ("t", Verdict::Allow),
        (" t ,other", Verdict::Allow),
        ("none", Verdict::Deny(Reason::NotRequested)),
        ("", Verdict::Deny(Reason::NotRequested)),
        (" , ", Verdict::Deny(Reason::NotRequested)),
        ("T", Verdict::Deny(Reason::NotRequested)),
        ("other,unknown", Verdict::Deny(Reason::NotRequested)),
    ];
    for (header, expected) in table {
        let facts = RunFacts { requested: Requested::from_header(header), ..run(&["near"]) };
        assert_eq!(verdict(&mended(7, &[]), &facts), expected, "{header:?}");
        assert_eq!(verdict(&mended(4, &[]), &facts), Verdict::Deny(Reason::NotGranted), "{header:?}");
    }
}

#[test]
fn a_key_that_is_gone_leaves_nothing() {
    let config = mended(7, &[]);
    let gone = RunFacts { caller: caller("gone"), ..run(&["near"]) };
    assert_eq!(verdict(&config, &gone), Verdict::Deny(Reason::RequiresAdmin));
    assert_eq!(
        verdict(&mended(7, &[("requires_admin: true", "requires_admin: false")]), &gone),
        Verdict::Deny(Reason::MissingScope)
    );
    let open = mended(7, &[("requires_admin: true", "requires_admin: false"), ("    scopes: [read, write]\n", "")]);
    assert_eq!(verdict(&open, &gone), Verdict::Deny(Reason::KeyNotGranted));
    assert_eq!(gate::admit(&open, &gone.caller, "m").err(), Some(Refused::UnknownKey));
    assert_eq!(gate::clear_model(&open, &gone, &ProviderName::new("near"), &nothing_held(), ()).err(), Some(Refused::UnknownKey));
    // A model that is gone grants nothing either.
    assert_eq!(verdict(&open, &RunFacts { model: ModelName::new("gone"), ..run(&["near"]) }), Verdict::Deny(Reason::NotGranted));
}

#[test]
fn the_least_trusted_provider_decides() {
    let config = mended(7, &[]);
    for (providers, expected) in [
        (&["near"][..], Verdict::Allow),
        (&["near", "far"], Verdict::Deny(Reason::TrustZone)),
        (&["near", "unknown"], Verdict::Deny(Reason::TrustZone)),
        (&[], Verdict::Deny(Reason::TrustZone)),
    ] {
        assert_eq!(verdict(&config, &run(providers)), expected, "{providers:?}");
    }
}

#[test]
fn observing_lets_the_zone_pass_and_nothing_else() {
    let observe = [("\nproviders:", "\nenforcement: { trust_zone: observe }\nproviders:")];
    let config = mended(7, &observe);
    let facts = run(&["far"]);
    assert_eq!(verdict(&config, &facts), Verdict::Observed(Reason::TrustZone));
    assert_eq!(verdict(&config, &run(&["near"])), Verdict::Allow);
    assert_eq!(verdict(&mended(6, &observe), &facts), Verdict::Deny(Reason::RequiresApproval));
    let flown = RunFacts { mark: mark(DataClass::Diagnostics, false), ..facts.clone() };
    assert_eq!(verdict(&config, &flown), Verdict::Deny(Reason::Flow));
    assert!(gate::clear_model(&config, &flown, &ProviderName::new("far"), &nothing_held(), ()).is_ok());
    let mut facts = facts;
    assert!(matches!(gate::clear_result(&config, &mut facts, "t", Read(mark(DataClass::Secret, true))), Judgement::Passed(_)));
    assert_eq!(facts.mark, mark(DataClass::Secret, true));
}

/// The tool `s__find` of the first server of a file.
fn found(config: &Config, definition: Definition) -> Tool {
    let server = &config.mcp_servers[0];
    Tool {
        name: ToolName::new("s__find"),
        group: Arc::clone(&server.group),
        description: String::new(),
        parameters: Schema::compile(serde_json::json!({ "type": "object" })).unwrap(),
        source: Source::Mcp,
        work: Work::Mcp(McpWork { server: Arc::clone(server), tool: "find".to_owned() }),
        rule: server.rule.clone(),
        definition,
    }
}

/// The mended file with a server, and a grant of its whole group.
fn with_server(more: &str, definition: Definition) -> Config {
    let text = format!("{more}{BROKEN}");
    let text = MENDED.iter().fold(text, |text, (was, is, _)| text.replacen(was, is, 1));
    let of_the_file = config(&text.replace("tools: { names: [t] }", "tools: { groups: [g] }"));
    let found = found(&of_the_file, definition);
    of_the_file.with_found(vec![found])
}

#[test]
fn a_definition_that_has_changed_is_the_last_reason() {
    let judged = |approval: bool, definition| {
        let config = with_server(
            &format!("mcp_servers: {{ s: {{ command: x, group: g, requires_approval: {approval} }} }}\n"),
            definition,
        );
        gate::judge(&config, &run(&["near"]), config.tools.find("s__find").unwrap())
    };
    assert_eq!(judged(false, Definition::Pinned), Verdict::Allow);
    assert_eq!(judged(false, Definition::Changed), Verdict::Deny(Reason::DefinitionChanged));
    assert_eq!(judged(true, Definition::Changed), Verdict::Deny(Reason::RequiresApproval));
}

#[test]
fn observing_lets_no_tool_of_an_mcp_server_pass() {
    let more = "enforcement: { trust_zone: observe }\nmcp_servers: { s: { command: x, group: g, requires_approval: false } }\n";
    let config = with_server(more, Definition::Pinned);
    let judged = |provider: &str| {
        let facts = run(&[provider]);
        let names = ["t", "s__find"];
        names.map(|name| gate::judge(&config, &facts, config.tools.find(name).unwrap()))
    };
    assert_eq!(judged("far"), [Verdict::Observed(Reason::TrustZone), Verdict::Deny(Reason::TrustZone)]);
    assert_eq!(judged("near"), [Verdict::Allow, Verdict::Allow]);
    for (tool, passes) in [("t", true), ("s__find", false), ("gone", false)] {
        let mut facts = run(&["far"]);
        let judgement = gate::clear_result(&config, &mut facts, tool, Read(mark(DataClass::Secret, false)));
        assert_eq!(matches!(judgement, Judgement::Passed(_)), passes, "{tool}");
    }
}

#[test]
fn what_was_read_decides_where_the_run_may_go() {
    let config = mended(7, &[]);
    let table = [
        (mark(DataClass::Internal, false), Verdict::Allow, true),
        (mark(DataClass::SourceCode, false), Verdict::Deny(Reason::Flow), false),
        (mark(DataClass::Public, true), Verdict::Deny(Reason::Flow), false),
    ];
    for (read, expected, may_go_far) in table {
        let facts = RunFacts { mark: read, ..run(&["near"]) };
        assert_eq!(verdict(&config, &facts), expected, "{read:?}");
        let far = gate::clear_model(&config, &facts, &ProviderName::new("far"), &nothing_held(), ()).err();
        assert_eq!(far, (!may_go_far).then_some(Refused::ModelNotAllowed), "{read:?}");
        assert!(gate::clear_model(&config, &facts, &ProviderName::new("near"), &nothing_held(), ()).is_ok());
        let unknown = gate::clear_model(&config, &facts, &ProviderName::new("unknown"), &nothing_held(), ()).is_ok();
        assert_eq!(unknown, may_go_far, "{read:?}");
    }
}

struct Read(Mark);

impl HasMark for Read {
    fn mark(&self) -> Mark {
        self.0
    }
}

#[test]
fn a_result_above_the_zone_is_withheld_and_any_other_raises_the_mark() {
    let config = mended(7, &[]);
    let table = [
        ("near", mark(DataClass::Secret, true), true),
        ("far", mark(DataClass::Internal, false), true),
        ("far", mark(DataClass::SourceCode, false), false),
        ("far", mark(DataClass::Public, true), false),
    ];
    for (provider, result, passes) in table {
        let before = mark(DataClass::Internal, false);
        let mut facts = RunFacts { mark: before, ..run(&[provider]) };
        let passed = matches!(gate::clear_result(&config, &mut facts, "t", Read(result)), Judgement::Passed(_));
        assert_eq!(passed, passes, "{provider} {result:?}");
        assert_eq!(facts.mark, if passes { before.raised(result) } else { before }, "{provider} {result:?}");
    }
}

#[derive(Debug)]
struct Asked(&'static str);

impl AsksForTool for Asked {
    fn tool_name(&self) -> &str {
        self.0
    }
}

#[test]
fn case_50_a_call_is_judged_by_the_name_that_the_model_wrote() {
    let config = mended(7, &[]);
    let facts = run(&["near"]);
    let cleared = gate::clear_tool(&config, &facts, Asked("t")).unwrap().into_inner();
    assert_eq!((cleared.tool.name.as_str(), cleared.verdict), ("t", Verdict::Allow));
    for (name, reason, is_known) in [
        ("T", Reason::NotRegistered, false),
        ("t ", Reason::NotRegistered, false),
        ("g__t", Reason::NotRegistered, false),
        ("", Reason::NotRegistered, false),
        ("other", Reason::KeyNotGranted, true),
    ] {
        let denied = gate::clear_tool(&config, &facts, Asked(name)).unwrap_err();
        assert_eq!((denied.reason, denied.tool.is_some(), denied.call.0), (reason, is_known, name));
    }
    // What is offered and what may run is one judgement.
    let offered: Vec<_> = gate::offer(&config, &facts).map(|(tool, verdict)| (tool.name.to_string(), verdict)).collect();
    let expected = [("t".to_owned(), Verdict::Allow), ("other".to_owned(), Verdict::Deny(Reason::KeyNotGranted))];
    assert_eq!(offered, expected);
}
