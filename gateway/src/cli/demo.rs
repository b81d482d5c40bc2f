//! `demo`: what can be asked of it.

use std::net::SocketAddr;

use clap::Args;
use toolgate_config::server::LogFormat;
use tracing::Level;

use super::{Failure, key};
use crate::demo::{self, Trouble, Upstream};
use crate::telemetry::log;

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// End after the answer, in place of serving on.
    #[arg(long)]
    once: bool,
    /// Where the gateway listens; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Ask the model of a real OpenAI-compatible server, whose base URL this is, such as http://127.0.0.1:11434/v1.
    #[arg(long, value_name = "URL", requires = "model")]
    upstream: Option<String>,
    /// That server's key.
    #[arg(long, value_name = "KEY", requires = "upstream")]
    upstream_key: Option<String>,
    /// The name of that model.
    #[arg(long, value_name = "NAME", requires = "upstream")]
    model: Option<String>,
}

pub(super) fn run(command: Demo) -> Result<(), Failure> {
    // The account tells what happens; the log has room for what goes wrong.
    let level = log::level_from_env_or(Level::WARN).map_err(Failure::Input)?;
    log::start(LogFormat::Text, level);
    let secret = key::new_secret().ok_or_else(|| Failure::Dependency("the system has no random numbers".to_owned()))?;
    let upstream = command.upstream.zip(command.model).map(|(url, model)| Upstream { url, key: command.upstream_key, model });
    let key_hash = key::hex_hash_of(&secret);
    Ok(demo::run(&demo::Demo { listen: command.listen, once: command.once, upstream, secret, key_hash })?)
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Input(text) => Self::Input(text),
            Trouble::Dependency(text) => Self::Dependency(text),
        }
    }
}
