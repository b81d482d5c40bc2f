//! The fault drill: a provider fails in every way that `faults` knows, plain and streamed, with and without a tool round before; a tool in
//! those of `tools`. After each the caller has been told the right thing, nothing is left under way (no request, no connection, no money), and
//! the next request works.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

mod faults;
mod faulty;
mod leaving;
mod tools;

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use toolgate_tests::caller::Response;
use toolgate_tests::dialect::Dialect;
use toolgate_tests::gateway::Gateway;
use toolgate_tests::scenario::Mode;
use toolgate_tests::stage::eventually;
use toolgate_tests::stand::Stand;
use toolgate_tests::stream::Stream;

use crate::faults::{Fault, Seen};
use crate::faulty::{Faulty, asks_for_the_clock};

/// The most memory that the gateway may ever have held, in KiB: all bounds together and room to spare, far below what floods would bring.
const MOST_MEMORY: u64 = 700 * 1024;

/// How many sockets may be left at the end: those that wait in the pool.
const MOST_IDLE: usize = 8;

/// How many drills run at the same time: floods are work, and time limits are short.
static TURNS: Semaphore = Semaphore::const_new(3);

/// The gateway between a provider that fails and a caller.
struct Drill {
    stand: Stand,
    faulty: Faulty,
    gateway: Gateway,
    /// Listens, takes nobody, and has no room left.
    _full: Vec<TcpStream>,
}

impl Drill {
    /// With providers that are waited for as long as they say, and are asked once unless they say otherwise.
    async fn with(limits: &Value, request_timeout: &str, dialect: Dialect) -> Self {
        let (stand, faulty) = (Stand::with(json!([]), json!({})).await, Faulty::start().await);
        let (full, _full) = full().await;
        let provider = |url: String| {
            let mut provider = json!({"kind": "openai_compatible", "base_url": url, "retries": 0});
            limits.as_object().unwrap().iter().for_each(|(name, value)| provider[name] = value.clone());
            provider
        };
        let mut mock = provider(format!("http://{}/v1", faulty.address));
        let spoken = dialect.provider().to_string().replace("{{upstream}}", &format!("http://{}", faulty.address));
        let spoken: Value = serde_json::from_str(&spoken).unwrap();
        spoken.as_object().unwrap().iter().for_each(|(name, value)| mock[name] = value.clone());
        let model =
            |provider: &str| json!({"provider": provider, "upstream_model": "upstream-m", "price": {"input": 1, "output": 1}});
        let mut with_tools = model("mock");
        with_tools["tools"] = json!({"groups": ["lab"], "max_time": "60s"});
        let gateway = stand
            .serve(json!({
                "server": {"request_timeout": request_timeout},
                "providers": {
                    "mock": mock,
                    "closed": provider("http://127.0.0.1:9/v1".to_owned()),
                    "unknown": provider("http://does-not-exist.invalid/v1".to_owned()),
                    "full": provider(format!("http://{full}/v1")),
                },
                "models": {"m": with_tools, "bare": model("mock"), "closed": model("closed"), "unknown": model("unknown"), "full": model("full")},
                "keys": [{"name": "shop", "budgets": [{"per": "day", "usd": 1000}]}],
            }))
            .await;
        Self { stand, faulty, gateway, _full }
    }

    async fn play(&self, fault: &Fault, mode: Mode, after_a_tool: bool) {
        let is_streamed = mode == Mode::Streamed;
        let (play, seen) = if is_streamed { fault.streamed.clone() } else { fault.plain.clone() };
        if matches!(seen, Seen::NotPlayed) || after_a_tool && fault.model != "m" {
            return;
        }
        let about = format!("{} ({mode:?}, after a tool: {after_a_tool})", fault.name);
        let before = self.calls(fault, seen).await;
        let tools = self.stand.tools.received().len();
        if after_a_tool {
            self.faulty.will([asks_for_the_clock()]);
        }
        self.faulty.will((!play.is_empty()).then_some(play));
        let text = if fault.is_long { "long ".repeat(800_000) } else { "Hello".to_owned() };
        let ask = json!({"body": {"model": fault.model, "messages": [{"role": "user", "content": text}]}});
        judge(&self.stand.ask(mode, ask).await, mode, seen, &about);
        assert_eq!(self.stand.tools.received().len() - tools, usize::from(after_a_tool), "{about}: how often the tool ran");
        self.is_quiet(&about).await;
        assert!(self.calls(fault, seen).await > before, "{about}: the call is not counted as {seen:?}");
        self.works(&about).await;
    }

    /// A request that nothing is wrong with is answered. A machine that is busy with other things may be slower than a provider may be.
    async fn works(&self, about: &str) {
        let mut seen = self.stand.hello().await;
        for _ in 0..5 {
            if seen.0 == 504 {
                seen = self.stand.hello().await;
            }
        }
        assert_eq!(seen, (200, json!("done")), "{about}: the next request");
    }

    /// How many calls had the outcome that this fault has.
    async fn calls(&self, fault: &Fault, seen: Seen) -> f64 {
        let outcomes = match seen {
            Seen::Failed(_, _, "") => vec!["cut", "server_error"],
            Seen::Failed(_, _, outcome) => vec![outcome],
            Seen::Later(_) => vec!["rate_limited"],
            Seen::Answered | Seen::NotPlayed => vec!["ok"],
        };
        let provider = if matches!(fault.model, "m" | "bare") { "mock" } else { fault.model };
        let mut sum = 0.0;
        for outcome in outcomes {
            let series = "toolgate_upstream_requests_total";
            let model = fault.model;
            sum += self
                .gateway
                .metric(&format!("{series}{{provider=\"{provider}\",model=\"{model}\",outcome=\"{outcome}\"}}"))
                .await;
        }
        sum
    }

    /// Nothing is under way, at either end, and nothing is held.
    async fn is_quiet(&self, about: &str) {
        assert!(self.faulty.until_idle().await, "{about}: {} connections stay busy", self.faulty.busy());
        assert_eq!(self.faulty.left(), 0, "{about}: the provider was not asked");
        eventually(&format!("nothing is in flight after: {about}"), || async {
            self.gateway.metric("toolgate_in_flight").await == 0.0
        })
        .await;
        eventually(&format!("nothing is held after: {about}"), || async { self.held().await == Some(0.0) }).await;
    }

    async fn held(&self) -> Option<f64> {
        let spend = self.stand.ask(Mode::Plain, json!({"get": "/toolgate/spend"})).await.json();
        let budgets = spend.get("budgets").or(spend.get("data")).and_then(Value::as_array)?.clone();
        budgets.iter().map(|budget| budget["held"].as_f64()).sum()
    }

    /// What the process has left open, and the most memory that it ever held.
    fn traces_of_it(&self) -> (usize, u64) {
        let proc = PathBuf::from(format!("/proc/{}", self.gateway.pid()));
        let links = std::fs::read_dir(proc.join("fd")).into_iter().flatten().flatten();
        let sockets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        let sockets = sockets.filter(|link| link.to_string_lossy().starts_with("socket:")).count();
        (sockets, peak_of(&self.gateway))
    }
}

/// The most memory that the gateway ever held, in KiB.
fn peak_of(gateway: &Gateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    peak.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// A listener whose queue is full, so that nobody else gets a connection; it listens as long as its connections are there.
async fn full() -> (String, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().unwrap()).expect("a free port");
    let listener = socket.listen(1).expect("it listens");
    let address = listener.local_addr().expect("an address");
    // Kept for as long as the process runs, and never asked for a connection.
    std::mem::forget(listener);
    let mut connections = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(std::time::Duration::from_millis(300), TcpStream::connect(address)).await {
        connections.push(stream);
    }
    (address.to_string(), connections)
}

fn judge(response: &Response, mode: Mode, seen: Seen, about: &str) {
    let text = response.text();
    assert!(response.broken.is_none(), "{about}: {:?}", response.broken);
    assert!(response.head.header("x-toolgate-trace").is_some(), "{about}");
    for hidden in ["127.0.0.1", "upstream-m", "secret"] {
        assert!(!text.contains(hidden), "{about}: {text}");
    }
    let is_stream = mode == Mode::Streamed && response.status == 200;
    let stream = if is_stream { Stream::parse(&response.body) } else { Stream::default() };
    assert_eq!(stream.faults, Vec::<String>::new(), "{about}: {text}");
    let error = if is_stream { stream.error.clone().unwrap_or_default() } else { response.json()["error"].clone() };
    let (status, code) = match seen {
        Seen::Answered => {
            let answer = if is_stream {
                stream.answer()["content"].clone()
            } else {
                response.json()["choices"][0]["message"]["content"].clone()
            };
            assert_eq!((response.status, answer), (200, json!("done")), "{about}: {text}");
            return;
        }
        Seen::Later(after) => {
            if !is_stream {
                assert_eq!(response.head.header("retry-after").unwrap_or_default(), after, "{about}: {text}");
            }
            (429, "upstream_rate_limited")
        }
        Seen::Failed(status, code, _) => (status, code),
        Seen::NotPlayed => panic!("{about}: a fault that is not played this way was played"),
    };
    assert_eq!(error["code"], code, "{about}: {} {text}", response.status);
    assert!(is_stream || response.status == status, "{about}: {} {text}", response.status);
}

async fn drill(dialect: Dialect, mode: Mode, after_a_tool: bool) {
    let _turn = TURNS.acquire().await;
    let limits = json!({"connect_timeout": "2s", "first_byte_timeout": "2s", "idle_timeout": "2s"});
    let drill = Drill::with(&limits, "6s", dialect).await;
    drill.works("before anything").await;
    let (sockets, _) = drill.traces_of_it();
    for fault in faults::all().iter().filter(|fault| fault.is_for_all || dialect == Dialect::OpenAi) {
        drill.play(fault, mode, after_a_tool).await;
    }
    let (left, peak) = drill.traces_of_it();
    assert!(left <= sockets + MOST_IDLE, "{left} sockets are open, {sockets} were");
    assert!(peak <= MOST_MEMORY, "the gateway held {peak} KiB");
    assert!(!drill.gateway.log().contains("panicked"), "{}", drill.gateway.log());
}

#[tokio::test]
async fn whatever_a_provider_does_to_a_plain_request() {
    drill(Dialect::OpenAi, Mode::Plain, false).await;
}

#[tokio::test]
async fn whatever_a_provider_does_to_a_plain_request_after_a_tool_has_run() {
    drill(Dialect::OpenAi, Mode::Plain, true).await;
}

#[tokio::test]
async fn whatever_a_provider_does_to_a_stream() {
    drill(Dialect::OpenAi, Mode::Streamed, false).await;
}

#[tokio::test]
async fn whatever_a_provider_does_to_a_stream_after_a_tool_has_run() {
    drill(Dialect::OpenAi, Mode::Streamed, true).await;
}

#[tokio::test]
async fn whatever_a_provider_does_in_anthropics_dialect() {
    drill(Dialect::Anthropic, Mode::Plain, false).await;
    drill(Dialect::Anthropic, Mode::Streamed, true).await;
}

#[tokio::test]
async fn whatever_a_provider_does_in_geminis_dialect() {
    drill(Dialect::Gemini, Mode::Plain, false).await;
    drill(Dialect::Gemini, Mode::Streamed, true).await;
}

#[tokio::test]
async fn whatever_a_provider_does_in_ollamas_dialect() {
    drill(Dialect::Ollama, Mode::Plain, false).await;
    drill(Dialect::Ollama, Mode::Streamed, true).await;
}
