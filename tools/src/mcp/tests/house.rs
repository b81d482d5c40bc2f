//! A hub with servers of tests, and what those have heard.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolgate_config::class::{DataClass, TrustZone};
use toolgate_config::group::Group;
use toolgate_config::mcp::{McpServer, Reach};
use toolgate_config::names::{GroupName, ServerName};
use toolgate_config::secret::Secret;
use toolgate_config::tool::{Effect, McpWork, ToolRule};

use super::super::{Answer, CallError, Hub, Listing, Piece};
use crate::arguments::Arguments;
use crate::net::Net;

/// What nothing in a test takes, unless it hangs.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A server and where it writes down what it hears.
pub(super) struct Fixture {
    pub(super) server: Arc<McpServer>,
    journal: PathBuf,
}

/// A server that behaves as these modes say.
pub(super) fn fixture(modes: &[&str]) -> Fixture {
    fixture_with(modes, LONG, &[])
}

/// The same with a time limit and an environment.
pub(super) fn fixture_with(modes: &[&str], timeout: Duration, env: &[(&str, &str)]) -> Fixture {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let journal =
        std::env::temp_dir().join(format!("toolgate-mcp-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mcp/tests/server.py");
    let args = [script.to_str().unwrap(), journal.to_str().unwrap()].into_iter().chain(modes.iter().copied());
    let reach = Reach::Stdio {
        command: "python3".to_owned(),
        args: args.map(Secret::new).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect(),
    };
    Fixture { server: Arc::new(described("fixture", reach, timeout)), journal }
}

pub(super) fn described(name: &str, reach: Reach, timeout: Duration) -> McpServer {
    let group = Group {
        name: GroupName::new("g"),
        enabled: true,
        data_class: None,
        personal: false,
        egress: Vec::new(),
        trust_zone: TrustZone::Private,
    };
    let rule = ToolRule {
        enabled: true,
        effect: Effect::NonIdempotentWrite,
        requires_admin: false,
        scopes: BTreeSet::new(),
        requires_approval: false,
        data_class: DataClass::Public,
        personal: false,
        timeout,
        max_result: 50_000,
        cache: None,
        price: None,
        redacted: true,
    };
    McpServer { name: ServerName::new(name), reach, group: Arc::new(group), timeout, rule, only: None }
}

impl Fixture {
    /// All that it has heard so far, a line each, over all its lives.
    pub(super) fn heard(&self) -> Vec<String> {
        let journal = std::fs::read_to_string(&self.journal).unwrap_or_default();
        journal.lines().map(str::to_owned).collect()
    }

    /// How often it has heard something that begins so.
    pub(super) fn count(&self, begins: &str) -> usize {
        self.heard().iter().filter(|line| line.starts_with(begins)).count()
    }

    /// Waits until it has heard something that begins so, as often as that.
    pub(super) async fn hears(&self, begins: &str, times: usize) {
        until(begins, || self.count(begins) >= times).await;
    }

    /// The numbers of the processes that it has told of under this word.
    pub(super) fn processes(&self, word: &str) -> Vec<u32> {
        self.heard().iter().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
    }

    /// A call of one of its tools.
    pub(super) fn work(&self, tool: &str) -> McpWork {
        McpWork { server: Arc::clone(&self.server), tool: tool.to_owned() }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.journal);
        let _ = std::fs::remove_file(self.journal.with_extension("died"));
    }
}

/// Waits until it is so.
pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let due = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < due, "never: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A hub that keeps these, each asked once.
pub(super) async fn hub(fixtures: &[&Fixture]) -> Arc<Hub> {
    let hub = Hub::new(Arc::new(Net::new()));
    let servers: Vec<Arc<McpServer>> = fixtures.iter().map(|fixture| Arc::clone(&fixture.server)).collect();
    hub.serve(&servers);
    hub.first_look(Instant::now() + LONG).await;
    hub
}

/// The first listing.
pub(super) fn listing(hub: &Hub) -> Listing {
    hub.listings().remove(0)
}

/// Calls a tool and gives it plenty of time.
pub(super) async fn call(hub: &Hub, work: &McpWork, arguments: &str, effect: Effect) -> Result<Answer, CallError> {
    hub.call(work, &Arguments::parse(arguments).unwrap(), effect, Instant::now() + LONG).await
}

/// The answer's text.
pub(super) fn text(answer: Result<Answer, CallError>) -> String {
    let answer = answer.unwrap();
    answer.pieces.iter().map(Piece::as_str).collect::<Vec<_>>().join("\n")
}

/// Whether there is such a process, a dead one that nobody has buried included.
pub(super) fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}
