//! A real PostgreSQL server, and what can be wrong with one.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use toolgate_config::secret::Secret;
use toolgate_config::store::StoreUrl;

use super::house::{FOR_EVER, Folder, HASTE, eventually, ledger, row, rows_in, run};
use crate::store::database::Reading;
use crate::store::{Ledger, PATIENCE, Patience};

/// A database of one test.
pub(super) struct Database {
    /// Of the server's own database.
    admin: String,
    name: String,
    /// The server, where the tests were given none.
    _server: Option<Arc<Server>>,
}

impl Database {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let given = std::env::var("TOOLGATE_TEST_POSTGRES").ok();
        let server = if given.is_none() { Some(Server::shared()) } else { None };
        let admin = given.or_else(|| server.as_ref().map(|server| server.url.clone())).unwrap();
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let database = Self { admin, name, _server: server };
        database.admin(&format!("CREATE DATABASE {}", database.name));
        database
    }

    /// The store in it.
    pub(super) fn store(&self) -> StoreUrl {
        StoreUrl::Postgres(Secret::new(self.url()))
    }

    fn url(&self) -> String {
        let (server, _) = self.admin.rsplit_once('/').unwrap();
        format!("{server}/{}", self.name)
    }

    /// Has the server's owner do something outside of this database.
    fn admin(&self, statement: &str) {
        execute(&self.admin, statement);
    }

    /// Has the server's owner do something in this database.
    fn execute(&self, statement: &str) {
        execute(&self.url(), statement);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.admin(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

/// On a thread of its own: the test may be in a runtime.
fn execute(url: &str, statement: &str) {
    let apart = async || {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    };
    std::thread::scope(|scope| scope.spawn(|| run(apart())).join()).unwrap();
}

/// A server of our own, for all tests that need one at the same time.
struct Server {
    /// A shell that ends the server when nobody writes to it any more: with the last of those tests, or with this process.
    process: Child,
    url: String,
    _folder: Folder,
}

impl Server {
    fn shared() -> Arc<Self> {
        static RUNNING: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut running = RUNNING.lock();
        running.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *running = Arc::downgrade(&server);
            server
        })
    }

    fn start() -> Self {
        let folder = Folder::new();
        let place = folder.path("");
        let programs = programs();
        // The server refuses to be root.
        let is_root = std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0).unwrap();
        let as_user = if is_root { "setpriv --reuid=postgres --regid=postgres --clear-groups" } else { "" };
        let make = "initdb --username=toolgate --auth=trust --encoding=UTF8 --locale=C --no-sync -D data";
        let serve = "postgres -D data -k \"$PWD\" -c listen_addresses= -c fsync=off -c max_connections=100";
        let script = format!(
            "{as_user} {0}/{make} && {{ {as_user} {0}/{serve} & read -r end; kill -INT $!; wait; }} >log 2>&1",
            programs.display()
        );
        // Whoever the server is, it may write here.
        std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&place).stdin(Stdio::piped()).stdout(Stdio::null());
        let process = shell.spawn().unwrap();
        let socket: String = place.to_str().unwrap().bytes().map(|byte| format!("%{byte:02x}")).collect();
        let server = Self { process, url: format!("postgres://toolgate@{socket}/postgres"), _folder: folder };
        run(eventually("the server answers", async || PgConnection::connect(&server.url).await.is_ok()));
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Debian keeps the server's programs off the PATH.
fn programs() -> PathBuf {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|version| version.path().join("bin"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = versions.chain(std::env::split_paths(&paths));
    folders.find(|folder| folder.join("initdb").is_file()).expect(
        "these tests need PostgreSQL: install it (Debian: postgresql), or name a running server in TOOLGATE_TEST_POSTGRES=postgres://…",
    )
}

#[test]
fn a_server_that_cannot_be_used_is_left_as_it_is_and_the_sentence_says_why() {
    let database = Database::new();
    let name = &database.name;
    database.execute("CREATE TABLE carried (id bigint)");
    let read_only = Database::new();
    read_only.admin(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", read_only.name));
    let newer = Database::new();
    run(async { ledger(&newer.store()).close().await });
    newer.execute("INSERT INTO toolgate_schema VALUES (1000, now(), now())");
    let strict = Database::new();
    strict.execute("DROP ROLE IF EXISTS toolgate_guest; CREATE ROLE toolgate_guest LOGIN PASSWORD 'hunter2'; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let latin = Database::new();
    latin.admin(&format!("DROP DATABASE {}", latin.name));
    latin.admin(&format!("CREATE DATABASE {} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0", latin.name));
    let guest = |database: &Database| {
        let (scheme, rest) = database.url().split_once("://").map(|(scheme, rest)| (scheme.to_owned(), rest.to_owned())).unwrap();
        format!("{scheme}://toolgate_guest:hunter2@{}", rest.split_once('@').unwrap().1)
    };
    let none = database.url().replace(name.as_str(), "no_such_database");
    let table = [
        (database.url(), "holds tables that are not toolgate's"),
        (newer.url(), "is of version 1000"),
        (read_only.url(), "is read-only: name the primary server"),
        (guest(&strict), "does not let its user make and write tables"),
        (latin.url(), "has the encoding LATIN1"),
        (none, "has no such database: create it"),
        ("postgres://toolgate:hunter2@127.0.0.1:1/toolgate".to_owned(), "cannot be reached"),
        ("postgres://toolgate:hunter2/toolgate".to_owned(), "names no PostgreSQL server"),
    ];
    for (url, expected) in table {
        let opened = Ledger::open_with(&StoreUrl::Postgres(Secret::new(url)), FOR_EVER, HASTE);
        let unusable = opened.err().unwrap_or_else(|| panic!("it is open, but {expected}"));
        assert!(unusable.0.contains(expected), "{}", unusable.0);
        assert!(!unusable.0.contains("hunter2"), "{}", unusable.0);
    }
    strict.admin("DROP ROLE toolgate_guest");
    // What was refused is as it was.
    database.execute("SELECT id FROM carried");
    strict.execute("CREATE TABLE ledger (id bigint)");
}

#[test]
fn a_database_without_a_ledger_is_not_read() {
    let database = Database::new();
    let unusable = Reading::open(&database.store(), PATIENCE.busy).err().unwrap();
    assert!(unusable.0.contains("holds no ledger yet"), "{}", unusable.0);
    run(async { ledger(&database.store()).close().await });
    Reading::open(&database.store(), PATIENCE.busy).unwrap();
}

#[test]
fn a_lost_connection_is_made_again_and_no_row_is_lost_or_doubled() {
    let database = Database::new();
    run(async {
        let ledger = ledger(&database.store());
        for sent in 1..=5 {
            let tickets: Vec<_> = (0..100).map(|_| ledger.write(row())).collect();
            let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
            database.execute(others);
            ledger.written(tickets[99]).await.unwrap();
            ledger.is_well().unwrap();
            assert_eq!(rows_in(&ledger).await, 100 * sent);
        }
        ledger.close().await;
    });
}

#[test]
fn a_lock_of_somebody_else_delays_rows_and_loses_none() {
    let database = Database::new();
    let patience = Patience { deadline: Duration::from_millis(1500), busy: Duration::from_millis(500), ..HASTE };
    run(async {
        let ledger = Ledger::open_with(&database.store(), FOR_EVER, patience).unwrap();
        ledger.written(ledger.write(row())).await.unwrap();
        let mut somebody = PgConnection::connect(&database.url()).await.unwrap();
        let mut lock = somebody.begin().await.unwrap();
        sqlx::raw_sql("LOCK TABLE ledger IN EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
        let ticket = ledger.write(row());
        let unusable = ledger.written(ticket).await.unwrap_err();
        assert!(unusable.0.contains("does not take rows"), "{}", unusable.0);
        assert!(ledger.is_well().is_err(), "nobody is let in");
        lock.commit().await.unwrap();
        eventually("the row is written", async || ledger.written(ticket).await.is_ok()).await;
        ledger.is_well().unwrap();
        assert_eq!(rows_in(&ledger).await, 2);
        ledger.close().await;
        somebody.close().await.unwrap();
    });
}

#[test]
fn times_are_kept_to_the_microsecond() {
    let database = Database::new();
    run(async {
        let ledger = ledger(&database.store());
        let at = "2026-11-01T12:34:56.123457Z".parse().unwrap();
        ledger.write(crate::store::Row { at, ..row() });
        assert_eq!(ledger.sums(Some(at)).await.unwrap().len(), 1);
        let later = at + jiff::SignedDuration::from_micros(1);
        assert_eq!(ledger.sums(Some(later)).await.unwrap().len(), 0);
        ledger.close().await;
    });
    database.execute("DO $$ BEGIN ASSERT (SELECT at FROM ledger) = '2026-11-01 12:34:56.123457+00'; END $$");
}
