//! The check `versions`: the suites of SQL and of concurrent sessions on other versions of
//! PostgreSQL than the default one. A long run adds the crash tests and those of logical replication.

use super::outcome::Outcome;
use super::{rust_tests, suites};
use crate::product::set_up_extension;
use crate::steps::step;
use crate::versions::{MAJORS, NEWEST, installation};
use lanes_support::error::Result;
use lanes_support::installation::Postgres;

/// The programs of `tests/tests` that a long run adds, because they depend on PostgreSQL's WAL.
const PROGRAMS: [&str; 2] = ["crash", "logical"];

/// Runs the suites on the named versions, or on the newest one.
pub fn check(majors: &[String]) -> Result<Vec<Outcome>> {
    let named = majors.iter().map(String::as_str);
    let majors: Vec<&str> = match majors {
        [] => vec![NEWEST],
        _ => named.collect(),
    };
    let mut outcomes = Vec::new();
    for major in majors {
        outcomes.extend(suites_on(major, &installed(major)?)?);
    }
    Ok(outcomes)
}

/// Runs the suites and the added programs on all versions.
pub fn long() -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for major in MAJORS {
        let postgres = installed(major)?;
        outcomes.extend(suites_on(major, &postgres)?);
        for program in PROGRAMS {
            for mut outcome in rust_tests::program_on(program, &postgres)? {
                outcome.name = format!("PostgreSQL {major}: {}", outcome.name);
                outcomes.push(outcome);
            }
        }
    }
    Ok(outcomes)
}

/// Returns the names of the versions.
pub fn names() -> Result<Vec<String>> {
    Ok(MAJORS.map(str::to_owned).into())
}

/// Returns the installation of a version, with the extension.
fn installed(major: &str) -> Result<Postgres> {
    let postgres = installation(major)?;
    set_up_extension(&postgres)?;
    Ok(postgres)
}

fn suites_on(major: &str, postgres: &Postgres) -> Result<Vec<Outcome>> {
    step(&format!("suites on PostgreSQL {major}"), || {
        suites::all_on(postgres)
    })
}
