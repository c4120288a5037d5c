//! `dev test` and `dev test-long`: the checks, one after the other, and what became of them.
//!
//! | module | one thing |
//! |---|---|
//! | `outcome` | what became of a test: its name, whether it passed, how long it took |
//! | `rust_tests` | the tests in Rust, run by nextest |
//! | `suites` | the suites of SQL and of concurrent sessions, run by PostgreSQL's own programs |
//! | `images` | the container images' files, read by the programs that they are for |
//! | `containers` | in a long run: the images built, started and asked |
//! | `python_client` | the Python client's types and tests |
//! | `long` | what only a long run has: random tests by time, sanitizers, fuzzing; and its record |
//! | `junit`, `watch` | reports of test runners, read from a file or as they print them |
//! | `summary` | the end of a run: each check with its time, the slowest tests, the sum |
//!
//! A failed check does not stop the next ones, except that nothing can be checked without the set-up.

mod containers;
mod images;
mod junit;
mod long;
mod outcome;
mod python_client;
mod rust_tests;
mod suites;
mod summary;
mod watch;

use crate::packages::Purpose;
use crate::product::{cargo, set_up};
use crate::steps;
use lanes_support::error::{Error, Result};
use lanes_support::seed;
use outcome::{Outcome, one};
use std::time::Instant;
use summary::Done;

pub use long::run as run_long;

/// A check by name.
struct Check {
    name: &'static str,
    needs_set_up: bool,
    run: fn() -> Result<Vec<Outcome>>,
}

/// In this order: what is quickest to fail comes first.
const CHECKS: [Check; 7] = [
    Check {
        name: "fmt",
        needs_set_up: false,
        run: formatting,
    },
    Check {
        name: "clippy",
        needs_set_up: true,
        run: lints,
    },
    Check {
        name: "rust",
        needs_set_up: true,
        run: rust_tests::short,
    },
    Check {
        name: "regress",
        needs_set_up: true,
        run: suites::regress,
    },
    Check {
        name: "isolation",
        needs_set_up: true,
        run: suites::isolation,
    },
    Check {
        name: "images",
        needs_set_up: true,
        run: images::files,
    },
    Check {
        name: "python",
        needs_set_up: true,
        run: python_client::check,
    },
];

/// Runs the named checks, which may be of a long run, or all of a short one; fails if any test failed.
pub fn run(names: &[String]) -> Result<()> {
    let all = || CHECKS.iter().chain(&long::CHECKS);
    if let Some(unknown) = names
        .iter()
        .find(|name| !all().any(|check| check.name == name.as_str()))
    {
        let known: Vec<&str> = all().map(|check| check.name).collect();
        return Err(Error::Other(format!(
            "there is no check `{unknown}`; there are: {}",
            known.join(", ")
        )));
    }
    let is_named = |check: &&Check| names.iter().any(|name| name == check.name);
    let chosen: Vec<&Check> = match names {
        [] => CHECKS.iter().collect(),
        _ => all().filter(is_named).collect(),
    };
    let is_long = long::CHECKS.iter().any(|check| is_named(&check));
    let mut done = Vec::new();
    if chosen.iter().any(|check| check.needs_set_up) {
        done.push(set_up_for(if is_long {
            Purpose::TestLong
        } else {
            Purpose::Test
        })?);
    }
    println!("random tests begin with {}", seed::of_the_day());
    for check in chosen {
        done.push(checked(check.name, check.run));
    }
    finish(&done)
}

/// What every check but formatting stands on. Its time is told beside theirs.
fn set_up_for(purpose: Purpose) -> Result<Done> {
    let start = Instant::now();
    set_up(purpose)?;
    Ok(Done {
        name: "set-up".to_owned(),
        time: start.elapsed(),
        outcomes: Vec::new(),
    })
}

/// Runs one check. That it cannot be run is a failure of its name.
fn checked(name: &str, run: impl FnOnce() -> Result<Vec<Outcome>>) -> Done {
    let start = Instant::now();
    let outcomes = steps::step(name, || {
        Ok(run().unwrap_or_else(|error| {
            println!("{error}");
            vec![Outcome::failure(name)]
        }))
    });
    Done {
        name: name.to_owned(),
        time: start.elapsed(),
        outcomes: outcomes.unwrap_or_default(),
    }
}

/// Shows and keeps what became of the checks; ends the program with status 1 if a test failed.
fn finish(done: &[Done]) -> Result<()> {
    summary::keep(done)?;
    summary::show(done);
    match summary::failures(done) {
        0 => Ok(()),
        _ => std::process::exit(1),
    }
}

fn formatting() -> Result<Vec<Outcome>> {
    let mut command = cargo();
    command.args(["fmt", "--all", "--", "--check", "-l"]);
    Ok(vec![one("formatting", &mut command)])
}

/// In the profile of everything else, so that build scripts and macros are built once.
fn lints() -> Result<Vec<Outcome>> {
    let mut command = cargo();
    command.args(["clippy", "--locked", "--release", "--workspace"]);
    command.args(["--all-targets", "--", "-D", "warnings"]);
    Ok(vec![one("lints", &mut command)])
}
