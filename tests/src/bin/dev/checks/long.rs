//! `dev test-long [minutes]`: every test once, with large budgets and fresh seeds, including those
//! that `dev test` omits because they take long. Random tests and fuzzing follow, for half of the
//! minutes each. The result is written to `tests/record/long.json`.
//!
//! | check | in addition to `dev test` |
//! |---|---|
//! | `rust` | the rounds of a long run, the tests on MinIO and with the newest Prometheus, and those of the web page in Chromium |
//! | `versions` | the suites, the crash tests and those of logical replication on PostgreSQL 16, 17 and 18 |
//! | `core` | PostgreSQL's own tests, with heap and with lanes, compared |
//! | `packages` | the packages that `make package` makes, and the files in them |
//! | `containers` | the images of PostgreSQL and the gateway, built from Debian's packages, started by compose and queried |
//! | `asan` | the engine, the wire format and the kernels under AddressSanitizer |
//! | `valgrind` | the engine with its kernels under memcheck |
//! | `miri` | the engine under Miri, if that is installed; otherwise the record says that it was not |
//! | `random` | twins, crashes and concurrency repeatedly, each time with fresh seeds |
//! | `fuzz` | every fuzz target, starting with its corpus |

use super::outcome::{Outcome, one};
use super::summary::{Done, totals};
use super::{
    Check, checked, containers, core_tests, documentation, finish, formatting, images, lints,
    made_packages, page_modules, python_client, rust_tests, set_up_for, suites, versions,
};
use crate::packages::Purpose;
use crate::peers;
use crate::product::cargo;
use crate::python_env::tool;
use lanes_support::error::{Error, Result};
use lanes_support::place;
use lanes_support::process::{run as output_of, run_to_output};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The default time for random tests and fuzzing.
const MINUTES: u64 = 120;
/// The test programs with tests that use [`lanes_support::seed`]. A test below compares the list
/// with the sources.
const RANDOM: [&str; 12] = [
    "append_twin",
    "asof",
    "concurrent",
    "crash",
    "heap_twin",
    "objects",
    "promql_differential",
    "sealed_tables",
    "sealing",
    "shortening",
    "standby",
    "vector_twin",
];
/// The target is named so that build scripts and macros are built without the sanitizer.
const HOST: &str = "x86_64-unknown-linux-gnu";
/// The packages that the sanitizers check: those without PostgreSQL.
const ENGINE: [&str; 8] = [
    "--package",
    "lanes-columnar",
    "--package",
    "lanes-labels",
    "--package",
    "lanes-wire",
    "--package",
    "lanes-simd",
];

/// The checks of a long run that do not have a time limit.
pub(super) const CHECKS: [Check; 4] = [
    Check {
        name: "packages",
        needs_set_up: true,
        tests: None,
        run: |_| made_packages::check(),
    },
    Check {
        name: "containers",
        needs_set_up: true,
        tests: None,
        run: |_| containers::check(),
    },
    Check {
        name: "asan",
        needs_set_up: true,
        tests: None,
        run: |_| address_sanitizer(),
    },
    Check {
        name: "valgrind",
        needs_set_up: true,
        tests: None,
        run: |_| memcheck(),
    },
];

/// Runs all checks; fails if any test failed.
pub fn run(words: &[String]) -> Result<()> {
    let minutes = match words {
        [] => MINUTES,
        [number] => number.parse().map_err(|_| {
            Error::Other(format!(
                "`test-long` takes a number of minutes, not `{number}`"
            ))
        })?,
        _ => return Err(Error::Other("`test-long` takes one number".to_owned())),
    };
    let half = Duration::from_secs(minutes * 60 / 2);
    let set_up = set_up_for(Purpose::TestLong)?;
    peers::set_up_minio()?;
    peers::set_up_prometheus()?;
    peers::set_up_vmalert()?;
    let mut done = vec![
        set_up,
        checked("fmt", formatting),
        checked("clippy", lints),
        checked("doc", documentation),
        checked("rust", rust_tests::long),
        checked("regress", || suites::regress(&[])),
        checked("isolation", || suites::isolation(&[])),
        checked("versions", versions::long),
        checked("core", core_tests::check),
        checked("python", python_client::check),
        checked("images", images::files),
        checked("page", page_modules::check),
    ];
    done.extend(
        CHECKS
            .iter()
            .map(|check| checked(check.name, || (check.run)(&[]))),
    );
    let has_miri = run_to_output(cargo().args(["+nightly", "miri", "--version"]))
        .is_ok_and(|output| output.status.success());
    if has_miri {
        done.push(checked("miri", miri));
    } else {
        println!("Miri is not installed (rustup +nightly component add miri): not run");
    }
    done.push(checked("random", || random(half)));
    done.push(checked("fuzz", || fuzz(half)));
    keep_record(&done, minutes, has_miri)?;
    finish(&done)
}

/// Repeats the random tests until the time is over, but at least once.
fn random(time: Duration) -> Result<Vec<Outcome>> {
    let programs = RANDOM.map(|name| format!("binary({name})"));
    let filter = format!("package(lanes-tests) & ({})", programs.join(" | "));
    let end = Instant::now() + time;
    let mut outcomes = Vec::new();
    loop {
        outcomes.extend(rust_tests::long_of(&filter)?);
        if Instant::now() >= end {
            return Ok(outcomes);
        }
    }
}

/// Runs each fuzz target for its share of the time.
fn fuzz(time: Duration) -> Result<Vec<Outcome>> {
    let program = tool("cargo-fuzz")?;
    let folder = place::workspace().join("tests/fuzz");
    let targets: Vec<String> = output_of(
        Command::new(&program)
            .args(["fuzz", "list", "--fuzz-dir"])
            .arg(&folder),
    )?
    .lines()
    .map(str::to_owned)
    .collect();
    let share = time.as_secs() / targets.len().max(1) as u64;
    let one_target = |target: &String| {
        // New inputs of the fuzzer stay out of the checkout until someone adds them to the corpus.
        let found = place::target().join("fuzz/found").join(target);
        place::make_folder(&found)?;
        let corpus = folder.join("corpus").join(target);
        let mut command = Command::new(&program);
        command
            .current_dir(place::workspace())
            .args(["fuzz", "run", "--fuzz-dir"])
            .arg(&folder)
            .arg("--target-dir")
            .arg(place::target().join("fuzz"))
            .arg(target)
            .arg(&found)
            .arg(corpus)
            .args(["--", "-print_final_stats=1"])
            .arg(format!("-max_total_time={}", share.max(1)));
        unstable(&mut command);
        Ok(one(&format!("fuzz {target}"), &mut command))
    };
    targets.iter().map(one_target).collect()
}

/// Enables the sanitizers of a stable compiler, which otherwise only an unstable one offers.
fn unstable(command: &mut Command) {
    command.env("RUSTC_BOOTSTRAP", "1");
}

fn engine_tests(folder: &str) -> Command {
    let mut command = cargo();
    command
        .args([
            "test",
            "--locked",
            "--release",
            "--config",
            "tests/profile.toml",
        ])
        .args(ENGINE)
        .args(["--lib", "--tests", "--target", HOST])
        .env("CARGO_TARGET_DIR", place::target().join(folder));
    command
}

fn address_sanitizer() -> Result<Vec<Outcome>> {
    let mut command = engine_tests("asan");
    unstable(&mut command);
    command
        .env("RUSTFLAGS", "-Zsanitizer=address")
        // The kernels are instrumented too, by the compiler whose sanitizer has the same runtime.
        .env("CXX", "clang++")
        .env("CXXFLAGS", "-fsanitize=address");
    Ok(vec![one("address sanitizer", &mut command)])
}

fn memcheck() -> Result<Vec<Outcome>> {
    let mut command = engine_tests("valgrind");
    command
        .env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "valgrind --quiet --error-exitcode=9 --fair-sched=yes",
        )
        // Everything is fifty times slower.
        .env("PROPTEST_CASES", "8");
    Ok(vec![one("memcheck", &mut command)])
}

fn miri() -> Result<Vec<Outcome>> {
    let mut command = cargo();
    command
        .args(["+nightly", "miri", "test", "--package", "lanes-columnar"])
        .args(["--lib", "encoding"])
        .env("CARGO_TARGET_DIR", place::target().join("miri"));
    Ok(vec![one("miri", &mut command)])
}

/// Writes the record, which is committed: the checks, the time, the commit, and the results.
fn keep_record(done: &[Done], minutes: u64, has_miri: bool) -> Result<()> {
    let git = |arguments: &[&str]| -> Option<String> {
        let mut command = Command::new("git");
        command.current_dir(place::workspace()).args(arguments);
        Some(output_of(&mut command).ok()?.trim().to_owned())
    };
    let is_clean = git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty());
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut record = json!({
        "commit": git(&["rev-parse", "HEAD"]),
        "is_clean": is_clean,
        "ended_unix_seconds": since_1970.unwrap_or_default().as_secs(),
        "minutes_of_random_tests_and_fuzzing": minutes,
        "checks": totals(done),
        "failed": done.iter().flat_map(|check| &check.outcomes)
            .filter(|outcome| !outcome.passed).map(|outcome| outcome.name.as_str()).collect::<Vec<_>>(),
    });
    if !has_miri {
        record["not_run"] = Value::from(vec!["miri: not installed"]);
    }
    let folder = place::workspace().join("tests/record");
    place::make_folder(&folder)?;
    let file = folder.join("long.json");
    std::fs::write(&file, format!("{record:#}\n")).map_err(Error::file("write", &file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Whether a file, or a file in a folder, calls the function that draws a seed.
    fn is_random(path: &Path) -> bool {
        if path.is_dir() {
            let mut entries = std::fs::read_dir(path).unwrap();
            return entries.any(|entry| is_random(&entry.unwrap().path()));
        }
        std::fs::read_to_string(path).is_ok_and(|text| text.contains("seeded("))
    }

    #[test]
    fn every_test_program_that_draws_a_seed_is_repeated() {
        let programs = std::fs::read_dir(place::workspace().join("tests/tests")).unwrap();
        let random: BTreeSet<String> = programs
            .map(|entry| entry.unwrap().path())
            .filter(|path| is_random(path))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(random, RANDOM.map(str::to_owned).into());
    }
}
