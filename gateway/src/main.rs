//! The program: the allocator, the one provider of cryptography, and then what the command line says.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Only the first provider of a process is taken, and there is no other in this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    toolgate_gateway::cli::run()
}
