//! DuckDB and Polars as stores: engines in separate processes, which time themselves.

use super::query::{Dialect, Query};
use super::store::Store;
use crate::sql::answer::{Answer, from_json};
use crate::sql::peer::{Peer, Start, Timing, milliseconds};
use crate::sql::postgres_run::first_line;
use std::time::Duration;

/// An engine.
pub struct PeerStore<'a> {
    start: Start<'a>,
    dialect: Dialect,
    /// Statements that create the tables that are not in the files.
    statements: Vec<String>,
    /// The running process. `None` until it is needed, and after it failed to respond.
    peer: Option<Peer>,
}

impl PeerStore<'_> {
    /// Creates a store whose engine starts with its first query.
    pub fn new<'a>(start: Start<'a>, dialect: Dialect, statements: &[String]) -> PeerStore<'a> {
        PeerStore {
            start,
            dialect,
            statements: statements.to_vec(),
            peer: None,
        }
    }

    /// Returns the engine's version, once it has started.
    pub fn version(&self) -> Option<&str> {
        self.peer.as_ref().map(|peer| peer.version.as_str())
    }
}

const ONCE: Timing = Timing {
    warm_up: 0,
    repeat: 1,
    repeat_min: 1,
    budget: Duration::ZERO,
};

impl Store for PeerStore<'_> {
    fn name(&self) -> &str {
        self.start.system
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn begin(&mut self, _query: &Query) -> Result<(), String> {
        if self.peer.is_some() {
            return Ok(());
        }
        let mut peer = Peer::start(&self.start).map_err(|error| first_line(&error.to_string()))?;
        if !self.statements.is_empty() {
            let told = peer.ask(&self.statements, "SELECT 1", ONCE)?;
            if let Some(error) = told["error"].as_str() {
                return Err(first_line(error));
            }
        }
        self.peer = Some(peer);
        Ok(())
    }

    fn ask(&mut self, text: &str, timing: Timing) -> Result<(Answer, Vec<f64>), String> {
        let peer = self.peer.as_mut().ok_or("it does not run")?;
        let told = match peer.ask(&[], text, timing) {
            Ok(told) => told,
            Err(reason) => {
                self.peer = None;
                return Err(reason);
            }
        };
        if let Some(error) = told["error"].as_str() {
            return Err(first_line(error));
        }
        Ok((from_json(&told["answer"])?, milliseconds(&told)))
    }
}
