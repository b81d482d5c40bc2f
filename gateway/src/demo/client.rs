//! The application of the demo: a plain HTTP client, which knows nothing of the gateway but its address and a key.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Whom it calls, and with which key.
pub(super) struct Client<'k> {
    /// The gateway.
    pub(super) address: SocketAddr,
    /// The secret.
    pub(super) key: &'k str,
}

/// What came back.
pub(super) struct Reply {
    /// Its status.
    pub(super) status: StatusCode,
    /// Its headers.
    pub(super) headers: HeaderMap,
    /// Its body; null where that is no JSON.
    pub(super) body: Value,
}

type Trouble = Box<dyn std::error::Error + Send + Sync>;

impl Client<'_> {
    /// Sends one request on a connection of its own, and reads the whole answer.
    ///
    /// # Errors
    /// The gateway does not answer.
    pub(super) async fn send(&self, method: Method, path: &str, body: String) -> Result<Reply, String> {
        self.exchange(method, path, body).await.map_err(|error| format!("the gateway did not answer {path}: {error}"))
    }

    #[expect(clippy::disallowed_methods, reason = "the demo's application, which calls the gateway from outside")]
    async fn exchange(&self, method: Method, path: &str, body: String) -> Result<Reply, Trouble> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.key))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Reply { status: head.status, headers: head.headers, body: serde_json::from_slice(&body).unwrap_or_default() })
        };
        // The connection is driven here and not by a task: when the demo is told to end, it ends with the request.
        tokio::select! {
            reply = exchange => reply,
            end = connection => Err(end.err().map_or_else(|| "it closed the connection".into(), Into::into)),
        }
    }
}
