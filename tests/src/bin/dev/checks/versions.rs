//! The check `versions`: the suites of SQL and of concurrent sessions on other versions of
//! PostgreSQL than the default one. A long run adds the crash tests, those of logical replication
//! and of databases that move.

use super::outcome::Outcome;
use super::{rust_tests, suites};
use crate::product::set_up_extension;
use crate::steps::step;
use crate::versions::{MAJORS, NEWEST, installation};
use lanes_support::error::Result;
use lanes_support::installation::{Postgres, UPGRADED_FROM};

/// The programs of `tests/tests` that a long run adds, because they depend on PostgreSQL's WAL or its programs.
const PROGRAMS: [&str; 3] = ["crash", "logical", "moving"];
/// The program that moves a database by pg_upgrade, and its test that does so from other versions.
const UPGRADE: &str = "moving::upgrade";

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

/// Runs the suites and the added programs on all versions, and moves databases from each to each later one.
pub fn long() -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let mut earlier = vec![Postgres::debian()];
    for major in MAJORS {
        let postgres = installed(major)?;
        outcomes.extend(suites_on(major, &postgres)?);
        let mut add = |found: Vec<Outcome>, title: &str| {
            let named = found.into_iter().map(|outcome| Outcome {
                name: format!("{title}: {}", outcome.name),
                ..outcome
            });
            outcomes.extend(named);
        };
        for program in PROGRAMS {
            let found = rust_tests::program_on(program, &postgres, &[])?;
            add(found, &format!("PostgreSQL {major}"));
        }
        for from in &earlier {
            let variables = [(UPGRADED_FROM, from.pg_config())];
            let found = rust_tests::program_on(UPGRADE, &postgres, &variables)?;
            add(found, &format!("PostgreSQL {} to {major}", from.major));
        }
        earlier.push(postgres);
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
