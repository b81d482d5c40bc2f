//! Anthropic's Messages: [`encode`] writes a request, [`decode`] and [`Stream`] read what it says, [`explain`] what went wrong.

mod decode;
mod encode;
mod explain;
mod finish;
mod model;
mod parts;
mod stream;
#[cfg(test)]
mod tests;
mod thinking;
mod thoughts_of;
mod tools;
mod turns;
mod usage;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, header};
use serde_json::value::RawValue;
use toolgate_config::secret::Secret;
use toolgate_tools::media::Media;

pub(super) use self::decode::decode;
pub(super) use self::encode::{encode, params, usual_output};
pub(super) use self::explain::{explain, explain_inside};
pub(super) use self::stream::Stream;
use super::Stamp;

/// Whose thoughts these are, in the words of those who defined the form.
const THOUGHTS: &str = "anthropic-claude-v1";

/// The only version of the API that there is.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Whether a thought of this model's is bound to all that stood before it.
pub(super) fn binds_thoughts(model: &str) -> bool {
    model::Generation::of(model).binds_thoughts()
}

/// Below an address of the API's root, with and without its version.
fn path(base: &str) -> String {
    if base.ends_with("/v1") { format!("{base}/messages") } else { format!("{base}/v1/messages") }
}

/// Whether a tool's result may hold this.
pub(super) fn takes(media: &Media) -> bool {
    const KINDS: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];
    KINDS.contains(&media.kind()) && media.bytes() <= LARGEST_MEDIA
}

/// The largest picture that the API takes, in bytes.
const LARGEST_MEDIA: usize = 5 * 1024 * 1024;

/// The path of its models.
pub(super) fn models_path(base: &str) -> String {
    if base.ends_with("/v1") { format!("{base}/models") } else { format!("{base}/v1/models") }
}

/// An answer's id as a JSON string: the provider's own, or one that is made.
fn put_id(out: &mut String, id: Option<&RawValue>, stamp: Stamp) {
    match id.filter(|id| id.get().starts_with('"') && id.get().len() > 2) {
        Some(id) => out.push_str(id.get()),
        None => out.push_str(&format!("\"chatcmpl-{:016x}\"", stamp.seed)),
    }
}

/// The credential, which is the caller's own bearer where those pass through, and what of the caller's headers may go on.
pub(super) fn headers(key: Option<&Secret>, caller: &HeaderMap, stream: bool) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    for name in [USER_AGENT, header::ACCEPT_LANGUAGE] {
        if let Some(value) = caller.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(if stream { "text/event-stream" } else { "application/json" }));
    headers.insert(HeaderName::from_static("anthropic-version"), VERSION);
    if let Some(mut key) = key.and_then(|key| HeaderValue::try_from(key.expose()).ok()) {
        key.set_sensitive(true);
        headers.insert(HeaderName::from_static("x-api-key"), key);
    }
    headers
}
