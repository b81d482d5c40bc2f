//! Streamable HTTP: the session is the SDK's, every byte of it goes through [`crate::net`]. So there is one way out, one TLS stack and one
//! pool, and a server's credentials are sent to its own origin and nowhere else. What a server does wrong ends here, in a [`Failure`] or in an
//! error in an answer's place; nothing of a broken answer goes on.

mod asked;
mod client;
mod events;
mod failure;
mod meaning;
mod sieve;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use tokio::sync::Notify;
use toolgate_config::address::BaseUrl;
use toolgate_config::mcp::McpServer;
use toolgate_config::secret::Secret;

use self::client::Client;
pub(super) use self::failure::Failure;
use crate::net::Net;

/// The longest message that is read, in bytes: room for a file in base64.
const LONGEST_MESSAGE: usize = 16 * 1024 * 1024;

/// How many requests of one session wait for their answers at once. Who calls bounds that; the SDK only must not.
const MOST_AT_ONCE: usize = 1024;

/// How long a stream that is only listened to may be silent before it is opened anew: its server may be gone without a word.
const LONGEST_SILENCE: Duration = Duration::from_secs(600);

/// How long the stream of an answer may be silent. It is so long that it never comes to that: who waits for an answer waits less.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// How long a new session may take to begin, and how long answers may still come in the old one.
const LONGEST_RECOVERY: Duration = Duration::from_secs(5);

/// A session's way to its server. `renewed` is told when the server may have become another: the session was begun anew, or seems to be over.
///
/// The server has not been asked yet. Whoever closes it waits until the server knows that the session is over, or for five seconds.
pub(super) fn transport(
    server: &McpServer,
    url: &BaseUrl,
    headers: &[(String, Secret)],
    net: Arc<Net>,
    renewed: Arc<Notify>,
) -> impl Transport<RoleClient, Error = StreamableHttpError<Failure>> + 'static {
    let client = Client::new(server, url, headers, net, renewed);
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.name.as_str())
        .max_concurrent_requests(MOST_AT_ONCE)
        .session_recovery_timeout(LONGEST_RECOVERY)
        .max_sse_event_size(LONGEST_MESSAGE)
        .max_json_response_size(LONGEST_MESSAGE);
    let mut backoff = ExponentialBackoff::default();
    backoff.max_delay = Some(LONGEST_PAUSE);
    config.retry_config = Arc::new(backoff);
    StreamableHttpClientTransport::with_client(client, config)
}

/// The longest pause before a stream is asked for again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long to wait before a stream is asked for again, after `times` that came to nothing.
fn pause(times: u32) -> Duration {
    Duration::from_secs(1 << times.min(6)).min(LONGEST_PAUSE)
}
