//! The check `core`: PostgreSQL's own regression tests, once with heap and once with lanes as the
//! default access method of tables. Both runs use one harness, and their outputs are compared.
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
const WANTED: [&str; 2] = ["src/test/regress", "contrib/spi"];
/// C files that tests load as libraries.
const LIBRARIES: [&str; 3] = [
    "src/test/regress/regress.c",
    "contrib/spi/refint.c",
    "contrib/spi/autoinc.c",
];
/// PostgreSQL 15 has 217 tests. A run of fewer says nothing.
const TESTS_MIN: usize = 200;
/// The database, as the runner of the tests makes it by itself otherwise.
const DATABASE: &str = "CREATE DATABASE regression TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'";
const SETTINGS: [(&str, &str); 6] = [
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("bytea_output", "hex"),
    ("timezone_abbreviations", "Default"),
];

/// Runs the tests with both access methods and compares them.
pub fn check() -> Result<Vec<Outcome>> {
    let source = step("the source of PostgreSQL's tests", || {
        debian_source(&format!("postgresql-{DEFAULT_MAJOR}"), &WANTED)
    })?;
    let folder = place::target().join("suite/core");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Error::file("empty", &folder))?;
    }
    for method in ["heap", "lanes"] {
        step(&format!("PostgreSQL's tests on {method}"), || {
            run_with(method, &source, &folder)
        })?;
    }
    let known = differences()?;
    let heap = outputs(&folder.join("heap"))?;
    if heap.len() < TESTS_MIN {
        return Err(Error::Other(format!(
            "{} of PostgreSQL's tests ran, fewer than {TESTS_MIN}",
            heap.len()
        )));
    }
    let lanes = outputs(&folder.join("lanes"))?;
    let equal = heap
        .iter()
        .filter(|(name, text)| lanes.get(*name) == Some(text));
    println!(
        "{} of {} tests have the same output as with heap",
        equal.count(),
        heap.len()
    );
    let outcomes = heap.keys().map(|name| {
        let differs = heap.get(name) != lanes.get(name);
        let is_known = known.contains_key(name);
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
fn run_with(method: &str, source: &Path, folder: &Path) -> Result<()> {
    let postgres = Postgres::debian();
    let account = Account::for_postgres()?;
    let cluster = Cluster::builder(&format!("core_{method}"))
        .postgres(&postgres)
        .setting("max_prepared_transactions", "4")
        .setting("max_parallel_workers", "8")
        .setting("lanes.arena_size", "256MB")
        // The tests provoke warnings, which are failures in the log of other clusters.
        .setting("log_min_messages", "error")
        .start()?;
    let work = cluster.folder().join("core");
    copy_for(&account, source, &work)?;
    compile_libraries(&postgres, &work)?;
    cluster.psql("postgres", DATABASE)?;
    let set = |name: &str, value: &str| {
        let statement = format!("ALTER DATABASE regression SET {name} = {value}");
        cluster.psql("postgres", &statement)
    };
    for (name, value) in SETTINGS {
        set(name, &format!("'{value}'"))?;
    }
    set(
        "dynamic_library_path",
        &format!("'{}:$libdir'", work.display()),
    )?;
    if method == "lanes" {
        cluster.psql("regression", "CREATE EXTENSION lanes")?;
        set("default_table_access_method", "lanes")?;
        set("lanes.vectorize", "off")?;
    }
    let tests = work.join("src/test/regress");
    let mut command = account.command(postgres.test_program("regress/pg_regress")?);
    command
        .current_dir(&tests)
        .arg(format!("--inputdir={}", tests.display()))
        .arg(format!("--outputdir={}", work.display()))
        .arg(format!("--dlpath={}", work.display()))
        .arg(format!("--bindir={}", cluster.programs().display()))
        .arg(format!("--host={}", cluster.socket().display()))
        .arg(format!("--port={}", cluster.port()))
        .arg(format!("--schedule={}/parallel_schedule", tests.display()))
        .args(["--user=postgres", "--use-existing", "--dbname=regression"])
        .arg("--max-concurrent-tests=20");
    // Its own verdict is about the expected outputs of another build of PostgreSQL.
    watched("pg_regress", &mut command, |_| None)?;
    let kept = folder.join(method);
    place::make_folder(&kept)?;
    for (name, text) in outputs(&work.join("results"))? {
        let file = kept.join(format!("{name}.out"));
        std::fs::write(&file, text).map_err(Error::file("write", &file))?;
    }
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
