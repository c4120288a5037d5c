//! `lanes-bench`: see the library for a description.

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
