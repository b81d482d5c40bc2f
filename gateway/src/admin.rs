//! The operators' listener: probes, metrics, and the request to read the configuration again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;
use toolgate_config::place::Fault;

use crate::gateway::Gateway;
use crate::intake;
use crate::money::Closed;
use crate::reload::Reloader;
use crate::server::Answer;
use crate::telemetry::metrics;

type Reply = Response<Full<Bytes>>;

/// Who answers operators.
pub struct Admin {
    gateway: Arc<Gateway>,
    reloader: Arc<Reloader>,
}

/// What there is to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Health,
    Ready,
    Metrics,
    Reload,
}

impl Page {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/healthz" => Some(Self::Health),
            "/readyz" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            "/-/reload" => Some(Self::Reload),
            _ => None,
        }
    }

    /// Probes and Prometheus bring no token.
    const fn is_open(self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Metrics)
    }

    const fn allow(self) -> &'static str {
        match self {
            Self::Health | Self::Ready | Self::Metrics => "GET, HEAD",
            Self::Reload => "POST",
        }
    }

    fn allows(self, method: &Method) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method.as_str())
    }
}

impl Admin {
    /// For this process.
    pub fn new(gateway: Arc<Gateway>, reloader: Arc<Reloader>) -> Self {
        Self { gateway, reloader }
    }

    async fn page(&self, method: &Method, path: &str, headers: &HeaderMap) -> Reply {
        let page = Page::of(path);
        if !page.is_some_and(Page::is_open) && !self.is_known(headers) {
            return unauthorized();
        }
        let Some(page) = page else {
            return refusal(StatusCode::NOT_FOUND, "not_found", "There is no such page.");
        };
        if !page.allows(method) {
            let mut reply = refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This page has another method.");
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static(page.allow()));
            return reply;
        }
        match page {
            Page::Health => text(StatusCode::OK, "ok\n"),
            Page::Ready if self.gateway.is_draining() => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
            Page::Ready => self.ready().await,
            Page::Metrics => self.metrics().await,
            Page::Reload => self.reload().await,
        }
    }

    /// Whether the token is right, or none is asked for.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let config = self.gateway.config();
        let Some(token) = &config.server.admin_token else { return true };
        let shown = intake::bearer(headers).unwrap_or_default();
        token.expose().as_bytes().ct_eq(shown.as_bytes()).into()
    }

    async fn ready(&self) -> Reply {
        match self.gateway.money.ready().await {
            Ok(()) => text(StatusCode::OK, "ready\n"),
            Err(Closed(why)) => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        }
    }

    async fn metrics(&self) -> Reply {
        let limits: Vec<_> = self.gateway.in_force().limits.iter().cloned().collect();
        self.gateway.metrics.counted_alone(self.gateway.money.decided_here());
        let config = self.gateway.config();
        let named = config.models.named.values().map(|model| (model, model.name.as_str()));
        let entries = named.chain(config.models.any.iter().map(|model| (model, "*")));
        let entries = entries.map(|(model, label)| (model.provider.name.as_str(), label));
        self.gateway.metrics.breakers(entries, &self.gateway.breakers.open());
        match self.gateway.money.read(&limits).await {
            Ok(budgets) => self.gateway.metrics.budgets(&budgets),
            // What cannot be read is left out; the alert on that is the probe's.
            Err(Closed(why)) => tracing::warn!(why, "the budgets cannot be read"),
        }
        match self.gateway.metrics.render(self.gateway.in_flight()) {
            Ok(text) => reply(StatusCode::OK, metrics::CONTENT_TYPE, text),
            Err(error) => {
                tracing::error!(%error, "the metrics cannot be written");
                refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "The metrics cannot be written.")
            }
        }
    }

    async fn reload(&self) -> Reply {
        match self.reloader.reload().await {
            Ok(()) => json_reply(StatusCode::OK, &json!({ "status": "ok" })),
            Err(faults) => {
                let message = "The configuration has faults; the old one stays in force.";
                let mut body = error_body(StatusCode::UNPROCESSABLE_ENTITY, "invalid_configuration", message);
                body["faults"] = faults.iter().map(fault_body).collect();
                json_reply(StatusCode::UNPROCESSABLE_ENTITY, &body)
            }
        }
    }
}

impl Answer for Admin {
    type Body = Full<Bytes>;

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (head, _) = request.into_parts();
        self.page(&head.method, head.uri.path(), &head.headers).await
    }

    fn ambiguous(&self) -> Reply {
        let mut reply = refusal(StatusCode::BAD_REQUEST, "invalid_request", "The request names two lengths.");
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        reply
    }

    fn unreadable(status: StatusCode) -> Response<Bytes> {
        let body = error_body(status, "invalid_request", "The head of the request cannot be read.");
        json_reply(status, &body).map(|_| Bytes::from(body.to_string()))
    }

    fn header_timeout(&self) -> Duration {
        self.gateway.config().server.header_timeout
    }
}

fn unauthorized() -> Reply {
    let mut reply = refusal(StatusCode::UNAUTHORIZED, "invalid_admin_token", "The admin token is missing or wrong.");
    reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    reply
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Reply {
    json_reply(status, &error_body(status, code, message))
}

fn error_body(status: StatusCode, code: &str, message: &str) -> Value {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "server_error",
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

fn fault_body(fault: &Fault) -> Value {
    let place = &fault.place;
    json!({
        "file": place.file.display().to_string(), "line": place.line, "column": place.column,
        "path": place.path, "message": fault.message, "text": fault.to_string(),
    })
}

fn json_reply(status: StatusCode, body: &Value) -> Reply {
    reply(status, "application/json", body.to_string())
}

fn text(status: StatusCode, text: &'static str) -> Reply {
    reply(status, TEXT, text)
}

const TEXT: &str = "text/plain; charset=utf-8";

fn reply(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    reply
}
