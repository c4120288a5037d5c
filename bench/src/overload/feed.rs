//! The requests of an overload, and how much of each is stored.

use super::probe::ProbeRequest;
use crate::load::{Outcome, Plan, Source};
use crate::scenario::system::System;
use lanes_support::error::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much of a request is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The whole request, once.
    Whole,
    /// A part of the request, or more than one copy.
    Otherwise,
}

/// A kind of requests.
pub trait Feed {
    /// Runs a closed loop according to the plan with its own requests, and verifies what is stored.
    ///
    /// # Errors
    /// The load or the verification fails.
    fn trial(&mut self, system: &System, plan: &Plan) -> Result<Outcome>;

    /// Returns the requests of the overload, at least `count`.
    ///
    /// # Errors
    /// The requests cannot be created.
    fn requests(&mut self, system: &System, count: u64) -> Result<Arc<dyn Source>>;

    /// Returns the request of the probe, which takes the same path as the overload's requests.
    fn probe(&self) -> ProbeRequest;

    /// Returns how much of each of the overload's requests is stored, by the requests' numbers.
    /// Requests of which nothing is stored are absent.
    ///
    /// # Errors
    /// PostgreSQL fails.
    fn stored(&mut self, system: &System) -> Result<BTreeMap<u64, Stored>>;
}
