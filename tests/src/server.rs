//! A scripted server: it records every request, and answers as its script says. The model and the tools are two of them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::dialect::{Dialect, Told};
use crate::matching::faults;
use crate::reply::{Rendered, Step, render};
use crate::scenario::{Cut, Reply};
use crate::stage::{PATIENCE, Stage, until};
use crate::strict;
use crate::wire::{Head, Reader};

/// What a server answers with.
pub enum Script {
    /// The next reply of the list, whatever the path; what a strict provider refuses is refused if the flag says so.
    InOrder(Vec<Reply>, bool),
    /// The next reply of the path's list, its last one again and again; a path without a list is answered `{"ok": true}`.
    ByPath(HashMap<String, Vec<Reply>>),
}

/// A request that a server received.
#[derive(Clone, Debug)]
pub struct Received {
    /// `POST`, …
    pub method: String,
    /// Path and query as they were sent.
    pub target: String,
    /// Names in lower case.
    pub head: Head,
    /// The whole body.
    pub body: Vec<u8>,
    /// The body as JSON in OpenAI's words, whatever the dialect; null where it is none.
    pub heard: Value,
    /// The other end went away before the answer was complete.
    pub abandoned: bool,
}

impl Received {
    /// The body as JSON; null where it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Default)]
struct Record {
    received: Vec<Received>,
    answered: HashMap<String, usize>,
    in_hand: usize,
    most_in_hand: usize,
    complaints: Vec<String>,
    told: Told,
}

struct Inner {
    script: Script,
    record: Mutex<Record>,
    news: Notify,
    stage: Stage,
}

/// A scripted server on a free port of its own. It stops listening when it is dropped.
pub struct Server {
    /// `127.0.0.1:PORT`.
    pub address: String,
    inner: Arc<Inner>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts to serve on a free port.
    pub async fn start(script: Script, stage: Stage) -> Self {
        Self::on(listen().await, script, stage)
    }

    /// Starts to serve.
    pub fn on(listener: TcpListener, script: Script, stage: Stage) -> Self {
        let address = address(&listener);
        let inner = Arc::new(Inner { script, record: Mutex::default(), news: Notify::new(), stage });
        let serving = Arc::clone(&inner);
        let task = tokio::spawn(accept(listener, move |stream| serve(stream, Arc::clone(&serving))));
        Self { address, inner, task }
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    pub fn received(&self) -> Vec<Received> {
        self.inner.record().received.clone()
    }

    /// The most requests that were in hand at once.
    pub fn most_in_hand(&self) -> usize {
        self.inner.record().most_in_hand
    }

    /// Returns when what has been received meets the condition; `false` when it did not within [`PATIENCE`].
    pub async fn until(&self, condition: impl Fn(&[Received]) -> bool) -> bool {
        until(&self.inner.news, || condition(&self.inner.record().received)).await
    }

    /// What went wrong with the script itself: requests that it has no reply for, replies that nobody asked for, refusals of a strict provider.
    pub fn complaints(&self) -> Vec<String> {
        let record = self.inner.record();
        let mut complaints = record.complaints.clone();
        if let Script::InOrder(replies, _) = &self.inner.script
            && replies.iter().skip(record.received.len()).any(|reply| !reply.optional)
        {
            complaints.push(format!("{} replies were scripted, {} were asked for", replies.len(), record.received.len()));
        }
        complaints
    }
}

/// A free port on loopback.
pub async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

/// Where a listener listens.
pub fn address(listener: &TcpListener) -> String {
    listener.local_addr().expect("an address").to_string()
}

impl Inner {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.record());
        self.news.notify_waiters();
    }

    fn reply(&self, request: &Received) -> Reply {
        let mut record = self.record();
        let dialect = Dialect::of(&request.target);
        let reply = match &self.script {
            Script::InOrder(replies, strict) => {
                let at = record.received.len() - 1;
                let body = request.json();
                let asked = strict::Asked { target: &request.target, head: &request.head, body: &body, told: &record.told };
                // What is only read, or passed through, has no rules here.
                let is_chat = *strict && request.method == "POST";
                if let Some(fault) = strict::refusal(dialect, asked).filter(|_| is_chat) {
                    let why = format!("request {at}, as a strict provider would refuse it: {}", fault.message);
                    return refusal(&mut record, fault.status, &why);
                }
                match replies.get(at) {
                    Some(reply) => dialect.with_ids(reply.clone(), at),
                    None => return refusal(&mut record, 400, &format!("request {at} was not expected")),
                }
            }
            Script::ByPath(paths) => {
                let path = request.target.split('?').next().unwrap_or_default();
                let at = record.answered.entry(path.to_owned()).or_default();
                *at += 1;
                let replies = paths.get(path).map_or(&[][..], Vec::as_slice);
                replies.get(*at - 1).or(replies.last()).cloned().unwrap_or_default()
            }
        };
        let missing = reply.must.as_ref().map(|must| faults(must, &request.heard)).unwrap_or_default();
        if !missing.is_empty() {
            return refusal(&mut record, 400, &missing.join("\n"));
        }
        if reply.is_message() {
            record.told.say(dialect, &reply);
        }
        reply
    }

    /// Holds a reply back until so many requests are in hand.
    async fn together(&self, count: usize) {
        if !until(&self.news, || self.record().most_in_hand >= count).await {
            self.change(|record| record.complaints.push(format!("{count} requests never came side by side")));
        }
    }
}

fn refusal(record: &mut Record, status: u16, why: &str) -> Reply {
    record.complaints.push(why.to_owned());
    Reply { status: Some(status), error: Some(why.to_owned()), ..Reply::default() }
}

/// Serves each connection side by side with the others, until the listener fails.
pub(crate) async fn accept<S: Future<Output = ()> + Send + 'static>(listener: TcpListener, serve: impl Fn(TcpStream) -> S) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream))),
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, inner: Arc<Inner>) {
    stream.set_nodelay(true).ok();
    let (read, mut write) = stream.into_split();
    let mut reader = Reader::new(read);
    while let Ok(Some(head)) = reader.head().await {
        if head.header("expect").is_some() && write.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err() {
            return;
        }
        let Ok(body) = reader.request_body(&head).await else { return };
        match answer(head, body, reader, write, &inner).await {
            Some(halves) => (reader, write) = halves,
            None => return,
        }
    }
}

/// Answers one request; gives the connection back where it can carry another.
async fn answer(
    head: Head,
    body: Vec<u8>,
    mut reader: Reader<OwnedReadHalf>,
    mut write: OwnedWriteHalf,
    inner: &Inner,
) -> Option<(Reader<OwnedReadHalf>, OwnedWriteHalf)> {
    let mut words = head.start.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = Received { method, target, head, body, heard: Value::Null, abandoned: false };
    let mut number = 0;
    inner.change(|record| {
        number = record.received.len();
        request.heard = Dialect::of(&request.target).heard(&request.target, &request.json(), &record.told);
        record.received.push(request.clone());
        record.in_hand += 1;
        record.most_in_hand = record.most_in_hand.max(record.in_hand);
    });
    let reply = inner.reply(&request);
    let done = tokio::select! {
        done = play(&reply, &request, &mut write, inner) => Some(done),
        () = reader.closed() => None,
    };
    inner.change(|record| {
        record.in_hand -= 1;
        record.received[number].abandoned = !matches!(done, Some(Ok(_)));
    });
    match done {
        Some(Ok(End::Reusable)) => Some((reader, write)),
        Some(Ok(End::Reset)) => {
            if let Ok(stream) = reader.into_inner().reunite(write) {
                stream.set_zero_linger().ok();
            }
            None
        }
        _ => None,
    }
}

enum End {
    Reusable,
    Close,
    Reset,
}

async fn play(reply: &Reply, request: &Received, write: &mut OwnedWriteHalf, inner: &Inner) -> io::Result<End> {
    if let Some(count) = reply.together {
        inner.together(count).await;
    }
    if let Some(text) = &reply.until_caller_saw {
        wait_for_caller(text, inner).await;
    }
    tokio::time::sleep(Duration::from_millis(reply.pause.unwrap_or(0))).await;
    if reply.hang {
        tokio::time::sleep(PATIENCE * 6).await;
        return Ok(End::Close);
    }
    let Rendered { steps, reusable } = render(reply, &request.target, &request.body);
    for step in steps {
        match step {
            Step::Send(bytes) => {
                write.write_all(&bytes).await?;
                // A packet of its own: the other end gets a chance to read it alone.
                tokio::task::yield_now().await;
                if reply.sse.is_some() || reply.raw.is_some() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            Step::Pause(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::UntilCallerSaw(text) => wait_for_caller(&text, inner).await,
            Step::Cut(Cut::Reset) => return Ok(End::Reset),
            Step::Cut(Cut::Silence) => {
                tokio::time::sleep(PATIENCE * 6).await;
                return Ok(End::Close);
            }
            Step::Cut(Cut::Fin | Cut::End) => return Ok(End::Close),
        }
    }
    Ok(if reusable { End::Reusable } else { End::Close })
}

async fn wait_for_caller(text: &str, inner: &Inner) {
    if !inner.stage.until_caller_saw(text).await {
        inner.change(|record| record.complaints.push(format!("the caller never received {text:?}")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Script, Server};
    use crate::caller::{request, send};
    use crate::reply::Step;
    use crate::scenario::Reply;
    use crate::stage::Stage;
    use crate::stream::{Stream, answer};

    fn reply(script: serde_json::Value) -> Reply {
        serde_json::from_value(script).expect("a reply")
    }

    async fn ask(server: &Server, body: serde_json::Value) -> crate::caller::Response {
        let bytes = request("POST", "/v1/chat/completions", &[], Some(body.to_string().as_bytes()));
        send(&server.address, vec![Step::Send(bytes)], &Stage::default()).await
    }

    #[tokio::test]
    async fn a_message_is_told_alike_plain_and_streamed() {
        let script =
            json!({"content": "A cat, un café.", "calls": [{"name": "lookup", "arguments": {"q": "é"}}], "usage": [3, 4]});
        let server = Server::start(Script::InOrder(vec![reply(script.clone()), reply(script)], true), Stage::default()).await;
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let plain = answer(&ask(&server, json!({"messages": messages})).await.json());
        let body = json!({"messages": messages, "stream": true, "stream_options": {"include_usage": true}});
        let response = ask(&server, body).await;
        assert!(response.is_stream() && response.broken.is_none());
        let stream = Stream::parse(&response.body);
        assert_eq!(stream.faults, Vec::<String>::new());
        for name in ["content", "finish_reason", "usage", "model"] {
            assert_eq!(stream.answer()[name], plain[name], "{name}");
        }
        assert_eq!(stream.answer()["message"]["tool_calls"], plain["message"]["tool_calls"]);
        assert_eq!(server.complaints(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_a_strict_provider_refuses_is_refused_and_remembered() {
        let server = Server::start(Script::InOrder(vec![Reply::default()], true), Stage::default()).await;
        let response = ask(&server, json!({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]})).await;
        assert_eq!(response.status, 400);
        assert_eq!(server.complaints().len(), 1);
    }

    #[tokio::test]
    async fn a_stream_breaks_off_where_the_script_says() {
        for cut in ["reset", "fin"] {
            let script = json!({"sse": ["data: {}\n\n", {"cut": cut}]});
            let server = Server::start(Script::InOrder(vec![reply(script)], false), Stage::default()).await;
            let response = ask(&server, json!({})).await;
            assert_eq!((response.status, response.broken.is_some()), (200, true), "{cut}");
        }
    }
}
