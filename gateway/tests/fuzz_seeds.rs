//! The inputs that are kept for the fuzzer, each given to its target once: what was ever a finding stays found.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]
#![allow(unreachable_pub, missing_docs, reason = "the fuzzer has the same module as a library")]

#[path = "../../fuzz/src/targets.rs"]
mod targets;

use std::path::Path;

#[test]
fn every_kept_input_holds_at_its_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    for (name, target) in targets::ALL {
        let mut count = 0;
        for entry in std::fs::read_dir(seeds.join(name)).unwrap_or_else(|error| panic!("the seeds of {name}: {error}")) {
            let path = entry.unwrap().path();
            let data = std::fs::read(&path).unwrap();
            let held = std::panic::catch_unwind(|| target(&data));
            assert!(held.is_ok(), "{name}: {}", path.display());
            count += 1;
        }
        assert!(count > 0, "{name} has no seeds");
    }
}
