//! A server for tests that says exactly what its script has it say, one script a connection, and tells what it has heard.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use toolgate_config::address::{HostPort, Origin, Scheme};

/// What a server does on one connection, which it closes at the end.
pub(crate) type Script = Vec<Step>;

/// One thing that a server does.
#[derive(Clone)]
pub(crate) enum Step {
    /// Reads a request to its end.
    Hear,
    /// Reads a request's head, and no more than happens to come with it.
    HearHead,
    /// Writes this text in one piece.
    Say(Cow<'static, str>),
    /// Writes these bytes in one piece.
    SayBytes(Vec<u8>),
    /// Lets time pass.
    Wait(Duration),
    /// Reads until the client has gone.
    Stay,
}

/// An answer with a length, on a connection that is kept.
pub(crate) fn answer(body: &str) -> Step {
    Step::Say(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into())
}

/// What a server has seen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request, head and body as they came.
    Heard(String),
    /// The client has gone while the script said to stay.
    Left,
}

/// A running server. It ends with its runtime.
pub(crate) struct Server {
    pub(crate) origin: Origin,
    connections: Arc<AtomicUsize>,
    events: UnboundedReceiver<Event>,
}

impl Server {
    /// A plain server on loopback.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::try_start("127.0.0.1:0", scripts).await.unwrap()
    }

    /// A plain server, if this machine has the address.
    pub(crate) async fn try_start(on: impl ToSocketAddrs, scripts: impl IntoIterator<Item = Script>) -> std::io::Result<Self> {
        Ok(Self::serve(TcpListener::bind(on).await?, None, scripts))
    }

    /// A TLS server on loopback.
    pub(crate) async fn start_tls(acceptor: TlsAcceptor, scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), Some(acceptor), scripts)
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> std::net::SocketAddr {
        self.origin.address.to_string().parse().unwrap()
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The next thing that it sees.
    pub(crate) async fn event(&mut self) -> Event {
        self.events.recv().await.unwrap()
    }

    /// The next request.
    pub(crate) async fn heard(&mut self) -> String {
        match self.event().await {
            Event::Heard(request) => request,
            Event::Left => panic!("the client has gone without a request"),
        }
    }

    /// Whether nothing more has been heard so far.
    pub(crate) fn heard_nothing_more(&mut self) -> bool {
        self.events.try_recv().is_err()
    }

    fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, scripts: impl IntoIterator<Item = Script>) -> Self {
        let address = listener.local_addr().unwrap();
        let host = if address.is_ipv6() { format!("[{}]", address.ip()) } else { address.ip().to_string() };
        let origin = Origin { scheme: Scheme::Http, address: HostPort { host, port: address.port() } };
        let connections = Arc::new(AtomicUsize::new(0));
        let (sender, events) = unbounded_channel();
        let scripts: Vec<Script> = scripts.into_iter().collect();
        tokio::spawn(accept(listener, tls, scripts, Arc::clone(&connections), sender));
        Self { origin, connections, events }
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    scripts: Vec<Script>,
    connections: Arc<AtomicUsize>,
    events: UnboundedSender<Event>,
) {
    for script in scripts {
        let (stream, _) = listener.accept().await.unwrap();
        connections.fetch_add(1, Ordering::SeqCst);
        let (tls, events) = (tls.clone(), events.clone());
        tokio::spawn(async move {
            match tls {
                None => play(stream, script, events).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        play(stream, script, events).await;
                    }
                }
            }
        });
    }
}

async fn play(mut stream: impl AsyncRead + AsyncWrite + Unpin, script: Script, events: UnboundedSender<Event>) {
    // Nobody may be listening any more to what is seen, and the client may have gone before something is said: tests want both.
    for step in script {
        match step {
            Step::Hear => match hear(&mut stream, complete).await {
                Some(request) => drop(events.send(Event::Heard(request))),
                None => return,
            },
            Step::HearHead => drop(hear(&mut stream, |read| !read.is_empty()).await),
            Step::Say(text) => say(&mut stream, text.as_bytes()).await,
            Step::SayBytes(bytes) => say(&mut stream, &bytes).await,
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Stay => {
                while hear(&mut stream, |read| !read.is_empty()).await.is_some() {}
                drop(events.send(Event::Left));
            }
        }
    }
    let _ = stream.shutdown().await;
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
}

/// What the client sends until it is enough; `None` once it has gone.
async fn hear(stream: &mut (impl AsyncRead + Unpin), enough: impl Fn(&[u8]) -> bool) -> Option<String> {
    let mut all = Vec::new();
    while !enough(&all) {
        let read = stream.read_buf(&mut all).await.unwrap_or(0);
        if read == 0 {
            return None;
        }
    }
    Some(String::from_utf8_lossy(&all).into_owned())
}

fn complete(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
    if text.contains("transfer-encoding: chunked") {
        return request.ends_with(b"0\r\n\r\n");
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    request.len() >= head + 4 + length
}
