//! The commands: what can be typed, and with which code each way of ending is told to the shell.

mod accept;
mod admin;
mod check;
mod demo;
mod key;
mod serve;
mod servers;
mod spend;
mod tools;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use toolgate_config::place::Fault;
use toolgate_config::{Config, check as configuration};

/// An OpenAI-compatible gateway that runs the tool loop.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway.
    Serve(serve::Serve),
    /// Show the whole gateway on embedded parts: a model, three tools, one question. No key and no network is needed.
    Demo(demo::Demo),
    /// Read everything that `serve` would, and print every problem with its place.
    Check(check::Check),
    /// Print the effective policy: each tool with its verdict and reason.
    Tools(tools::Tools),
    /// Read the ledger: what was used and what it cost, by key, model or tool.
    Spend(spend::Spend),
    /// Make keys for callers.
    #[command(subcommand)]
    Key(key::Key),
    /// Print the configuration's JSON Schema, for editors.
    Schema,
    /// Have a running gateway read its configuration again.
    Reload(admin::Reload),
    /// Ask a running gateway whether it is ready; for container health checks.
    Health(admin::Health),
}

/// Which configuration file a command reads.
#[derive(Debug, Args)]
struct File {
    /// The configuration file.
    #[arg(long = "config", env = "TOOLGATE_CONFIG", value_name = "FILE")]
    config: PathBuf,
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// The configuration has faults.
    Faults(Vec<Fault>),
    /// It has, and they are printed already: they were what was asked for.
    FaultsFound,
    /// Something else about the input is wrong.
    Input(String),
    /// Something that is needed is not available.
    Dependency(String),
}

/// Does what the command line says.
pub fn run() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(command) => serve::run(&command),
        Command::Demo(command) => demo::run(command),
        Command::Check(command) => check::run(&command),
        Command::Tools(command) => tools::run(command),
        Command::Spend(command) => spend::run(&command),
        Command::Key(command) => key::run(&command),
        Command::Schema => check::schema(),
        Command::Reload(command) => admin::reload(&command),
        Command::Health(command) => admin::health(&command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

impl Failure {
    /// Prints it, and gives its exit code. The parser of the command line has 2 for itself.
    fn tell(self) -> ExitCode {
        let (text, code) = match self {
            Self::FaultsFound => return ExitCode::from(1),
            Self::Faults(faults) => (faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), 1),
            Self::Input(text) => (format!("toolgate: {text}"), 1),
            Self::Dependency(text) => (format!("toolgate: {text}"), 3),
        };
        // Nobody may be listening any more; the code says the rest.
        let _ = writeln!(io::stderr().lock(), "{text}");
        ExitCode::from(code)
    }
}

/// Reads a configuration, with all its faults if it has any.
fn load(file: &Path) -> Result<Config, Failure> {
    configuration::load(file).map_err(Failure::Faults)
}

/// Prints a line of our own to standard error.
fn remark(text: &str) {
    let _ = writeln!(io::stderr().lock(), "toolgate: {text}");
}

/// Prints to standard output. Whoever reads may stop at any time.
pub(crate) fn print(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }
}
