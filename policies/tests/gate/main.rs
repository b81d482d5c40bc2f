//! The gate over whole configurations, as files that an operator would write.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails should say so loudly")]

mod door;
mod limits;
mod verdicts;

use std::path::Path;

use toolgate_config::Config;
use toolgate_config::check::{Source, read};
use toolgate_policies::gate::hash_of;

/// What a file means. It must have no fault.
fn config(text: &str) -> Config {
    let source = Source { path: Path::new("toolgate.yaml"), text, env: &|_| None };
    read(&source).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"))
}

/// The digest of a secret, as a file has it.
fn hash(secret: &str) -> String {
    hash_of(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}
