//! The suites of SQL and of concurrent sessions, run by PostgreSQL's own programs `pg_regress` and `pg_isolation_regress`.

use super::outcome::Outcome;
use super::watch::watched;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::{place, process};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The suite of SQL.
pub fn regress() -> Result<Vec<Outcome>> {
    suite("regress", "regress/pg_regress")
}

/// The suite of concurrent sessions.
pub fn isolation() -> Result<Vec<Outcome>> {
    suite("isolation", "isolation/pg_isolation_regress")
}

/// Runs a suite of `tests/<name>` against a private cluster, and shows the differences.
fn suite(name: &str, runner: &str) -> Result<Vec<Outcome>> {
    let input = place::workspace().join("tests").join(name);
    let schedule = input.join("schedule");
    let cluster = Cluster::builder(&format!("suite_{name}")).start()?;
    let output = place::target().join("suite").join(name);
    if output.exists() {
        std::fs::remove_dir_all(&output).map_err(Error::file("empty", &output))?;
    }
    place::make_folder(&output)?;

    let mut command = Command::new(runner_program(runner)?);
    command.arg(format!("--inputdir={}", input.display()));
    command.arg(format!("--outputdir={}", output.display()));
    command.arg(format!("--schedule={}", schedule.display()));
    command.arg(format!("--bindir={}", cluster.programs().display()));
    command.arg(format!("--host={}", cluster.socket().display()));
    command.arg(format!("--port={}", cluster.port()));
    command.args([
        "--user=postgres",
        "--dbname=suite",
        "--load-extension=lanes",
    ]);
    let mut outcomes = watched(name, &mut command, outcome_in)?;
    if outcomes.iter().any(|outcome| !outcome.passed) {
        show_differences(&output);
        println!(
            "the end of {}:\n{}",
            cluster.log().display(),
            process::tail(cluster.log())
        );
    }
    for outcome in &mut outcomes {
        outcome.name = format!("{name} {}", outcome.name);
    }
    Ok(outcomes)
}

/// The outcome in a line such as `test insert                ... ok           23 ms` or `… FAILED       12 ms`.
fn outcome_in(line: &str) -> Option<Outcome> {
    let (test, verdict) = line.split_once("... ")?;
    let passed = match verdict.split_whitespace().next()? {
        "ok" => true,
        "FAILED" => false,
        _ => return None,
    };
    let milliseconds = verdict
        .strip_suffix("ms")
        .and_then(|text| text.split_whitespace().next_back()?.parse().ok());
    Some(Outcome {
        name: test.split_whitespace().next_back()?.to_owned(),
        passed,
        time: Duration::from_millis(milliseconds.unwrap_or(0)),
    })
}

fn runner_program(runner: &str) -> Result<PathBuf> {
    let program = place::extension_libraries()
        .join("pgxs/src/test")
        .join(runner);
    if program.exists() {
        return Ok(program);
    }
    Err(Error::Missing {
        what: program.display().to_string(),
        remedy: "run `make setup`",
    })
}

fn show_differences(output: &Path) {
    for file in ["regression.diffs", "output_iso/regression.diffs"] {
        if let Ok(bytes) = std::fs::read(output.join(file)) {
            println!("{}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_from_what_the_runners_print() {
        let outcome = |name: &str, passed, milliseconds| {
            Some(Outcome {
                name: name.to_owned(),
                passed,
                time: Duration::from_millis(milliseconds),
            })
        };
        let insert = outcome("insert", true, 23);
        assert_eq!(
            outcome_in("test insert                       ... ok           23 ms"),
            insert
        );
        assert_eq!(
            outcome_in("     insert                       ... ok           23 ms"),
            insert
        );
        assert_eq!(
            outcome_in("test copy                         ... FAILED      123 ms"),
            outcome("copy", false, 123)
        );
        assert_eq!(
            outcome_in("test copy ... FAILED (test process exited with exit code 2)  5 ms"),
            outcome("copy", false, 5)
        );
        assert_eq!(
            outcome_in("============== creating database \"suite\" =============="),
            None
        );
    }
}
