//! PostgreSQL's own tests: the regression tests, and those of concurrent sessions. They run on heap tables and then on
//! lanes tables. Both runs use one harness, and their outputs are compared. Both databases have the extension, so
//! that the default access method is all that differs.
//!
//! The tests come from Debian's source package of PostgreSQL, which is downloaded at the first run.
//! `tests/core/differences` names the tests whose outputs differ, each with the reason. A test that
//! differs without being named fails, and so does a named test that does not differ.
//!
//! Lanes tables run with `lanes.vectorize = off` here: the tests print plans, and those of our own
//! nodes have other names.

use super::outcome::Outcome;
use super::watch::watched;
use crate::debian_source::debian_source;
use crate::steps::step;
use lanes_support::account::Account;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::installation::{DEFAULT_MAJOR, Postgres};
use lanes_support::place;
use lanes_support::process::run;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The folders of the source that are needed: the tests, and the modules that they load.
const WANTED: [&str; 3] = ["src/test/regress", "src/test/isolation", "contrib/spi"];
/// C files that tests load as libraries.
const LIBRARIES: [&str; 3] = [
    "src/test/regress/regress.c",
    "contrib/spi/refint.c",
    "contrib/spi/autoinc.c",
];
/// Its settings, as the runner of the tests makes it by itself otherwise.
const DATABASE: &str = "TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'";
const SETTINGS: [(&str, &str); 6] = [
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("bytea_output", "hex"),
    ("timezone_abbreviations", "Default"),
];

/// Some of PostgreSQL's tests, which have one runner.
struct Suite {
    /// The folder of its tests below `src/test`.
    name: &'static str,
    /// PostgreSQL's program that runs it, below the folder of PostgreSQL's test programs.
    runner: &'static str,
    schedule: &'static str,
    /// The name of the database that the tests expect.
    database: &'static str,
    /// What names its tests have in the list of differences before their own.
    prefix: &'static str,
    /// A run of fewer tests says nothing.
    tests_min: usize,
}

const SUITES: [Suite; 2] = [
    Suite {
        name: "regress",
        runner: "regress/pg_regress",
        schedule: "parallel_schedule",
        database: "regression",
        prefix: "",
        // PostgreSQL 15 has 217.
        tests_min: 200,
    },
    Suite {
        name: "isolation",
        runner: "isolation/pg_isolation_regress",
        schedule: "isolation_schedule",
        database: "isolation_regression",
        prefix: "isolation/",
        // PostgreSQL 15 has 108.
        tests_min: 100,
    },
];

/// Runs the tests with both access methods and compares them.
pub fn check() -> Result<Vec<Outcome>> {
    let postgres = Postgres::chosen()?;
    if postgres.major != DEFAULT_MAJOR {
        return Err(Error::Other(format!(
            "the list of differences is that of PostgreSQL {DEFAULT_MAJOR}"
        )));
    }
    let source = step("the source of PostgreSQL's tests", || {
        debian_source(&format!("postgresql-{DEFAULT_MAJOR}"), &WANTED)
    })?;
    let folder = place::target().join("suite/core");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Error::file("empty", &folder))?;
    }
    for method in ["heap", "lanes"] {
        step(&format!("PostgreSQL's tests on {method}"), || {
            run_with(method, &postgres, &source, &folder)
        })?;
    }
    let known = differences()?;
    let mut outcomes = Vec::new();
    for suite in &SUITES {
        outcomes.extend(compare(suite, &folder, &known)?);
    }
    Ok(outcomes)
}

/// Compares the outputs of a suite's tests.
fn compare(suite: &Suite, folder: &Path, known: &BTreeMap<String, String>) -> Result<Vec<Outcome>> {
    let heap = outputs(&folder.join("heap").join(suite.name))?;
    if heap.len() < suite.tests_min {
        return Err(Error::Other(format!(
            "{} of PostgreSQL's {} tests ran, fewer than {}",
            heap.len(),
            suite.name,
            suite.tests_min
        )));
    }
    let lanes = outputs(&folder.join("lanes").join(suite.name))?;
    let equal = heap
        .iter()
        .filter(|(name, text)| lanes.get(*name) == Some(text));
    println!(
        "{} of {} {} tests have the same output as with heap",
        equal.count(),
        heap.len(),
        suite.name
    );
    let outcomes = heap.keys().map(|test| {
        let name = format!("{}{test}", suite.prefix);
        let differs = heap.get(test) != lanes.get(test);
        let is_known = known.contains_key(&name);
        match (differs, is_known) {
            (true, false) => println!(
                "{name} differs; compare its outputs in {}",
                folder.display()
            ),
            (false, true) => println!("{name} does not differ; remove it from the list"),
            _ => {}
        }
        Outcome {
            name: format!("core {name}"),
            passed: differs == is_known,
            time: Duration::ZERO,
        }
    });
    Ok(outcomes.collect())
}

/// Runs all tests on a cluster whose tables use an access method, and keeps their outputs.
fn run_with(method: &str, postgres: &Postgres, source: &Path, folder: &Path) -> Result<()> {
    let account = Account::for_postgres()?;
    let cluster = Cluster::builder(&format!("core_{method}"))
        .postgres(postgres)
        .setting("max_prepared_transactions", "4")
        .setting("max_parallel_workers", "8")
        .setting("lanes.arena_size", "256MB")
        // The tests provoke warnings, which are failures in the log of other clusters.
        .setting("log_min_messages", "error")
        .start()?;
    let work = cluster.folder().join("core");
    copy_for(&account, source, &work)?;
    compile_libraries(postgres, &work)?;
    for suite in &SUITES {
        make_database(&cluster, suite, method, &work)?;
        run_suite(&cluster, suite, &account, &work)?;
        let kept = folder.join(method).join(suite.name);
        place::make_folder(&kept)?;
        for (name, text) in outputs(&tests_in(suite, &work).join("results"))? {
            let file = kept.join(format!("{name}.out"));
            std::fs::write(&file, text).map_err(Error::file("write", &file))?;
        }
    }
    Ok(())
}

/// Makes the database of a suite, in which new tables use an access method.
fn make_database(cluster: &Cluster, suite: &Suite, method: &str, work: &Path) -> Result<()> {
    let name = suite.database;
    cluster.psql("postgres", &format!("CREATE DATABASE {name} {DATABASE}"))?;
    let set = |setting: &str, value: &str| {
        let statement = format!("ALTER DATABASE {name} SET {setting} = {value}");
        cluster.psql("postgres", &statement)
    };
    for (setting, value) in SETTINGS {
        set(setting, &format!("'{value}'"))?;
    }
    let path = format!("'{}:$libdir'", work.display());
    set("dynamic_library_path", &path)?;
    cluster.psql(name, "CREATE EXTENSION lanes")?;
    set("default_table_access_method", method)?;
    set("lanes.vectorize", "off")?;
    Ok(())
}

/// The folder of a suite's tests, to which its runner writes too.
fn tests_in(suite: &Suite, work: &Path) -> PathBuf {
    work.join("src/test").join(suite.name)
}

/// Runs a suite. The verdict of its runner is about the expected outputs of another build of PostgreSQL.
fn run_suite(cluster: &Cluster, suite: &Suite, account: &Account, work: &Path) -> Result<()> {
    let tests = tests_in(suite, work);
    let mut command = account.command(Postgres::debian().test_program(suite.runner)?);
    command
        .current_dir(&tests)
        .arg(format!("--inputdir={}", tests.display()))
        .arg(format!("--outputdir={}", tests.display()))
        .arg(format!("--dlpath={}", work.display()))
        .arg(format!("--bindir={}", cluster.programs().display()))
        .arg(format!("--host={}", cluster.socket().display()))
        .arg(format!("--port={}", cluster.port()))
        .arg(format!(
            "--schedule={}",
            tests.join(suite.schedule).display()
        ))
        .args(["--user=postgres", "--use-existing"])
        .arg(format!("--dbname={}", suite.database))
        .arg("--max-concurrent-tests=20");
    watched(suite.runner, &mut command, |_| None)?;
    Ok(())
}

/// Copies the source to where the server's account can read and write it.
fn copy_for(account: &Account, source: &Path, work: &Path) -> Result<()> {
    run(Command::new("cp").arg("-r").arg(source).arg(work))?;
    if lanes_support::account::we_are_root() {
        run(Command::new("chown").args(["-R", &account.name]).arg(work))?;
    }
    Ok(())
}

fn compile_libraries(postgres: &Postgres, work: &Path) -> Result<()> {
    let headers = run(Command::new(postgres.pg_config()).arg("--includedir-server"))?;
    for file in LIBRARIES {
        let file = work.join(file);
        let library = work.join(file.with_extension("so").file_name().unwrap_or_default());
        run(Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-w", "-I"])
            .arg(headers.trim())
            .arg(&file)
            .arg("-o")
            .arg(&library))?;
    }
    Ok(())
}

/// Returns the outputs in a folder by the names of their tests.
fn outputs(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut outputs = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(Error::file("list", folder))? {
        let file = entry.map_err(Error::file("list", folder))?.path();
        if file.extension().is_some_and(|ending| ending == "out")
            && let Some(name) = file.file_stem().and_then(|name| name.to_str())
        {
            let text = std::fs::read(&file).map_err(Error::file("read", &file))?;
            outputs.insert(name.to_owned(), text);
        }
    }
    Ok(outputs)
}

fn list() -> PathBuf {
    place::workspace().join("tests/core/differences")
}

/// Returns the tests that are known to differ, with the reasons.
fn differences() -> Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(list()).map_err(Error::file("read", &list()))?;
    differences_in(&text)
}

/// Parses lines such as `brin: BRIN indexes are refused`.
fn differences_in(text: &str) -> Result<BTreeMap<String, String>> {
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_once(": ") {
            Some((name, reason)) if !reason.is_empty() => Ok((name.to_owned(), reason.to_owned())),
            _ => Err(Error::Other(format!(
                "{}: `{line}` is no name and reason",
                list().display()
            ))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_difference_has_a_reason() {
        assert!(!differences().unwrap().is_empty());
        assert!(differences_in("brin: \n").is_err());
        assert!(differences_in("brin\n").is_err());
        assert_eq!(
            differences_in("# a note\n\nbrin: why\n").unwrap()["brin"],
            "why"
        );
    }
}
