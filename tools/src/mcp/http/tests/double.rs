//! A server of tools over HTTP/1.1 that does what a closure says, and by itself what a good one does. It remembers what it heard.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolgate_config::address::{HostPort, Origin, Scheme};

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) at: Instant,
    pub(super) method: String,
    pub(super) path: String,
    headers: HashMap<String, String>,
    body: Value,
}

impl Heard {
    /// The method of the message; of a request without one: HTTP's.
    pub(super) fn what(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.method)
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(super) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(super) fn answer(&self, result: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id(), "result": result })
    }
}

/// A reply as bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The end of the body is the end of the connection.
    close: bool,
    byte_by_byte: bool,
    /// What is said instead: this, and then this for ever; nothing, where that is empty.
    raw: Option<(String, Vec<u8>)>,
}

impl Reply {
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub(super) fn byte_by_byte(mut self) -> Self {
        self.byte_by_byte = true;
        self
    }

    pub(super) fn raw(head: String, forever: Vec<u8>) -> Self {
        Self { raw: Some((head, forever)), ..Self::default() }
    }

    /// The connection ends before anything was said.
    pub(super) fn cut() -> Self {
        Self { status: 0, close: true, ..Self::default() }
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} x\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let counted = self.headers.iter().any(|(name, _)| name == "content-length");
        match (self.close, counted) {
            (true, _) => head.push_str("connection: close\r\n\r\n"),
            (false, true) => head.push_str("\r\n"),
            (false, false) => head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len())),
        }
        head
    }
}

pub(super) fn status(status: u16, body: &str) -> Reply {
    Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() }
}

pub(super) fn accepted() -> Reply {
    status(202, "")
}

pub(super) fn json_answer(code: u16, body: &Value) -> Reply {
    status(code, &body.to_string()).with("content-type", "application/json")
}

pub(super) fn result(heard: &Heard, result: Value) -> Reply {
    json_answer(200, &heard.answer(result))
}

pub(super) fn events(parts: &[&str]) -> Reply {
    Reply { close: true, ..status(200, &parts.concat()).with("content-type", "text/event-stream") }
}

pub(super) fn greeting() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": { "listChanged": true } },
        "serverInfo": { "name": "double", "version": "1" },
    })
}

type Behaviour = dyn Fn(&Heard, usize) -> Option<Reply> + Send + Sync;

struct Inside {
    behaviour: Box<Behaviour>,
    sessions: bool,
    begun: AtomicUsize,
    open: AtomicUsize,
    heard: Mutex<Vec<Heard>>,
}

/// A running server. It ends with its runtime.
pub(super) struct Double {
    pub(super) origin: Origin,
    inside: Arc<Inside>,
}

impl Double {
    /// Of each request the closure is told how many of its kind there were before; where it says nothing, the server is a good one: each
    /// greeting begins a session, `S1`, `S2` and so on.
    pub(super) async fn start(behaviour: impl Fn(&Heard, usize) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::serve(Box::new(behaviour), true).await
    }

    /// The same without sessions.
    pub(super) async fn without_sessions(behaviour: impl Fn(&Heard, usize) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::serve(Box::new(behaviour), false).await
    }

    async fn serve(behaviour: Box<Behaviour>, sessions: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let origin = Origin { scheme: Scheme::Http, address: HostPort { host: "127.0.0.1".to_owned(), port } };
        let inside = Arc::new(Inside {
            behaviour,
            sessions,
            begun: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            heard: Mutex::default(),
        });
        let shared = Arc::clone(&inside);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let inside = Arc::clone(&shared);
                tokio::spawn(async move {
                    inside.open.fetch_add(1, Ordering::SeqCst);
                    let _ = inside.connection(stream).await;
                    inside.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { origin, inside }
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.inside.heard.lock().unwrap().clone()
    }

    pub(super) fn count(&self, what: &str) -> usize {
        self.heard().iter().filter(|heard| heard.what() == what).count()
    }

    pub(super) async fn wait_for(&self, what: &str) {
        while self.count(what) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until nobody is connected.
    pub(super) async fn is_left(&self) {
        while self.inside.open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Inside {
    async fn connection(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut read = Vec::new();
        while let Some(heard) = hear(&mut stream, &mut read).await? {
            let reply = self.reply(&heard);
            if let Some((head, forever)) = &reply.raw {
                stream.write_all(head.as_bytes()).await?;
                while !forever.is_empty() {
                    stream.write_all(forever).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let _ = stream.read(&mut [0]).await?;
                return Ok(());
            }
            if reply.status == 0 {
                return Ok(());
            }
            stream.write_all(reply.head().as_bytes()).await?;
            for piece in reply.body.chunks(if reply.byte_by_byte { 1 } else { usize::MAX }) {
                stream.write_all(piece).await?;
                stream.flush().await?;
                if reply.byte_by_byte {
                    tokio::task::yield_now().await;
                }
            }
            if reply.close {
                return stream.shutdown().await;
            }
        }
        Ok(())
    }

    fn reply(&self, heard: &Heard) -> Reply {
        let nth = {
            let mut all = self.heard.lock().unwrap();
            all.push(heard.clone());
            all.iter().filter(|other| other.what() == heard.what()).count() - 1
        };
        if let Some(reply) = (self.behaviour)(heard, nth) {
            return reply;
        }
        match heard.what() {
            "initialize" if self.sessions => {
                let session = format!("S{}", self.begun.fetch_add(1, Ordering::SeqCst) + 1);
                result(heard, greeting()).with("mcp-session-id", &session)
            }
            "initialize" => result(heard, greeting()),
            "GET" => status(405, ""),
            "DELETE" => status(200, ""),
            _ => accepted(),
        }
    }
}

async fn hear(stream: &mut TcpStream, read: &mut Vec<u8>) -> std::io::Result<Option<Heard>> {
    loop {
        if let Some((heard, length)) = parse(read) {
            read.drain(..length);
            return Ok(Some(heard));
        }
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
}

fn parse(read: &[u8]) -> Option<(Heard, usize)> {
    let head = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&read[..head]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (first.next()?, first.next()?);
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body = read.get(head..head + length)?;
    let body = serde_json::from_slice(body).unwrap_or(Value::Null);
    Some((Heard { at: Instant::now(), method, path, headers, body }, head + length))
}
