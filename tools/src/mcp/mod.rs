//! MCP servers: other people's tools, run by them. [`Hub`] holds one session a server, which every call of it shares; it finds out what each
//! server offers, notices when one dies, and mends it.
//!
//! What may be offered, and under which name, is not decided here, and nothing that a server says of itself is believed. The protocol is
//! `rmcp`'s: none of its types is seen outside this folder.

mod answer;
mod call;
mod cleaner;
mod error;
mod flag;
mod http;
mod hub;
mod listing;
mod output;
mod patience;
mod server;
mod session;
mod stdio;
#[cfg(test)]
mod tests;
mod wire;

pub use self::answer::{Answer, Piece};
pub use self::error::CallError;
pub use self::hub::{Hub, Listing, State};
pub use self::listing::{Hints, Listed};
pub(crate) use self::output::run;
pub use self::session::About;
