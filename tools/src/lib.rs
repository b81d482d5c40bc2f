//! The hands: runs a call that the gate has cleared, and returns what the model may read.
//!
//! [`toolbox`] is the way of one call; [`said`] holds every sentence of our own that a model reads. [`net`] is the only place in the project
//! that opens outgoing connections, to tools and to models alike.

pub mod arguments;
pub mod bound;
mod cache;
pub mod definitions;
pub mod foreign;
mod http;
pub mod mcp;
pub mod media;
pub mod net;
mod result;
pub mod said;
#[cfg(test)]
mod scripted;
pub mod toolbox;

pub use http::request_of;
