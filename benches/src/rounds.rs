//! The comparison: starts everything, lets the targets take turns, round by round, and ends everything.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::time::Duration;

use clap::ValueEnum;

use crate::load::{self, Length, Watched};
use crate::machine::Cores;
use crate::process::{self, Group};
use crate::scenario::Scenario;
use crate::table::Results;
use crate::target::{Kind, Site, Target};
use crate::{Options, memory, say};

/// Measures, and prints the table.
///
/// # Errors
/// Something could not be started, or an answer was wrong. The table of what was measured is printed all the same.
pub(crate) fn run(options: &Options) -> crate::Result<()> {
    let cores = Cores::of_this_machine();
    process::settle_on(cores.load)?;
    let (upstream, output) = Group::start_part(cores.load, &["upstream"])?;
    let folder = Folder::create()?;
    let (kinds, site) = site(options, cores, output, &folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut results = Results::default();
    runtime.block_on(async {
        take_turns(options, &kinds, &site, &upstream, &mut results).await?;
        measure_memory(options, &kinds, &site, &mut results).await;
        crate::Result::Ok(())
    })?;
    publish(options, &results)?;
    match results.faults() {
        0 => Ok(()),
        faults => Err(format!("{faults} measurements failed").into()),
    }
}

/// A folder for configurations and logs that goes when the comparison ends.
struct Folder(PathBuf);

impl Folder {
    fn create() -> crate::Result<Self> {
        let path = std::env::temp_dir().join(format!("toolgate-compare-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the cleaning of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Who takes part, and where. A target that is not on this machine is left out, and said to be.
fn site(options: &Options, cores: Cores, upstream: ChildStdout, folder: &Folder) -> crate::Result<(Vec<Kind>, Site)> {
    let mut line = String::new();
    BufReader::new(upstream).read_line(&mut line)?;
    let beside = std::env::current_exe()?.with_file_name("toolgate");
    let toolgate = options.toolgate.clone().unwrap_or(beside);
    let nginx = options.nginx.clone().or_else(find_nginx);
    let mut kinds: Vec<_> =
        Kind::ALL.into_iter().filter(|kind| options.targets.is_empty() || options.targets.contains(kind)).collect();
    kinds.retain(|kind| {
        let missing = match kind {
            Kind::Nginx if nginx.as_ref().is_none_or(|path| !path.exists()) => {
                "it is not in PATH (Debian: apt install nginx-light)"
            }
            Kind::Toolgate if !toolgate.exists() => "it is not built (cargo build --profile dist)",
            _ => return true,
        };
        say(&format!("{} is skipped: {missing}", kind.name()));
        false
    });
    let site =
        Site { upstream: line.trim().parse()?, folder: folder.0.clone(), cores, nginx: nginx.unwrap_or_default(), toolgate };
    Ok((kinds, site))
}

fn find_nginx() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NGINX") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join("nginx")).find(|file| file.is_file())
}

async fn take_turns(
    options: &Options,
    kinds: &[Kind],
    site: &Site,
    upstream: &Group,
    results: &mut Results,
) -> crate::Result<()> {
    let scenarios: Vec<_> = wanted(options).into_iter().filter(|&scenario| scenario != Scenario::Memory).collect();
    if scenarios.is_empty() {
        return Ok(());
    }
    let mut targets = Vec::new();
    for &kind in kinds {
        targets.push(Target::start(kind, site).await?);
    }
    for round in 0..rounds(options) {
        for &scenario in &scenarios {
            // Another one begins each time, so that none always follows the same neighbour.
            targets.rotate_left(1);
            for target in &mut targets {
                let watched = Watched { gateway: target.group.as_ref(), upstream };
                let outcome = load::run(scenario, target.route, length(options), watched).await;
                let outcome = outcome.map_err(|error| target.complaint(&*error));
                say(&progress(round, scenario, target.kind, outcome.as_ref().map(|sample| (sample.rate, sample.cpu))));
                results.add(scenario, target.kind, outcome);
            }
        }
    }
    Ok(())
}

async fn measure_memory(options: &Options, kinds: &[Kind], site: &Site, results: &mut Results) {
    if !wanted(options).contains(&Scenario::Memory) {
        return;
    }
    let (starts, rest) = if options.quick { (2, 2) } else { (7, 10) };
    for &kind in kinds.iter().filter(|&&kind| kind != Kind::Direct) {
        let outcome = memory::measure(kind, site, starts, Duration::from_secs(rest)).await;
        say(&progress(0, Scenario::Memory, kind, outcome.as_ref().map(|memory| (memory.ready, Some(memory.open)))));
        results.add_memory(kind, outcome);
    }
}

fn progress(round: u32, scenario: Scenario, kind: Kind, outcome: Result<(f64, Option<f64>), &crate::Fault>) -> String {
    let what = format!("round {}: {}, {}", round + 1, scenario.title(), kind.name());
    match (outcome, scenario) {
        (Err(error), _) => format!("{what}: FAILED: {error}"),
        (Ok((ready, open)), Scenario::Memory) => {
            format!("{what}: ready in {ready:.1} ms, open {:.1} MiB", open.unwrap_or_default())
        }
        (Ok((rate, Some(cpu))), _) => format!("{what}: {rate:.0}/s, {cpu:.1} µs"),
        (Ok((rate, None)), _) => format!("{what}: {rate:.0}/s"),
    }
}

fn wanted(options: &Options) -> Vec<Scenario> {
    let all = Scenario::value_variants().iter().copied();
    all.filter(|scenario| options.only.is_empty() || options.only.contains(scenario)).collect()
}

fn rounds(options: &Options) -> u32 {
    if options.quick { 1 } else { options.rounds }
}

fn length(options: &Options) -> Length {
    let seconds = if options.quick { 0.8 } else { options.seconds.clamp(0.2, 60.0) };
    let measured = Duration::from_secs_f64(seconds);
    Length { warm_up: measured.mul_f64(0.3).min(Duration::from_secs(1)), measured }
}

fn publish(options: &Options, results: &Results) -> crate::Result<()> {
    let table = results.table();
    if let Some(path) = &options.out {
        write_file(path, &table)?;
    }
    Ok(std::io::stdout().write_all(table.as_bytes())?)
}

fn write_file(path: &Path, table: &str) -> crate::Result<()> {
    fs::write(path, table).map_err(|error| format!("{}: {error}", path.display()).into())
}
