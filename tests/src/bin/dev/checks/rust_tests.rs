//! The tests in Rust. nextest runs each test in a process of its own, several at a time, and ends
//! those that hang, as `.config/nextest.toml` configures. It is installed as a wheel, so that it
//! need not be built.
//!
//! The tests are built in the release profile, so they share other people's crates with `make run`.
//! Our own crates are built with assertions and overflow checks (`tests/profile.toml`).

use super::junit;
use super::outcome::{Outcome, one};
use crate::near::near;
use crate::product::{cargo, in_workspace};
use crate::python_env::tool;
use crate::steps::step;
use lanes_support::error::{Error, Result};
use lanes_support::installation::{self, Postgres};
use lanes_support::process::{self, run_visibly};
use lanes_support::{budget, place, seed};
use std::path::PathBuf;
use std::process::Command;

/// The arguments with which Cargo and nextest build tests, besides the packages.
const BUILD: [&str; 4] = ["--locked", "--release", "--config", "tests/profile.toml"];

/// Runs the tests that `words` name, or all tests, with small budgets.
///
/// All tests exclude those that need what only a long run builds.
pub fn short(words: &[String]) -> Result<Vec<Outcome>> {
    let seed = seed::of_the_day();
    if words.is_empty() {
        let mut command = run("default", &TestFilter::everything())?;
        replay(&mut command, seed);
        let mut outcomes = outcomes(&mut command, "default")?;
        outcomes.push(examples_in_documentation());
        return Ok(outcomes);
    }
    let known = Targets::of_workspace()?;
    let mut all = Vec::new();
    for word in words {
        let filter = TestFilter::of(word, &known);
        let mut command = run("default", &filter)?;
        require_match(word, &filter)?;
        replay(&mut command, seed);
        all.extend(outcomes(&mut command, "default")?);
    }
    Ok(all)
}

/// Runs a program of `tests/tests`, or tests of it by their path, on an installation of PostgreSQL.
pub fn program_on(
    name: &str,
    postgres: &Postgres,
    variables: &[(&str, PathBuf)],
) -> Result<Vec<Outcome>> {
    let (program, path) = name.split_once("::").unwrap_or((name, ""));
    let scope = ["--package", "lanes-tests", "--test", program];
    let filter = TestFilter {
        scope: scope.map(str::to_owned).into(),
        path: path.to_owned(),
    };
    let mut command = run("default", &filter)?;
    replay(&mut command, seed::of_the_day());
    command.env(installation::VARIABLE, postgres.pg_config());
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    outcomes(&mut command, "default")
}

/// Runs all tests with large budgets and fresh seeds.
pub fn long() -> Result<Vec<Outcome>> {
    let mut outcomes = long_of("all()")?;
    outcomes.push(examples_in_documentation());
    Ok(outcomes)
}

/// Runs the tests that an expression of nextest's filter language selects, with large budgets and
/// fresh seeds.
pub fn long_of(expression: &str) -> Result<Vec<Outcome>> {
    let mut command = run("long", &TestFilter::everything())?;
    command
        .args(["--filterset", expression])
        .env(budget::VARIABLE, budget::LONG);
    // Random tests draw a seed each and print it; property tests print none.
    let seed = seed::fresh();
    println!("property tests: replay with {}={seed}", seed::VARIABLE);
    command.env(PROPERTY_SEED, seed.to_string());
    outcomes(&mut command, "long")
}

/// The variable from which proptest reads the seed of property tests.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";

/// Sets the seed of random tests and of property tests.
fn replay(command: &mut Command, seed: u64) {
    let seed = seed.to_string();
    command.env(seed::VARIABLE, &seed).env(PROPERTY_SEED, seed);
}

/// The tests to build, and which of them to run.
#[derive(Debug, PartialEq)]
struct TestFilter {
    /// The arguments that select packages and test programs.
    scope: Vec<String>,
    /// A part of the test's path; empty for all tests.
    path: String,
}

impl TestFilter {
    fn everything() -> TestFilter {
        TestFilter {
            scope: vec!["--workspace".to_owned()],
            path: String::new(),
        }
    }

    /// Reads `program`, `program::path`, `package`, `package::path` or `path`.
    ///
    /// A program is one of `tests/tests`. Naming it, or a package, saves building everything else.
    fn of(word: &str, known: &Targets) -> TestFilter {
        let (first, rest) = word.split_once("::").unwrap_or((word, ""));
        let scope: &[&str] = if known.programs.iter().any(|name| name == first) {
            &["--package", "lanes-tests", "--test", first]
        } else if known.packages.iter().any(|name| name == first) {
            &["--package", first]
        } else {
            return TestFilter {
                path: word.to_owned(),
                ..TestFilter::everything()
            };
        };
        TestFilter {
            scope: scope.iter().map(|word| (*word).to_owned()).collect(),
            path: rest.to_owned(),
        }
    }
}

/// The names that a filter can contain.
struct Targets {
    /// The test programs of `tests/tests`.
    programs: Vec<String>,
    /// The packages of the workspace.
    packages: Vec<String>,
}

impl Targets {
    fn of_workspace() -> Result<Targets> {
        let folder = place::workspace().join("tests/tests");
        let files = std::fs::read_dir(&folder).map_err(Error::file("list", &folder))?;
        let stem = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
        let programs = files.flatten().filter_map(|file| stem(file.path()));
        let mut tree = cargo();
        let listed =
            process::run(tree.args(["tree", "--workspace", "--depth=0", "--prefix=none"]))?;
        Ok(Targets {
            programs: programs.collect(),
            packages: first_words(&listed),
        })
    }
}

/// Returns the first word of each line.
fn first_words(text: &str) -> Vec<String> {
    let words = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    words.map(str::to_owned).collect()
}

/// Fails, with near names, if no test matches the filter.
fn require_match(word: &str, filter: &TestFilter) -> Result<()> {
    if !list(filter)?.is_empty() {
        return Ok(());
    }
    let everything = TestFilter {
        path: String::new(),
        scope: filter.scope.clone(),
    };
    let all = list(&everything)?;
    let mut known: Vec<&str> = all.iter().map(String::as_str).collect();
    known.extend(all.iter().flat_map(|name| name.split("::")));
    known.sort();
    known.dedup();
    let suggestion = match near(&filter.path, known).as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    };
    Err(Error::Other(format!(
        "no test matches `{word}`{suggestion}"
    )))
}

/// Returns the paths of the tests that match a filter.
fn list(filter: &TestFilter) -> Result<Vec<String>> {
    let mut command = nextest("list", filter)?;
    let output = process::run(command.args(["--message-format", "oneline"]))?;
    // A line is the test program and the test's path.
    let lines = output.lines().filter_map(|line| line.split_once(' '));
    Ok(lines.map(|(_, path)| path.trim().to_owned()).collect())
}

/// Returns a command of nextest with the packages and the path of a filter.
fn nextest(verb: &str, filter: &TestFilter) -> Result<Command> {
    let mut command = in_workspace(tool("cargo-nextest")?);
    command
        .args(["nextest", verb])
        .args(BUILD)
        .args(&filter.scope);
    if !filter.path.is_empty() {
        command.arg(&filter.path);
    }
    Ok(command)
}

/// Builds the tests of a filter and returns `nextest run` with a profile of its configuration.
fn run(profile: &str, filter: &TestFilter) -> Result<Command> {
    let command = || -> Result<Command> {
        let mut command = nextest("run", filter)?;
        command.args(["--profile", profile]);
        Ok(command)
    };
    step("building the tests", || {
        run_visibly(command()?.arg("--no-run"))
    })?;
    command()
}

/// Runs nextest, which writes a report for each profile of its configuration.
fn outcomes(command: &mut Command, profile: &str) -> Result<Vec<Outcome>> {
    let report = place::target().join(format!("nextest/{profile}/junit.xml"));
    junit::run("nextest", command, &report)
}

/// Runs the examples in documentation, which nextest leaves to Cargo.
fn examples_in_documentation() -> Outcome {
    let mut command = cargo();
    command.args(["test", "--doc", "--workspace"]).args(BUILD);
    one("examples in documentation", &mut command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn known() -> Targets {
        Targets::of_workspace().unwrap()
    }

    fn filter(scope: &[&str], path: &str) -> TestFilter {
        TestFilter {
            scope: scope.iter().map(|word| (*word).to_owned()).collect(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn a_filter_that_names_a_program_builds_only_that_program() {
        let crash = ["--package", "lanes-tests", "--test", "crash"];
        assert_eq!(TestFilter::of("crash", &known()), filter(&crash, ""));
        assert_eq!(
            TestFilter::of("crash::sql", &known()),
            filter(&crash, "sql")
        );
    }

    #[test]
    fn a_filter_that_names_a_package_builds_only_that_package() {
        let package = ["--package", "lanes-columnar"];
        let word = "lanes-columnar::select::tests";
        assert_eq!(
            TestFilter::of(word, &known()),
            filter(&package, "select::tests")
        );
    }

    #[test]
    fn any_other_filter_is_a_part_of_a_path() {
        let word = "seed::tests";
        assert_eq!(
            TestFilter::of(word, &known()),
            filter(&["--workspace"], word)
        );
    }

    #[test]
    fn the_packages_of_the_workspace_are_known() {
        let packages = known().packages;
        for name in ["lanes", "lanes-gateway", "lanes-support", "lanes-tests"] {
            assert!(packages.iter().any(|known| known == name), "{packages:?}");
        }
    }

    #[test]
    fn one_seed_replays_random_tests_and_property_tests() {
        let mut command = Command::new("true");
        replay(&mut command, 42);
        for variable in [seed::VARIABLE, PROPERTY_SEED] {
            let mut variables = command.get_envs();
            let value = variables.find(|(name, _)| *name == OsStr::new(variable));
            assert_eq!(value.and_then(|(_, value)| value), Some(OsStr::new("42")));
        }
    }
}
