//! The caller: sends a request, and tells the stage each piece of the answer as it comes.

use std::io;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::config::SHOP;
use crate::dialect::Dialect;
use crate::reply::{Step, pieces};
use crate::scenario::{Ask, Mode, Reply};
use crate::stage::Stage;
use crate::wire::{Head, Reader};

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The HTTP status; 0 where there was no answer.
    pub status: u16,
    /// Status line and headers.
    pub head: Head,
    /// The body, as far as it came.
    pub body: Vec<u8>,
    /// Why the body is not whole.
    pub broken: Option<String>,
}

impl Response {
    /// The body as JSON; null where it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether it is an event stream.
    pub fn is_stream(&self) -> bool {
        self.head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The trace id that it carries.
    pub fn trace(&self) -> Option<String> {
        self.head.header("x-toolgate-trace")
    }
}

/// The bytes of a request.
pub fn request(method: &str, path: &str, headers: &[(String, String)], body: Option<&[u8]>) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: gateway.test\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if let Some(body) = body
        && !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding"))
    {
        head += &format!("content-length: {}\r\n", body.len());
    }
    [head.as_bytes(), b"\r\n", body.unwrap_or_default()].concat()
}

impl Ask {
    /// What is sent in this mode, packet by packet.
    pub fn steps(&self, mode: Mode) -> Vec<Step> {
        if let Some(raw) = &self.raw {
            return pieces(&raw.to_vec(), &mut Dialect::OpenAi.teller(&Reply::default(), false), |bytes| bytes);
        }
        let path = self.get.as_deref().or(self.path.as_deref()).unwrap_or("/v1/chat/completions");
        let method = self.method.as_deref().unwrap_or(if self.get.is_some() { "GET" } else { "POST" });
        let body = (method != "GET").then(|| self.body_in(mode));
        vec![Step::Send(request(method, path, &self.headers(), body.as_deref().map(str::as_bytes)))]
    }

    fn headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        match self.key.as_deref() {
            Some("none") => {}
            other => headers.push(("authorization".to_owned(), format!("Bearer {}", other.unwrap_or(SHOP)))),
        }
        headers.retain(|(name, _)| !self.headers.keys().any(|own| own.eq_ignore_ascii_case(name)));
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        headers
    }

    fn body_in(&self, mode: Mode) -> String {
        if let Some(text) = &self.text {
            return match mode {
                Mode::Plain => text.clone(),
                Mode::Streamed => text.replacen('{', "{\"stream\":true,\"stream_options\":{\"include_usage\":true},", 1),
            };
        }
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": self.says.as_deref().unwrap_or("Hello")}]});
        if mode == Mode::Streamed {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
        }
        if let Value::Object(body) = &mut body {
            body.extend(self.body.clone());
            body.retain(|_, value| *value != json!("$absent"));
        }
        body.to_string()
    }
}

/// Sends a request on a connection of its own and reads the answer to its end.
pub async fn send(address: &str, steps: Vec<Step>, stage: &Stage) -> Response {
    match exchange(address, steps, stage).await {
        Ok(response) => response,
        Err(error) => Response { broken: Some(error.to_string()), ..Response::default() },
    }
}

async fn exchange(address: &str, steps: Vec<Step>, stage: &Stage) -> io::Result<Response> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let sending = async move {
        for step in steps {
            match step {
                Step::Send(bytes) => write.write_all(&bytes).await?,
                Step::Pause(millis) => tokio::time::sleep(std::time::Duration::from_millis(millis)).await,
                Step::UntilCallerSaw(text) => drop(stage.until_caller_saw(&text).await),
                Step::Cut(_) => return write.shutdown().await.map(|()| write),
            }
        }
        Ok::<_, io::Error>(write)
    };
    let (response, sent) = tokio::join!(receive(Reader::new(read), stage), sending);
    // A server may answer and close before it has read everything: the answer counts.
    match (response, sent) {
        (Ok(response), _) => Ok(response),
        (Err(error), _) => Err(error),
    }
}

/// Reads one response.
///
/// # Errors
/// There was none.
pub async fn receive<R: tokio::io::AsyncRead + Unpin>(mut reader: Reader<R>, stage: &Stage) -> io::Result<Response> {
    let head = loop {
        let head = reader.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !head.start.contains(" 100 ") {
            break head;
        }
        stage.saw(b"100-continue");
    };
    let status = head.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    stage.saw(head.start.as_bytes());
    let mut body = Vec::new();
    let ended = reader
        .response_body(&head, |piece| {
            stage.saw(piece);
            body.extend_from_slice(piece);
        })
        .await;
    Ok(Response { status, head, body, broken: ended.err().map(|error| error.to_string()) })
}
