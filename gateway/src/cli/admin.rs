//! `reload` and `health`: one request to the admin listener of a running gateway.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, HOST};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::{Failure, print};

/// A configuration of any size is checked in less.
const PATIENCE: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 1024 * 1024;

#[derive(Debug, Args)]
struct Admin {
    /// The admin listener: http://HOST:PORT, or unix:PATH.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9080")]
    admin: String,
}

#[derive(Debug, Args)]
pub(super) struct Reload {
    #[command(flatten)]
    admin: Admin,
    /// The gateway's `server.admin_token`.
    #[arg(long = "token", env = "TOOLGATE_ADMIN_TOKEN", hide_env_values = true, hide = true)]
    token: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Health {
    #[command(flatten)]
    admin: Admin,
}

pub(super) fn reload(command: &Reload) -> Result<(), Failure> {
    let (status, body) = ask(&command.admin.admin, Method::POST, "/-/reload", command.token.as_deref())?;
    match status {
        StatusCode::OK => {
            print("The configuration is in force.\n");
            Ok(())
        }
        StatusCode::UNPROCESSABLE_ENTITY => Err(Failure::Input(faults_in(&body))),
        status => Err(Failure::Input(refusal(status, &body))),
    }
}

pub(super) fn health(command: &Health) -> Result<(), Failure> {
    // Whoever checks the health of a container knows 0 and 1 only.
    let answer = ask(&command.admin.admin, Method::GET, "/readyz", None);
    match answer {
        Ok((StatusCode::OK, _)) => Ok(()),
        Ok((status, _)) => Err(Failure::Input(format!("not ready: {status}"))),
        Err(Failure::Dependency(why)) => Err(Failure::Input(why)),
        Err(other) => Err(other),
    }
}

/// The faults, one a line.
fn faults_in(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let faults = body["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<&str> = faults.iter().filter_map(|fault| fault["text"].as_str()).collect();
    format!("the configuration was refused; the old one stays in force\n{}", lines.join("\n"))
}

fn refusal(status: StatusCode, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    format!("{status}: {}", body["error"]["message"].as_str().unwrap_or("no reason is given"))
}

/// Sends one request and reads the whole answer.
fn ask(admin: &str, method: Method, path: &str, token: Option<&str>) -> Result<(StatusCode, Bytes), Failure> {
    let place = Place::parse(admin)?;
    let request = request(&place, method, path, token).map_err(|error| Failure::Input(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Dependency(error.to_string()))?;
    let answered = runtime.block_on(async { timeout(PATIENCE, exchange(&place, request)).await });
    match answered {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Failure::Dependency(format!("{admin}: {error}"))),
        Err(_) => Err(Failure::Dependency(format!("{admin}: no answer within {} s", PATIENCE.as_secs()))),
    }
}

/// Where the admin listener is.
enum Place {
    Tcp(String),
    Unix(String),
}

impl Place {
    fn parse(admin: &str) -> Result<Self, Failure> {
        if let Some(path) = admin.strip_prefix("unix:") {
            return Ok(Self::Unix(path.to_owned()));
        }
        let wrong = || Failure::Input(format!("`{admin}` is not http://HOST:PORT or unix:PATH"));
        let uri: Uri = admin.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
        Ok(Self::Tcp(format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80))))
    }

    fn host(&self) -> &str {
        match self {
            Self::Tcp(address) => address,
            Self::Unix(_) => "localhost",
        }
    }
}

fn request(place: &Place, method: Method, path: &str, token: Option<&str>) -> http::Result<Request<Empty<Bytes>>> {
    let mut request = Request::builder().method(method).uri(path).header(HOST, place.host());
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    request.body(Empty::new())
}

type Trouble = Box<dyn std::error::Error + Send + Sync>;

#[expect(clippy::disallowed_methods, reason = "a command that talks to its own gateway; no request and no gate is involved")]
async fn exchange(place: &Place, request: Request<Empty<Bytes>>) -> Result<(StatusCode, Bytes), Trouble> {
    let response = match place {
        Place::Tcp(address) => send(TokioIo::new(TcpStream::connect(address).await?), request).await?,
        Place::Unix(path) => send(TokioIo::new(UnixStream::connect(path).await?), request).await?,
    };
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await?;
    Ok((status, body.to_bytes()))
}

async fn send<S>(stream: S, request: Request<Empty<Bytes>>) -> hyper::Result<Response<hyper::body::Incoming>>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(stream).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}
