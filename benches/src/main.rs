//! `compare`: toolgate, nginx and a bare hyper proxy under the same load on the same machine, as ratios of one run.
//!
//! This file is the command line. The run itself is [`rounds`]; the parts that are processes of their own (the scripted upstream, the
//! bare proxy, the launcher that pins a process to a core) are this same binary under hidden sub-commands.

mod caller;
mod load;
mod machine;
mod memory;
mod payload;
mod process;
mod proxy;
mod rounds;
mod scenario;
mod table;
mod target;
mod upstream;
mod wire;

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::scenario::Scenario;
use crate::target::Kind;

type Fault = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Fault>;

/// Drives toolgate, nginx and a bare hyper proxy with the same load in turn, and prints a markdown table.
#[derive(Parser)]
#[command(name = "compare", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    options: Options,
}

/// What a comparison measures, and for how long.
#[derive(clap::Args)]
struct Options {
    /// One short round of everything: shows that it works, its figures are rough
    #[arg(long)]
    quick: bool,
    /// Only these scenarios
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Scenario>,
    /// Only these targets
    #[arg(long, value_delimiter = ',', value_enum)]
    targets: Vec<Kind>,
    /// Rounds; the table shows medians over them
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Measured seconds of one scenario on one target in one round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Also write the table to this file
    #[arg(long)]
    out: Option<PathBuf>,
    /// The nginx binary; without it, the one that NGINX names, else the one in PATH
    #[arg(long)]
    nginx: Option<PathBuf>,
    /// The toolgate binary; without it, the one beside this binary
    #[arg(long)]
    toolgate: Option<PathBuf>,
}

/// The parts that run as processes of their own.
#[derive(Subcommand)]
enum Part {
    /// The scripted model and its tools; prints its address
    #[command(hide = true)]
    Upstream,
    /// A bare hyper proxy
    #[command(hide = true)]
    Proxy { listen: SocketAddr, upstream: SocketAddr },
    /// Runs a command on one core, and ends it with its parent
    #[command(hide = true)]
    Launch {
        core: usize,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.part {
        Some(Part::Upstream) => upstream::run(),
        Some(Part::Proxy { listen, upstream }) => proxy::run(listen, upstream),
        Some(Part::Launch { core, command }) => process::launch(core, &command),
        None => rounds::run(&arguments.options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("compare: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A line of progress, beside the table.
fn say(line: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}
