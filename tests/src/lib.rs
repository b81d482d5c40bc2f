//! The house in which toolgate is tried: a scripted model, scripted tool servers, a caller, and the real `toolgate serve` between them.
//!
//! What toolgate does is written down as data, in `scenarios/<area>/<name>.yaml`; [`run`] plays one such file. What does not fit
//! that form (signals, TLS, callers that go away) is told in `tests/stories.rs` and `tests/money.rs` with the same few parts. Everything speaks HTTP byte by byte
//! ([`wire`]), so that a script can say exactly what is sent, and when, and where it breaks off.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this crate is test code: what cannot go on stops the test")]

pub mod caller;
pub mod cases;
pub mod config;
pub mod dialect;
pub mod gateway;
mod judge;
pub mod ledger;
pub mod matching;
pub mod mcp;
pub mod metrics;
pub mod reply;
mod report;
pub mod run;
pub mod scenario;
pub mod server;
pub mod services;
pub mod stage;
pub mod stand;
pub mod stream;
pub mod strict;
pub mod wire;
