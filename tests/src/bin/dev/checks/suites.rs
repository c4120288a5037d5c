//! The suites of SQL and of concurrent sessions, run by PostgreSQL's own programs `pg_regress` and
//! `pg_isolation_regress`.

use super::outcome::Outcome;
use super::watch::watched;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::installation::{DEFAULT_MAJOR, Postgres};
use lanes_support::{place, process};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs files of the SQL suite, or all of them.
pub fn regress(tests: &[String]) -> Result<Vec<Outcome>> {
    run(&REGRESS, tests, &Postgres::chosen()?)
}

/// Runs files of the suite of concurrent sessions, or all of them.
pub fn isolation(tests: &[String]) -> Result<Vec<Outcome>> {
    run(&ISOLATION, tests, &Postgres::chosen()?)
}

/// Runs both suites on an installation of PostgreSQL.
pub fn all_on(postgres: &Postgres) -> Result<Vec<Outcome>> {
    let mut outcomes = run(&REGRESS, &[], postgres)?;
    outcomes.extend(run(&ISOLATION, &[], postgres)?);
    Ok(outcomes)
}

/// Returns the names of the SQL suite's files.
pub fn regress_tests() -> Result<Vec<String>> {
    REGRESS.tests()
}

/// Returns the names of the files of the suite of concurrent sessions.
pub fn isolation_tests() -> Result<Vec<String>> {
    ISOLATION.tests()
}

/// A suite of `tests/<name>`.
struct Suite {
    name: &'static str,
    /// PostgreSQL's program that runs it, below the folder of PostgreSQL's test programs.
    runner: &'static str,
    /// Whether its output has plans.
    prints_plans: bool,
    /// The folder and the ending of its files.
    files: (&'static str, &'static str),
}

const REGRESS: Suite = Suite {
    name: "regress",
    runner: "regress/pg_regress",
    prints_plans: true,
    files: ("sql", "sql"),
};
const ISOLATION: Suite = Suite {
    name: "isolation",
    runner: "isolation/pg_isolation_regress",
    prints_plans: false,
    files: ("specs", "spec"),
};

impl Suite {
    fn folder(&self) -> PathBuf {
        place::workspace().join("tests").join(self.name)
    }

    fn schedule(&self) -> PathBuf {
        self.folder().join("schedule")
    }

    /// Returns the tests in the order of the schedule.
    fn tests(&self) -> Result<Vec<String>> {
        let file = self.schedule();
        let text = std::fs::read_to_string(&file).map_err(Error::file("read", &file))?;
        Ok(tests_in(&text))
    }
}

/// Returns the tests of a schedule, which are listed in lines that begin with `test:`.
fn tests_in(schedule: &str) -> Vec<String> {
    let lines = schedule.lines();
    let names = lines.filter_map(|line| line.strip_prefix("test:"));
    names
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

/// Runs a suite, or single tests of it, against a private cluster, and shows the differences.
fn run(suite: &Suite, tests: &[String], postgres: &Postgres) -> Result<Vec<Outcome>> {
    let name = suite.name;
    // A snapshot of autovacuum's would keep rows open that a test seals, and its ANALYZE would change plans.
    let mut builder = Cluster::builder(&format!("suite_{name}"))
        .postgres(postgres)
        .setting("autovacuum", "off");
    if postgres.major != DEFAULT_MAJOR {
        // Plans of ordered aggregates then have no Sort, as in the default version.
        builder = builder.setting("enable_presorted_aggregate", "off");
    }
    let mut cluster = builder.start()?;
    let output = place::target().join("suite").join(name_on(name, postgres));
    if output.exists() {
        std::fs::remove_dir_all(&output).map_err(Error::file("empty", &output))?;
    }
    place::make_folder(&output)?;
    let mut command = command(suite, &cluster, &output)?;
    match tests {
        [] => command.args(possible(suite.tests()?, suite, &cluster)?),
        _ => command.args(tests),
    };
    let mut outcomes = watched(name, &mut command, outcome_in)?;
    if outcomes.iter().any(|outcome| !outcome.passed) {
        show_differences(&output);
        println!(
            "the end of {}:\n{}",
            cluster.log().display(),
            process::tail(cluster.log())
        );
        cluster.keep_if_requested()?;
    }
    for outcome in &mut outcomes {
        outcome.name = format!("{} {}", name_on(name, postgres), outcome.name);
    }
    Ok(outcomes)
}

/// Returns the command that runs a suite's tests, without their names.
///
/// The runner is always that of the default installation: it works with all servers, and prints the
/// answers of concurrent sessions in one way.
fn command(suite: &Suite, cluster: &Cluster, output: &Path) -> Result<Command> {
    let mut command = Command::new(Postgres::debian().test_program(suite.runner)?);
    command.arg(format!("--inputdir={}", suite.folder().display()));
    command.arg(format!("--outputdir={}", output.display()));
    command.arg(format!("--bindir={}", cluster.programs().display()));
    command.arg(format!("--host={}", cluster.socket().display()));
    command.arg(format!("--port={}", cluster.port()));
    command.args([
        "--user=postgres",
        "--dbname=suite",
        "--load-extension=lanes",
    ]);
    // The expected outputs are those of the default installation, which needs no launcher.
    if suite.prints_plans && cluster.programs() != Postgres::debian().programs {
        let program = std::env::current_exe().map_err(Error::file("find", "this program"))?;
        // The build of the tests may have replaced this program since it started.
        let path = program.display().to_string();
        let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
        command.arg(format!("--launcher='{path}' plan-text"));
    }
    Ok(command)
}

/// The line in a test's file that names what it requires of the server: `-- requires: icu`, or a major version:
/// `-- requires: before 17`, `-- requires: from 17`.
const REQUIRES: &str = "-- requires: ";

/// Returns the tests without those that require what the server was built without.
fn possible(tests: Vec<String>, suite: &Suite, cluster: &Cluster) -> Result<Vec<String>> {
    let mut client = cluster.connect("postgres")?;
    let version = cluster.scalar("postgres", "SHOW server_version_num")?;
    let major = version.parse().unwrap_or(0) / 10_000;
    let mut has = |feature: &str| match feature {
        "icu" => client
            .query("SELECT FROM pg_collation WHERE collname = 'und-x-icu'", &[])
            .is_ok_and(|rows| !rows.is_empty()),
        "contrib" => client
            .query(
                "SELECT FROM pg_available_extensions WHERE name = 'citext'",
                &[],
            )
            .is_ok_and(|rows| !rows.is_empty()),
        "xml" => client.batch_execute("SELECT '<a/>'::xml").is_ok(),
        _ => is_of_version(feature, major),
    };
    let (folder, ending) = suite.files;
    let mut chosen = Vec::new();
    for test in tests {
        let file = suite.folder().join(folder).join(format!("{test}.{ending}"));
        let text = std::fs::read_to_string(&file).map_err(Error::file("read", &file))?;
        let missing = text
            .lines()
            .filter_map(|line| line.strip_prefix(REQUIRES))
            .find(|feature| !has(feature));
        match missing {
            Some(feature) => {
                println!("{test} is left out: the server is not one that it requires: {feature}")
            }
            None => chosen.push(test),
        }
    }
    Ok(chosen)
}

/// Whether a major version is one that a requirement names: `before 17` or `from 17`.
fn is_of_version(requirement: &str, major: u32) -> bool {
    let parts = requirement.split_once(' ');
    let limit = |text: &str| text.parse::<u32>().ok();
    match parts.and_then(|(word, text)| Some((word, limit(text)?))) {
        Some(("before", limit)) => major < limit,
        Some(("from", limit)) => major >= limit,
        _ => false,
    }
}

/// Parses a line such as `test insert                ... ok           23 ms` or `… FAILED       12
/// ms`.
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

/// Returns the name of a suite on an installation: with the major version, unless that is the
/// default one.
fn name_on(suite: &str, postgres: &Postgres) -> String {
    match postgres.major.as_str() {
        DEFAULT_MAJOR => suite.to_owned(),
        major => format!("{suite}-{major}"),
    }
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
    use std::collections::BTreeSet;

    #[test]
    fn a_schedule_lists_every_file_of_its_suite() {
        for suite in [&REGRESS, &ISOLATION] {
            let (folder, ending) = suite.files;
            let files = std::fs::read_dir(suite.folder().join(folder)).unwrap();
            let paths = files.map(|file| file.unwrap().path());
            let names: BTreeSet<String> = paths
                .filter(|path| path.extension().is_some_and(|found| found == ending))
                .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            let listed = suite.tests().unwrap();
            assert_eq!(names, listed.into_iter().collect(), "{}", suite.name);
        }
    }

    #[test]
    fn a_requirement_names_versions() {
        let majors = |requirement| [15, 16, 17, 18].map(|major| is_of_version(requirement, major));
        assert_eq!(majors("before 17"), [true, true, false, false]);
        assert_eq!(majors("from 17"), [false, false, true, true]);
        assert_eq!(majors("about 17"), [false; 4]);
        assert_eq!(majors("before"), [false; 4]);
    }

    #[test]
    fn tests_of_a_schedule_are_read_in_order() {
        let schedule = "# test: not this\ntest: b a\n\ntest: c\n";
        assert_eq!(tests_in(schedule), ["b", "a", "c"]);
    }

    #[test]
    fn outcomes_are_parsed_from_the_runners_output() {
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
