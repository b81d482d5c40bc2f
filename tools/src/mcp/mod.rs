//! Tools of MCP servers.

pub mod http;
