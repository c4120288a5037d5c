//! The tests in Rust. nextest runs each in a process of its own, several at a time, and ends one that hangs: `.config/nextest.toml`
//! says how many and how long. It comes as a wheel, so that it need not be built.
//!
//! The tests are built in the release profile, so that they share what `make run` has built of other people's crates; our own are built
//! with assertions and checks of overflow (`tests/profile.toml`).

use super::junit;
use super::outcome::{Outcome, one};
use crate::product::{cargo, in_workspace};
use crate::python_env::tool;
use crate::steps::step;
use lanes_support::error::Result;
use lanes_support::process::run_visibly;
use lanes_support::{budget, place, seed};
use std::process::Command;

/// The arguments by which Cargo and nextest build the tests of all our crates.
const BUILD: [&str; 5] = [
    "--locked",
    "--release",
    "--workspace",
    "--config",
    "tests/profile.toml",
];

/// All tests with small budgets, but for those that need what only a long run builds.
pub fn short() -> Result<Vec<Outcome>> {
    let mut command = run("default")?;
    let seed = seed::of_the_day().to_string();
    // The seeds of our own random tests and of the property tests.
    command
        .env(seed::VARIABLE, &seed)
        .env("PROPTEST_RNG_SEED", seed);
    let mut outcomes = outcomes(&mut command, "default")?;
    outcomes.push(examples_in_documentation());
    Ok(outcomes)
}

/// All tests with large budgets and fresh seeds.
pub fn long() -> Result<Vec<Outcome>> {
    let mut outcomes = long_of("all()")?;
    outcomes.push(examples_in_documentation());
    Ok(outcomes)
}

/// The tests that a filter of nextest names, with large budgets and fresh seeds.
pub fn long_of(filter: &str) -> Result<Vec<Outcome>> {
    let mut command = run("long")?;
    command
        .args(["--filterset", filter])
        .env(budget::VARIABLE, budget::LONG);
    outcomes(&mut command, "long")
}

/// `nextest run` with a profile of its configuration, everything built.
fn run(profile: &str) -> Result<Command> {
    let program = tool("cargo-nextest")?;
    let command = || {
        let mut command = in_workspace(&program);
        command
            .args(["nextest", "run"])
            .args(BUILD)
            .args(["--profile", profile]);
        command
    };
    step("building the tests", || {
        run_visibly(command().arg("--no-run"))
    })?;
    Ok(command())
}

/// Runs nextest, which writes a report for each profile of its configuration.
fn outcomes(command: &mut Command, profile: &str) -> Result<Vec<Outcome>> {
    let report = place::target().join(format!("nextest/{profile}/junit.xml"));
    junit::run("nextest", command, &report)
}

/// nextest leaves the examples in documentation to Cargo.
fn examples_in_documentation() -> Outcome {
    let mut command = cargo();
    command.args(["test", "--doc"]).args(BUILD);
    one("examples in documentation", &mut command)
}
