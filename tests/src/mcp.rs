//! A scripted server of tools that speaks MCP over HTTP. By itself it is a good one, with sessions, pages and news; what a test wants to be
//! otherwise, a closure says.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, broadcast};

use crate::server::{accept, address, listen};
use crate::stage::until;
use crate::wire::{Head, Reader};

/// A message that the server received, or a request without one.
#[derive(Clone, Debug)]
pub struct Asked {
    /// HTTP's method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Its headers.
    pub head: Head,
    /// The message; null where there is none.
    pub message: Value,
    /// How many of its kind there were before.
    pub nth: usize,
}

impl Asked {
    /// The message's method; where there is no message, HTTP's.
    pub fn what(&self) -> &str {
        self.message["method"].as_str().unwrap_or(&self.method)
    }

    /// The tool that is called, if one is.
    pub fn tool(&self) -> &str {
        self.message["params"]["name"].as_str().unwrap_or_default()
    }

    /// The session in which it came.
    pub fn session(&self) -> Option<String> {
        self.head.header("mcp-session-id")
    }

    /// The message that answers it with a result.
    pub fn result(&self, result: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.message["id"], "result": result })
    }

    /// The message that answers it with an error.
    pub fn error(&self, error: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.message["id"], "error": error })
    }
}

/// What it says to something.
#[derive(Clone, Debug)]
pub enum Say {
    /// This result.
    Result(Value),
    /// This error.
    Error(Value),
    /// This status with this body.
    Status(u16, String),
    /// It is to be had there.
    Moved(String),
    /// This type and this text, and then as many bytes more of nothing that ends anything.
    Flood(&'static str, &'static str, usize),
    /// A stream of these pieces of text, which then ends.
    Events(Vec<String>),
    /// Nothing, until the other end goes away.
    Nothing,
    /// The connection is closed.
    Close,
    /// The same, later.
    Later(Duration, Box<Say>),
}

/// A tool as such a server describes it.
pub fn tool(name: &str) -> Value {
    json!({ "name": name, "description": format!("It does {name}."), "inputSchema": { "type": "object", "properties": {} } })
}

/// A result that is this text.
pub fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

type Behaviour = dyn Fn(&Asked) -> Option<Say> + Send + Sync;

struct Inner {
    behaviour: Box<Behaviour>,
    state: Mutex<State>,
    heard: Notify,
    events: broadcast::Sender<String>,
}

#[derive(Default)]
struct State {
    tools: Vec<Value>,
    asked: Vec<Asked>,
    sessions: HashSet<String>,
    begun: usize,
    listening: usize,
}

/// How many tools stand on a page.
const PAGE: usize = 40;

/// A running server. It stops listening, and its connections end, when it is dropped.
pub struct McpServer {
    /// `127.0.0.1:PORT`.
    pub address: String,
    inner: Arc<Inner>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl McpServer {
    /// A good one with these tools. Each call is answered `done`.
    pub async fn good(tools: &[Value]) -> Self {
        Self::start(tools, |_| None).await
    }

    /// One that does what the closure says, and where that says nothing is a good one.
    pub async fn start(tools: &[Value], behaviour: impl Fn(&Asked) -> Option<Say> + Send + Sync + 'static) -> Self {
        Self::on(listen().await, tools, behaviour)
    }

    /// The same on a port that is given.
    pub fn on(listener: TcpListener, tools: &[Value], behaviour: impl Fn(&Asked) -> Option<Say> + Send + Sync + 'static) -> Self {
        let address = address(&listener);
        let inner = Arc::new(Inner {
            behaviour: Box::new(behaviour),
            state: Mutex::new(State { tools: tools.to_vec(), ..State::default() }),
            heard: Notify::new(),
            events: broadcast::channel(1024).0,
        });
        let serving = Arc::clone(&inner);
        let task = tokio::spawn(accept(listener, move |stream| serve(stream, Arc::clone(&serving))));
        Self { address, inner, task }
    }

    /// Where it is spoken to.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Everything that it was asked.
    pub fn asked(&self) -> Vec<Asked> {
        self.inner.state().asked.clone()
    }

    /// How often it was asked for something.
    pub fn count(&self, what: &str) -> usize {
        self.asked().iter().filter(|asked| asked.what() == what).count()
    }

    /// Returns when what it was asked meets the condition; `false` when it did not in time.
    pub async fn until(&self, condition: impl Fn(&[Asked]) -> bool) -> bool {
        until(&self.inner.heard, || condition(&self.inner.state().asked)).await
    }

    /// From now on these are its tools. Nobody is told.
    pub fn offer(&self, tools: &[Value]) {
        self.inner.state().tools = tools.to_vec();
    }

    /// Tells everybody who listens, so many times, that its tools are others. Waits for a listener.
    pub async fn tell_change(&self, times: usize) {
        assert!(until(&self.inner.heard, || self.inner.state().listening > 0).await, "nobody listens");
        for _ in 0..times {
            let news = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            self.inner.events.send(format!("data: {news}\n\n")).ok();
        }
    }

    /// Every session is over.
    pub fn forget_sessions(&self) {
        self.inner.state().sessions.clear();
    }

    /// The sessions that are not over.
    pub fn sessions(&self) -> usize {
        self.inner.state().sessions.len()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn note(&self, mut asked: Asked) -> Asked {
        let mut state = self.state();
        asked.nth = state.asked.iter().filter(|other| other.what() == asked.what()).count();
        state.asked.push(asked.clone());
        drop(state);
        self.heard.notify_waiters();
        asked
    }

    /// What a good server says, and the session that it begins.
    fn properly(&self, asked: &Asked) -> (Say, Option<String>) {
        let mut state = self.state();
        if asked.what() == "initialize" {
            state.begun += 1;
            let session = format!("S{}", state.begun);
            state.sessions.insert(session.clone());
            let wanted = &asked.message["params"]["protocolVersion"];
            let greeting = json!({
                "protocolVersion": wanted,
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "scripted", "version": "1" },
            });
            return (Say::Result(greeting), Some(session));
        }
        let session = asked.session().unwrap_or_default();
        if !state.sessions.contains(&session) {
            return (Say::Status(404, "no such session".to_owned()), None);
        }
        let say = match asked.what() {
            "DELETE" => {
                state.sessions.remove(&session);
                Say::Status(200, String::new())
            }
            "tools/list" => {
                let from = asked.message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
                let page: Vec<&Value> = state.tools.iter().skip(from).take(PAGE).collect();
                let mut result = json!({ "tools": page });
                if from + PAGE < state.tools.len() {
                    result["nextCursor"] = json!((from + PAGE).to_string());
                }
                Say::Result(result)
            }
            "tools/call" => Say::Result(text("done")),
            "ping" => Say::Result(json!({})),
            _ if asked.message["id"].is_null() => Say::Status(202, String::new()),
            _ => Say::Error(json!({ "code": -32601, "message": "Method not found" })),
        };
        (say, None)
    }
}

async fn serve(stream: TcpStream, inner: Arc<Inner>) {
    stream.set_nodelay(true).ok();
    let (read, mut write) = stream.into_split();
    let mut reader = Reader::new(read);
    while let Ok(Some(head)) = reader.head().await {
        let Ok(body) = reader.request_body(&head).await else { return };
        let mut words = head.start.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let message = serde_json::from_slice(&body).unwrap_or_default();
        let asked = inner.note(Asked { method, target, head, message, nth: 0 });
        let answered = tokio::select! {
            answered = answer(&inner, &asked, &mut write) => answered,
            () = reader.closed() => return,
        };
        if !matches!(answered, Ok(true)) {
            return;
        }
    }
}

/// Answers; whether the connection can carry another request.
async fn answer(inner: &Inner, asked: &Asked, write: &mut OwnedWriteHalf) -> io::Result<bool> {
    let said = (inner.behaviour)(asked).map(|say| (say, None));
    if said.is_none() && asked.what() == "GET" && inner.state().sessions.contains(&asked.session().unwrap_or_default()) {
        return listened(inner, write).await;
    }
    let (mut say, session) = said.unwrap_or_else(|| inner.properly(asked));
    while let Say::Later(pause, later) = say {
        tokio::time::sleep(pause).await;
        say = *later;
    }
    let (status, kind, body) = match say {
        Say::Result(result) => (200, "application/json", asked.result(result).to_string()),
        Say::Error(error) => (200, "application/json", asked.error(error).to_string()),
        Say::Status(status, body) => (status, "text/plain", body),
        Say::Moved(to) => {
            let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
            return write.write_all(head.as_bytes()).await.map(|()| true);
        }
        Say::Flood(kind, text, more) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{text}");
            write.write_all(head.as_bytes()).await?;
            for _ in 0..more / FLOOD.len() {
                write.write_all(&FLOOD).await?;
            }
            return Ok(false);
        }
        Say::Events(pieces) => return streamed(&pieces, write).await.map(|()| false),
        Say::Close => return Ok(false),
        Say::Nothing | Say::Later(..) => std::future::pending().await,
    };
    let session = session.map(|session| format!("mcp-session-id: {session}\r\n")).unwrap_or_default();
    let head = format!("HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\n{session}content-length: {}\r\n\r\n", body.len());
    write.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).await?;
    Ok(true)
}

static FLOOD: [u8; 64 * 1024] = [b'x'; 64 * 1024];

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

async fn streamed(pieces: &[String], write: &mut OwnedWriteHalf) -> io::Result<()> {
    write.write_all(STREAM.as_bytes()).await?;
    for piece in pieces {
        write.write_all(piece.as_bytes()).await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    write.shutdown().await
}

/// Whoever listens hears the news, until it goes away.
async fn listened(inner: &Inner, write: &mut OwnedWriteHalf) -> io::Result<bool> {
    let mut events = inner.events.subscribe();
    write.write_all(STREAM.as_bytes()).await?;
    inner.state().listening += 1;
    inner.heard.notify_waiters();
    while let Ok(event) = events.recv().await {
        write.write_all(event.as_bytes()).await?;
    }
    Ok(false)
}
