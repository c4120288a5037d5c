//! What became of a test: its name, whether it passed, how long it took.

use std::process::Command;
use std::time::{Duration, Instant};

/// One test, or a check that is one test as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub name: String,
    pub passed: bool,
    pub time: Duration,
}

impl Outcome {
    /// A test that could not even begin.
    pub fn failure(name: &str) -> Outcome {
        Outcome {
            name: name.to_owned(),
            passed: false,
            time: Duration::ZERO,
        }
    }
}

/// A program whose success is one test. What it says goes to the terminal.
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
