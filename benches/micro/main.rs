//! The hot pieces, each by itself: time, and how often it allocates. `cargo bench -p toolgate-benches`; a name as an argument picks one.

mod counters;
mod dialects;
mod gate;
mod redact;
mod tokens;
mod veil;
mod wire;

use divan::AllocProfiler;
use mimalloc::MiMalloc;

/// Counts on top of the allocator that the gateway has.
#[global_allocator]
static ALLOCATOR: AllocProfiler<MiMalloc> = AllocProfiler::new(MiMalloc);

fn main() {
    divan::main();
}
