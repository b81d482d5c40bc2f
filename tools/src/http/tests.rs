//! Whole calls: from a configuration through the gate to a scripted tool, and back to what the model may read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_config::Config;
use toolgate_config::address::HostPort;
use toolgate_config::class::DataClass;
use toolgate_config::names::{ModelName, ProviderName};
use toolgate_policies::arguments::Downhill;
use toolgate_policies::facts::{Caller, Requested, RunFacts};
use toolgate_policies::gate::{self, ToolUse};
use toolgate_policies::redact::Redactor;
use toolgate_policies::zone::{self, Mark};
use toolgate_policies::{
    Cleared,
    egress::{Credentials, EgressRefusal},
};

use crate::arguments::Arguments;
use crate::net::Net;
use crate::scripted::{Event, Script, Server, Step::*, answer};
use crate::toolbox::{Call, Outcome, Output, Redaction, Toolbox};

const LOOK_UP: &str = "http: { url: 'http://ADDRESS/o/{id}', query: { q: '{q}' } }";
const WRITE: &str = "http: { method: POST, url: 'http://ADDRESS/o' }\n    enabled: true\n    requires_approval: false";

/// A configuration with one tool `t` at this address. `how` is the tool's own lines, `ADDRESS` in them the address.
fn config(address: &HostPort, how: &str) -> Config {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::SeqCst);
    let text = format!(
        r#"
auth: none
providers: {{ p: {{ kind: openai_compatible, base_url: "http://127.0.0.1:9/v1", trust_zone: local }} }}
models: {{ m: {{ provider: p, tools: {{ groups: [g] }} }} }}
groups: {{ g: {{ egress: ["{address}"], trust_zone: private }} }}
tools:
  - name: t
    group: g
    description: A tool.
    data_class: internal
    parameters: {{ type: object, properties: {{ id: {{ type: [string, number] }}, q: {{ type: string }} }} }}
    {how}
"#,
        how = how.replace("ADDRESS", &address.to_string())
    );
    let path = std::env::temp_dir().join(format!("toolgate-tools-{}-{number}.yaml", std::process::id()));
    std::fs::write(&path, &text).unwrap();
    let loaded = toolgate_config::check::load(&path);
    std::fs::remove_file(&path).unwrap();
    loaded.unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

fn cleared(config: &Config, arguments: &str) -> Cleared<ToolUse<Call>> {
    let caller = Caller { key: None, user: None, bearer: None };
    let run = RunFacts {
        caller,
        model: ModelName::new("m"),
        providers: vec![ProviderName::new("p")],
        requested: Requested::All,
        mark: Mark::CLEAN,
    };
    let call = Call { id: "c1".to_owned(), name: "t".to_owned(), arguments: Arguments::parse(arguments) };
    gate::clear_tool(config, &run, call).unwrap()
}

fn toolbox() -> Toolbox {
    Toolbox::new(Arc::new(Net::new()))
}

async fn call(server: &Server, how: &str, arguments: &str) -> Output {
    run(&config(&server.origin.address, how), arguments).await
}

/// One call, with the configuration's own rules.
async fn run(config: &Config, arguments: &str) -> Output {
    run_in(&toolbox(), config, arguments, None).await
}

async fn run_in(toolbox: &Toolbox, config: &Config, arguments: &str, not_after: Option<Instant>) -> Output {
    let result = Redactor::new(&config.redaction.tool_results);
    let downhill = Downhill::of(config.redaction.tool_results.clone());
    let run = zone::of_run(config, &[ProviderName::new("p")]);
    let group = config.tools.find("t").unwrap().group.trust_zone;
    let credentials = Credentials::of(config);
    let redaction = Redaction { result: &result, arguments: downhill.between(run, group), credentials: &credentials };
    toolbox.run(cleared(config, arguments), redaction, not_after).await
}

fn says(text: &str) -> Script {
    vec![Hear, Say(text.to_owned().into())]
}

fn status(line: &str, body: &str) -> Script {
    says(&format!("HTTP/1.1 {line}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

/// One call of `how` with this script behind it ends like this.
async fn check(how: &str, script: Script, outcome: Outcome, text: &str) {
    let server = Server::start([script]).await;
    let output = call(&server, how, r#"{"id":"1"}"#).await;
    assert_eq!((output.outcome, output.text.as_str()), (outcome, text), "{how}");
    let ours = outcome != Outcome::Ok || text.starts_with("(no content)");
    let own = if ours { text.split_once('\n').map_or(text.len(), |(own, _)| own.len() + 1) } else { 0 };
    assert_eq!(output.own, own, "{how}: {text}");
}

const FAILED: &str = "Error: tool \"t\" failed.";
const UNKNOWN: &str = "Error: tool \"t\" failed; whether it took effect is not known.";
const TIMED_OUT: &str = "Error: tool \"t\" timed out.";

#[tokio::test]
async fn a_call_is_one_request_with_what_is_declared() {
    let mut server = Server::start([vec![Hear, answer("{}")]]).await;
    let how = "http: { url: 'http://ADDRESS/o/{id}', query: { q: '{q}', kind: 'a b' }, headers: { Authorization: 'Bearer x' } }";
    let output = call(&server, how, r#"{"id": 1.50, "q": "a&b/c"}"#).await;
    assert_eq!(output.outcome, Outcome::Ok);
    let heard = server.heard().await;
    let (first, rest) = heard.split_once("\r\n").unwrap();
    assert_eq!(first, "GET /o/1.50?q=a%26b%2Fc&kind=a%20b HTTP/1.1");
    let mut names: Vec<_> = rest.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "authorization", "host", "user-agent"]);
}

#[tokio::test]
async fn a_write_sends_the_rest_as_json() {
    let mut server = Server::start([vec![Hear, answer("done")]]).await;
    call(&server, WRITE, r#"{ "id": "1", "n": 12345678901234567890.50 }"#).await;
    let heard = server.heard().await;
    assert!(heard.contains("\r\ncontent-type: application/json\r\n"), "{heard}");
    assert!(heard.ends_with("\r\n\r\n{\"id\":\"1\",\"n\":12345678901234567890.50}"), "{heard}");
}

#[tokio::test]
async fn results_go_on_as_they_were_received() {
    let body = "{ \"n\": 1.0e3,\r\n\t\"s\": \"\\u00e9é\" }\n";
    check(LOOK_UP, status("200 OK", body), Outcome::Ok, body).await;
    check(LOOK_UP, status("299 Fine", "plain"), Outcome::Ok, "plain").await;
    check(LOOK_UP, status("200 OK", ""), Outcome::Ok, "(no content) status 200").await;
    check(LOOK_UP, says("HTTP/1.1 204 No Content\r\n\r\n"), Outcome::Ok, "(no content) status 204").await;
    let head = "http: { method: HEAD, url: 'http://ADDRESS/o' }";
    check(head, says("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"), Outcome::Ok, "(no content) status 200").await;
}

#[tokio::test]
async fn a_result_is_made_valid_text() {
    let server = Server::start([vec![Hear, SayBytes(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na\xff\xc3z".to_vec())]]).await;
    assert_eq!(call(&server, LOOK_UP, r#"{"id":"1"}"#).await.text, "a\u{fffd}\u{fffd}z");
}

#[tokio::test]
async fn a_status_over_299_gives_its_number_and_the_body_only_where_that_is_declared() {
    let with_body = "http: { url: 'http://ADDRESS/o', errors: body }";
    let said = |number: u16| format!("Error: tool \"t\" answered with status {number}.");
    for (line, number) in [("400 Bad", 400), ("404 Not Found", 404), ("500 Oops", 500), ("503 Busy", 503)] {
        check(LOOK_UP, status(line, "secret"), Outcome::Error, &said(number)).await;
        check(with_body, status(line, "why"), Outcome::Error, &format!("{}\nwhy", said(number))).await;
        check(with_body, status(line, ""), Outcome::Error, &said(number)).await;
    }
}

#[tokio::test]
async fn a_redirect_is_a_failure_that_is_not_followed() {
    for how in [LOOK_UP, "http: { url: 'http://ADDRESS/o', errors: body }"] {
        let script = says("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 4\r\n\r\nthis");
        let mut server = Server::start([[script, vec![Stay]].concat(), vec![Hear, answer("followed")]]).await;
        let output = call(&server, how, r#"{"id":"1"}"#).await;
        assert_eq!((output.outcome, output.status), (Outcome::Error, Some(302)));
        assert_eq!(output.text, "Error: tool \"t\" answered with status 302.");
        server.heard().await;
        assert_eq!(server.event().await, Event::Left);
    }
}

#[tokio::test]
async fn a_write_that_may_have_happened_says_so() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";
    let quick = |how: &str| format!("{how}\n    timeout: 100ms");
    for (how, failed, server_error, timed_out) in
        [(LOOK_UP, FAILED, "Error: tool \"t\" answered with status 500.", TIMED_OUT), (WRITE, UNKNOWN, UNKNOWN, UNKNOWN)]
    {
        check(how, vec![Hear], Outcome::Error, failed).await;
        check(how, says(cut), Outcome::Error, failed).await;
        check(how, says("no HTTP\r\n\r\n"), Outcome::Error, failed).await;
        check(how, status("500 Oops", "x"), Outcome::Error, server_error).await;
        check(how, status("409 Conflict", "x"), Outcome::Error, "Error: tool \"t\" answered with status 409.").await;
        check(&quick(how), vec![Hear, Stay], Outcome::Timeout, timed_out).await;
        let begun = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
        check(&quick(how), [says(begun), vec![Stay]].concat(), Outcome::Timeout, timed_out).await;
    }
    let loud = "http: { method: POST, url: 'http://ADDRESS/o', errors: body }\n    enabled: true\n    requires_approval: false";
    check(loud, status("500 Oops", "why"), Outcome::Error, &format!("{UNKNOWN}\nwhy")).await;
}

#[tokio::test]
async fn where_nobody_listens_nothing_has_happened() {
    let nobody = HostPort { host: "127.0.0.1".to_owned(), port: 1 };
    for how in [LOOK_UP, WRITE] {
        let output = run(&config(&nobody, how), r#"{"id":"1"}"#).await;
        assert_eq!((output.outcome, output.text.as_str()), (Outcome::Error, FAILED));
        assert_eq!(output.mark, Mark::CLEAN);
    }
}

#[tokio::test]
async fn a_run_that_ends_earlier_ends_its_calls() {
    let mut server = Server::start([vec![Hear, Stay]]).await;
    let soon = Instant::now() + Duration::from_millis(60);
    let output = run_in(&toolbox(), &config(&server.origin.address, LOOK_UP), r#"{"id":"1"}"#, Some(soon)).await;
    assert_eq!((output.outcome, output.text.as_str()), (Outcome::Timeout, TIMED_OUT));
    server.heard().await;
    assert_eq!(server.event().await, Event::Left);
}

#[tokio::test]
async fn what_trickles_in_is_cut_off_in_time() {
    let mut script = says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    script.extend((0..1000).flat_map(|_| [Wait(Duration::from_millis(10)), Say("1\r\nx\r\n".into())]));
    check(&format!("{LOOK_UP}\n    timeout: 150ms"), script, Outcome::Timeout, TIMED_OUT).await;
}

#[tokio::test]
async fn a_connection_that_died_is_replaced_where_twice_is_as_good_as_once() {
    let idempotent = "http: { method: PUT, url: 'http://ADDRESS/o' }\n    effect: idempotent_write\n    enabled: true\n    requires_approval: false";
    let risky_get =
        "http: { url: 'http://ADDRESS/o' }\n    effect: non_idempotent_write\n    enabled: true\n    requires_approval: false";
    let table = [(LOOK_UP, "two"), (idempotent, "two"), (WRITE, UNKNOWN), (risky_get, UNKNOWN)];
    for (how, expected) in table {
        // The server reads the second request and closes without a word.
        let server = Server::start([vec![Hear, answer("one"), Hear], vec![Hear, answer("two")]]).await;
        let (toolbox, config) = (toolbox(), config(&server.origin.address, how));
        let mut texts = Vec::new();
        for _ in 0..2 {
            texts.push(run_in(&toolbox, &config, r#"{"id":"1"}"#, None).await.text);
        }
        assert_eq!(texts, ["one", expected], "{how}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_never_sent() {
    let how = "http: { url: 'http://ADDRESS/o/{id}', query: { q: '{q}' }, headers: { x-note: '{q}' } }";
    let table = [
        ("{", "not valid JSON."),
        (r#"["1"]"#, "must be a JSON object."),
        (r#"{"id":"1","id":"2"}"#, "has the key `id` twice."),
        (r#"{"id":true}"#, r#"/id: true is not of types "number", "string"."#),
        ("{}", "`id` is missing."),
        (r#"{"id":".."}"#, "a value that becomes part of a path may not be empty, `.` or `..`."),
        (r#"{"id":"1","q":"a\r\nX-Admin: 1"}"#, "a value for the header `x-note` may only be visible ASCII, and not too long."),
    ];
    for (arguments, why) in table {
        let server = Server::start([vec![Hear, answer("sent")]]).await;
        let output = call(&server, how, arguments).await;
        assert_eq!(output.outcome, Outcome::InvalidArguments, "{arguments}");
        assert_eq!(output.text, format!("Error: tool \"t\" was not run: its arguments are not valid: {why}"));
        assert_eq!((server.connections(), output.mark), (0, Mark::CLEAN), "{arguments}");
    }
}

#[tokio::test]
async fn a_select_gives_the_part_as_it_stands_or_fails() {
    let how = |pointer: &str| format!("http: {{ url: 'http://ADDRESS/o', select: '{pointer}' }}");
    let body = r#"{"data": {"n": 1.50, "list": [ 1 ]}}"#;
    check(&how("/data"), status("200 OK", body), Outcome::Ok, r#"{"n": 1.50, "list": [ 1 ]}"#).await;
    check(&how("/data/n"), status("200 OK", body), Outcome::Ok, "1.50").await;
    check(&how("/nowhere"), status("200 OK", body), Outcome::Error, FAILED).await;
    check(&how("/data"), status("200 OK", "<html>"), Outcome::Error, FAILED).await;
    check(&how("/data"), status("404 Not Found", body), Outcome::Error, "Error: tool \"t\" answered with status 404.").await;
    // What is cut is the part, not what it is taken from.
    let long = format!(r#"{{"noise": "{}", "data": "short"}}"#, "x".repeat(200_000));
    check(&format!("{}\n    max_result: 100", how("/data")), status("200 OK", &long), Outcome::Ok, "\"short\"").await;
}

#[tokio::test]
async fn a_result_is_cut_on_a_character_with_the_mark_within_the_bound() {
    let how = |max: usize| format!("{LOOK_UP}\n    max_result: {max}");
    for body in ["x".repeat(1200), "é".repeat(600), "🦀".repeat(300)] {
        for (max, whole) in [(1199, false), (1200, true), (1201, true)] {
            let server = Server::start([status("200 OK", &body)]).await;
            let output = call(&server, &how(max), r#"{"id":"1"}"#).await;
            assert_eq!(output.text == body, whole, "{max}");
            assert!(output.text.len() <= max, "{max}: {}", output.text.len());
            assert_eq!(output.text.ends_with(" of 1200 bytes shown]"), !whole, "{max}: {}", output.text);
            assert_eq!(output.bytes, 1200);
        }
    }
}

#[tokio::test]
async fn a_flood_is_not_read_to_its_end() {
    let piece = format!("{:x}\r\n{}\r\n", 100_000, "x".repeat(100_000));
    let mut script = says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    script.extend((0..400).map(|_| Say(piece.clone().into())));
    let server = Server::start([script]).await;
    let output = call(&server, &format!("{LOOK_UP}\n    max_result: 100"), r#"{"id":"1"}"#).await;
    assert_eq!(output.outcome, Outcome::Ok);
    assert_eq!(output.bytes, 1024 * 1024);
    assert!(output.text.ends_with("of more than 1048576 bytes shown]") && output.text.len() <= 100, "{}", output.text);
}

#[tokio::test]
async fn a_packed_answer_is_read_and_one_that_cannot_be_is_a_failure() {
    // What zlib makes of `ok`, which is no text.
    let packed: &[u8] = &[0x78, 0x9c, 0xcb, 0xcf, 0x06, 0x00, 0x01, 0x4b, 0x00, 0xdb];
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ncontent-length: {}\r\n\r\n", packed.len());
    let said = vec![Hear, SayBytes([head.as_bytes(), packed].concat())];
    check(LOOK_UP, said, Outcome::Ok, "ok").await;
    for coding in ["gzip", "compress"] {
        let said = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: 2\r\n\r\n\u{1f}x");
        check(LOOK_UP, says(&said), Outcome::Error, FAILED).await;
    }
    let plain = "HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\nok";
    check(LOOK_UP, says(plain), Outcome::Ok, "ok").await;
}

#[tokio::test]
async fn a_result_may_only_raise_its_class() {
    use DataClass as C;
    let table = [
        ("", C::Internal),
        ("x-data-class: public\r\n", C::Internal),
        ("x-data-class: internal\r\n", C::Internal),
        ("X-Data-Class: configuration\r\n", C::Configuration),
        ("x-data-class: public\r\nx-data-class: diagnostics\r\n", C::Diagnostics),
        ("x-data-class: top-secret\r\n", C::Secret),
        ("x-data-class:\r\n", C::Secret),
        ("x-data-class: internal, public\r\n", C::Secret),
    ];
    for (header, class) in table {
        let server = Server::start([says(&format!("HTTP/1.1 200 OK\r\n{header}content-length: 2\r\n\r\nok"))]).await;
        let output = call(&server, LOOK_UP, r#"{"id":"1"}"#).await;
        assert_eq!(output.mark, Mark { class, personal: false }, "{header}");
    }
    let server = Server::start([vec![Hear, answer("ok")]]).await;
    let output = call(&server, &format!("{LOOK_UP}\n    personal: true"), r#"{"id":"1"}"#).await;
    assert_eq!(output.mark, Mark { class: C::Internal, personal: true });
}

#[tokio::test]
async fn egress_is_judged_again_before_each_call() {
    let mut server = Server::start([vec![Hear, answer("sent")]]).await;
    for (egress, refusal) in [(vec![], EgressRefusal::NoEgress), (vec![("127.0.0.1", 9)], EgressRefusal::PortNotListed)] {
        let config = with_egress(config(&server.origin.address, LOOK_UP), &egress);
        let output = run(&config, r#"{"id":"1"}"#).await;
        assert_eq!((output.outcome, output.egress_denied), (Outcome::Refused, Some(refusal)));
        assert_eq!(output.text, "Error: tool \"t\" is not available.");
        assert_eq!(server.connections(), 0);
        assert!(server.heard_nothing_more());
    }
}

/// The configuration with a group that lists other hosts, as no file could say it.
fn with_egress(config: Config, hosts: &[(&str, u16)]) -> Config {
    use toolgate_config::group::{EgressEntry, Group};
    use toolgate_config::tool::Tools;
    let tool = Arc::clone(config.tools.iter().next().unwrap());
    drop(config.tools);
    let mut tool = Arc::into_inner(tool).unwrap();
    let entry = |&(host, port): &(&str, u16)| EgressEntry { address: HostPort { host: host.to_owned(), port }, private: true };
    tool.group = Arc::new(Group {
        name: tool.group.name.clone(),
        enabled: true,
        data_class: None,
        personal: false,
        egress: hosts.iter().map(entry).collect(),
        trust_zone: tool.group.trust_zone,
    });
    Config { tools: Tools::from_iter([tool]), ..config }
}

#[tokio::test]
async fn what_a_tool_returns_loses_its_secrets_and_their_number_is_known() {
    let body = r#"{"note":"call +49 30 901820 or ann@example.org","api_key":"k-1234567890abcdef","n":1.50}"#;
    let server = Server::start([status("200 OK", body)]).await;
    let output = call(&server, LOOK_UP, r#"{"id":"1"}"#).await;
    assert!(!output.text.contains("ann@") && !output.text.contains("k-1234") && output.text.contains("1.50"), "{}", output.text);
    assert_eq!(output.bytes, body.len());
    assert!(output.redactions.iter().map(|(_, count)| count).sum::<u32>() >= 2, "{:?}", output.redactions);

    let with_body = "http: { url: 'http://ADDRESS/o', errors: body }";
    let server = Server::start([status("500 Oops", "token: ghp_0123456789abcdefghijABCDEFGHIJ012345")]).await;
    let output = call(&server, with_body, r#"{"id":"1"}"#).await;
    assert!(output.text.starts_with("Error: tool \"t\" answered with status 500.\n"), "{}", output.text);
    assert!(!output.text.contains("ghp_") && !output.redactions.is_empty(), "{}", output.text);
}

#[tokio::test]
async fn arguments_lose_their_secrets_where_they_go_to_somebody_who_is_trusted_less() {
    let arguments = r#"{"id":"AKIAIOSFODNN7EXAMPLQ","q":"ann@example.org"}"#;
    let mut server = Server::start([vec![Hear, answer("ok")]]).await;
    let output = call(&server, LOOK_UP, arguments).await;
    let heard = server.heard().await;
    assert!(heard.starts_with("GET /o/%5Bredacted%3Aaws_key%5D?q=ann%40example.org "), "{heard}");
    assert_eq!(output.kept_back.iter().map(|(kind, count)| (kind.as_str(), count)).collect::<Vec<_>>(), [("aws_key", 1)]);
    assert!(output.redactions.is_empty());
}

#[tokio::test]
async fn an_object_that_came_as_a_string_reaches_the_tool_as_one() {
    let how = "http: { method: POST, url: 'http://ADDRESS/o' }\n    enabled: true\n    requires_approval: false";
    let mut server = Server::start([vec![Hear, answer("ok")]]).await;
    let mut config = config(&server.origin.address, how);
    let tool = Arc::clone(config.tools.iter().next().unwrap());
    config.tools = Default::default();
    let mut tool = Arc::into_inner(tool).unwrap();
    tool.parameters = toolgate_config::schema::Schema::compile(
        serde_json::json!({ "properties": { "o": { "type": "object" }, "s": { "type": "string" } } }),
    )
    .unwrap();
    config.tools = toolgate_config::tool::Tools::from_iter([tool]);
    let output = run(&config, r#"{"o":"{\"n\": 1.50}", "s":"{}"}"#).await;
    assert_eq!(output.outcome, Outcome::Ok, "{}", output.text);
    let heard = server.heard().await;
    assert!(heard.ends_with(r#"{"o":{"n": 1.50},"s":"{}"}"#), "{heard}");
}

#[tokio::test]
async fn case_46_a_credential_does_not_leave_in_a_url_or_a_header() {
    let how = "http: { url: 'http://ADDRESS/o/{id}', query: { q: '{q}', both: '{id}{q}' }, headers: { x-note: 'n-{q}', x-api-key: SECRET-CANARY-1 } }";
    let canary = "SECRET-CANARY-1";
    let table = [
        (r#"{"id":"A-1000","q":"plain"}"#.to_owned(), true),
        (r#"{"id":"ann@example.org","q":"TCK-123456"}"#.to_owned(), true),
        (format!(r#"{{"id":"{canary}"}}"#), false),
        (format!(r#"{{"id":"1","q":"what is {canary}?"}}"#), false),
        (r#"{"id":"1","q":"SECRET%2DCANARY%2D1"}"#.to_owned(), false),
        (r#"{"id":"1","q":"SECRET\u002dCANARY-1"}"#.to_owned(), false),
        (r#"{"id":"SECRET-CAN","q":"ARY-1"}"#.to_owned(), false),
    ];
    for (arguments, passes) in table {
        let server = Server::start([vec![Hear, answer("sent")]]).await;
        let output = call(&server, how, &arguments).await;
        let expected = if passes {
            (Outcome::Ok, None, "sent")
        } else {
            (Outcome::Refused, Some(EgressRefusal::Secret), "Error: tool \"t\" is not available.")
        };
        assert_eq!((output.outcome, output.egress_denied, output.text.as_str()), expected, "{arguments}");
        assert_eq!(server.connections(), usize::from(passes), "{arguments}");
    }
    // In a body it is the tool's own business.
    let mut server = Server::start([vec![Hear, answer("sent")]]).await;
    let output = call(&server, WRITE, &format!(r#"{{"id":"{canary}"}}"#)).await;
    assert_eq!(output.outcome, Outcome::Ok);
    assert!(server.heard().await.contains(canary));
}
