//! An engine in its own process, which communicates in JSON lines: `peers/<engine>_peer.py`, built
//! on `peers/loop.py`.
//!
//! ```text
//! ──► {"setup": ["…"], "query": "…", "warm_up": 6, "repeat": 100, "repeat_min": 3, "budget_seconds": 10.0}
//! ◄── {"ready": true, "version": "duckdb 2.0.0", "load_seconds": 1.5}               once, first
//! ◄── {"seconds": [0.0047, …], "cpu_seconds": 0.0091, "answer": [["S0000", 99.5, 7]]}
//! ◄── {"error": "…"}
//! ```
//!
//! The timing loop runs inside the engine's process, so the times contain no transport. An
//! execution ends when its result is materialised in memory. A process that does not respond in
//! time is killed, and a new one runs the remaining rows.

use crate::sql::answer::{Answer, from_json, verify};
use crate::sql::measurement::{Kind, Measurement};
use crate::sql::options::Options;
use crate::sql::postgres_run::first_line;
use crate::statistics::Times;
use lanes_support::error::{Error, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// ClickHouse compiles an expression once it has met it three times.
const WARM_UP: usize = 6;
const REPEAT_MIN: usize = 3;
/// The time for loading and indexing.
const READY_TIMEOUT: Duration = Duration::from_secs(300);
/// The time for the warm-up, the least number of executions and the budget.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);

/// The parameters for starting an engine.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    /// The system's name in the table.
    pub system: &'a str,
    /// The script's name without `_peer.py`.
    pub script: &'a str,
    /// The number of threads that the engine may use.
    pub threads: usize,
    /// The folder of the scripts.
    pub scripts: PathBuf,
    /// The folder of the Parquet files.
    pub data: PathBuf,
    /// The Python program that has the engine's package.
    pub python: PathBuf,
    /// The folder of the engine's log.
    pub logs: PathBuf,
}

/// How often a query is executed.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// The number of executions before the timed ones: at least one, and as many as a quarter of
    /// the budget has time for.
    pub warm_up: usize,
    /// The greatest number of timed executions.
    pub repeat: usize,
    /// The least number of timed executions, however long they take.
    pub repeat_min: usize,
    /// The time for all timed executions.
    pub budget: Duration,
}

/// A running engine.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// The engine's name and version, as the engine reports them.
    pub version: String,
}

/// A query for an engine.
pub struct Question<'a> {
    /// The row of the table.
    pub row: &'a str,
    /// The statements to run before the query.
    pub setup: Vec<String>,
    /// The query that is timed.
    pub text: String,
    /// The expected answer.
    pub expected: &'a Answer,
}

impl Peer {
    /// Starts the engine and waits until it has its data.
    pub fn start(start: &Start) -> Result<Peer> {
        let log = start.logs.join(format!("{}.log", start.system));
        let log_file = File::create(&log).map_err(Error::file("create", &log))?;
        let mut command = Command::new(&start.python);
        command.arg(start.scripts.join(format!("{}_peer.py", start.script)));
        command.arg(&start.data).arg(start.threads.to_string());
        command.env("POLARS_MAX_THREADS", start.threads.to_string());
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn();
        let mut child = spawned.map_err(|source| Error::Spawn {
            program: start.python.display().to_string(),
            source,
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Other(format!("{} has no pipes", start.system)));
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output)
                .lines()
                .map_while(std::result::Result::ok)
            {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut peer = Peer {
            child,
            input,
            lines,
            version: String::new(),
        };
        match peer.receive(READY_TIMEOUT) {
            Ok(ready) if ready["ready"] == Value::Bool(true) => {
                peer.version = ready["version"].as_str().unwrap_or(start.system).to_owned();
                Ok(peer)
            }
            Ok(other) => Err(Error::Other(format!(
                "{}: {}",
                start.system, other["error"]
            ))),
            Err(reason) => Err(Error::Other(format!(
                "{}: {reason}; see {}",
                start.system,
                log.display()
            ))),
        }
    }

    /// Times a query. The second value is whether the process can run another one.
    pub fn measure(
        &mut self,
        system: &str,
        question: &Question,
        options: &Options,
    ) -> (Measurement, bool) {
        let timing = Timing {
            warm_up: WARM_UP,
            repeat: options.repeat,
            repeat_min: REPEAT_MIN.min(options.repeat),
            budget: options.budget,
        };
        let result = self.ask(&question.setup, &question.text, timing);
        let usable = result.is_ok();
        let measurement = match result.and_then(|answer| understood(&answer, question)) {
            Ok((times, cpu)) => {
                let mut measurement = Measurement::new(question.row, system, Kind::Peer, Ok(times));
                measurement.server_cpu = cpu;
                measurement
            }
            Err(reason) => {
                Measurement::new(question.row, system, Kind::Peer, Err(first_line(&reason)))
            }
        };
        (measurement, usable)
    }

    /// Executes a query as often as requested and returns the engine's response.
    ///
    /// # Errors
    /// The engine does not respond, and cannot be used again.
    pub fn ask(
        &mut self,
        setup: &[String],
        text: &str,
        timing: Timing,
    ) -> std::result::Result<Value, String> {
        let request = json!({
            "setup": setup, "query": text, "warm_up": timing.warm_up, "repeat": timing.repeat,
            "repeat_min": timing.repeat_min, "budget_seconds": timing.budget.as_secs_f64(),
        });
        writeln!(self.input, "{request}")
            .map_err(|error| format!("the engine does not read its input: {error}"))?;
        self.receive(ANSWER_TIMEOUT.max(4 * timing.budget))
    }

    fn receive(&mut self, timeout: Duration) -> std::result::Result<Value, String> {
        match self.lines.recv_timeout(timeout) {
            Ok(line) => serde_json::from_str(&line)
                .map_err(|error| format!("the engine did not write JSON: {error}")),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                Err(format!("no answer within {} s", timeout.as_secs()))
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Err("it ended".to_owned()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The engine keeps nothing that has to be saved.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Verifies an answer and returns its times and the CPU time of one execution, in milliseconds.
fn understood(
    answer: &Value,
    question: &Question,
) -> std::result::Result<(Times, Option<f64>), String> {
    if let Some(error) = answer["error"].as_str() {
        return Err(error.to_owned());
    }
    from_json(&answer["answer"])
        .and_then(|actual| verify(question.expected, &actual))
        .map_err(|reason| format!("wrong answer: {reason}"))?;
    let times = milliseconds(answer);
    let count = times.len() as f64;
    let cpu = answer["cpu_seconds"]
        .as_f64()
        .map(|seconds| seconds * 1e3 / count);
    Ok((
        Times::new(times).ok_or_else(|| "no executions".to_owned())?,
        cpu,
    ))
}

/// Returns the milliseconds of the timed executions.
pub fn milliseconds(answer: &Value) -> Vec<f64> {
    let seconds = answer["seconds"].as_array();
    let seconds = seconds.into_iter().flatten().filter_map(Value::as_f64);
    seconds.map(|seconds| seconds * 1e3).collect()
}

/// Whether the Python program with the peers' packages exists.
pub fn is_available(python: &Path) -> bool {
    python.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::answer::Value::Integer;

    #[test]
    fn a_wrong_answer_has_no_time() {
        let expected = vec![vec![Integer(7)]];
        let question = Question {
            row: "x",
            setup: Vec::new(),
            text: String::new(),
            expected: &expected,
        };
        let right =
            json!({"seconds": [0.002, 0.001, 0.003], "cpu_seconds": 0.009, "answer": [[7]]});
        let (times, cpu) = understood(&right, &question).unwrap();
        assert_eq!((times.median(), times.count()), (2.0, 3));
        assert!((cpu.unwrap() - 3.0).abs() < 1e-12);
        let wrong = json!({"seconds": [0.001], "answer": [[8]]});
        assert!(
            understood(&wrong, &question)
                .unwrap_err()
                .starts_with("wrong answer")
        );
        assert_eq!(
            understood(&json!({"error": "no"}), &question),
            Err("no".to_owned())
        );
        assert!(understood(&json!({"seconds": [], "answer": [[7]]}), &question).is_err());
        assert!(understood(&json!({}), &question).is_err());
    }
}
