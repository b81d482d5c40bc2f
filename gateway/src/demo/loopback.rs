//! The demo's own two servers, the model's and the shop's, on free ports of this machine: the gateway reaches both over real sockets.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use super::{dialect, model, shop};

/// A server on a free port.
pub(super) struct Loopback {
    listener: TcpListener,
    /// Where it is.
    pub(super) address: SocketAddr,
}

/// What a server answers: a pure function of method, path and body.
type Answers = fn(&Method, &str, &Bytes) -> Answer;

/// A status, a content type and a body.
type Answer = (StatusCode, &'static str, String);

impl Loopback {
    /// Takes a free port.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Answers until its runtime ends.
    pub(super) async fn serve(self, answers: Answers) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(connection(stream, answers))),
                // Out of file descriptors: the next connection waits until some are given back.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

/// OpenAI's chat completions, spoken by the demo's model.
pub(super) fn model_api(method: &Method, path: &str, body: &Bytes) -> Answer {
    match (method, path) {
        (&Method::POST, "/v1/chat/completions") => match serde_json::from_slice::<Value>(body) {
            Ok(request) => chat(&request),
            Err(error) => json(StatusCode::BAD_REQUEST, &dialect::error(&error.to_string())),
        },
        (&Method::GET, "/v1/models") => json(StatusCode::OK, &dialect::models()),
        _ => json(StatusCode::NOT_FOUND, &dialect::error("there is nothing here")),
    }
}

/// The shop behind the demo's tools.
pub(super) fn shop_api(_: &Method, path: &str, _: &Bytes) -> Answer {
    let (status, body) = shop::at(path);
    json(status, &body)
}

fn chat(request: &Value) -> Answer {
    let said = model::say(request);
    match request["stream"].as_bool() {
        Some(true) => (StatusCode::OK, "text/event-stream", dialect::stream(request, &said)),
        _ => json(StatusCode::OK, &dialect::completion(request, &said)),
    }
}

fn json(status: StatusCode, body: &Value) -> Answer {
    (status, "application/json", body.to_string())
}

async fn connection(stream: TcpStream, answers: Answers) {
    let service = service_fn(|request: Request<Incoming>| async move {
        let (head, body) = request.into_parts();
        // A body that breaks off leaves nobody to answer; what is answered then does not matter.
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let (status, content_type, text) = answers(&head.method, head.uri.path(), &body);
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Ok::<_, Infallible>(response)
    });
    // How a connection of the demo's ends is nobody's business.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
