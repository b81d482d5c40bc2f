//! The way a request travels, and everything around it.

pub mod admin;
pub mod callers;
pub mod cli;
pub mod gateway;
pub mod reload;
pub mod server;
pub mod telemetry;
