//! `lanes-bench`: see the library for what it does and how.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    lanes_bench::interrupt::end_children_when_interrupted();
    match lanes_bench::command::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
