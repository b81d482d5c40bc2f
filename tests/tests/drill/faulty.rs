//! A model API that fails in every way, byte by byte, and knows which of its connections are busy. Whatever nobody scripted it answers well.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use toolgate_tests::reply::{Step, render};
use toolgate_tests::scenario::Reply;
use toolgate_tests::server::{address, listen};
use toolgate_tests::stage::{PATIENCE, until};
use toolgate_tests::wire::Reader;

/// How long it is deaf: longer than anybody waits.
const DEAF: Duration = Duration::from_secs(5);

/// One thing that it does with a connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Reads nothing, not even the request.
    Deaf,
    /// Reads the request.
    Read,
    /// Writes this.
    Send(Vec<u8>),
    /// Writes an answer, in the dialect in which it was asked.
    Tell(Value),
    /// Writes so many hundredths of a good answer, in that dialect.
    Part(usize),
    /// Writes this again and again, until the other end has had enough.
    Flood(Vec<u8>),
    /// Writes this ten times a second, until the other end has had enough.
    Drip(Vec<u8>),
    /// Says nothing more.
    Hang,
    /// Ends its own side, and listens on.
    HalfClose,
    /// Closes.
    Close,
    /// Breaks the connection.
    Reset,
}

/// What it does with one request.
pub(crate) type Play = Vec<Act>;

/// The running server.
pub(crate) struct Faulty {
    /// Where it listens.
    pub(crate) address: String,
    inner: Arc<Inner>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Inner {
    plays: Mutex<VecDeque<Play>>,
    requests: AtomicUsize,
    busy: AtomicUsize,
    news: Notify,
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Faulty {
    /// Starts it.
    pub(crate) async fn start() -> Self {
        let (listener, inner) = (listen().await, Arc::new(Inner::default()));
        let address = address(&listener);
        let task = tokio::spawn(accept(listener, Arc::clone(&inner)));
        Self { address, inner, task }
    }

    /// What it does with the requests that come next, one after another.
    pub(crate) fn will(&self, plays: impl IntoIterator<Item = Play>) {
        self.inner.plays.lock().unwrap().extend(plays);
    }

    /// Plays that nobody asked for.
    pub(crate) fn left(&self) -> usize {
        self.inner.plays.lock().unwrap().len()
    }

    /// How many requests have come.
    pub(crate) fn requests(&self) -> usize {
        self.inner.requests.load(Ordering::SeqCst)
    }

    /// Connections that are neither idle nor closed.
    pub(crate) fn busy(&self) -> usize {
        self.inner.busy.load(Ordering::SeqCst)
    }

    /// Returns when so many requests have come; `false`: they never did.
    pub(crate) async fn until_asked(&self, times: usize) -> bool {
        until(&self.inner.news, || self.requests() >= times).await
    }

    /// Returns when no connection is busy; `false`: one stays so.
    pub(crate) async fn until_idle(&self) -> bool {
        until(&self.inner.news, || self.busy() == 0).await
    }
}

/// A connection that is busy as long as this is there.
struct Busy(Arc<Inner>);

impl Busy {
    fn new(inner: &Arc<Inner>) -> Self {
        inner.busy.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(inner))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
        self.0.news.notify_waiters();
    }
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, Arc::clone(&inner)));
    }
}

async fn serve(stream: TcpStream, inner: Arc<Inner>) {
    stream.set_nodelay(true).ok();
    let mut stream = stream;
    let mut busy = Some(Busy::new(&inner));
    loop {
        if !matches!(stream.peek(&mut [0]).await, Ok(1..)) {
            return;
        }
        busy.get_or_insert_with(|| Busy::new(&inner));
        inner.requests.fetch_add(1, Ordering::SeqCst);
        inner.news.notify_waiters();
        let play = inner.plays.lock().unwrap().pop_front();
        let (read, write) = stream.into_split();
        let kept = match play {
            Some(play) => perform(play, Reader::new(read), write).await,
            None => answer(Reader::new(read), write).await,
        };
        let Some(kept) = kept else { return };
        stream = kept;
        busy = None;
        inner.news.notify_waiters();
    }
}

/// A request, as far as an answer depends on it.
struct Asked {
    target: String,
    body: Vec<u8>,
}

impl Asked {
    async fn read(reader: &mut Reader<OwnedReadHalf>) -> Option<Self> {
        let head = reader.head().await.ok()??;
        let body = reader.request_body(&head).await.ok()?;
        Some(Self { target: head.start.split(' ').nth(1)?.to_owned(), body })
    }

    /// This answer in the dialect of the request, plain or streamed as it asks.
    fn answer(&self, reply: &Value) -> Vec<u8> {
        let reply: Reply = serde_json::from_value(reply.clone()).expect("a reply");
        let sent = |step| if let Step::Send(bytes) = step { bytes } else { Vec::new() };
        render(&reply, &self.target, &self.body).steps.into_iter().flat_map(sent).collect()
    }
}

/// What it says to whatever nobody scripted.
fn good() -> Value {
    json!({"content": "done"})
}

/// A good answer.
async fn answer(mut reader: Reader<OwnedReadHalf>, mut write: OwnedWriteHalf) -> Option<TcpStream> {
    let asked = Asked::read(&mut reader).await?;
    write.write_all(&asked.answer(&good())).await.ok()?;
    reader.into_inner().reunite(write).ok()
}

/// Plays; gives the connection back where the play ends with a whole answer.
async fn perform(play: Play, mut reader: Reader<OwnedReadHalf>, mut write: OwnedWriteHalf) -> Option<TcpStream> {
    let mut asked = None;
    for act in play {
        let goes_on = match act {
            Act::Deaf => {
                tokio::time::sleep(DEAF).await;
                false
            }
            Act::Read => {
                asked = Asked::read(&mut reader).await;
                asked.is_some()
            }
            Act::Tell(reply) => write.write_all(&asked.as_ref()?.answer(&reply)).await.is_ok(),
            Act::Part(hundredths) => {
                let whole = asked.as_ref()?.answer(&json!({"content": "one two three four five six seven eight nine ten"}));
                write.write_all(&whole[..whole.len() * hundredths / 100]).await.is_ok()
            }
            Act::Send(bytes) => {
                let sent = write.write_all(&bytes).await.is_ok();
                // A packet of its own.
                tokio::time::sleep(Duration::from_millis(5)).await;
                sent
            }
            Act::Flood(bytes) => flood(&bytes, &mut write).await,
            Act::Drip(bytes) => drip(&bytes, &mut write).await,
            Act::Hang => false,
            Act::HalfClose => write.shutdown().await.is_ok(),
            Act::Close => return None,
            Act::Reset => {
                let stream = reader.into_inner().reunite(write).ok()?;
                stream.set_zero_linger().ok();
                return None;
            }
        };
        if !goes_on {
            // It is the other end's turn to close.
            let _ = tokio::time::timeout(PATIENCE * 2, reader.closed()).await;
            return None;
        }
    }
    reader.into_inner().reunite(write).ok()
}

async fn flood(bytes: &[u8], write: &mut OwnedWriteHalf) -> bool {
    let piece = bytes.repeat((64 * 1024 / bytes.len()).max(1));
    while write.write_all(&piece).await.is_ok() {}
    false
}

async fn drip(bytes: &[u8], write: &mut OwnedWriteHalf) -> bool {
    while write.write_all(bytes).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}

// ---- What it says -----------------------------------------------------------------------------------------------------------------------

/// A whole response.
pub(crate) fn whole(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.as_ref().len());
    [head.as_bytes(), body.as_ref()].concat()
}

/// A response with JSON.
pub(crate) fn json_of(status: &str, body: &Value) -> Vec<u8> {
    whole(status, &[("content-type", "application/json")], body.to_string())
}

/// A plain answer.
pub(crate) fn completion(message: &Value) -> Vec<u8> {
    json_of("200 OK", &completed(message))
}

/// What a plain answer says.
pub(crate) fn completed(message: &Value) -> Value {
    let finish = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    json!({"id": "x", "object": "chat.completion", "created": 1, "model": "u",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
}

/// The head of a stream of events.
pub(crate) const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A chunk of a body.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// An event.
pub(crate) fn event(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!(
        "data: {}\n\n",
        json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "u", "choices": [choice]})
    )
}

/// The events of an answer with this text, without the end mark.
pub(crate) fn said(text: &str) -> Vec<String> {
    vec![event(&json!({"role": "assistant", "content": text}), &Value::Null), event(&json!({}), &json!("stop"))]
}

/// A whole stream of these events.
pub(crate) fn stream(events: &[String]) -> Vec<u8> {
    [STREAM.as_bytes(), &chunk(events.concat()), &chunk("data: [DONE]\n\n"), b"0\r\n\r\n"].concat()
}

/// The answer that asks for a tool.
pub(crate) fn asks_for_the_clock() -> Play {
    vec![Act::Read, Act::Tell(json!({"calls": [{"id": "c1", "name": "clock", "arguments": {}}]}))]
}
