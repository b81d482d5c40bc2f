//! One caller on one connection: it sends a request, reads the answer, and checks it.

use std::net::SocketAddr;
use std::time::Instant;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

use crate::payload::{self, KEY, MARK, TICK, TOOLS};
use crate::scenario::{Exchange, Scenario};
use crate::wire::Wire;

/// Where a caller connects, and who runs its loops.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    /// The gateway.
    pub(crate) gateway: SocketAddr,
    /// In front of the path of requests that ask for a stream.
    pub(crate) stream_prefix: &'static str,
    /// Where the tools are, if the caller has to call them itself.
    pub(crate) own_tools: Option<SocketAddr>,
}

/// What a caller saw of one request.
pub(crate) struct Seen {
    pub(crate) asked: Instant,
    pub(crate) first_byte: Instant,
    pub(crate) done: Instant,
    /// Nanoseconds from the making of each chunk to its arrival, where chunks carry the time of their making.
    pub(crate) delays: Vec<u64>,
}

/// A caller with its connections.
pub(crate) struct Caller {
    scenario: Scenario,
    route: Route,
    wire: Wire,
    tools: Vec<Wire>,
    body: String,
    request: Vec<u8>,
}

impl Caller {
    pub(crate) async fn connect(scenario: Scenario, route: Route) -> crate::Result<Self> {
        let wire = Wire::new(TcpStream::connect(route.gateway).await?)?;
        let mut tools = Vec::new();
        let looping = scenario.exchange() == Exchange::Loop;
        if let (Some(address), true) = (route.own_tools, looping) {
            for _ in TOOLS {
                tools.push(Wire::new(TcpStream::connect(address).await?)?);
            }
        }
        let body = payload::request(scenario, !tools.is_empty());
        let prefix = if scenario.exchange() == Exchange::Stream { route.stream_prefix } else { "" };
        let request = post(prefix, route.gateway, &body);
        Ok(Self { scenario, route, wire, tools, body, request })
    }

    /// One request, from its first byte to the last one of its answer.
    ///
    /// # Errors
    /// A broken connection, a status other than 200, or an answer that is not the expected one.
    pub(crate) async fn ask(&mut self) -> crate::Result<Seen> {
        let asked = Instant::now();
        self.wire.send(&self.request).await?;
        match self.scenario.exchange() {
            Exchange::Stream => self.stream(asked).await,
            Exchange::Loop if !self.tools.is_empty() => self.run_loop(asked).await,
            Exchange::Plain | Exchange::Loop => {
                final_answer(&self.answer().await?)?;
                Ok(Seen { asked, first_byte: self.wire.read_at, done: Instant::now(), delays: Vec::new() })
            }
        }
    }

    async fn answer(&mut self) -> crate::Result<Vec<u8>> {
        let head = self.wire.response().await?;
        let body = self.wire.body(&head).await?;
        expect_ok(head.status, &body)?;
        Ok(body.to_vec())
    }

    async fn stream(&mut self, asked: Instant) -> crate::Result<Seen> {
        let head = self.wire.response().await?;
        if head.status != 200 {
            let body = self.wire.body(&head).await?;
            return Err(unexpected(head.status, &body));
        }
        let (mut text, mut delays, mut first_byte) = (Vec::new(), Vec::new(), None);
        while let Some(chunk) = self.wire.chunk().await? {
            first_byte.get_or_insert(self.wire.read_at);
            delays.extend(chunk_delays(&chunk));
            text.extend_from_slice(&chunk);
        }
        let ticks = memmem::find_iter(&text, TICK).count();
        if ticks != self.scenario.chunks() || !text.ends_with(b"data: [DONE]\n\n") {
            return Err(unexpected(head.status, &text));
        }
        let done = Instant::now();
        Ok(Seen { asked, first_byte: first_byte.unwrap_or(done), done, delays })
    }

    /// The loop as a caller runs it that has only a proxy in front of its model. The first request is on its way.
    async fn run_loop(&mut self, asked: Instant) -> crate::Result<Seen> {
        let mut transcript = self.body.clone();
        loop {
            let answer = self.answer().await?;
            if final_answer(&answer).is_ok() {
                return Ok(Seen { asked, first_byte: self.wire.read_at, done: Instant::now(), delays: Vec::new() });
            }
            self.run_tools(&answer, &mut transcript).await?;
            self.wire.send(&post("", self.route.gateway, &transcript)).await?;
        }
    }

    /// Runs the calls of an answer side by side and appends them with their results.
    async fn run_tools(&mut self, answer: &[u8], transcript: &mut String) -> crate::Result<()> {
        let answer: Answer<'_> = serde_json::from_slice(answer)?;
        let message = answer.choices.first().ok_or("an answer without a choice")?.message;
        let calls = serde_json::from_str::<Message>(message.get())?.tool_calls;
        for (wire, call) in self.tools.iter_mut().zip(&calls) {
            let item = serde_json::from_str::<Item>(&call.function.arguments)?.item;
            let request = format!("GET /tools/{}/{item} HTTP/1.1\r\nhost: tools\r\n\r\n", call.function.name);
            wire.send(request.as_bytes()).await?;
        }
        transcript.truncate(transcript.len() - "]}".len());
        transcript.push(',');
        transcript.push_str(message.get());
        for (wire, call) in self.tools.iter_mut().zip(&calls) {
            let head = wire.response().await?;
            let result = wire.body(&head).await?;
            expect_ok(head.status, &result)?;
            let content = serde_json::to_string(&String::from_utf8_lossy(&result))?;
            transcript.push_str(&format!(r#",{{"role":"tool","tool_call_id":"{}","content":{content}}}"#, call.id));
        }
        transcript.push_str("]}");
        Ok(())
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

#[derive(Deserialize)]
struct Message {
    tool_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Item {
    item: String,
}

fn post(prefix: &str, host: SocketAddr, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {prefix}/v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// How long each chunk of these events was on its way. What is in one read arrived at one time.
fn chunk_delays(events: &[u8]) -> Vec<u64> {
    let now = payload::nanoseconds();
    let sent = |at: usize| {
        let digits = &events[at + TICK.len()..];
        digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0_u64, |time, byte| time * 10 + u64::from(byte - b'0'))
    };
    memmem::find_iter(events, TICK).map(|at| now.saturating_sub(sent(at))).collect()
}

fn final_answer(body: &[u8]) -> crate::Result<()> {
    memmem::find(body, MARK.as_bytes()).map(drop).ok_or_else(|| unexpected(200, body))
}

fn expect_ok(status: u16, body: &[u8]) -> crate::Result<()> {
    if status == 200 { Ok(()) } else { Err(unexpected(status, body)) }
}

fn unexpected(status: u16, body: &[u8]) -> Box<dyn std::error::Error + Send + Sync> {
    let from = body.len().saturating_sub(300);
    format!("status {status}, {} bytes, not what was expected: …{}", body.len(), String::from_utf8_lossy(&body[from..])).into()
}
