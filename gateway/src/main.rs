//! The binary `lanes-gateway`: its allocator, and the program of the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Requests are many and small: with the C library's allocator a sixth of a worker's time went into it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    lanes_gateway::program::main()
}
