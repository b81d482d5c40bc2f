//! The road of what passes through: the same as a chat completion's, with one turn and no tools. What each step takes is [`Passage`]'s business.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use hyper::body::Incoming;
use tokio::time::timeout_at;
use toolgate_config::names::ModelName;
use toolgate_config::server::Server;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate;

use super::passage::Passage;
use super::record::Recording;
use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::intake::{self, Wishes};
use crate::reply::{Ended, Outlet};
use crate::upload::{Bounds, Upload};
use crate::wire::pass::{Demand, Made, Path, Request};

/// Takes a request that passes through from its head to its last byte.
pub(super) async fn serve(
    gateway: &Arc<Gateway>,
    caller: Caller,
    path: Path,
    (headers, incoming): (&HeaderMap, Incoming),
    outlet: &Outlet,
    record: &mut Recording,
) -> Result<Ended, Failure> {
    let wishes = Wishes::read(headers)?;
    let in_force = gateway.in_force();
    let config = &in_force.config;
    let cargo = Cargo::read(path, headers, incoming, &config.server);
    let cargo = timeout_at(record.began() + config.server.request_timeout, cargo).await.unwrap_or(Err(Failure::BodyCut))?;
    let model = gate::admit(config, &caller, cargo.model());
    record.run.model = Some(model.as_ref().map_or_else(|_| ModelName::new(cargo.model()), |model| model.name.clone()));
    let model = model?;
    if cargo.is_stream() {
        outlet.expect_stream();
    }
    let mut passage = Passage::open(gateway, &in_force, &model, caller, (path, &cargo), headers, outlet, record);
    if wishes.dry_run {
        return passage.dry_run().await;
    }
    let answering = passage.ask().await?;
    passage.answer(answering).await
}

/// What is to be sent.
pub(super) enum Cargo {
    /// A document, which is here.
    Document(Request),
    /// A form, which comes while it is sent.
    Form(Upload),
}

impl Cargo {
    async fn read(path: Path, headers: &HeaderMap, incoming: Incoming, server: &Server) -> Result<Self, Failure> {
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        if path.takes_form() && !content_type.starts_with(b"application/json") {
            let bounds = Bounds { most: server.max_body, patience: server.header_timeout };
            return Ok(Self::Form(Upload::open(headers, incoming, bounds).await?));
        }
        let body = intake::body(headers, incoming, server.max_body, server.header_timeout).await?;
        Ok(Self::Document(Request::parse(path, &body)?))
    }

    /// What the caller calls the model.
    pub(super) fn model(&self) -> &str {
        match self {
            Self::Document(request) => &request.model,
            Self::Form(upload) => upload.model(),
        }
    }

    /// Whether a stream of completions is wanted.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Document(request) if request.stream)
    }

    /// Whether that stream shall end with its usage.
    pub(super) fn wants_usage(&self) -> bool {
        matches!(self, Self::Document(request) if request.include_usage)
    }

    /// The form that goes in place of a document.
    pub(super) fn upload(&self) -> Option<&Upload> {
        match self {
            Self::Document(_) => None,
            Self::Form(upload) => Some(upload),
        }
    }

    /// What is sent to a provider with this name for the model; of a form nothing, for it is not here.
    pub(super) fn compose(&self, upstream_model: &str, lowered: Option<u64>) -> Vec<Bytes> {
        match self {
            Self::Document(request) => vec![request.compose(upstream_model, lowered)],
            Self::Form(_) => Vec::new(),
        }
    }

    /// What its cost depends on.
    pub(super) fn demand(&self) -> Demand {
        match self {
            Self::Document(request) => request.demand,
            // What is heard is spoken slower than it is counted, so its text is never more.
            Self::Form(upload) => Demand { made: Made::Text(Some(upload.most_tokens())), answers: 1 },
        }
    }
}
