//! `serve`: from a file to a running gateway, stage by stage.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::{Failure, File, load};
use crate::callers::Callers;
use crate::gateway::Gateway;
use crate::money::Closed;
use crate::reload::Reloader;
use crate::server::{self, Certificates, Start};
use crate::telemetry::log;

#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    file: File,
    /// Take the listening sockets over from the gateway that runs with the same file. Send it SIGQUIT then: it hands them over and ends
    /// with its last request.
    #[arg(long)]
    upgrade: bool,
    /// Where the two meet [default: a socket in a private folder, named after the file].
    #[arg(long, value_name = "PATH")]
    upgrade_sock: Option<PathBuf>,
}

pub(super) fn run(command: &Serve) -> Result<(), Failure> {
    let level = log::level_from_env().map_err(Failure::Input)?;
    let config = load(&command.file.config)?;
    log::start(config.telemetry.log, level);
    raise_file_limit();
    let (gateway, departures) = Gateway::open(config).map_err(|Closed(why)| Failure::Dependency(why))?;
    let tls = gateway.config().server.tls.as_ref().map(Certificates::read).transpose();
    let certificates = tls.map_err(Failure::Input)?.map(Arc::new);
    let start = Start {
        callers: Arc::new(Callers::new(Arc::clone(&gateway))),
        reloader: Arc::new(Reloader::new(Arc::clone(&gateway), command.file.config.clone(), certificates.clone())),
        certificates,
        meeting_place: meeting_place(command)?,
        take_over: command.upgrade,
        departures,
        gateway,
    };
    server::run(start).map_err(Failure::Dependency)
}

fn meeting_place(command: &Serve) -> Result<PathBuf, Failure> {
    match &command.upgrade_sock {
        Some(path) => Ok(path.clone()),
        None => server::meeting_place(&command.file.config).map_err(Failure::Dependency),
    }
}

/// Each caller takes a descriptor, and each call to a provider or a tool another. The soft limit is meant for programs that use `select`.
fn raise_file_limit() {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}
