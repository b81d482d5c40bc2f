//! The real `toolgate`, as a process of its own: `serve` on two free ports, or a command that is run to its end.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::caller::{Response, request, send};
use crate::metrics;
use crate::reply::Step;
use crate::stage::{PATIENCE, Stage};

/// The program under test: `TOOLGATE_BIN`, else the `toolgate` that was built beside this test.
///
/// # Errors
/// Neither is there.
pub fn program() -> Result<PathBuf, String> {
    let path = match std::env::var_os("TOOLGATE_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let test = std::env::current_exe().map_err(|error| error.to_string())?;
            let profile = test.parent().and_then(Path::parent).ok_or("no target folder")?;
            profile.join("toolgate")
        }
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("{} is not there: build it first, or name it in TOOLGATE_BIN", path.display()))
    }
}

/// A folder of its own for each case; it goes when the value goes.
pub struct Folder(PathBuf);

impl Folder {
    /// A new empty folder.
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("toolgate-tests-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for this case");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in it and tells its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder for the file");
        }
        std::fs::write(&path, text).expect("the file is written");
        path
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Two addresses on loopback that nobody listens on: for callers and for the admin. They are below the range from which the kernel takes
/// ports for outgoing connections, so that no connection of another test takes one of them before the gateway does; and each process of tests
/// has a loopback address to itself, so that two that run at once never meet.
pub fn free_addresses() -> (String, String) {
    (free_address(), free_address())
}

fn free_address() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let process = std::process::id();
    let host = format!("127.{}.{}.{}", 1 + (process >> 16) % 64, (process >> 8) & 0xff, process & 0xff);
    loop {
        let port = 12_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 20_000;
        let address = format!("{host}:{port}");
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// `toolgate serve`, ready. It is killed when the value goes.
pub struct Gateway {
    /// Where callers come in.
    pub address: String,
    /// Where the admin comes in.
    pub admin: String,
    /// The process.
    pub process: Child,
    log: PathBuf,
}

impl Gateway {
    /// Starts `serve` with the file `toolgate.yaml` of a folder, and waits until it is ready.
    ///
    /// # Errors
    /// It ended, or was not ready in time; its log is told.
    pub async fn start(folder: &Folder, addresses: (String, String), env: &[(String, String)]) -> Result<Self, String> {
        let mut gateway = Self::spawn(folder, addresses, env, &[])?;
        gateway.wait_ready().await?;
        Ok(gateway)
    }

    /// Starts `serve` with further arguments, and does not wait.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn spawn(folder: &Folder, addresses: (String, String), env: &[(String, String)], args: &[&str]) -> Result<Self, String> {
        let log = folder.path().join("gateway.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).map_err(|error| error.to_string())?;
        let process = Command::new(program()?)
            .args(["serve", "--config"])
            .arg(folder.path().join("toolgate.yaml"))
            .args(args)
            .envs(env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(|error| error.to_string())?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        Ok(Self { address: addresses.0, admin: addresses.1, process, log })
    }

    /// Returns when it is ready.
    ///
    /// # Errors
    /// It ended, or was not ready in time; its log is told.
    pub async fn wait_ready(&mut self) -> Result<(), String> {
        for _ in 0..1000 {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("the gateway ended with {status}; its log:\n{}", self.log()));
            }
            if self.admin("/readyz").await.status == 200 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(format!("the gateway was never ready; its log:\n{}", self.log()))
    }

    /// GETs a path of the admin listener.
    pub async fn admin(&self, path: &str) -> Response {
        send(&self.admin, vec![Step::Send(request("GET", path, &[], None))], &Stage::default()).await
    }

    /// A series of its metrics; 0 where it has none.
    pub async fn metric(&self, series: &str) -> f64 {
        let text = self.admin("/metrics").await.text();
        metrics::parse(&text).get(&metrics::sorted(series)).copied().unwrap_or(0.0)
    }

    /// Has it read its configuration again; answers as the admin listener does.
    pub async fn reload(&self) -> Response {
        send(&self.admin, vec![Step::Send(request("POST", "/-/reload", &[], Some(b"")))], &Stage::default()).await
    }

    /// Ends it with SIGTERM.
    ///
    /// # Errors
    /// It does not end in time, or not well.
    pub async fn stop(&mut self) -> Result<(), String> {
        self.signal("TERM");
        let ended = tokio::time::timeout(PATIENCE, self.process.wait()).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(status) => Err(format!("the gateway ended with {status:?} after SIGTERM")),
            Err(_) => Err("the gateway does not end after SIGTERM".to_owned()),
        }
    }

    /// Sends it a signal, by its name without `SIG`.
    ///
    /// # Panics
    /// It does not run.
    pub fn signal(&self, name: &str) {
        let status = std::process::Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(status.expect("kill is there").success());
    }

    /// Everything that it has logged.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Its process id.
    ///
    /// # Panics
    /// It has ended and was waited for.
    pub fn pid(&self) -> u32 {
        self.process.id().expect("the gateway runs")
    }
}

/// What a command printed, and how it ended.
pub struct Output {
    /// The exit code; -1 for a signal.
    pub exit: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs `toolgate` with these arguments in a folder, to its end.
///
/// # Errors
/// It cannot be run, or does not end.
pub async fn command(folder: &Folder, args: &[String], env: &[(String, String)]) -> Result<Output, String> {
    let mut command = Command::new(program()?);
    command.args(args).envs(env.iter().cloned()).current_dir(folder.path()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.map_err(|_| format!("{args:?} did not end"))?.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Output { exit: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) })
}
