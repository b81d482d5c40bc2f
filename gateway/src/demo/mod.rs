//! `toolgate demo`: the real gateway on real sockets, between an application, a model and tools that are all in this process, and an account
//! of one question that goes all the way. With a real model's address, that model is asked in place of the demo's own.
//!
//! Nothing of the gateway knows that it is a demo: what differs from `serve` is only who else is in the process.

mod account;
mod client;
mod dialect;
mod file;
mod loopback;
mod model;
mod paint;
mod shop;

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use toolgate_config::address::{BaseUrl, Listen};
use toolgate_config::{Config, check};

use self::account::Around;
use self::client::{Client, Reply};
use self::file::{Facts, Folder};
use self::loopback::Loopback;
use self::paint::Paint;
use crate::callers::Callers;
use crate::cli::print;
use crate::gateway::Gateway;
use crate::money::Closed;
use crate::reload::Reloader;
use crate::server::{self, Listening, Start};

/// What is asked of the demo.
#[derive(Debug)]
pub struct Demo {
    /// Where the gateway listens; port 0 is any that is free.
    pub listen: SocketAddr,
    /// Whether to end after the answer.
    pub once: bool,
    /// A real model in place of the demo's own.
    pub upstream: Option<Upstream>,
    /// The application's key.
    pub secret: String,
    /// Its SHA-256, in hexadecimal digits.
    pub key_hash: String,
}

/// A real model.
#[derive(Debug)]
pub struct Upstream {
    /// Its base URL.
    pub url: String,
    /// What is sent as a bearer.
    pub key: Option<String>,
    /// The name that its server knows.
    pub model: String,
}

/// Why there is no demo.
#[derive(Debug)]
pub enum Trouble {
    /// What was asked for makes no sense.
    Input(String),
    /// A port, a folder or the real model is not available.
    Dependency(String),
}

const QUESTION: &str = "What is the state of order A-1007?";
const NEXT_QUESTION: &str = "What is the state of order A-1008?";

/// Shows one question and its answer; then serves until a signal, unless once is enough.
///
/// # Errors
/// Why not.
pub fn run(demo: &Demo) -> Result<(), Trouble> {
    let parts = Parts::start(demo)?;
    let facts = Facts {
        listen: demo.listen,
        base_url: &parts.base_url,
        upstream: demo.upstream.as_ref(),
        shop: parts.shop,
        key_hash: &demo.key_hash,
    };
    let folder = Folder::with(&facts).map_err(|error| Trouble::Dependency(format!("no temporary folder: {error}")))?;
    let start = start(&folder)?;
    let told = server::run_with(start, |listening| tell(demo, &folder, listening));
    // The gateway has ended, and with it whoever could ask the model and the tools.
    parts.runtime.shutdown_background();
    told.map_err(Trouble::Dependency)?.unwrap_or(Ok(()))
}

/// The demo's own servers, and the thread that they run on.
struct Parts {
    runtime: Runtime,
    base_url: String,
    shop: SocketAddr,
}

impl Parts {
    fn start(demo: &Demo) -> Result<Self, Trouble> {
        let unavailable = |error: io::Error| Trouble::Dependency(format!("the demo's own servers cannot start: {error}"));
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("demo").enable_all().build().map_err(unavailable)?;
        let open = || runtime.block_on(Loopback::open()).map_err(unavailable);
        let shop = open()?;
        let shop_address = shop.address;
        runtime.spawn(shop.serve(loopback::shop_api));
        let base_url = match &demo.upstream {
            Some(upstream) => {
                BaseUrl::parse(&upstream.url).map_err(|why| Trouble::Input(format!("--upstream: this is no base URL: {why}")))?;
                upstream.url.clone()
            }
            None => {
                let model = open()?;
                let base_url = format!("http://{}/v1", model.address);
                runtime.spawn(model.serve(loopback::model_api));
                base_url
            }
        };
        Ok(Self { runtime, base_url, shop: shop_address })
    }
}

/// The gateway as `serve` would start it from the same file.
fn start(folder: &Folder) -> Result<Start<Callers>, Trouble> {
    let file = folder.configuration();
    let config: Config = check::load(&file).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Trouble::Input(faults.join("\n"))
    })?;
    let (gateway, departures) = Gateway::open(config).map_err(|Closed(why)| Trouble::Dependency(why))?;
    Ok(Start {
        callers: Arc::new(Callers::new(Arc::clone(&gateway))),
        reloader: Arc::new(Reloader::new(Arc::clone(&gateway), file, None)),
        certificates: None,
        meeting_place: folder.path().join("upgrade.sock"),
        take_over: false,
        departures,
        gateway,
    })
}

/// Asks the question and tells what becomes of it. Returns when the demo is over.
async fn tell(demo: &Demo, folder: &Folder, listening: Listening) -> Result<(), Trouble> {
    let (Listen::Tcp(callers), Listen::Tcp(admin)) = (listening.callers, listening.admin) else {
        return Err(Trouble::Input("the demo listens on TCP".to_owned()));
    };
    let client = Client { address: reachable(callers), key: &demo.secret };
    let paint = Paint::for_stdout();
    let upstream = demo.upstream.as_ref();
    print(&account::opening(paint, upstream.map(|upstream| (&*upstream.model, &*upstream.url))));
    let path = folder.configuration();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    print(&account::configuration(paint, &path, &text));
    let body = question(QUESTION, upstream.is_some(), false);
    print(&account::request(paint, &client, &body));
    let reply = client.send(Method::POST, "/v1/chat/completions", body).await.map_err(Trouble::Dependency)?;
    let id = reply.headers.get("x-toolgate-trace").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let trace = client.send(Method::GET, &format!("/toolgate/traces/{id}"), String::new()).await.map_err(Trouble::Dependency)?;
    print(&account::story(paint, &reply, &trace.body));
    if reply.status != 200 {
        return Err(Trouble::Dependency(why(demo, &reply, &trace.body)));
    }
    let spend = client.send(Method::GET, "/toolgate/spend", String::new()).await.map_err(Trouble::Dependency)?;
    print(&account::spend(paint, &trace.body, &spend.body));
    if !demo.once {
        // What a small model has just answered it answers again; of another question nobody knows.
        let next = if upstream.is_some() { QUESTION } else { NEXT_QUESTION };
        let next = question(next, upstream.is_some(), true);
        print(&account::invitation(paint, &client, &Around { admin, trace: &id, file: &path }, &next));
        pending::<()>().await;
    }
    Ok(())
}

/// Where a client finds a listener that takes any address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

/// What the application sends. Small models answer out of nothing unless a tool is required; later rounds are free.
fn question(question: &str, insist: bool, stream: bool) -> String {
    let mut body = json!({ "model": file::MODEL });
    if insist {
        body["tool_choice"] = "required".into();
    }
    if stream {
        body["stream"] = true.into();
    }
    body["messages"] = json!([{ "role": "user", "content": question }]);
    body.to_string()
}

/// Why there was no answer, for whoever named the model.
fn why(demo: &Demo, reply: &Reply, trace: &Value) -> String {
    let last = trace["rounds"].as_array().and_then(|rounds| rounds.last());
    let outcome = last.and_then(|round| round["outcome"].as_str()).unwrap_or_default();
    let Upstream { url, .. } = match &demo.upstream {
        Some(upstream) => upstream,
        None => return format!("the question was answered with status {}", reply.status),
    };
    let message = reply.body["error"]["message"].as_str().unwrap_or("no reason is given");
    match outcome {
        "connect_error" => format!("nothing answers at {url}"),
        "timeout" => format!("{url} took too long to answer"),
        "cut" => format!("{url} broke off its answer"),
        "rate_limited" => format!("{url} limits requests; try again later"),
        "client_error" => format!("{url} refused the request (its address, its key or the model's name may be wrong): {message}"),
        _ => format!("{url} answered with an error: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_finds_a_listener_on_any_address() {
        for (bound, reached) in [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("10.0.0.1:1", "10.0.0.1:1")] {
            assert_eq!(reachable(bound.parse().unwrap()).to_string(), reached);
        }
    }

    #[test]
    fn a_failure_says_what_to_look_at() {
        let upstream = Some(Upstream { url: "http://x/v1".to_owned(), key: None, model: "m".to_owned() });
        let demo =
            Demo { listen: ([127, 0, 0, 1], 0).into(), once: true, upstream, secret: String::new(), key_hash: String::new() };
        let reply = Reply {
            status: http::StatusCode::BAD_GATEWAY,
            headers: http::HeaderMap::new(),
            body: json!({ "error": { "message": "No." } }),
        };
        let table = [
            ("connect_error", "nothing answers at http://x/v1"),
            ("server_error", "http://x/v1 answered with an error: No."),
            ("timeout", "http://x/v1 took too long to answer"),
        ];
        for (outcome, expected) in table {
            assert_eq!(why(&demo, &reply, &json!({ "rounds": [{ "outcome": "ok" }, { "outcome": outcome }] })), expected);
        }
    }
}
