//! The tests in Rust. nextest runs each in a process of its own, several at a time, and ends one that hangs: `.config/nextest.toml`
//! says how many and how long. It comes as a wheel, since building it would take longer than the tests of a day.
//!
//! The tests are built in the release profile, so that they share what `make run` has built of other people's crates; our own are built
//! with assertions and checks of overflow (`tests/profile.toml`).

use super::junit;
use super::outcome::{Outcome, one};
use crate::product::cargo;
use crate::python_env::tool;
use crate::steps::step;
use lanes_tests::error::{Error, Result};
use lanes_tests::process::run_visibly;
use lanes_tests::{budget, place, seed};
use std::path::Path;
use std::process::Command;

/// What is built: our own crates with all their tests.
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
    // Ours, and that of the property tests.
    command
        .env(seed::VARIABLE, &seed)
        .env("PROPTEST_RNG_SEED", seed);
    let mut outcomes = outcomes(&mut command, "default")?;
    outcomes.push(examples_in_documentation());
    Ok(outcomes)
}

/// All tests with large budgets and fresh seeds.
pub fn long() -> Result<Vec<Outcome>> {
    let mut command = run("long")?;
    command.env(budget::VARIABLE, budget::LONG);
    outcomes(&mut command, "long")
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
        let mut command = in_place_of(&cargo(), &program);
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

/// A command with the folder and environment of another.
fn in_place_of(other: &Command, program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some(folder) = other.get_current_dir() {
        command.current_dir(folder);
    }
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Runs nextest and reads its report.
fn outcomes(command: &mut Command, profile: &str) -> Result<Vec<Outcome>> {
    let report = place::target().join(format!("nextest/{profile}/junit.xml"));
    // That of an earlier run would be taken for ours, should nextest not come to write one.
    if report.exists() {
        std::fs::remove_file(&report).map_err(Error::file("remove", &report))?;
    }
    let status = one("nextest", command);
    let mut outcomes = junit::read(&report)?;
    if !status.passed && outcomes.iter().all(|outcome| outcome.passed) {
        outcomes.push(status);
    }
    Ok(outcomes)
}

/// nextest leaves the examples in documentation to Cargo.
fn examples_in_documentation() -> Outcome {
    let mut command = cargo();
    command.args(["test", "--doc"]).args(BUILD);
    one("examples in documentation", &mut command)
}
