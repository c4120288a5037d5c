//! Child processes: run one to its end, or keep one running with a log.

use crate::error::{Error, Result};
use rustix::process::{Pid, kill_process};
use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;

/// The interval at which a state is polled.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The time for a leftover process to end in order.
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(30);
/// The size of a log from which it is moved aside when its process starts, so that it does not grow
/// for ever.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// The number of lines of a log in an error message.
const TAIL_LINES: usize = 30;

/// Runs a program to its end and returns its standard output. The error of a failed program
/// contains its output.
pub fn run(command: &mut Command) -> Result<String> {
    let output = run_to_output(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let written = [output.stdout, output.stderr].concat();
    Err(Error::Command {
        program: describe(command),
        status: output.status.to_string(),
        output: last_lines(&String::from_utf8_lossy(&written), TAIL_LINES),
    })
}

/// Returns a command that starts `program` through another one, whose words come first.
///
/// Without words the command starts the program itself.
pub fn through(words: &[String], program: &Path) -> Command {
    let Some((first, rest)) = words.split_first() else {
        return Command::new(program);
    };
    let mut command = Command::new(first);
    command.args(rest).arg(program);
    command
}

/// Runs a program to its end, whether or not it succeeds.
pub fn run_to_output(command: &mut Command) -> Result<Output> {
    command.output().map_err(|source| Error::Spawn {
        program: describe(command),
        source,
    })
}

/// Runs a program with our terminal, so that the user sees its output at once.
pub fn run_visibly(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|source| Error::Spawn {
        program: describe(command),
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Command {
        program: describe(command),
        status: status.to_string(),
        output: "its output is above".to_owned(),
    })
}

/// A child process that writes to a log file and ends with its owner.
///
/// A child keeps running only if its owner is killed with SIGKILL. For that case the child's
/// identity is stored beside the log, and the next start with the same log ends the child.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Process {
    /// Starts the command and appends its output to the log.
    ///
    /// The child has its own process group: Ctrl-C in the terminal reaches only us, and we stop our
    /// children in order.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Process> {
        end_leftover(name, log)?;
        if log
            .metadata()
            .is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX)
        {
            std::fs::rename(log, log.with_extension("log.1"))
                .map_err(Error::file("rename", log))?;
        }
        let open = || -> Result<File> {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(log)
                .map_err(Error::file("open", log))
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(open()?)
            .stderr(open()?)
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn {
                program: describe(command),
                source,
            })?;
        let process = Process {
            name: name.to_owned(),
            log: log.to_owned(),
            child,
        };
        let identity_file = identity_file(log);
        std::fs::write(&identity_file, identity(process.id()).unwrap_or_default())
            .map_err(Error::file("write", &identity_file))?;
        Ok(process)
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the log file.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Returns the exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Fails with the end of the log if the process has died.
    pub fn check(&mut self) -> Result<()> {
        match self.ended() {
            None => Ok(()),
            Some(status) => Err(Error::Died {
                name: self.name.clone(),
                status: status.to_string(),
                log: self.log.clone(),
                tail: tail(&self.log),
            }),
        }
    }

    /// Sends a signal. This is no error if the process has ended.
    pub fn signal(&mut self, signal: Signal) {
        // The id cannot be reused as long as the child is not waited for.
        if self.ended().is_none() {
            send(self.id(), signal);
        }
    }

    /// Sends the signal and waits for the end. Fails if that takes longer than `timeout`.
    pub fn stop(&mut self, signal: Signal, timeout: Duration) -> Result<ExitStatus> {
        self.signal(signal);
        self.wait(timeout)
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if start.elapsed() > timeout {
                return Err(self.late("the end", timeout));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Calls `ready` until it returns true. Fails if the process ends first, or after `timeout`.
    pub fn wait_until(
        &mut self,
        what: &str,
        timeout: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !ready() {
            self.check()?;
            if start.elapsed() > timeout {
                return Err(self.late(what, timeout));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Leaves the process running after this value is gone.
    pub fn leave_running(self) {
        // Dropping the value would kill the process.
        std::mem::forget(self);
    }

    fn late(&self, what: &str, timeout: Duration) -> Error {
        Error::Timeout {
            what: format!("{}: {what}", self.name),
            seconds: timeout.as_secs(),
            log: self.log.clone(),
            tail: tail(&self.log),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // This fails only if the child was already waited for.
        let _ = self.child.wait();
        // A remaining file names a process that no longer exists, which is harmless.
        let _ = std::fs::remove_file(identity_file(&self.log));
    }
}

/// Sends a signal to a process id. Returns false if the process does not exist or belongs to
/// another account.
pub fn send(id: u32, signal: Signal) -> bool {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Kills a process that may be about to end by itself, and returns false if it did. The process is
/// stopped first. A stopped process cannot end by itself, so its parent sees a killed child.
pub fn kill_surely(id: u32) -> bool {
    if !send(id, Signal::STOP) {
        return false;
    }
    loop {
        match stat(id) {
            Some(('T', _)) => return send(id, Signal::KILL),
            None | Some(('Z' | 'X', _)) => return false,
            // The signal has not arrived yet.
            Some(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Whether a process with this number exists and is not a zombie.
pub fn is_alive(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state != 'Z')
}

/// Returns the direct children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id| stat(*id).is_some_and(|(_, its_parent)| its_parent == parent))
        .collect()
}

/// Returns state and parent of a process.
fn stat(id: u32) -> Option<(char, u32)> {
    let fields = stat_fields(id)?;
    Some((
        fields.first()?.chars().next()?,
        fields.get(1)?.parse().ok()?,
    ))
}

/// Returns the fields of `/proc/<id>/stat` from the third on: state, parent, …
fn stat_fields(id: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may contain spaces and parentheses
    // itself.
    Some(
        text[text.rfind(')')? + 1..]
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
    )
}

/// Returns the id and the start time of a process, which distinguish it from a later one with the
/// same id.
fn identity(id: u32) -> Option<String> {
    const START_TIME: usize = 22 - 3;
    Some(format!("{id} {}", stat_fields(id)?.get(START_TIME)?))
}

fn identity_file(log: &Path) -> PathBuf {
    log.with_extension("process")
}

/// Ends the process that a killed owner left running with this log.
pub fn end_leftover(name: &str, log: &Path) -> Result<()> {
    let kept = std::fs::read_to_string(identity_file(log)).unwrap_or_default();
    let Some(id) = kept
        .split_whitespace()
        .next()
        .and_then(|id| id.parse().ok())
    else {
        return Ok(());
    };
    let still_there = || is_alive(id) && identity(id).is_some_and(|identity| identity == kept);
    if !still_there() {
        return Ok(());
    }
    println!("ending a leftover {name} (process {id}) of an earlier run");
    let start = Instant::now();
    send(id, Signal::TERM);
    while still_there() {
        if start.elapsed() > LEFTOVER_TIMEOUT {
            send(id, Signal::KILL);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Returns the last lines of a log file, or the error of reading it.
pub fn tail(log: &Path) -> String {
    match std::fs::read(log) {
        Ok(bytes) => last_lines(&String::from_utf8_lossy(&bytes), TAIL_LINES),
        Err(error) => format!("({error})"),
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("lanes-process-{name}-{}.log", std::process::id()))
    }

    #[test]
    fn a_child_that_dies_is_reported_with_the_end_of_its_log() {
        let log = log("dies");
        let mut child = Process::start(
            "the child",
            Command::new("sh").args(["-c", "echo last words; exit 3"]),
            &log,
        )
        .unwrap();
        let error = child
            .wait_until("never", Duration::from_secs(20), || false)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the child") && error.contains("last words") && error.contains('3'),
            "{error}"
        );
        std::fs::remove_file(&log).unwrap();
    }

    #[test]
    fn a_child_ends_with_its_owner() {
        let log = log("owner");
        let child = Process::start("sleeper", Command::new("sleep").arg("600"), &log).unwrap();
        let id = child.id();
        assert!(is_alive(id) && children(std::process::id()).contains(&id));
        drop(child);
        assert!(!is_alive(id));
        std::fs::remove_file(&log).unwrap();
    }

    #[test]
    fn a_process_of_a_killed_owner_is_ended_by_the_next_start() {
        let log = log("leftover");
        let mut left = Command::new("sleep")
            .arg("600")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::fs::write(identity_file(&log), identity(left.id()).unwrap()).unwrap();
        drop(Process::start("sleeper", Command::new("sleep").arg("600"), &log).unwrap());
        assert!(!is_alive(left.id()));
        left.wait().unwrap();

        // A process with the same id and another start time is another program.
        let mut stranger = Command::new("sleep")
            .arg("600")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::fs::write(identity_file(&log), format!("{} 1", stranger.id())).unwrap();
        drop(Process::start("sleeper", Command::new("sleep").arg("600"), &log).unwrap());
        assert!(is_alive(stranger.id()));
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        std::fs::remove_file(&log).unwrap();
    }

    #[test]
    fn kill_surely_detects_a_process_that_ended_by_itself() {
        let mut ended = Command::new("true").spawn().unwrap();
        while is_alive(ended.id()) {
            std::thread::sleep(POLL_INTERVAL);
        }
        // A zombie accepts signals without an error.
        assert!(send(ended.id(), Signal::KILL));
        assert!(!kill_surely(ended.id()));
        assert!(ended.wait().unwrap().success());

        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(kill_surely(sleeper.id()));
        assert!(!sleeper.wait().unwrap().success());
    }

    #[test]
    fn the_error_of_a_failed_command_contains_its_output() {
        let error = run(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 7"]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("out\nerr") && error.contains('7'), "{error}");
    }

    #[test]
    fn last_lines_returns_the_end_of_a_text() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
        assert_eq!(last_lines("", 2), "");
    }
}
