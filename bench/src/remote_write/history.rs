//! Samples of the past: all scrapes of a fleet over a span of time, sent as fast as a system
//! accepts them.

use super::phase::{Way, send};
use super::sender::{Fleet, Sender};
use crate::fleet::bodies::SampleTotals;
use crate::fleet::shape::TargetShape;
use crate::peers::system::System;
use lanes_support::error::{Error, Result};
use std::sync::Arc;

/// The samples of all scrapes of a fleet over a span of time. Equal arguments produce equal bytes.
pub struct History<'a> {
    /// The series of a target.
    pub shape: &'a TargetShape,
    /// The scrape interval and size of the fleet.
    pub fleet: &'a Fleet,
    /// The number of targets.
    pub targets: usize,
    /// The number of scrapes of each target.
    pub scrapes: usize,
    /// The number of scrapes between two calls of `round`.
    pub scrapes_a_round: usize,
    /// The time of the first scrape, in milliseconds since 1970.
    pub start: i64,
    /// The way in which the samples are sent.
    pub way: Way,
}

impl<'a> History<'a> {
    /// Sends everything, and calls `round` after every few scrapes. Returns the content of the
    /// store, and the sender of the scrapes that follow.
    ///
    /// # Errors
    /// Samples are not acknowledged, or `round` fails.
    pub fn send_all(
        &self,
        system: &mut dyn System,
        mut round: impl FnMut() -> Result<()>,
    ) -> Result<(SampleTotals, Sender<'a>)> {
        let mut sender = Sender::new(self.shape, self.fleet, self.targets, self.start);
        let mut sent = SampleTotals::default();
        let mut to_come = self.scrapes;
        while to_come > 0 {
            let count = to_come.min(self.scrapes_a_round.max(1));
            let bodies = Arc::new(sender.scrapes(self.targets, count)?);
            let phase = send(system, &bodies, &self.way)?;
            if phase.dropped > 0 {
                return Err(Error::Other(format!(
                    "{} samples were not acknowledged: {}",
                    phase.dropped,
                    phase.outcome.labels().join("; ")
                )));
            }
            sent.add(phase.sent);
            round()?;
            to_come -= count;
        }
        Ok((sent, sender))
    }
}
