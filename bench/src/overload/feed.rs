//! What is sent, and what is stored of each request.

use super::probe::ProbeRequest;
use crate::load::{Outcome, Plan, Source};
use crate::scenario::system::System;
use lanes_support::error::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much of a request is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// All of it, once.
    Whole,
    /// Something else, but not nothing.
    Otherwise,
}

/// One kind of requests.
pub trait Feed {
    /// Runs a closed loop as the plan has it, with requests of its own; what is stored is verified.
    ///
    /// # Errors
    /// The load's, and of the verification.
    fn trial(&mut self, system: &System, plan: &Plan) -> Result<Outcome>;

    /// The requests of the overload, at least so many.
    ///
    /// # Errors
    /// They cannot be made.
    fn requests(&mut self, system: &System, count: u64) -> Result<Arc<dyn Source>>;

    /// What the probe sends; it goes the way of the overload's requests.
    fn probe(&self) -> ProbeRequest;

    /// What is stored of the overload's requests, by their numbers; those of which nothing is stored are left out.
    ///
    /// # Errors
    /// PostgreSQL's.
    fn stored(&mut self, system: &System) -> Result<BTreeMap<u64, Stored>>;
}
