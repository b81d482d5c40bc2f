//! The way a request travels, and everything around it.

pub mod admin;
pub mod callers;
pub mod cli;
pub mod counters;
pub mod demo;
pub mod failure;
pub mod fit;
pub mod gateway;
pub mod intake;
pub mod listings;
pub mod money;
pub mod prepared;
pub mod provider;
pub mod reload;
pub mod reply;
pub mod serve;
pub mod server;
pub mod store;
pub mod talk;
pub mod targets;
pub mod telemetry;
pub mod tokens;
pub mod trace;
pub mod upload;
pub mod upstream;
pub mod wire;
