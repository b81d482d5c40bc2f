//! The way a request travels, and everything around it.

pub mod gateway;
pub mod telemetry;
