//! Where the tests keep their ledgers, and the rows they write.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use toolgate_config::check::{Source, read};
use toolgate_config::money::NanoUsd;
use toolgate_config::price::Billed;
use toolgate_config::store::StoreUrl;

use crate::store::{Ledger, PATIENCE, Patience, Row, What};
use crate::targets::{Target, Targets};
use crate::trace::TraceId;

/// Long enough to keep every row.
pub(in crate::store) const FOR_EVER: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// So that nothing takes long.
pub(in crate::store) const HASTE: Patience = Patience {
    deadline: Duration::from_millis(300),
    busy: Duration::from_millis(100),
    retry: Duration::from_millis(20),
    closing: Duration::from_millis(500),
};

/// A folder that goes with the test.
pub(in crate::store) struct Folder(PathBuf);

impl Folder {
    pub(in crate::store) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("toolgate-store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(in crate::store) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A ledger of this store that keeps its rows.
pub(in crate::store) fn ledger(url: &StoreUrl) -> Ledger {
    Ledger::open_with(url, FOR_EVER, PATIENCE).unwrap_or_else(|unusable| panic!("{}", unusable.0))
}

/// Whom the rows went to.
pub(in crate::store) fn target() -> Arc<Target> {
    let file = r#"
providers: { openai: { kind: openai_compatible, base_url: "http://127.0.0.1:1" } }
models: { support: { provider: openai, upstream_model: gpt-4o-mini } }
"#;
    let config = read(&Source { path: std::path::Path::new("toolgate.yaml"), text: file, env: &|_| None }).unwrap();
    Arc::clone(Targets::of(&config, &config.model("support").unwrap()).current())
}

/// A model call: one request, 15 tokens, 600 nano-dollars.
pub(in crate::store) fn row() -> Row {
    Row {
        at: Timestamp::now(),
        trace: TraceId::random(),
        round: 1,
        key: "shop".into(),
        user: None,
        model: "support".into(),
        what: What::Model { target: target(), attempt: 1 },
        tokens: Billed { fresh: 8, cached: 2, cache_write: 0, output: 5 },
        reasoning: 3,
        estimated: false,
        cost: Some(NanoUsd(600)),
        reported: None,
        outcome: "ok",
        requests: 1,
    }
}

/// A tool call that costs 2,000 nano-dollars.
pub(in crate::store) fn tool_row() -> Row {
    Row {
        what: What::Tool { name: Cow::Borrowed("get_order") },
        tokens: Billed::default(),
        reasoning: 0,
        cost: Some(NanoUsd(2000)),
        requests: 0,
        ..row()
    }
}

/// How many rows a ledger holds, or has held.
pub(in crate::store) async fn rows_in(ledger: &Ledger) -> u64 {
    ledger.sums(None).await.unwrap().iter().map(|sum| sum.calls).sum()
}

/// Runs a test that waits.
pub(in crate::store) fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

/// Returns when the condition holds.
pub(in crate::store) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

/// Each behaviour is a test with every database.
macro_rules! with_every_database {
    ($($behaviour:ident),* $(,)?) => {
        mod in_a_file {
            $(#[test]
            fn $behaviour() {
                let folder = super::Folder::new();
                super::run(super::$behaviour(super::StoreUrl::Sqlite(folder.path("toolgate.db"))));
            })*
        }

        #[cfg(feature = "postgres")]
        mod on_a_server {
            $(#[test]
            fn $behaviour() {
                let database = super::super::postgres::Database::new();
                super::run(super::$behaviour(database.store()));
            })*
        }
    };
}

/// The same, and in the process: for what is kept there where there is no store.
macro_rules! wherever {
    ($($behaviour:ident),* $(,)?) => {
        mod in_the_process {
            $(#[test]
            fn $behaviour() {
                super::run(super::$behaviour(super::StoreUrl::None));
            })*
        }

        $crate::store::tests::house::with_every_database!($($behaviour),*);
    };
}

pub(in crate::store::tests) use {wherever, with_every_database};
