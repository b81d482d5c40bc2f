//! How long a provider is waited for at each stage, and what it means that it took longer, or broke off. Pure.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_config::provider::Provider;
use toolgate_tools::net::{NetError, Patience};

use crate::failure::Failure;
use crate::trace::Outcome;

/// What a provider is slower than when the time of the whole request is over before any limit of its own.
pub const WHOLE: &str = "request's own time";

/// How long to wait for a connection and for the first byte: as the file says, and no longer than until the answer must have begun.
pub(super) fn patience(provider: &Provider, begin_by: Instant, now: Instant) -> Patience {
    let left = begin_by.saturating_duration_since(now);
    Patience { connect: provider.connect_timeout.min(left), first_byte: provider.first_byte_timeout.min(left) }
}

/// What a broken connection means: for the caller, and for the record of the call.
pub fn net_failure(error: NetError) -> (Failure, Outcome) {
    match error {
        NetError::ConnectTimeout => (Failure::UpstreamTimeout("connect_timeout"), Outcome::Timeout),
        NetError::FirstByteTimeout => (Failure::UpstreamTimeout("first_byte_timeout"), Outcome::Timeout),
        NetError::IdleTimeout => (Failure::UpstreamTimeout("idle_timeout"), Outcome::Timeout),
        NetError::Resolve | NetError::Refused(_) | NetError::Connect(_) | NetError::Tls => {
            (Failure::Upstream(error.to_string()), Outcome::ConnectError)
        }
        NetError::Closed | NetError::Cut => (Failure::Upstream(error.to_string()), Outcome::Cut),
        NetError::TooLarge | NetError::Protocol | NetError::Packing => {
            (Failure::Upstream(error.to_string()), Outcome::ServerError)
        }
    }
}

/// Whether a call that failed before anything came may have been worked on, and so be on the provider's bill.
pub(super) fn may_have_cost(error: NetError) -> bool {
    error == NetError::FirstByteTimeout
}

/// The longest time that a provider may take to say what was wrong.
pub(super) const LONGEST_EXPLANATION: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn each_broken_connection_has_its_status_and_its_word() {
        let table = [
            (NetError::Resolve, 502, Outcome::ConnectError),
            (NetError::Connect(ErrorKind::ConnectionRefused), 502, Outcome::ConnectError),
            (NetError::Tls, 502, Outcome::ConnectError),
            (NetError::ConnectTimeout, 504, Outcome::Timeout),
            (NetError::FirstByteTimeout, 504, Outcome::Timeout),
            (NetError::IdleTimeout, 504, Outcome::Timeout),
            (NetError::Closed, 502, Outcome::Cut),
            (NetError::Cut, 502, Outcome::Cut),
            (NetError::TooLarge, 502, Outcome::ServerError),
            (NetError::Protocol, 502, Outcome::ServerError),
            (NetError::Packing, 502, Outcome::ServerError),
        ];
        for (error, status, outcome) in table {
            let (failure, seen) = net_failure(error);
            assert_eq!((failure.status().as_u16(), seen), (status, outcome), "{error}");
        }
    }
}
