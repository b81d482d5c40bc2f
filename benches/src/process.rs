//! Processes that are started, pinned to a core, watched, and ended whatever happens: each is a process group of its own that gets a
//! signal when its parent is gone.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// A process and its descendants.
pub(crate) struct Group {
    child: Child,
    leader: Pid,
}

impl Group {
    /// Starts a command on one core; what it prints goes into `log`.
    pub(crate) fn start(core: usize, command: &[OsString], log: &Path) -> crate::Result<Self> {
        let log = File::create(log)?;
        Self::spawn(core, command, log.try_clone()?.into(), log.into())
    }

    /// Starts a part of this program on one core; its standard output is handed back.
    pub(crate) fn start_part(core: usize, part: &[&str]) -> crate::Result<(Self, ChildStdout)> {
        let mut group = Self::spawn(core, &this_program(part)?, Stdio::piped(), Stdio::inherit())?;
        let output = group.child.stdout.take().ok_or("no standard output")?;
        Ok((group, output))
    }

    fn spawn(core: usize, command: &[OsString], stdout: Stdio, stderr: Stdio) -> crate::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .arg("launch")
            .arg(core.to_string())
            .args(command)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()?;
        let leader = Pid::from_raw(i32::try_from(child.id())?);
        Ok(Self { child, leader })
    }

    /// Whether it has come to an end by itself.
    pub(crate) fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// CPU time of all its threads that are alive.
    pub(crate) fn cpu_time(&self) -> Duration {
        self.processes().iter().map(|process| threads_cpu_time(process)).sum()
    }

    /// Resident memory of its processes, in MiB. Pages that two of them share count twice.
    pub(crate) fn resident_mib(&self) -> f64 {
        self.processes().iter().map(|process| resident_kib(process)).sum::<f64>() / 1024.0
    }

    fn processes(&self) -> Vec<String> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
            .filter(|process| group_of(process) == Some(self.leader.as_raw()))
            .collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for (signal, patience) in [(Signal::SIGTERM, Duration::from_secs(3)), (Signal::SIGKILL, Duration::from_secs(3))] {
            // A group that is gone already cannot be signalled, and need not be.
            let _ = killpg(self.leader, signal);
            let until = Instant::now() + patience;
            while Instant::now() < until && !(self.ended() && self.processes().is_empty()) {
                sleep(Duration::from_millis(5));
            }
        }
    }
}

/// The command line of a part of this program.
pub(crate) fn this_program<S: AsRef<OsStr>>(part: &[S]) -> crate::Result<Vec<OsString>> {
    let program = std::env::current_exe()?.into_os_string();
    Ok(std::iter::once(program).chain(part.iter().map(|word| word.as_ref().to_owned())).collect())
}

/// Becomes the command, on one core, with as many open files as are allowed, and with a signal for the day when the parent is gone.
pub(crate) fn launch(core: usize, command: &[OsString]) -> crate::Result<()> {
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    settle_on(core)?;
    let (program, arguments) = command.split_first().ok_or("no command")?;
    Err(Command::new(program).args(arguments).exec().into())
}

/// Keeps this process on one core, and allows it as many open files as it may have.
pub(crate) fn settle_on(core: usize) -> crate::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let mut cores = CpuSet::new();
    cores.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &cores)?)
}

/// CPU time of this process.
pub(crate) fn own_cpu_time() -> Duration {
    threads_cpu_time("self")
}

/// The first number of `schedstat` is nanoseconds on a core; unlike `stat`, it is not rounded to ticks.
fn threads_cpu_time(process: &str) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

fn resident_kib(process: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// The process group of a process that is alive. In `stat` it is the third word after the name, which stands in brackets.
fn group_of(process: &str) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?;
    words.nth(1)?.parse().ok().filter(|_| state != "Z")
}
