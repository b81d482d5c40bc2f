//! The public conformance suite, which nobody here wrote, with toolgate as the client that it tries. Of its scenarios for clients those are
//! played that need neither a login nor a person: `docs/mcp.md` lists the others.

use std::path::Path;
use std::process::Command;

use toolgate_tests::gateway::{Folder, program};

use crate::installed;

#[test]
fn initialize() {
    passes("initialize");
}

#[test]
fn tools_call() {
    passes("tools_call");
}

#[test]
fn sse_retry() {
    passes("sse-retry");
}

fn passes(scenario: &str) {
    let folder = Folder::new();
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/conformance.py");
    let output = Command::new(installed().join("bin/conformance"))
        .args(["client", "--command", &format!("python3 {}", client.display()), "--scenario", scenario, "--output-dir"])
        .arg(folder.path())
        .env("TOOLGATE_BIN", program().expect("the gateway"))
        .output()
        .expect("the suite starts");
    assert!(
        output.status.success(),
        "{scenario}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}
