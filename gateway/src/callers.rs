//! The callers' listener: each of its requests goes the road of a request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::gateway::Gateway;
use crate::reply::Body;
use crate::serve;
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
    type Body = Body;

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        serve::answer(Arc::clone(&self.gateway), request).await
    }

    fn ambiguous(&self) -> Response<Body> {
        serve::ambiguous()
    }

    fn unreadable(status: StatusCode) -> Response<Bytes> {
        serve::unreadable(status)
    }

    fn header_timeout(&self) -> Duration {
        self.gateway.config().server.header_timeout
    }
}
