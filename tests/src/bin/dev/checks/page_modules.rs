//! The check `page`: the modules of the gateway's page that need no browser, tested by Node.

use super::outcome::{Outcome, one};
use lanes_support::error::{Error, Result};
use lanes_support::place;
use std::process::Command;

/// Runs the tests in `tests/page`.
pub fn check() -> Result<Vec<Outcome>> {
    let folder = place::workspace().join("tests/page");
    let entries = std::fs::read_dir(&folder).map_err(Error::file("list", &folder))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut command = Command::new("node");
    Ok(vec![one(
        "the page's modules",
        command.arg("--test").args(files),
    )])
}
