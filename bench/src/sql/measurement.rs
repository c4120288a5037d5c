//! The result of executing one row's query on one system.

use crate::statistics::Times;

/// Whose figure a measurement is. A bar applies to some kinds only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// pg_lanes, from sending the query until its last row is received.
    Ours,
    /// pg_lanes, the executor's own time.
    OursInEngine,
    /// Any other system.
    Peer,
}

/// The unit of a measurement's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    Microseconds,
}

impl Unit {
    /// Returns the unit's name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
        }
    }
}

/// The result of executing one row's query on one system.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The row of the table.
    pub row: String,
    /// The system's name in the table.
    pub system: String,
    /// Whose figure it is.
    pub kind: Kind,
    /// The unit of the times.
    pub unit: Unit,
    /// The times of verified executions, or the reason why there are none.
    pub times: Result<Times, String>,
    /// CPU time of the server's process per execution, in milliseconds.
    pub server_cpu: Option<f64>,
    /// CPU time of the client's process per execution, in milliseconds, if the client is another
    /// process.
    pub client_cpu: Option<f64>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Measurement {
    /// Creates a measurement in milliseconds without CPU times and notes.
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

    /// Returns the median, if there are times.
    pub fn median(&self) -> Option<f64> {
        self.times.as_ref().ok().map(Times::median)
    }
}
