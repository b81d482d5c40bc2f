//! What an operator meets: the example, what files mean, and the exact words of every fault.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod example;
mod faults_of_form;
mod faults_of_keys;
mod faults_of_mcp;
mod faults_of_models;
mod faults_of_money;
mod faults_of_prices;
mod faults_of_redaction;
mod faults_of_server;
mod faults_of_store;
mod faults_of_tools;
mod meaning;
mod meaning_of_mcp;
mod meaning_of_money;

use std::path::Path;

use toolgate_config::Config;
use toolgate_config::check::{Source, read};

/// The environment of every test: `EMPTY` is empty, `BRACES` looks like a parameter, `NUMBER` is one, and `BAD` fits nowhere.
fn env(name: &str) -> Option<String> {
    let value = match name {
        "SECRET" => "s3cret",
        "EMPTY" => "",
        "BRACES" => "{id}",
        "NUMBER" => "7",
        "HOST" => "db.internal",
        "BAD" => "s3cret:\n",
        "AMPERSAND" => "a&b=c%41+#",
        "ORIGIN" => "https://shop.example.org/base?from=env",
        _ => return None,
    };
    Some(value.to_owned())
}

fn loaded(text: &str) -> Result<Config, String> {
    read(&Source { path: Path::new("t.yaml"), text, env: &env })
        .map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
}

/// The configuration that a text means.
#[track_caller]
fn accepted(text: &str) -> Config {
    loaded(text).unwrap_or_else(|faults| panic!("refused:\n{text}\n{faults}"))
}

/// Each case is a text and its faults, a line each, without the file's name.
#[track_caller]
fn refused<const N: usize>(cases: [(&str, &str); N]) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let seen = loaded(text).err().unwrap_or_else(|| "nothing\n".to_owned()).replace("t.yaml:", "");
        assert!(!seen.contains("s3cret"), "a fault prints a secret: {seen}");
        if seen.trim_end() != expected.trim() {
            wrong += &format!("-----\n{text}\n  expected:\n{}\n  seen:\n{seen}\n", expected.trim());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
