//! The end of a run: each check with its time, the slowest tests and the sum, also as JSON in
//! `target/checks.json`.

use super::outcome::Outcome;
use crate::steps::in_words;
use lanes_support::error::{Error, Result};
use lanes_support::place;
use serde_json::{Value, json};
use std::time::Duration;

/// The number of slowest tests that are shown.
const SLOWEST: usize = 10;

/// One check of a run.
#[derive(Debug)]
pub struct Done {
    pub name: String,
    pub time: Duration,
    pub outcomes: Vec<Outcome>,
}

impl Done {
    fn count(&self, passed: bool) -> usize {
        let same = |outcome: &&Outcome| outcome.passed == passed;
        self.outcomes.iter().filter(same).count()
    }
}

/// Returns the number of failed tests.
pub fn failures(checks: &[Done]) -> usize {
    checks.iter().map(|check| check.count(false)).sum()
}

/// Prints the summary. Tools read its last line.
pub fn show(checks: &[Done]) {
    println!("\nthe slowest tests");
    for outcome in slowest(checks).iter().take(SLOWEST) {
        println!("{:>8.1} s  {}", outcome.time.as_secs_f64(), outcome.name);
    }
    println!("\nthe checks");
    for check in checks {
        println!(
            "{:<12}{:>6} passed{:>6} failed  {:>12}",
            check.name,
            check.count(true),
            check.count(false),
            in_words(check.time)
        );
    }
    let passed: usize = checks.iter().map(|check| check.count(true)).sum();
    let all: Duration = checks.iter().map(|check| check.time).sum();
    println!("in all {}", in_words(all));
    for failed in slowest(checks).iter().filter(|outcome| !outcome.passed) {
        println!("FAILED  {}", failed.name);
    }
    println!("{passed} passed, {} failed", failures(checks));
}

/// Stores the times of all tests in the target folder.
pub fn keep(checks: &[Done]) -> Result<()> {
    let file = place::target().join("checks.json");
    std::fs::write(&file, format!("{:#}\n", as_json(checks))).map_err(Error::file("write", &file))
}

/// Returns the checks in their order, and the tests by their time.
fn as_json(checks: &[Done]) -> Value {
    let seconds = |time: Duration| (time.as_secs_f64() * 1000.0).round() / 1000.0;
    let tests = slowest(checks).into_iter().map(
        |test| json!({"name": test.name, "passed": test.passed, "seconds": seconds(test.time)}),
    );
    json!({
        "checks": totals(checks),
        "tests": tests.collect::<Vec<_>>(),
    })
}

/// Returns each check with its counts and its time in seconds.
pub fn totals(checks: &[Done]) -> Vec<Value> {
    let total = |check: &Done| {
        json!({
            "name": check.name,
            "passed": check.count(true),
            "failed": check.count(false),
            "seconds": check.time.as_secs(),
        })
    };
    checks.iter().map(total).collect()
}

fn slowest(checks: &[Done]) -> Vec<&Outcome> {
    let mut all: Vec<&Outcome> = checks.iter().flat_map(|check| &check.outcomes).collect();
    all.sort_by_key(|outcome| std::cmp::Reverse(outcome.time));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_has_counts_and_sorted_tests() {
        let outcome = |name: &str, passed, seconds| Outcome {
            name: name.to_owned(),
            passed,
            time: Duration::from_secs(seconds),
        };
        let done = |name: &str, outcomes| Done {
            name: name.to_owned(),
            time: Duration::from_secs(9),
            outcomes,
        };
        let checks = [
            done("a", vec![outcome("quick", true, 1)]),
            done(
                "b",
                vec![outcome("slow", true, 7), outcome("fails", false, 2)],
            ),
        ];
        assert_eq!(failures(&checks), 1);
        let record = as_json(&checks);
        let names: Vec<_> = record["tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| test["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["slow", "fails", "quick"]);
        assert_eq!(
            record["checks"][1],
            json!({"name": "b", "passed": 1, "failed": 1, "seconds": 9})
        );
    }
}
