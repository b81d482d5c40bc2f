//! The services that toolgate works with, the real ones: a Redis of a test's own, and a database of its own on the PostgreSQL that
//! `tests/run` started. Where one is not at hand there is none, and the test says so; the variables are described in `README.md`.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::gateway::{Folder, free_addresses};
use crate::stage::PATIENCE;

/// The password of every Redis here: it must be in no log and no answer.
pub const REDIS_PASSWORD: &str = "REDIS-CANARY";

const POSTGRES: &str = "TOOLGATE_TEST_POSTGRES";
const REDIS: &str = "TOOLGATE_TEST_REDIS_SERVER";

/// Whether both are at hand.
pub fn are_at_hand() -> bool {
    redis_program().is_some() && std::env::var_os(POSTGRES).is_some()
}

/// A program that a variable names; or the first of these that is on the PATH.
pub fn program(variable: &str, names: &[&str]) -> Option<PathBuf> {
    let named = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| {
        let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
        let all = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        all.into_iter().find(|path| path.is_file())
    })
}

fn redis_program() -> Option<PathBuf> {
    program(REDIS, &["redis-server", "valkey-server"])
}

/// Says that a test is not played, and why.
#[expect(clippy::print_stderr, reason = "it is what the runner shows")]
pub fn not_played(missing: &str) {
    eprintln!("not played: {missing} is not set, and what it names is not at hand; ./tests/run brings it");
}

/// A Redis (or Valkey) with nothing in it. It goes with the value.
pub struct Redis {
    address: String,
    folder: Folder,
    process: Child,
}

impl Redis {
    /// Starts one; `None`: there is none here.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start() -> Option<Self> {
        if redis_program().is_none() {
            not_played(REDIS);
            return None;
        }
        let (folder, address) = (Folder::new(), free_addresses().0);
        let process = spawn(&folder, &address);
        let redis = Self { address, folder, process };
        redis.wait_ready().await;
        Some(redis)
    }

    /// Where it is, for `store.counters`.
    pub fn url(&self) -> String {
        format!("redis://:{REDIS_PASSWORD}@{}/0", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process id.
    ///
    /// # Panics
    /// It was stopped.
    pub fn pid(&self) -> u32 {
        self.process.id().expect("Redis runs")
    }

    /// Kills it; what it knew is lost.
    pub async fn kill(&mut self) {
        self.process.kill().await.ok();
    }

    /// Starts it at the same address, empty.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start_again(&mut self) {
        self.process = spawn(&self.folder, &self.address);
        self.wait_ready().await;
    }

    async fn wait_ready(&self) {
        let ready = async {
            while TcpStream::connect(&self.address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ready).await.expect("Redis starts");
    }
}

fn spawn(folder: &Folder, address: &str) -> Child {
    let (host, port) = address.rsplit_once(':').unwrap_or_default();
    Command::new(redis_program().expect("it was looked for"))
        .args(["--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--requirepass", REDIS_PASSWORD])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("Redis can be run")
}

/// A database with nothing in it. It goes with the value.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Makes one; `None`: there is no PostgreSQL here.
    ///
    /// # Panics
    /// It cannot be made.
    pub async fn make() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let Ok(server) = std::env::var(POSTGRES) else {
            not_played(POSTGRES);
            return None;
        };
        let name = format!("toolgate_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        on(&server, &format!("CREATE DATABASE {name}")).await.expect("a database for this test");
        Some(Self { server, name })
    }

    /// Where it is, for `store.url`.
    pub fn url(&self) -> String {
        let (address, query) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (server, _) = address.rsplit_once('/').expect("a database in the URL");
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        format!("{server}/{}{query}", self.name)
    }

    /// A connection to it.
    ///
    /// # Panics
    /// It cannot be reached.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.expect("the database can be reached")
    }

    /// Lets nobody in, and sends everybody away who is in; or opens it again.
    ///
    /// # Panics
    /// The server cannot be reached.
    pub async fn shut(&self, shut: bool) {
        let name = &self.name;
        on(&self.server, &format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS {}", !shut)).await.expect("it is altered");
        if shut {
            let all = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
            on(&self.server, &all).await.expect("they are sent away");
        }
    }
}

async fn on(server: &str, statement: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server).await?;
    connection.execute(sqlx::AssertSqlSafe(statement.to_owned())).await?;
    connection.close().await
}

impl Drop for Database {
    /// A server that outlives the tests must not be left full of their databases.
    fn drop(&mut self) {
        let (server, statement) = (self.server.clone(), format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(on(&server, &statement)).ok())
        });
        dropping.join().ok();
    }
}
