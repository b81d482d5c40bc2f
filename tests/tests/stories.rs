//! What does not fit a scenario: signals, reloads, callers that go away, TLS, many connections, bytes cut in every place.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolgate_tests::caller::{Response, receive};
use toolgate_tests::config::SHOP;
use toolgate_tests::gateway::{Gateway, Output, command};
use toolgate_tests::reply::Step;
use toolgate_tests::scenario::Mode;
use toolgate_tests::stage::{PATIENCE, Stage, eventually};
use toolgate_tests::stand::Stand;
use toolgate_tests::stream::Stream;
use toolgate_tests::wire::Reader;

/// A message's chunk as an event.
fn delta(delta: &Value) -> Value {
    json!({"delta": delta})
}

async fn run_command(stand: &Stand, args: Vec<String>, env: [(String, String); 1]) -> Result<Output, String> {
    command(&stand.folder, &args, &env).await
}

async fn ends(gateway: &mut Gateway) -> std::process::ExitStatus {
    tokio::time::timeout(PATIENCE, gateway.process.wait()).await.expect("it ends in time").expect("it can be waited for")
}

// ---- Draining -------------------------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn sigterm_lets_running_requests_finish_and_takes_no_new_ones() {
    let stand = Stand::with(
        json!([{"sse": [delta(&json!({"role": "assistant", "content": "one"})), {"until_caller_saw": "draining"},
        {"finish": "stop"}, {"done": true}]}]),
        json!({}),
    )
    .await;
    let mut gateway = stand.serve(json!({"models": {"m": {"tools": null}}})).await;
    let running = stand.ask(Mode::Streamed, json!({}));
    let drain = async {
        assert!(stand.upstream.until(|seen| seen.len() == 1).await);
        assert!(stand.stage.until_caller_saw("one").await);
        gateway.signal("TERM");
        eventually("/readyz says 503", || async { gateway.admin("/readyz").await.status == 503 }).await;
        eventually("no new request is taken", || async {
            let response = stand.ask(Mode::Plain, json!({})).await;
            response.status == 503 || response.status == 0
        })
        .await;
        stand.stage.saw(b"draining");
    };
    let (response, ()) = tokio::join!(running, drain);
    let stream = Stream::parse(&response.body);
    assert_eq!((stream.faults.clone(), stream.answer()["content"].clone()), (vec![], json!("one")));
    assert_eq!(ends(&mut gateway).await.code(), Some(0));
}

#[tokio::test]
async fn sigterm_without_requests_ends_at_once_with_exit_code_0() {
    let stand = Stand::with(json!([]), json!({})).await;
    for name in ["TERM", "INT"] {
        let mut gateway = stand.serve(json!({})).await;
        gateway.signal(name);
        assert_eq!(ends(&mut gateway).await.code(), Some(0), "{name}");
    }
}

#[tokio::test]
async fn a_drain_waits_no_longer_than_its_grace() {
    let stand = Stand::with(json!([{"hang": true}]), json!({})).await;
    let mut gateway = stand.serve(json!({"server": {"shutdown_grace": "1s"}})).await;
    let running = stand.ask(Mode::Plain, json!({}));
    let stop = async {
        assert!(stand.upstream.until(|seen| seen.len() == 1).await);
        gateway.signal("TERM");
    };
    let (_, ()) = tokio::join!(running, stop);
    assert_eq!(ends(&mut gateway).await.code(), Some(0));
}

#[tokio::test]
async fn an_upgrade_refuses_no_connection_and_breaks_no_stream() {
    let held = json!({"sse": [delta(&json!({"role": "assistant", "content": "one"})), {"until_caller_saw": "upgraded"},
        {"finish": "stop"}, {"done": true}]});
    let replies: Vec<Value> =
        std::iter::once(held).chain((0..2000).map(|_| json!({"content": "done", "optional": true}))).collect();
    let stand = Stand::with(Value::Array(replies), json!({})).await;
    let mut old = stand.serve(json!({"models": {"m": {"tools": null}}})).await;
    let running = stand.ask(Mode::Streamed, json!({}));
    let upgrade = async {
        assert!(stand.stage.until_caller_saw("one").await);
        let mut new = Gateway::spawn(&stand.folder, stand.addresses.clone(), &[], &["--upgrade"]).expect("it starts");
        old.signal("QUIT");
        let mut upgraded = false;
        while !upgraded {
            let asked = stand.hello().await;
            assert_eq!(asked, (200, json!("done")), "{}", old.log());
            upgraded = old.log().matches("listening").count() > 1;
            assert!(new.process.try_wait().expect("it can be asked").is_none(), "the new process ended:\n{}", old.log());
        }
        for _ in 0..20 {
            assert_eq!(stand.hello().await, (200, json!("done")));
        }
        stand.stage.saw(b"upgraded");
        new
    };
    let (response, _new) = tokio::join!(running, upgrade);
    let stream = Stream::parse(&response.body);
    assert_eq!((stream.faults.clone(), stream.answer()["content"].clone()), (vec![], json!("one")));
    assert_eq!(ends(&mut old).await.code(), Some(0));
    assert_eq!(stand.hello().await, (200, json!("done")));
}

// ---- Reloading ------------------------------------------------------------------------------------------------------------------------

fn hello_twice() -> Value {
    json!([{"content": "first"}, {"content": "second"}])
}

/// The system prompt that the last request to the model carried.
fn prompt(stand: &Stand) -> Value {
    stand.upstream.received().last().expect("a request").json()["messages"][0]["content"].clone()
}

async fn reloads(gateway: &Gateway, outcome: &str, count: f64) {
    let series = format!("toolgate_config_reloads_total{{outcome=\"{outcome}\"}}");
    eventually(&format!("{series} is {count}"), || async { gateway.metric(&series).await >= count }).await;
}

#[tokio::test]
async fn sighup_puts_a_new_configuration_in_force() {
    let stand = Stand::with(hello_twice(), json!({})).await;
    let gateway = stand.serve(json!({"models": {"m": {"system_prompt": "old"}}})).await;
    assert_eq!((stand.hello().await, prompt(&stand)), ((200, json!("first")), json!("old")));
    stand.configure(json!({"models": {"m": {"system_prompt": "new"}}}));
    gateway.signal("HUP");
    reloads(&gateway, "ok", 1.0).await;
    assert_eq!((stand.hello().await, prompt(&stand)), ((200, json!("second")), json!("new")));
}

#[tokio::test]
async fn a_changed_file_is_put_in_force() {
    let stand = Stand::with(json!([{"content": "second"}]), json!({})).await;
    let gateway = stand.serve(json!({"models": {"m": {"system_prompt": "old"}}})).await;
    stand.configure(json!({"models": {"m": {"system_prompt": "new"}}}));
    reloads(&gateway, "ok", 1.0).await;
    assert_eq!((stand.hello().await, prompt(&stand)), ((200, json!("second")), json!("new")));
}

#[tokio::test]
async fn a_refused_file_leaves_the_old_one_in_force() {
    let stand = Stand::with(hello_twice(), json!({})).await;
    let gateway = stand.serve(json!({"models": {"m": {"system_prompt": "old"}}})).await;
    stand.configure(json!({"models": {"m": {"system_prompt": "new", "provider": "ghost"}}}));
    gateway.signal("HUP");
    reloads(&gateway, "refused", 1.0).await;
    assert_eq!((stand.hello().await, prompt(&stand)), ((200, json!("first")), json!("old")));
    assert!(gateway.log().contains("ghost"), "the log says why:\n{}", gateway.log());
    let response = gateway.reload().await;
    assert_eq!(response.status, 422, "{}", response.text());
    assert!(response.text().contains("ghost"), "{}", response.text());
}

#[tokio::test]
async fn the_reload_command_asks_the_admin_listener() {
    let stand = Stand::with(json!([]), json!({})).await;
    let gateway = stand.serve(json!({"server": {"admin_token": "ADMIN"}})).await;
    let args: Vec<String> = ["reload".to_owned(), "--admin".to_owned(), format!("http://{}", gateway.admin)].into();
    let token = |token: &str| [("TOOLGATE_ADMIN_TOKEN".to_owned(), token.to_owned())];
    let run = |env: [(String, String); 1]| run_command(&stand, args.clone(), env);
    assert_eq!(run(token("ADMIN")).await.expect("it runs").exit, 0);
    assert_ne!(run(token("wrong")).await.expect("it runs").exit, 0);
    stand.configure(json!({"models": {"m": {"provider": "ghost"}}}));
    let refused = run(token("ADMIN")).await.expect("it runs");
    assert_eq!(refused.exit, 1);
    assert!(format!("{}{}", refused.stdout, refused.stderr).contains("ghost"));
}

#[tokio::test]
async fn a_tool_that_is_switched_off_in_the_middle_of_a_run_is_refused_from_then_on() {
    let call = |q: &str| json!({"calls": [{"name": "lookup", "arguments": {"q": q}}]});
    let stand =
        Stand::with(json!([call("a"), call("b"), {"content": "done"}]), json!({"/lookup": {"until_caller_saw": "switched off"}}))
            .await;
    let gateway = stand.serve(json!({})).await;
    let running = stand.ask(Mode::Plain, json!({}));
    let switch = async {
        assert!(stand.tools.until(|seen| seen.len() == 1).await);
        stand.configure(json!({"groups": {"lab": {"enabled": false}}}));
        gateway.signal("HUP");
        reloads(&gateway, "ok", 1.0).await;
        stand.stage.saw(b"switched off");
    };
    let (response, ()) = tokio::join!(running, switch);
    assert_eq!(response.json()["choices"][0]["message"]["content"], "done");
    assert_eq!(stand.tools.received().len(), 1);
    let last = stand.upstream.received().pop().expect("a request").json();
    assert_eq!(last["messages"][4]["content"], "Error: tool \"lookup\" is not available.");
    assert_eq!(gateway.metric("toolgate_gate_denied_total{reason=\"group_disabled\"}").await, 1.0);
}

#[tokio::test]
async fn a_fallback_that_may_no_longer_see_what_the_run_has_read_is_passed_over() {
    let call = |tool: &str, arguments: Value| json!({"calls": [{"name": tool, "arguments": arguments}]});
    let rounds = json!([call("lookup", json!({"q": "a"})), call("clock", json!({})), {"status": 500}]);
    let tools = json!({"/lookup": {"json": {"found": 1}}, "/clock": {"until_caller_saw": "lowered"}});
    let stand = Stand::with(rounds, tools).await;
    let trust = |zone: &str| {
        json!({
            "providers": {
                "mock": {"trust_zone": "private"},
                "second": {"kind": "openai_compatible", "base_url": "{{upstream}}/second/v1", "trust_zone": zone},
            },
            "models": {"m": {"fallback": ["b"]}, "b": {"provider": "second"}},
            "groups": {"lab": {"data_class": "diagnostics", "trust_zone": "private"}},
        })
    };
    let gateway = stand.serve(trust("private")).await;
    let running = stand.ask(Mode::Plain, json!({}));
    let lower = async {
        assert!(stand.tools.until(|seen| seen.len() == 2).await);
        stand.configure(trust("external_global"));
        gateway.signal("HUP");
        reloads(&gateway, "ok", 1.0).await;
        stand.stage.saw(b"lowered");
    };
    let (response, ()) = tokio::join!(running, lower);
    assert_eq!((response.status, response.json()["error"]["code"].clone()), (502, json!("upstream_error")), "{}", gateway.log());
    let paths: Vec<String> = stand.upstream.received().into_iter().map(|request| request.target).collect();
    assert_eq!(paths, ["/v1/chat/completions"; 3]);
}

// ---- Callers that go away -------------------------------------------------------------------------------------------------------------

async fn nothing_in_flight(gateway: &Gateway) {
    eventually("nothing is in flight", || async { gateway.metric("toolgate_in_flight").await == 0.0 }).await;
}

#[tokio::test]
async fn case_38_a_caller_that_leaves_before_the_headers_cancels_the_upstream_call() {
    for mode in [Mode::Plain, Mode::Streamed] {
        let stand = Stand::with(json!([{"hang": true}]), json!({})).await;
        let gateway = stand.serve(json!({})).await;
        stand.leave(mode, json!({}), stand.upstream.until(|seen| seen.len() == 1)).await;
        assert!(stand.upstream.until(|seen| seen[0].abandoned).await, "the upstream call goes on ({mode:?})");
        nothing_in_flight(&gateway).await;
    }
}

#[tokio::test]
async fn case_38_a_caller_that_leaves_after_the_headers_cancels_the_upstream_call() {
    let stand =
        Stand::with(json!([{"sse": [delta(&json!({"role": "assistant", "content": ""})), {"cut": "silence"}]}]), json!({})).await;
    let gateway = stand.serve(json!({"models": {"m": {"stream_hold": 0}}})).await;
    stand.leave(Mode::Streamed, json!({}), stand.stage.until_caller_saw("200 OK")).await;
    assert!(stand.upstream.until(|seen| seen[0].abandoned).await, "the upstream call goes on");
    nothing_in_flight(&gateway).await;
}

#[tokio::test]
async fn case_38_a_caller_that_leaves_in_the_middle_of_a_stream_cancels_the_upstream_call() {
    let stand =
        Stand::with(json!([{"sse": [delta(&json!({"role": "assistant", "content": "one"})), {"cut": "silence"}]}]), json!({}))
            .await;
    let gateway = stand.serve(json!({"models": {"m": {"stream_hold": 0}}})).await;
    stand.leave(Mode::Streamed, json!({}), stand.stage.until_caller_saw("one")).await;
    assert!(stand.upstream.until(|seen| seen[0].abandoned).await, "the upstream call goes on");
    nothing_in_flight(&gateway).await;
    let series = "toolgate_upstream_requests_total{provider=\"mock\",model=\"m\",outcome=\"cancelled\"}";
    eventually("the call counts as cancelled", || async { gateway.metric(series).await == 1.0 }).await;
    let series = "toolgate_requests_total{model=\"m\",key=\"shop\",status=\"499\"}";
    eventually("the request counts as 499", || async { gateway.metric(series).await == 1.0 }).await;
}

#[tokio::test]
async fn case_38_a_caller_that_leaves_while_a_tool_runs_cancels_the_tool_and_no_further_round_starts() {
    for mode in [Mode::Plain, Mode::Streamed] {
        let call = json!({"calls": [{"name": "clock", "arguments": {}}]});
        let stand = Stand::with(json!([call]), json!({"/clock": {"hang": true}})).await;
        let gateway = stand.serve(json!({})).await;
        stand.leave(mode, json!({}), stand.tools.until(|seen| seen.len() == 1)).await;
        assert!(stand.tools.until(|seen| seen[0].abandoned).await, "the tool goes on ({mode:?})");
        nothing_in_flight(&gateway).await;
        assert_eq!(stand.upstream.received().len(), 1, "{mode:?}");
    }
}

#[tokio::test]
async fn case_38_a_caller_that_only_ends_its_sending_side_gets_its_answer() {
    for mode in [Mode::Plain, Mode::Streamed] {
        let stand = Stand::with(json!([{"pause": 300, "content": "done"}]), json!({})).await;
        let _gateway = stand.serve(json!({})).await;
        let mut connection = TcpStream::connect(&stand.addresses.0).await.expect("the gateway listens");
        let ask: toolgate_tests::scenario::Ask = serde_json::from_value(json!({})).unwrap();
        for step in ask.steps(mode) {
            if let Step::Send(bytes) = step {
                connection.write_all(&bytes).await.expect("it is sent");
            }
        }
        connection.shutdown().await.expect("half-closed");
        let response = receive(Reader::new(connection), &Stage::default()).await.expect("an answer");
        assert_eq!(response.status, 200);
        assert!(response.text().contains("done"), "{mode:?}: {}", response.text());
    }
}

// ---- Bounds ---------------------------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn one_request_over_max_concurrent_is_told_to_come_back() {
    let stand = Stand::with(json!([{"until_caller_saw": "second refused", "content": "done"}]), json!({})).await;
    let _gateway = stand.serve(json!({"server": {"max_concurrent": 1}})).await;
    let first = stand.ask(Mode::Plain, json!({}));
    let second = async {
        assert!(stand.upstream.until(|seen| seen.len() == 1).await);
        let response = stand.ask(Mode::Plain, json!({})).await;
        assert_eq!((response.status, response.json()["error"]["code"].clone()), (503, json!("overloaded")));
        assert!(response.head.header("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()));
        stand.stage.saw(b"second refused");
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.status, 200);
}

#[tokio::test]
async fn a_head_that_comes_too_slowly_is_cut() {
    let stand = Stand::with(json!([]), json!({})).await;
    let _gateway = stand.serve(json!({"server": {"header_timeout": "300ms"}})).await;
    let half_a_head = &b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"[..];
    let http2_without_a_request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for beginning in [half_a_head, b"PRI * HTTP/2.0\r\n\r\n", http2_without_a_request] {
        let mut connection = TcpStream::connect(&stand.addresses.0).await.expect("the gateway listens");
        connection.write_all(beginning).await.expect("it is sent");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "the connection stays open after {}", String::from_utf8_lossy(beginning));
    }
}

#[tokio::test]
async fn a_body_that_never_ends_is_cut_however_steadily_it_comes() {
    let stand = Stand::with(json!([]), json!({})).await;
    let _gateway = stand.serve(json!({"server": {"request_timeout": "300ms"}})).await;
    let mut connection = TcpStream::connect(&stand.addresses.0).await.expect("the gateway listens");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {SHOP}\r\ncontent-length: 100000\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.expect("it is sent");
    let (mut read, mut write) = connection.split();
    let mut answer = [0; 12];
    let send = async {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(PATIENCE / 200).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answered = tokio::time::timeout(PATIENCE, read.read_exact(&mut answer)) => assert!(answered.is_ok(), "no answer comes"),
        () = send => {}
    }
    assert_eq!(&answer, b"HTTP/1.1 400");
}

#[tokio::test]
async fn case_43_a_body_with_two_lengths_is_refused_and_its_connection_closed() {
    let stand = Stand::with(json!([]), json!({})).await;
    let _gateway = stand.serve(json!({})).await;
    let mut connection = TcpStream::connect(&stand.addresses.0).await.expect("the gateway listens");
    let bytes = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {SHOP}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"
    );
    connection.write_all(bytes.as_bytes()).await.expect("it is sent");
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the connection stays open");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "a second answer: {answer}");
}

#[tokio::test]
async fn a_caller_that_sends_its_whole_body_first_still_reads_why_nobody_wanted_it() {
    let stand = Stand::with(json!([]), json!({})).await;
    let _gateway = stand.serve(json!({"server": {"max_body": "64KiB"}})).await;
    let body = vec![b'x'; 16 * 1024 * 1024];
    for (key, status) in [(SHOP, "413"), ("tg-guess", "401")] {
        let mut connection = TcpStream::connect(&stand.addresses.0).await.expect("the gateway listens");
        let length = body.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-length: {length}\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).await.expect("the head is sent");
        connection.write_all(&body).await.expect("the body is sent");
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut answer)).await;
        assert!(ended.is_ok_and(|read| read.is_ok()), "{key}: the connection stays open, or was reset");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[tokio::test]
async fn two_hundred_streams_side_by_side_get_their_own_answers() {
    let reply = json!({"content": "done", "together": 200});
    let stand = Stand::with(Value::Array(vec![reply; 200]), json!({})).await;
    let gateway = stand.serve(json!({})).await;
    let all = (0..200).map(|_| stand.ask(Mode::Streamed, json!({})));
    let all: Vec<Response> = futures_util::future::join_all(all).await;
    for response in all {
        let stream = Stream::parse(&response.body);
        assert_eq!((stream.faults.clone(), stream.answer()["content"].clone()), (vec![], json!("done")));
    }
    nothing_in_flight(&gateway).await;
}

#[tokio::test]
async fn many_requests_on_one_connection() {
    let stand = Stand::with(Value::Array(vec![json!({"content": "done"}); 20]), json!({})).await;
    let _gateway = stand.serve(json!({})).await;
    let mut connection = TcpStream::connect(&stand.addresses.0).await.expect("the gateway listens");
    let ask: toolgate_tests::scenario::Ask = serde_json::from_value(json!({})).unwrap();
    for number in 0..20 {
        let mode = if number % 2 == 0 { Mode::Plain } else { Mode::Streamed };
        for step in ask.steps(mode) {
            if let Step::Send(bytes) = step {
                connection.write_all(&bytes).await.expect("it is sent");
            }
        }
        let (read, _) = connection.split();
        let response = receive(Reader::new(read), &Stage::default()).await.expect("an answer");
        assert!(response.status == 200 && response.text().contains("done"), "{number}: {}", response.text());
    }
}

// ---- Bytes cut in every place -----------------------------------------------------------------------------------------------------------

/// A recorded stream of a round with characters of two, three and four bytes, escapes, and calls.
fn recorded() -> String {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"u\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    [
        chunk("{\"role\":\"assistant\",\"content\":\"é日🎻 \\\"\\ud83c\\udfbb\"}", "null"),
        chunk(
            r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"lookup","arguments":"{\"q\":\"é日"}}]}"#,
            "null",
        ),
        chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"🎻\"}"}}]}"#, "null"),
        chunk("{}", "\"tool_calls\""),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

#[tokio::test]
async fn case_07_a_stream_may_be_cut_at_every_byte() {
    let bytes = recorded().into_bytes();
    let hex = |bytes: &[u8]| json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()});
    let rounds = (1..bytes.len()).flat_map(|cut| {
        let round = json!({"sse": [hex(&bytes[..cut]), hex(&bytes[cut..])]});
        [round, json!({"content": "done"})]
    });
    let stand = Stand::with(Value::Array(rounds.collect()), json!({})).await;
    let _gateway = stand.serve(json!({"models": {"m": {"stream_hold": 0}}})).await;
    for cut in 1..bytes.len() {
        let response = stand.ask(Mode::Streamed, json!({})).await;
        let stream = Stream::parse(&response.body);
        let content = stream.answer()["content"].clone();
        assert_eq!((stream.faults.clone(), content), (vec![], json!("é日🎻 \"🎻done")), "cut at {cut}: {}", response.text());
        let call = stand.tools.received().pop().expect("a call");
        assert_eq!(call.json(), json!({"q": "é日🎻"}), "cut at {cut}");
    }
    assert_eq!(stand.tools.received().len(), bytes.len() - 1);
    assert_eq!(stand.upstream.complaints(), Vec::<String>::new());
}

// ---- Listeners --------------------------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_unix_socket_takes_callers() {
    let stand = Stand::with(json!([{"content": "done"}]), json!({})).await;
    let _gateway = stand.serve(json!({"server": {"listen": "unix:{{folder}}/gate.sock"}})).await;
    let mut connection = tokio::net::UnixStream::connect(stand.folder.path().join("gate.sock")).await.expect("it listens");
    let ask: toolgate_tests::scenario::Ask = serde_json::from_value(json!({})).unwrap();
    for step in ask.steps(Mode::Plain) {
        if let Step::Send(bytes) = step {
            connection.write_all(&bytes).await.expect("it is sent");
        }
    }
    let response = receive(Reader::new(connection), &Stage::default()).await.expect("an answer");
    assert!(response.status == 200 && response.text().contains("done"), "{}", response.text());
}

mod pauses;
mod tls;
