//! The binary `lanes-gateway`: its allocator, and the program from the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Requests are many and small. With the C library's allocator, allocation took a sixth of a
/// worker's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    lanes_gateway::program::main()
}
