//! Runs a program that reports its tests line by line, and ends a program that hangs.

use super::outcome::Outcome;
use lanes_support::error::{Error, Result};
use lanes_support::process::{self, Signal, run_to_output};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The longest time without output: several times the longest test's time on a busy machine.
const SILENCE_MAX: Duration = Duration::from_secs(5 * 60);

/// Runs a program and prints its lines as they come; `outcome_in` extracts the tests. If the
/// program fails without reporting a failed test, the failure is a test called `name`. A program
/// without output for [`SILENCE_MAX`] is ended and counts as such a failure.
pub fn watched(
    name: &str,
    command: &mut Command,
    outcome_in: fn(&str) -> Option<Outcome>,
) -> Result<Vec<Outcome>> {
    watched_within(name, command, outcome_in, SILENCE_MAX)
}

fn watched_within(
    name: &str,
    command: &mut Command,
    outcome_in: fn(&str) -> Option<Outcome>,
    silence_max: Duration,
) -> Result<Vec<Outcome>> {
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
        // The thread ends with the last holder of the pipe, which may be a grandchild. Nothing
        // waits for it.
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
    let mut outcomes = Vec::new();
    loop {
        match lines.recv_timeout(silence_max) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                outcomes.extend(outcome_in(&line));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                println!(
                    "no output for {} s from {program}; running processes:\n{}",
                    silence_max.as_secs(),
                    what_runs()
                );
                end_tree(child.id());
                outcomes.push(Outcome::failure(name));
                break;
            }
        }
    }
    let status = child.wait().map_err(spawn_error)?;
    if !status.success() && outcomes.iter().all(|outcome| outcome.passed) {
        outcomes.push(Outcome::failure(name));
    }
    Ok(outcomes)
}

fn what_runs() -> String {
    let columns = ["-eo", "pid,ppid,stat,wchan,time,args", "--forest"];
    run_to_output(Command::new("ps").args(columns)).map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// Kills a process and all its descendants.
fn end_tree(id: u32) {
    let children = process::children(id);
    process::send(id, Signal::KILL);
    children.into_iter().for_each(end_tree);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn word(line: &str) -> Option<Outcome> {
        let name = line.strip_prefix("ok ")?;
        Some(Outcome {
            passed: true,
            ..Outcome::failure(name)
        })
    }

    #[test]
    fn a_program_that_fails_without_output_is_a_failure() {
        let mut command = Command::new("sh");
        let outcomes = watched("suite", command.args(["-c", "exit 1"]), word).unwrap();
        assert_eq!(outcomes, [Outcome::failure("suite")]);
    }

    #[test]
    fn a_program_that_hangs_is_ended_and_is_a_failure() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo ok one; sleep 600; true"]);
        let start = Instant::now();
        let outcomes =
            watched_within("suite", &mut command, word, Duration::from_millis(500)).unwrap();
        let passed: Vec<_> = outcomes.iter().map(|outcome| outcome.passed).collect();
        assert_eq!(passed, [true, false]);
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "ended, not waited for"
        );
    }
}
