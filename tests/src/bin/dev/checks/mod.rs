//! `dev test` and `dev test-long`: the checks and their outcomes.
//!
//! | module | contents |
//! |---|---|
//! | `outcome` | the outcome of a test: its name, whether it passed, its duration |
//! | `selection` | the arguments of `dev test`: checks, and the tests of a check |
//! | `rust_tests` | the tests in Rust, run by nextest |
//! | `suites` | the suites of SQL and of concurrent sessions, run by PostgreSQL's own programs |
//! | `versions` | the suites on other versions of PostgreSQL |
//! | `core_tests` | in a long run: PostgreSQL's own tests with heap and with lanes, compared |
//! | `plan_text` | the text of plans as PostgreSQL 15 prints it |
//! | `images` | the container images' files, checked by their own programs |
//! | `made_packages` | in a long run: the packages that are given to others, made and looked into |
//! | `containers` | in a long run: the images built, started and queried |
//! | `page_modules` | the modules of the gateway's page, run by Node |
//! | `python_client` | the Python client's types and tests |
//! | `long` | the additional checks of a long run: random tests, sanitizers, fuzzing; and its record |
//! | `junit`, `watch` | reports of test runners, read from a file or from their output |
//! | `summary` | the end of a run: each check with its time, the slowest tests, the sum |
//!
//! A failed check does not stop the next ones, except that every check but formatting requires the
//! set-up.

mod containers;
mod core_tests;
mod images;
mod junit;
mod long;
mod made_packages;
mod outcome;
mod page_modules;
mod plan_text;
mod python_client;
mod rust_tests;
mod selection;
mod suites;
mod summary;
mod versions;
mod watch;

use crate::packages::Purpose;
use crate::peers;
use crate::product::{cargo, set_up};
use crate::steps;
use lanes_support::error::Result;
use lanes_support::seed;
use outcome::{Outcome, one};
use selection::{Selection, select};
use std::time::Instant;
use summary::Done;

pub use long::run as run_long;
pub use plan_text::run as run_plan_text;

/// A check by name.
struct Check {
    name: &'static str,
    needs_set_up: bool,
    /// How single tests of it are named, if they can be run alone.
    tests: Option<Tests>,
    /// Runs the named tests, or all of them if there are no names.
    run: fn(&[String]) -> Result<Vec<Outcome>>,
}

/// The names of a check's tests.
#[derive(Clone, Copy)]
struct Tests {
    /// Returns all names, if they are known before anything is built.
    names: Option<fn() -> Result<Vec<String>>>,
}

/// The checks in the order in which they run: the quickest to fail is first.
const CHECKS: [Check; 11] = [
    Check {
        name: "fmt",
        needs_set_up: false,
        tests: None,
        run: |_| formatting(),
    },
    Check {
        name: "clippy",
        needs_set_up: true,
        tests: None,
        run: |_| lints(),
    },
    Check {
        name: "doc",
        needs_set_up: true,
        tests: None,
        run: |_| documentation(),
    },
    Check {
        name: "rust",
        needs_set_up: true,
        tests: Some(Tests { names: None }),
        run: rust_tests::short,
    },
    Check {
        name: "regress",
        needs_set_up: true,
        tests: Some(Tests {
            names: Some(suites::regress_tests),
        }),
        run: suites::regress,
    },
    Check {
        name: "isolation",
        needs_set_up: true,
        tests: Some(Tests {
            names: Some(suites::isolation_tests),
        }),
        run: suites::isolation,
    },
    Check {
        name: "versions",
        needs_set_up: true,
        tests: Some(Tests {
            names: Some(versions::names),
        }),
        run: versions::check,
    },
    Check {
        name: "core",
        needs_set_up: true,
        tests: None,
        run: |_| core_tests::check(),
    },
    Check {
        name: "images",
        needs_set_up: true,
        tests: None,
        run: |_| images::files(),
    },
    Check {
        name: "page",
        needs_set_up: true,
        tests: None,
        run: |_| page_modules::check(),
    },
    Check {
        name: "python",
        needs_set_up: true,
        tests: None,
        run: |_| python_client::check(),
    },
];

/// The checks that `dev test` runs only where they are named.
const ON_REQUEST: [&str; 1] = ["core"];

/// The text of `cargo dev test --help`.
pub const HELP: &str = "\
Usage: cargo dev test [check [test ...]] ...

Without arguments, runs the checks fmt, clippy, rust, regress, isolation, versions, images, page and
python. The check core runs in `make test-long`, and where it is named.
A word that is no check names a test of the check before it:

  cargo dev test regress asof hash_join   two files of tests/regress/sql
  cargo dev test isolation deadlock       one file of tests/isolation/specs
  cargo dev test versions 16              the suites on PostgreSQL 16 (by default: the newest)
  cargo dev test core                     PostgreSQL's own tests, compared with heap
  cargo dev test rust crash               the test program tests/tests/crash
  cargo dev test rust crash::sql          the tests of that program whose path contains `sql`
  cargo dev test rust lanes-columnar      the tests of one package
  cargo dev test rust select              every test of the workspace whose path contains `select`

Environment:
  LANES_SEED=<number>    replays random tests and property tests; each run prints its seed
  LANES_ROUNDS=<number>  replaces the number of rounds of random tests
  LANES_KEEP=1           leaves the clusters of a failed test running, and prints how to connect
                         psql and gdb to them; `cargo dev kept` lists them, and
                         `cargo dev kept stop` stops and removes them";

/// Returns the checks that can be named: those of `dev test`, then those of a long run.
fn all_checks() -> Vec<&'static Check> {
    CHECKS.iter().chain(&long::CHECKS).collect()
}

/// Runs the selected checks, or all of `dev test`; fails if any test failed.
pub fn run(words: &[String]) -> Result<()> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{HELP}");
        return Ok(());
    }
    let chosen = match words {
        [] => {
            let usual = CHECKS
                .iter()
                .filter(|check| !ON_REQUEST.contains(&check.name));
            usual.map(Selection::whole).collect()
        }
        _ => select(words, &all_checks())?,
    };
    let is_long = |selection: &Selection| {
        let name = selection.check.name;
        long::CHECKS.iter().any(|check| check.name == name)
    };
    let mut done = Vec::new();
    if chosen.iter().any(|selection| selection.check.needs_set_up) {
        done.push(set_up_for(if chosen.iter().any(is_long) {
            Purpose::TestLong
        } else {
            Purpose::Test
        })?);
    }
    if chosen
        .iter()
        .any(|selection| selection.check.name == "rust")
    {
        peers::set_up_vmalert()?;
    }
    println!("the seed of random tests is {}", seed::of_the_day());
    for selection in chosen {
        let check = selection.check;
        done.push(checked(check.name, || (check.run)(&selection.tests)));
    }
    finish(&done)
}

/// Sets up what every check but formatting requires. The summary shows its time.
fn set_up_for(purpose: Purpose) -> Result<Done> {
    let start = Instant::now();
    set_up(purpose)?;
    Ok(Done {
        name: "set-up".to_owned(),
        time: start.elapsed(),
        outcomes: Vec::new(),
    })
}

/// Runs one check. A check that cannot be run is a failure of its name.
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

/// Shows and stores the outcomes; ends the program with status 1 if a test failed.
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

/// Runs clippy in the profile of everything else, so that build scripts and macros are built once.
fn lints() -> Result<Vec<Outcome>> {
    let mut command = cargo();
    command.args(["clippy", "--locked", "--release", "--workspace"]);
    command.args(["--all-targets", "--", "-D", "warnings"]);
    Ok(vec![one("lints", &mut command)])
}

/// Makes the pages of the code's comments, whose links have to lead somewhere.
fn documentation() -> Result<Vec<Outcome>> {
    let mut command = cargo();
    command.env("RUSTDOCFLAGS", "-D warnings");
    command.args(["doc", "--locked", "--release", "--workspace"]);
    command.args(["--no-deps", "--document-private-items"]);
    Ok(vec![one("links of comments", &mut command)])
}
