//! The session over HTTP, against servers of every kind.

mod double;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::{RunningService, ServiceError};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use toolgate_config::address::{BaseUrl, Origin};
use toolgate_config::class::{DataClass, TrustZone};
use toolgate_config::group::{EgressEntry, Group};
use toolgate_config::mcp::{McpServer, Reach};
use toolgate_config::names::{GroupName, ServerName};
use toolgate_config::secret::Secret;
use toolgate_config::tool::{Effect, McpWork, ToolRule};
use toolgate_policies::egress::EgressRefusal;

use self::double::{Double, Heard, Reply, accepted, events, json_answer, result, status};
use super::super::error::CallError;
use super::super::hub::Hub;
use super::super::wire;
use super::{Failure, transport};
use crate::arguments::Arguments;
use crate::net::Net;

/// What a server answers.
type Says = fn(&Heard) -> Reply;

const LONG: Duration = Duration::from_secs(20);

fn rule(timeout: Duration) -> ToolRule {
    ToolRule {
        enabled: true,
        effect: Effect::NonIdempotentWrite,
        requires_admin: false,
        scopes: Default::default(),
        requires_approval: false,
        data_class: DataClass::Public,
        personal: false,
        timeout,
        max_result: 1000,
        cache: None,
        price: None,
        redacted: true,
    }
}

fn described(origin: &Origin, timeout: Duration, egress: &[&Origin]) -> (Arc<McpServer>, BaseUrl, Vec<(String, Secret)>) {
    let egress = egress.iter().map(|origin| EgressEntry { address: origin.address.clone(), private: true }).collect();
    let group = Group {
        name: GroupName::new("g"),
        enabled: true,
        data_class: None,
        personal: false,
        egress,
        trust_zone: TrustZone::default(),
    };
    let url = BaseUrl { origin: origin.clone(), path: "/mcp".to_owned() };
    let headers = vec![
        ("authorization".to_owned(), Secret::new("Bearer TOKEN")),
        ("accept".to_owned(), Secret::new("text/html")),
        ("transfer-encoding".to_owned(), Secret::new("chunked")),
    ];
    let server = McpServer {
        name: ServerName::new("double"),
        reach: Reach::Http { url: url.clone(), headers: headers.clone() },
        group: Arc::new(group),
        timeout,
        rule: rule(timeout),
        only: None,
    };
    (Arc::new(server), url, headers)
}

/// Counts what the server says of its list.
#[derive(Clone, Default)]
struct Ears(Arc<Notify>);

impl ClientHandler for Ears {
    async fn on_tool_list_changed(&self, _: rmcp::service::NotificationContext<RoleClient>) {
        self.0.notify_one();
    }
}

struct Client {
    session: RunningService<RoleClient, Ears>,
    renewed: Arc<Notify>,
    changed: Arc<Notify>,
}

impl Client {
    async fn try_start(origin: &Origin, timeout: Duration, egress: &[&Origin]) -> Result<Self, Option<Failure>> {
        let (server, url, headers) = described(origin, timeout, egress);
        let renewed = Arc::new(Notify::new());
        let transport = transport(&server, &url, &headers, Arc::new(Net::new()), Arc::clone(&renewed));
        let ears = Ears::default();
        let changed = Arc::clone(&ears.0);
        match ears.serve(transport).await {
            Ok(session) => Ok(Self { session, renewed, changed }),
            Err(error) => {
                assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
                Err(Failure::of(&error))
            }
        }
    }

    async fn start(double: &Double) -> Self {
        Self::try_start(&double.origin, LONG, &[&double.origin]).await.unwrap_or_else(|why| panic!("{why:?}"))
    }

    async fn call(&self) -> Result<Value, ServiceError> {
        let request = CallToolRequest::new(CallToolRequestParams::new("t"));
        let result = self.session.send_request(ClientRequest::CallToolRequest(request)).await?;
        Ok(serde_json::from_str(&wire::unpacked(result).unwrap()).unwrap())
    }

    /// What a call came to: its text, or why there is none.
    async fn outcome(&self) -> Result<String, Failure> {
        match timeout(LONG, self.call()).await.unwrap() {
            Ok(result) => Ok(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()),
            Err(ServiceError::McpError(error)) => match Failure::of_answer(&error) {
                Some(failure) => Err(failure),
                None => Ok(format!("{}: {}", error.code.0, error.message)),
            },
            Err(error) => {
                assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
                Err(Failure::of(&error).unwrap_or(Failure::Cut))
            }
        }
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn packed(mut reply: Reply) -> Reply {
    let mut small = Vec::new();
    brotli::BrotliCompress(&mut &reply.body[..], &mut small, &Default::default()).unwrap();
    reply.body = small;
    reply.with("content-encoding", "br")
}

fn calls(heard: &[Heard]) -> Vec<String> {
    heard.iter().map(|heard| format!("{} {}", heard.what(), heard.header("mcp-session-id").unwrap_or("-"))).collect()
}

#[tokio::test]
async fn one_session_serves_every_call_and_its_end_is_told() {
    let double = Double::start(|heard, _| match heard.what() {
        "tools/call" => Some(result(heard, text("ok"))),
        _ => None,
    })
    .await;
    let mut client = Client::start(&double).await;
    for _ in 0..3 {
        assert_eq!(client.outcome().await, Ok("ok".to_owned()));
    }
    client.session.close().await.unwrap();
    let heard = double.heard();
    let told: Vec<_> = calls(&heard).into_iter().filter(|call| !call.starts_with("GET")).collect();
    let expected =
        ["initialize -", "notifications/initialized S1", "tools/call S1", "tools/call S1", "tools/call S1", "DELETE S1"];
    assert_eq!(told, expected);
    for heard in &heard {
        assert_eq!(heard.header("authorization"), Some("Bearer TOKEN"));
        assert_eq!(heard.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(heard.header("transfer-encoding"), None);
        assert_eq!(heard.path, "/mcp");
        let later = heard.what() != "initialize";
        assert_eq!(heard.header("mcp-protocol-version"), later.then_some("2025-11-25"), "{}", heard.what());
    }
}

#[tokio::test]
async fn case_55_a_session_that_is_over_is_begun_anew_once() {
    // The third call finds the session over.
    let double = Double::start(|heard, nth| match (heard.what(), heard.header("mcp-session-id")) {
        ("tools/call", Some("S1")) if nth >= 2 => Some(status(404, "SECRET")),
        ("tools/call", _) => Some(result(heard, text("ok"))),
        _ => None,
    })
    .await;
    let mut client = Client::start(&double).await;
    for _ in 0..4 {
        assert_eq!(client.outcome().await, Ok("ok".to_owned()));
    }
    timeout(LONG, client.renewed.notified()).await.expect("the list is to be read again");
    client.session.close().await.unwrap();
    let begun = calls(&double.heard());
    assert_eq!(begun.iter().filter(|call| call.starts_with("initialize")).collect::<Vec<_>>(), ["initialize -", "initialize -"]);
    assert_eq!(begun.iter().filter(|call| *call == "tools/call S2").count(), 2);
    assert_eq!(begun.last().unwrap(), "DELETE S2");
}

#[tokio::test]
async fn case_55_calls_side_by_side_begin_one_session() {
    let double = Double::start(|heard, _| match (heard.what(), heard.header("mcp-session-id")) {
        ("tools/call", Some("S1")) => Some(status(404, "")),
        ("tools/call", _) => Some(result(heard, text("ok"))),
        _ => None,
    })
    .await;
    let client = Client::start(&double).await;
    let outcomes = futures_util::future::join_all((0..5).map(|_| client.outcome())).await;
    assert_eq!(outcomes, vec![Ok("ok".to_owned()); 5]);
    assert_eq!(double.count("initialize"), 2);
}

#[tokio::test]
async fn case_55_a_second_end_is_an_error_and_without_a_session_there_is_none_to_begin_anew() {
    let double = Double::start(|heard, _| (heard.what() == "tools/call").then(|| status(404, "SECRET"))).await;
    let client = Client::start(&double).await;
    assert_eq!(client.outcome().await, Err(Failure::SessionOver));
    assert_eq!(double.count("initialize"), 2);
    let double = Double::without_sessions(|heard, _| (heard.what() == "tools/call").then(|| status(404, "SECRET"))).await;
    let client = Client::start(&double).await;
    assert_eq!(client.outcome().await, Err(Failure::Status(404)));
    assert_eq!(double.count("initialize"), 1);
}

#[tokio::test]
async fn common_servers_say_otherwise_that_a_session_is_over() {
    let said = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "Bad Request: No valid session ID provided" } });
    let double = Double::start(move |heard, _| match (heard.what(), heard.header("mcp-session-id")) {
        ("tools/call", Some("S1")) => Some(json_answer(400, &said)),
        ("tools/call", _) => Some(result(heard, text("ok"))),
        _ => None,
    })
    .await;
    assert_eq!(Client::start(&double).await.outcome().await, Ok("ok".to_owned()));
}

#[tokio::test]
async fn a_status_is_all_that_is_known_of_a_refusal() {
    for code in [301, 302, 307, 400, 401, 403, 405, 418, 429, 500, 502, 503] {
        let elsewhere = Double::start(|_, _| None).await;
        let reply = status(code, "SECRET").with("location", &format!("http://{}/mcp", elsewhere.origin.authority()));
        let reply = reply.with("www-authenticate", "Bearer SECRET");
        let double = Double::start(move |heard, _| (heard.what() == "tools/call").then(|| reply.clone())).await;
        assert_eq!(Client::start(&double).await.outcome().await, Err(Failure::Status(code)));
        let double = Double::start(move |heard, _| (heard.what() == "initialize").then(|| status(code, "SECRET"))).await;
        let refused = Client::try_start(&double.origin, LONG, &[&double.origin]).await.err().unwrap();
        assert_eq!(refused, Some(Failure::Status(code)));
        assert!(elsewhere.heard().is_empty(), "nobody was sent elsewhere");
    }
}

#[tokio::test]
async fn a_server_may_explain_itself_in_the_protocols_words() {
    let error = |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "no such city" } });
    for code in [200, 400, 404, 422] {
        let double = Double::without_sessions(move |heard, _| {
            (heard.what() == "tools/call").then(|| json_answer(code, &error(heard.id())))
        })
        .await;
        assert_eq!(Client::start(&double).await.outcome().await, Ok("-32602: no such city".to_owned()), "{code}");
    }
    // What was gone wrong with on the server's side is not told in its words.
    for code in [401, 403, 429, 500, 503] {
        let double =
            Double::start(move |heard, _| (heard.what() == "tools/call").then(|| json_answer(code, &error(heard.id())))).await;
        assert_eq!(Client::start(&double).await.outcome().await, Err(Failure::Status(code)));
    }
}

#[tokio::test]
async fn an_answer_is_found_in_whatever_form_it_comes() {
    let table: [(&str, Says); 11] = [
        ("after other messages", |heard| {
            events(&[
                ": hello\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n\n",
                "event: ping\ndata: {}\n\n",
                "data: keep-alive\n\n",
                &format!("data: {}\n\n", heard.answer(text("ok"))),
            ])
        }),
        ("answers to others", |heard| {
            let other = json!({ "jsonrpc": "2.0", "id": 4711, "result": text("another's") });
            events(&[&format!("data: {other}\n\n"), &format!("data: {}\n\n", heard.answer(text("ok")))])
        }),
        ("lines of windows", |heard| {
            events(&[&format!("event: message\r\nid: 1\r\ndata: {}\r\n\r\n", heard.answer(text("ok")))])
        }),
        ("a mark at the start", |heard| events(&[&format!("\u{feff}data:{}\n\n", heard.answer(text("ok")))])),
        ("many lines", |heard| {
            let pretty = serde_json::to_string_pretty(&heard.answer(text("ok"))).unwrap();
            events(&[&format!("data: {}\n\n", pretty.replace('\n', "\ndata: "))])
        }),
        ("packed", |heard| packed(result(heard, text("ok")))),
        ("a packed stream", |heard| packed(events(&[&format!("id: 1\ndata: {}\n\n", heard.answer(text("ok")))]))),
        ("byte by byte", |heard| events(&[&format!("data: {}\n\n", heard.answer(text("ok")))]).byte_by_byte()),
        ("an odd type", |heard| result(heard, text("ok")).with("content-type", "Application/JSON ; Charset=UTF-8")),
        ("no type", |heard| result(heard, text("ok")).without("content-type")),
        ("not quite text", |heard| {
            let mut reply = result(heard, text("ok"));
            reply.body.splice(0..0, *b"\xef\xbb\xbf");
            reply
        }),
    ];
    for (name, reply) in table {
        let double = Double::start(move |heard, _| (heard.what() == "tools/call").then(|| reply(heard))).await;
        assert_eq!(Client::start(&double).await.outcome().await, Ok("ok".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_at_once() {
    let table: [(&str, Says, Failure); 11] = [
        ("another's", |_| json_answer(200, &json!({ "jsonrpc": "2.0", "id": 4711, "result": {} })), Failure::Unreadable),
        ("a page", |_| status(200, "<html>SECRET</html>").with("content-type", "text/html"), Failure::Unreadable),
        ("no JSON", |_| status(200, "SECRET").with("content-type", "application/json"), Failure::Unreadable),
        ("nothing", |_| status(200, "").with("content-type", "application/json"), Failure::Unreadable),
        (
            "a broken error",
            |heard| json_answer(200, &json!({ "jsonrpc": "2.0", "id": heard.id(), "error": "SECRET" })),
            Failure::Unreadable,
        ),
        (
            "a broken event",
            |heard| events(&[&format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": heard.id(), "error": "SECRET" }))]),
            Failure::Unreadable,
        ),
        ("half an event", |_| events(&["data: {\"jsonrpc\": SECRET\n\n"]), Failure::Unreadable),
        ("cut", |_| events(&["data: {\"jsonrpc\""]), Failure::Cut),
        (
            "said to be huge",
            |_| status(200, "{}").with("content-type", "application/json").with("content-length", "99999999"),
            Failure::TooLarge,
        ),
        (
            "huge",
            |_| {
                let mut reply = events(&["data: "]);
                reply.body.resize(super::LONGEST_MESSAGE + 100, b'x');
                reply
            },
            Failure::TooLarge,
        ),
        (
            "packed in an unknown way",
            |heard| result(heard, text("x")).with("content-encoding", "odd"),
            Failure::Net(crate::net::NetError::Packing),
        ),
    ];
    for (name, reply, expected) in table {
        let double = Double::start(move |heard, _| (heard.what() == "tools/call").then(|| reply(heard))).await;
        assert_eq!(Client::start(&double).await.outcome().await, Err(expected), "{name}");
    }
}

#[tokio::test]
async fn a_name_of_a_session_that_could_not_be_sent_back_is_refused() {
    let long = "x".repeat(5000);
    let table = [
        ("with blank", false),
        ("tab\tbed", false),
        ("", false),
        ("\u{e9}", false),
        (long.as_str(), false),
        ("eyJh.b-_~=!", true),
    ];
    for (name, taken) in table {
        let reply_name = name.to_owned();
        let double = Double::start(move |heard, _| {
            (heard.what() == "initialize").then(|| result(heard, double::greeting()).with("mcp-session-id", &reply_name))
        })
        .await;
        let started = Client::try_start(&double.origin, LONG, &[&double.origin]).await;
        assert_eq!(started.is_ok(), taken, "{name:?}");
    }
}

#[tokio::test]
async fn nothing_of_a_server_makes_a_beginning_last() {
    let head = "HTTP/1.1 200 OK\r\n".to_owned();
    let table = [
        ("silence", Reply::raw(head.clone(), vec![])),
        ("an endless head", Reply::raw(head.clone(), b"x-a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n".to_vec())),
        ("endless comments", Reply::raw(head.clone() + "content-type: text/event-stream\r\n\r\n", b": still here\n".to_vec())),
        ("an endless comment", Reply::raw(head.clone() + "content-type: text/event-stream\r\n\r\n:", b"still here".to_vec())),
        (
            "endless messages",
            Reply::raw(
                head.clone() + "content-type: text/event-stream\r\n\r\n",
                b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n".to_vec(),
            ),
        ),
        ("an endless answer", Reply::raw(head + "content-type: application/json\r\n\r\n", b"          ".to_vec())),
    ];
    for (name, reply) in table {
        let double = Double::start(move |heard, _| (heard.what() == "initialize").then(|| reply.clone())).await;
        let egress = [&double.origin];
        let started = Client::try_start(&double.origin, Duration::from_millis(300), &egress);
        assert!(timeout(LONG, started).await.expect(name).is_err(), "{name}");
        timeout(LONG, double.is_left()).await.expect(name);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_taken_up_where_it_ended() {
    let double = Double::start(|heard, _| match heard.what() {
        "tools/call" => Some(events(&["id: e1\nretry: 150\ndata:\n\n"])),
        "GET" if heard.header("last-event-id") == Some("e1") => Some(events(&[
            "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}\n\n",
        ])),
        _ => None,
    })
    .await;
    let client = Client::start(&double).await;
    assert_eq!(client.outcome().await, Ok("ok".to_owned()));
    let heard = double.heard();
    let asked = heard.iter().find(|heard| heard.what() == "tools/call").unwrap();
    let resumed = heard.iter().find(|heard| heard.header("last-event-id").is_some()).unwrap();
    assert!(resumed.at - asked.at >= Duration::from_millis(150), "it waited as long as it was asked to");
    assert_eq!(resumed.header("mcp-session-id"), Some("S1"));
}

#[tokio::test]
async fn news_come_over_a_stream_that_is_kept_open() {
    let news = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let double = Double::start(move |heard, nth| match (heard.what(), nth) {
        // The first two attempts come to nothing.
        ("GET", 0) => Some(Reply::cut()),
        ("GET", 1) => Some(events(&["retry: 100\n\n"])),
        ("GET", _) => Some(events(&[news, news, news])),
        _ => None,
    })
    .await;
    let client = Client::start(&double).await;
    timeout(LONG, client.changed.notified()).await.unwrap();
    assert!(double.count("GET") >= 3);
}

#[tokio::test]
async fn a_stream_that_is_refused_because_the_session_is_over_is_news_too() {
    let double = Double::start(|heard, _| (heard.what() == "GET").then(|| status(404, ""))).await;
    let client = Client::start(&double).await;
    timeout(LONG, client.renewed.notified()).await.unwrap();
    assert_eq!(double.count("GET"), 1);
}

#[tokio::test]
async fn nobody_is_asked_whom_the_group_may_not_reach() {
    let double = Double::start(|_, _| None).await;
    let elsewhere = Double::start(|_, _| None).await;
    for (egress, expected) in [(vec![], EgressRefusal::NoEgress), (vec![&elsewhere.origin], EgressRefusal::PortNotListed)] {
        let refused = Client::try_start(&double.origin, LONG, &egress).await.err().unwrap();
        assert_eq!(refused, Some(Failure::Egress(expected)));
    }
    assert!(double.heard().is_empty());
}

#[tokio::test]
async fn a_call_of_a_server_that_the_group_may_not_reach_says_which_rule_it_was() {
    let double = Double::start(|_, _| None).await;
    let (server, ..) = described(&double.origin, LONG, &[]);
    let hub = Hub::new(Arc::new(Net::new()));
    hub.serve(&[Arc::clone(&server)]);
    hub.first_look(Instant::now() + LONG).await;
    let (work, arguments) = (McpWork { server, tool: "t".to_owned() }, Arguments::parse("{}").unwrap());
    let refused = hub.call(&work, &arguments, Effect::ReadOnly, Instant::now() + LONG).await;
    assert_eq!(refused, Err(CallError::Denied(EgressRefusal::NoEgress)));
    assert!(double.heard().is_empty());
    hub.close().await;
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_called_off_and_the_session_lives() {
    let double = Double::start(|heard, nth| match heard.what() {
        "tools/call" if nth == 0 => {
            Some(Reply::raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned(), vec![]))
        }
        "tools/call" => Some(result(heard, text("ok"))),
        "notifications/cancelled" => Some(accepted()),
        _ => None,
    })
    .await;
    let client = Client::start(&double).await;
    let given_up = timeout(Duration::from_millis(200), client.session.call_tool_once(CallToolRequestParams::new("t"))).await;
    assert!(given_up.is_err());
    double.wait_for("notifications/cancelled").await;
    assert_eq!(client.outcome().await, Ok("ok".to_owned()));
    assert_eq!(double.count("initialize"), 1);
}
