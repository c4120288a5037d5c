//! What one system's executions of one row's query gave.

use crate::statistics::Times;

/// Whose figure it is, which decides whether a bar is for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lanes, from sending the query to its last row received.
    Ours,
    /// Lanes, the executor's own time.
    OursInEngine,
    /// Anyone else.
    Peer,
}

/// The unit of a measurement's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    Microseconds,
}

impl Unit {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
        }
    }
}

/// What one system's executions of one row's query gave.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The row of the table.
    pub row: String,
    /// The system, as it is printed.
    pub system: String,
    /// Whose figure it is.
    pub kind: Kind,
    /// The unit of the times.
    pub unit: Unit,
    /// The times of verified executions, or why there are none.
    pub times: Result<Times, String>,
    /// CPU time of the process that answers, in milliseconds an execution.
    pub server_cpu: Option<f64>,
    /// CPU time of the process that asks, where that is another one, in milliseconds an execution.
    pub client_cpu: Option<f64>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

impl Measurement {
    /// A measurement in milliseconds without CPU times and notes.
    pub fn new(row: &str, system: &str, kind: Kind, times: Result<Times, String>) -> Measurement {
        Measurement {
            row: row.to_owned(),
            system: system.to_owned(),
            kind,
            unit: Unit::Milliseconds,
            times,
            server_cpu: None,
            client_cpu: None,
            notes: Vec::new(),
        }
    }

    /// The median, if there is one.
    pub fn median(&self) -> Option<f64> {
        self.times.as_ref().ok().map(Times::median)
    }
}
