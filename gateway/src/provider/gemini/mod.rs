//! Google's `generateContent`: what it is sent, and what its answers mean.
//!
//! The files follow the way: `model` (what a model's name says about it), `request` (members), `contents` (messages), `tools` and `schema`
//! there; `read` (the wire), `stream` and `answer` back; `explain` where it fails.

mod answer;
mod contents;
mod explain;
mod media;
mod model;
mod read;
mod request;
mod schema;
mod stream;
#[cfg(test)]
mod tests;
mod tools;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use toolgate_config::provider::Provider;
use toolgate_config::secret::Secret;
use toolgate_tools::net::Segments;

pub(super) use self::explain::{explain, explain_inside};
pub(super) use self::media::takes;
pub(super) use self::stream::Stream;
use super::canon::{self, Canon};
use super::{Encoded, Stamp, Unsupported, openai};
use crate::targets::Target;

/// The header of the key. In the URL it would stand in the logs of every box on the way.
const KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

pub(super) fn encode(target: &Target, body: &Segments, stream: bool) -> Result<Encoded, Unsupported> {
    let model = model::Model::of(&target.upstream_model)?;
    let path = path(&target.provider.base_url.path, &model, stream);
    let body = canon::whole(body);
    let canon = Canon::read(&body)?;
    let text = request::write(&canon, &model, &target.provider, body.len())?;
    Ok(Encoded { path, body: Segments::from(Bytes::from(text)), note: None })
}

/// A base URL names a version of the API, or the version that knows everything is meant.
fn version(base: &str) -> &'static str {
    let has_one = ["/v1", "/v1beta", "/v1alpha"].iter().any(|version| base.ends_with(version));
    if has_one { "" } else { "/v1beta" }
}

/// The path of its models.
pub(super) fn models_path(base: &str) -> String {
    format!("{base}{}/models", version(base))
}

fn path(base: &str, model: &model::Model<'_>, stream: bool) -> String {
    let version = version(base);
    let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("{base}{version}/{}:{verb}", model.resource())
}

pub(super) fn headers(key: Option<&Secret>, caller: &HeaderMap, stream: bool) -> HeaderMap {
    let mut headers = openai::headers(None, false, caller, stream);
    headers.remove(AUTHORIZATION);
    headers.remove("openai-beta");
    if let Some(mut key) = key.and_then(|key| HeaderValue::try_from(key.expose()).ok()) {
        key.set_sensitive(true);
        headers.insert(KEY, key);
    }
    headers
}

pub(super) fn decode(provider: &Provider, body: Bytes, stamp: Stamp) -> Bytes {
    answer::completion(&body, &super::signer(provider), stamp).map_or(body, Bytes::from)
}
