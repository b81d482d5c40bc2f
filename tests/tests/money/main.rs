//! What money has that does not fit a scenario: gateways that share their counters, that are killed, whose store is stuck or gone; callers that
//! leave; sums over a thousand runs; and the real Prometheus.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

mod broken_services;
mod killed;
mod leaving;
mod prometheus;
mod sums;
mod two_gateways;
