//! The outcome of a test: its name, whether it passed, its duration.

use std::process::Command;
use std::time::{Duration, Instant};

/// One test, or a check that counts as one test.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub name: String,
    pub passed: bool,
    pub time: Duration,
}

impl Outcome {
    /// Returns the outcome of a test that could not be started.
    pub fn failure(name: &str) -> Outcome {
        Outcome {
            name: name.to_owned(),
            passed: false,
            time: Duration::ZERO,
        }
    }
}

/// Runs a program that counts as one test. Its output goes to the terminal.
pub fn one(name: &str, command: &mut Command) -> Outcome {
    let start = Instant::now();
    let status = command.status();
    if let Err(error) = &status {
        println!("cannot run {}: {error}", command.get_program().display());
    }
    Outcome {
        name: name.to_owned(),
        passed: status.is_ok_and(|status| status.success()),
        time: start.elapsed(),
    }
}
