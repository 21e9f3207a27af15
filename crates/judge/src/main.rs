//! The program `judge`; its library says what it is.

use std::process::ExitCode;

// The allocator of musl's C library gives each large buffer back to the system, so that every pass over a model has its pages made anew.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    judge::main()
}
