//! The callers' listener: each of its requests goes the road of a request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::json;

use crate::gateway::Gateway;
use crate::server::Answer;

/// Who answers callers.
pub struct Callers {
    gateway: Arc<Gateway>,
}

impl Callers {
    /// For this process.
    pub fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway }
    }
}

impl Answer for Callers {
    type Body = Full<Bytes>;

    async fn answer(self: Arc<Self>, _request: Request<Incoming>) -> Response<Full<Bytes>> {
        refusal(StatusCode::NOT_FOUND, "not_found", "There is no such path.")
    }

    fn ambiguous(&self) -> Response<Full<Bytes>> {
        refusal(StatusCode::BAD_REQUEST, "invalid_request", "The request names two lengths.")
    }

    fn header_timeout(&self) -> Duration {
        self.gateway.config().server.header_timeout
    }
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Full<Bytes>> {
    let body = json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": code } });
    let mut response = Response::new(Full::new(body.to_string().into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
