//! `dev test`: each check, its count, the summary.
//!
//! A check gives the number of tests that passed and failed; a check that cannot count (formatting, lints) is one test. A
//! failed check does not stop the next ones, except that nothing can be checked without the set-up.

use crate::images;
use crate::packages::Purpose;
use crate::peers;
use crate::product::{cargo, set_up};
use crate::python_client;
use lanes_tests::cluster::Cluster;
use lanes_tests::error::{Error, Result};
use lanes_tests::place;
use lanes_tests::process::{self, Signal, run_to_output};
use std::io::{BufRead, BufReader};
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a suite may say nothing: several times what its longest test takes on a busy machine.
const SILENCE_MAX: Duration = Duration::from_secs(15 * 60);

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
}

impl Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
        }
    }
}

/// A check by name.
struct Check {
    name: &'static str,
    needs_set_up: bool,
    run: fn() -> Result<Count>,
}

const CHECKS: [Check; 8] = [
    Check {
        name: "fmt",
        needs_set_up: false,
        run: formatting,
    },
    Check {
        name: "clippy",
        needs_set_up: true,
        run: lints,
    },
    Check {
        name: "unit",
        needs_set_up: true,
        run: unit_tests,
    },
    Check {
        name: "regress",
        needs_set_up: true,
        run: regression_suite,
    },
    Check {
        name: "isolation",
        needs_set_up: true,
        run: isolation_suite,
    },
    Check {
        name: "whole-path",
        needs_set_up: true,
        run: whole_path_tests,
    },
    Check {
        name: "images",
        needs_set_up: true,
        run: images::check,
    },
    Check {
        name: "python",
        needs_set_up: true,
        run: python_client::check,
    },
];

/// Runs the named checks, or all; fails if any test failed.
pub fn run(names: &[String]) -> Result<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| !CHECKS.iter().any(|check| check.name == name.as_str()))
    {
        let known: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        return Err(Error::Other(format!(
            "there is no check `{unknown}`; there are: {}",
            known.join(", ")
        )));
    }
    let chosen: Vec<&Check> = CHECKS
        .iter()
        .filter(|check| names.is_empty() || names.iter().any(|name| name == check.name))
        .collect();
    if chosen.iter().any(|check| check.needs_set_up) {
        set_up(Purpose::Test)?;
    }
    let mut lines = Vec::new();
    let mut total = Count::default();
    for check in chosen {
        println!("==> {}", check.name);
        let start = Instant::now();
        let count = (check.run)().unwrap_or_else(|error| {
            println!("{error}");
            Count {
                passed: 0,
                failed: 1,
            }
        });
        total = total + count;
        let seconds = start.elapsed().as_secs();
        lines.push(format!(
            "{:<11}{:>6} passed{:>6} failed{:>6} s",
            check.name, count.passed, count.failed, seconds
        ));
    }
    println!(
        "\n{}\n{} passed, {} failed",
        lines.join("\n"),
        total.passed,
        total.failed
    );
    match total.failed {
        0 => Ok(()),
        _ => std::process::exit(1),
    }
}

fn formatting() -> Result<Count> {
    Ok(one(&mut cargo(), &["fmt", "--all", "--", "--check", "-l"]))
}

fn lints() -> Result<Count> {
    let arguments = [
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    Ok(one(&mut cargo(), &arguments))
}

/// A program whose success is one test.
pub fn one(command: &mut Command, arguments: &[&str]) -> Count {
    match command.args(arguments).status() {
        Ok(status) if status.success() => Count {
            passed: 1,
            failed: 0,
        },
        _ => Count {
            passed: 0,
            failed: 1,
        },
    }
}

fn unit_tests() -> Result<Count> {
    cargo_test(&["--workspace", "--exclude", "lanes-tests"])
}

fn whole_path_tests() -> Result<Count> {
    if let Err(error) = peers::set_up_minio() {
        // The others are worth running all the same.
        println!("MinIO cannot be built, and the tests that need it will fail: {error}");
    }
    cargo_test(&["--package", "lanes-tests"])
}

fn cargo_test(packages: &[&str]) -> Result<Count> {
    let test = |options: &[&str]| {
        let mut command = cargo();
        command
            .args(["test", "--locked"])
            .args(packages)
            .args(options);
        command
    };
    // Built first: a long build is silent, a long test is not right.
    let build = one(&mut test(&["--no-run"]), &[]);
    if build.failed > 0 {
        return Ok(build);
    }
    counted(&mut test(&["--no-fail-fast"]), cargo_line)
}

/// The counts in a line such as `test result: ok. 16 passed; 0 failed; 0 ignored; …`.
fn cargo_line(line: &str) -> Option<Count> {
    let result = line.strip_prefix("test result: ")?;
    let number = |label: &str| -> Option<u64> {
        let part = result
            .split([';', '.'])
            .find_map(|part| part.trim().strip_suffix(label))?;
        part.trim().parse().ok()
    };
    Some(Count {
        passed: number("passed")?,
        failed: number("failed")?,
    })
}

/// The count in a line such as `test insert                ... ok           23 ms` or `… FAILED       12 ms`.
fn regress_line(line: &str) -> Option<Count> {
    let (_, verdict) = line
        .split_once(" ... ")
        .or_else(|| line.trim_start().split_once("... "))?;
    match verdict.split_whitespace().next()? {
        "ok" => Some(Count {
            passed: 1,
            failed: 0,
        }),
        "FAILED" => Some(Count {
            passed: 0,
            failed: 1,
        }),
        _ => None,
    }
}

/// Runs a program, showing its lines as they come and adding up their counts. A failure that no line tells of counts too,
/// and so does a program that says nothing for [`SILENCE_MAX`]: it is ended.
pub fn counted(command: &mut Command, count_in: fn(&str) -> Option<Count>) -> Result<Count> {
    counted_within(command, count_in, SILENCE_MAX)
}

fn counted_within(
    command: &mut Command,
    count_in: fn(&str) -> Option<Count>,
    silence_max: Duration,
) -> Result<Count> {
    let program = format!("{command:?}");
    let spawn_error = |source| Error::Spawn {
        program: program.clone(),
        source,
    };
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(spawn_error)?;
    let (sender, lines) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        // Ends with the last holder of the pipe, which may be a grandchild; nobody waits for it.
        std::thread::spawn(move || {
            for line in BufReader::new(output)
                .split(b'\n')
                .map_while(|line| line.ok())
            {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    let mut total = Count::default();
    loop {
        match lines.recv_timeout(silence_max) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                if let Some(count) = count_in(&line) {
                    total = total + count;
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let running = run_to_output(Command::new("ps").args([
                    "-eo",
                    "pid,ppid,stat,wchan,time,args",
                    "--forest",
                ]))
                .map_or_else(
                    |error| error.to_string(),
                    |output| String::from_utf8_lossy(&output.stdout).into_owned(),
                );
                println!(
                    "no word for {} s from {program}; what runs now:\n{running}",
                    silence_max.as_secs()
                );
                end_tree(child.id());
                total.failed += 1;
                break;
            }
        }
    }
    let status = child.wait().map_err(spawn_error)?;
    if !status.success() && total.failed == 0 {
        total.failed = 1;
    }
    Ok(total)
}

/// Kills a process and all that it has started.
fn end_tree(id: u32) {
    let children = process::children(id);
    process::send(id, Signal::KILL);
    children.into_iter().for_each(end_tree);
}

fn regression_suite() -> Result<Count> {
    suite("regress", "regress/pg_regress")
}

fn isolation_suite() -> Result<Count> {
    suite("isolation", "isolation/pg_isolation_regress")
}

/// Runs a suite of `tests/<name>` with Postgres's own runner against a private cluster, and shows the differences.
fn suite(name: &str, runner: &str) -> Result<Count> {
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
    let count = counted(&mut command, regress_line)?;
    if count.failed > 0 {
        show_differences(&output);
        println!(
            "the end of {}:\n{}",
            cluster.log().display(),
            lanes_tests::process::tail(cluster.log())
        );
    }
    Ok(count)
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
    fn counts_are_read_from_what_the_runners_print() {
        let line = "test result: FAILED. 15 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 2.81s";
        assert_eq!(
            cargo_line(line),
            Some(Count {
                passed: 15,
                failed: 1
            })
        );
        assert_eq!(
            cargo_line("test port::tests::free_ports_differ ... ok"),
            None
        );
        let passed = Some(Count {
            passed: 1,
            failed: 0,
        });
        assert_eq!(
            regress_line("test insert                       ... ok           23 ms"),
            passed
        );
        assert_eq!(
            regress_line("     insert                       ... ok           23 ms"),
            passed
        );
        let failed = Some(Count {
            passed: 0,
            failed: 1,
        });
        assert_eq!(
            regress_line("test copy                         ... FAILED      123 ms"),
            failed
        );
        assert_eq!(
            regress_line("test copy ... FAILED (test process exited with exit code 2)  5 ms"),
            failed
        );
        assert_eq!(
            regress_line("============== creating database \"suite\" =============="),
            None
        );
    }

    #[test]
    fn a_program_that_fails_without_a_word_counts_as_a_failure() {
        let mut command = Command::new("sh");
        assert_eq!(
            counted(command.args(["-c", "exit 1"]), cargo_line).unwrap(),
            Count {
                passed: 0,
                failed: 1
            }
        );
    }

    #[test]
    fn a_program_that_falls_silent_is_ended_and_counts_as_a_failure() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo 'test result: ok. 2 passed; 0 failed'; sleep 600; true",
        ]);
        let start = Instant::now();
        let count = counted_within(&mut command, cargo_line, Duration::from_millis(500)).unwrap();
        assert_eq!(
            count,
            Count {
                passed: 2,
                failed: 1
            }
        );
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "ended, not waited for"
        );
    }
}
