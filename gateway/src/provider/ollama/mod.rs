//! Ollama's own `/api/chat`: what it is sent (`request`), and what its lines mean (`read`, `lines`). Its errors need no words of their own.

mod lines;
mod read;
mod request;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use toolgate_tools::net::Segments;

pub(super) use self::lines::Lines;
use super::canon::{self, Canon};
use super::{Encoded, Stamp, Unsupported};
use crate::targets::Target;

pub(super) fn encode(target: &Target, body: &Segments, stream: bool) -> Result<Encoded, Unsupported> {
    let path = path(&target.provider.base_url.path);
    let body = canon::whole(body);
    let canon = Canon::read(&body)?;
    let text = request::write(&canon, target, stream, body.len())?;
    Ok(Encoded { path, body: Segments::from(Bytes::from(text)), note: None })
}

/// The address may be that of the server, of its own API, or of the compatible one, which stands beside it.
fn path(base: &str) -> String {
    format!("{}/api/chat", server(base))
}

/// The path of its models.
pub(super) fn models_path(base: &str) -> String {
    format!("{}/api/tags", server(base))
}

fn server(base: &str) -> &str {
    base.strip_suffix("/api").or_else(|| base.strip_suffix("/v1")).unwrap_or(base)
}

pub(super) fn decode(body: Bytes, stamp: Stamp) -> Bytes {
    read::completion(&body, stamp).map_or(body, Bytes::from)
}
