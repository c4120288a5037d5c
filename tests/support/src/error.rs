//! Failures of the harness, each worded so that the reader knows what to do next.

use std::io;
use std::path::PathBuf;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the remedy where there is one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A program could not be started at all.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A program ran and failed.
    #[error("{program} failed ({status})\n{output}")]
    Command {
        /// The program with its arguments.
        program: String,
        /// How it ended.
        status: String,
        /// The end of what it wrote.
        output: String,
    },
    /// A child process ended on its own.
    #[error("{name} ended unexpectedly ({status}); the end of {log}:\n{tail}")]
    Died {
        /// The child, as a person calls it.
        name: String,
        /// How it ended.
        status: String,
        /// Its log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {seconds} s; the end of {log}:\n{tail}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long, in seconds.
        seconds: u64,
        /// The log of the process that was waited for.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// A port that was asked for is in use.
    #[error(
        "port {port} on 127.0.0.1 is taken{holder}; end that program, or choose another port: {variable}=<port>"
    )]
    PortTaken {
        /// The port.
        port: u16,
        /// Who holds it, where that can be found out (starts with a space), else empty.
        holder: String,
        /// The environment variable that moves us elsewhere.
        variable: &'static str,
    },
    /// Something has to be installed or built first.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// What is missing.
        what: String,
        /// The command that brings it.
        remedy: &'static str,
    },
    /// An environment variable has an unusable value.
    #[error("{variable}={value}: {reason}")]
    Setting {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// Why it cannot be used.
        reason: &'static str,
    },
    /// Postgres answered with an error, or could not be reached.
    #[error("Postgres: {}", describe_postgres(.0))]
    Postgres(#[from] postgres::Error),
    /// A program answered over HTTP with something unusable.
    #[error("{url}: {reason}")]
    Http {
        /// What was asked.
        url: String,
        /// What was wrong with the answer.
        reason: String,
    },
    /// Another thing that a person has to know.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Wraps an I/O error with the path it is about.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File {
            action,
            path,
            source,
        }
    }
}

/// The server's own words and SQLSTATE; the client crate's `Display` says only "db error".
fn describe_postgres(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(answer) => {
            let mut text = format!(
                "{} {}: {}",
                answer.severity(),
                answer.code().code(),
                answer.message()
            );
            for (label, part) in [("DETAIL", answer.detail()), ("HINT", answer.hint())] {
                if let Some(part) = part {
                    text.push_str(&format!("\n{label}: {part}"));
                }
            }
            text
        }
        None => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                text.push_str(&format!(": {inner}"));
                cause = inner.source();
            }
            text
        }
    }
}
