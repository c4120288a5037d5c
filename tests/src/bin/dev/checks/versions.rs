//! The check `versions`: the suites of SQL and of concurrent sessions, and the crash tests, on other
//! versions of PostgreSQL than the default one.

use super::outcome::Outcome;
use super::{rust_tests, suites};
use crate::product::set_up_extension;
use crate::steps::step;
use crate::versions::{MAJORS, NEWEST, installation};
use lanes_support::error::Result;

/// The program of `tests/tests` that runs on each version, because it depends on PostgreSQL's WAL.
const PROGRAM: &str = "crash";

/// Checks the named versions, or the newest one.
pub fn check(majors: &[String]) -> Result<Vec<Outcome>> {
    match majors {
        [] => check_each(&[NEWEST]),
        _ => check_each(&majors.iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

/// Returns the names of the versions.
pub fn names() -> Result<Vec<String>> {
    Ok(MAJORS.map(str::to_owned).into())
}

fn check_each(majors: &[&str]) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for major in majors {
        let postgres = installation(major)?;
        set_up_extension(&postgres)?;
        outcomes.extend(step(&format!("suites on PostgreSQL {major}"), || {
            suites::all_on(&postgres)
        })?);
        for mut outcome in rust_tests::program_on(PROGRAM, &postgres)? {
            outcome.name = format!("PostgreSQL {major}: {}", outcome.name);
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}
