//! The errors of the harness. Each message says what to do next.

use std::io;
use std::path::PathBuf;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error, with the remedy if there is one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// The attempted action, as a verb.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A program could not be started at all.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// A program ran and failed.
    #[error("{program} failed ({status})\n{output}")]
    Command {
        /// The program with its arguments.
        program: String,
        /// The exit status.
        status: String,
        /// The end of its output.
        output: String,
    },
    /// A child process died.
    #[error("{name} ended unexpectedly ({status}); the end of {log}:\n{tail}")]
    Died {
        /// The child's name for people.
        name: String,
        /// The exit status.
        status: String,
        /// Its log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {seconds} s; the end of {log}:\n{tail}")]
    Timeout {
        /// The awaited event.
        what: String,
        /// The time in seconds.
        seconds: u64,
        /// The log of the process.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// A requested port is in use.
    #[error(
        "port {port} on 127.0.0.1 is taken{holder}; end that program, or choose another port: {variable}=<port>"
    )]
    PortTaken {
        /// The port.
        port: u16,
        /// The process that holds the port, with a leading space; empty if unknown.
        holder: String,
        /// The environment variable that selects another port.
        variable: &'static str,
    },
    /// Something has to be installed or built first.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// The missing file or program.
        what: String,
        /// The command that installs or builds it.
        remedy: &'static str,
    },
    /// An environment variable has an unusable value.
    #[error("{variable}={value}: {reason}")]
    Setting {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The reason why it cannot be used.
        reason: &'static str,
    },
    /// PostgreSQL returned an error or could not be reached.
    #[error("Postgres: {}", describe_postgres(.0))]
    Postgres(#[from] postgres::Error),
    /// A program returned an unusable HTTP response.
    #[error("{url}: {reason}")]
    Http {
        /// The requested URL.
        url: String,
        /// The fault of the response.
        reason: String,
    },
    /// Any other error.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Wraps an I/O error with its path.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File {
            action,
            path,
            source,
        }
    }
}

/// Returns the server's message and SQLSTATE; the client crate's `Display` is only "db error".
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
