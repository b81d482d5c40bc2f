//! A server that is a process of ours: started, spoken to over its standard input and output, ended with all that it has started itself.
//!
//! It gets four variables of our environment and those that the file names for it; it leads a process group of its own, so that what it
//! starts can be ended with it. Where this process is killed hard, its servers read the end of their input, which every well-behaved one
//! takes for its own; to have the kernel kill the others too would take `unsafe` code.

mod lines;
mod process;
mod quota;
mod stderr;

use std::process::Stdio;

use tokio::process::Command;
use toolgate_config::mcp::McpServer;
use toolgate_config::secret::Secret;

pub(super) use self::lines::Lines;
pub(super) use self::process::Process;
use super::cleaner::Cleaner;
use super::error::Unreachable;
use super::flag::Flag;

/// What a server gets of our environment.
const OURS: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Starts the server. `over` is raised when it is gone, or can be spoken to no more.
///
/// # Errors
/// There is no such program, or it may not be run.
pub(super) fn start(
    server: &McpServer,
    command: &str,
    args: &[Secret],
    env: &[(String, Secret)],
    over: &Flag,
    cleaner: &Cleaner,
) -> Result<(Process, Lines), Unreachable> {
    let mut child = Command::new(command)
        .args(args.iter().map(Secret::expose))
        .env_clear()
        .envs(OURS.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .envs(env.iter().map(|(name, value)| (name, value.expose())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Unreachable::Start(error.kind()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err(Unreachable::Start(std::io::ErrorKind::BrokenPipe));
    };
    let said = stderr::Log::new(&server.name, cleaner, args.iter().chain(env.iter().map(|(_, value)| value)));
    let lines = Lines::new(stdout, stdin, server.timeout, over.clone(), said.clone());
    Ok((Process::new(child, stderr, said, over.clone()), lines))
}
