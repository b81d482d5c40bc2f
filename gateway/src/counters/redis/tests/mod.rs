//! The counters in a real server, which each test starts for itself.

mod away;
mod cost;
mod gateways;
mod rules;
mod same;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use toolgate_config::limit::{Per, Unit, Zone};
use toolgate_config::names::KeyName;
use toolgate_config::secret::Secret;
use toolgate_config::store::OnCounterFailure;
use toolgate_policies::counters::{Claim, Denied, Hold, Seed, Taking, Used, Wanted};
use toolgate_policies::limits::{CounterId, Limit, Scope, What};

use super::clock::Clock;
use super::*;
use crate::counters::{Shelf, Unreachable};

/// Names the server that is started, where it is not on the path.
const PROGRAM: &str = "TOOLGATE_TEST_REDIS_SERVER";

/// A server, in a folder of its own. It ends with the test.
struct Host {
    folder: PathBuf,
    child: Child,
}

impl Host {
    async fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = format!("toolgate-redis-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let child = Self::child(&folder);
        let host = Self { folder, child };
        host.wait().await;
        host
    }

    fn child(folder: &PathBuf) -> Child {
        let named = std::env::var(PROGRAM).into_iter();
        let programs: Vec<_> = named.chain(["redis-server", "valkey-server"].map(str::to_owned)).collect();
        let spawn = |program: &String| {
            let mut command = Command::new(program);
            command.current_dir(folder).args(["--port", "0", "--unixsocket", "socket", "--save", ""]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        };
        let missing = || panic!("none of {programs:?} is here: install Redis or Valkey, or name its server in {PROGRAM}");
        programs.iter().find_map(spawn).unwrap_or_else(missing)
    }

    fn url(&self) -> Secret {
        Secret::new(format!("redis+unix://{}/socket", self.folder.display()))
    }

    async fn wait(&self) {
        for _ in 0..500 {
            if self.try_command(&["PING"]).await.is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the Redis server does not start in {}", self.folder.display());
    }

    async fn try_command(&self, words: &[&str]) -> Option<::redis::Value> {
        let client = ::redis::Client::open(self.url().expose()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.ok()?;
        let mut command = ::redis::Cmd::new();
        command.arg(words);
        command.query_async(&mut connection).await.ok()
    }

    async fn command(&self, words: &[&str]) -> ::redis::Value {
        self.try_command(words).await.unwrap_or_else(|| panic!("{words:?}"))
    }

    /// As the power going off would.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let _ = std::fs::remove_file(self.folder.join("socket"));
    }

    async fn again(&mut self) {
        self.child = Self::child(&self.folder);
        self.wait().await;
    }

    /// It is there, and does nothing.
    fn freeze(&self) {
        self.signal("-STOP");
    }

    fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// A gateway that counts here, and has time, for the machine may be busy.
    fn gateway(&self) -> Redis {
        self.gateway_that(OnCounterFailure::Refuse, Terms { patience: Duration::from_secs(20), ..TERMS })
    }

    fn gateway_that(&self, on_failure: OnCounterFailure, terms: Terms) -> Redis {
        Redis::open_with(&self.url(), on_failure, terms, Clock::of_server()).unwrap()
    }

    /// A gateway to whose clock the server listens.
    fn led(&self, now: Timestamp) -> Redis {
        let terms = Terms { lease: Duration::from_secs(1000 * 24 * 3600), patience: Duration::from_secs(20) };
        Redis::open_with(&self.url(), OnCounterFailure::Refuse, terms, Clock::led(now.as_microsecond())).unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn budget(unit: Unit, per: Per) -> What {
    What::Budget(unit, per, Zone::utc())
}

fn limit(what: What, most: u64) -> Arc<Limit> {
    limit_of("shop", what, most)
}

fn limit_of(key: &str, what: What, most: u64) -> Arc<Limit> {
    Arc::new(Limit::new(CounterId { scope: Scope::Key(KeyName::new(key)), what }, most))
}

/// A claim to so much, known exactly.
fn claim(limit: &Arc<Limit>, amount: u64) -> Claim {
    Claim { limit: Arc::clone(limit), fixed: amount * 1000, each: 0, forced: false, rough: false }
}

fn wanted(claims: impl Into<Vec<Claim>>) -> Wanted {
    Wanted { claims: claims.into(), output: 0, least_output: 0, margin: 1 }
}

fn usd(usd: u64) -> Used {
    Used { usd, tokens: 0, requests: 0 }
}

impl Redis {
    /// As a request takes: what a budget does not know is looked up.
    async fn take_from(&self, wanted: &Wanted, ledger: u64) -> Result<Taking, Unreachable> {
        loop {
            match self.take(wanted, Timestamp::now()).await? {
                Taking::Unseeded(unseeded) => {
                    let seeds: Vec<_> = unseeded.into_iter().map(|of| Seed { of, used: ledger }).collect();
                    self.seed(&seeds).await?;
                }
                taking => return Ok(taking),
            }
        }
    }

    /// What is taken and held.
    async fn take_all(&self, wanted: &Wanted, ledger: u64) -> Hold {
        match self.take_from(wanted, ledger).await {
            Ok(Taking::Taken(taken)) => Hold::new(self.port(), taken.held),
            other => panic!("not taken: {other:?}"),
        }
    }

    /// What is used and held.
    async fn stands(&self, budget: &Arc<Limit>) -> (u64, u64) {
        let readings = self.read(std::slice::from_ref(budget), Timestamp::now()).await.unwrap();
        readings.first().map(|reading| (reading.used, reading.held)).unwrap()
    }
}

fn is_taken(taking: Result<Taking, Unreachable>) -> bool {
    match taking.unwrap() {
        Taking::Taken(_) => true,
        Taking::Denied(_) => false,
        Taking::Unseeded(unseeded) => panic!("{unseeded:?}"),
    }
}
