//! Samples of the past: all scrapes of a fleet over a span of time, sent as fast as a system takes them.

use super::phase::{Way, send};
use super::sender::{Fleet, Sender};
use crate::fleet::bodies::Held;
use crate::fleet::shape::Shape;
use crate::peers::system::System;
use lanes_support::error::{Error, Result};
use std::sync::Arc;

/// The samples of all scrapes of a fleet over a span of time: the same arguments give the same bytes.
pub struct History<'a> {
    /// The series of a target.
    pub shape: &'a Shape,
    /// How targets are scraped.
    pub fleet: &'a Fleet,
    /// How many targets there are.
    pub targets: usize,
    /// Scrapes of each.
    pub scrapes: usize,
    /// How many scrapes are sent before `round` is called.
    pub scrapes_a_round: usize,
    /// The time of the first scrape, in milliseconds since 1970.
    pub start: i64,
    /// The way in which the samples are sent.
    pub way: Way,
}

impl<'a> History<'a> {
    /// Sends everything; `round` is called after every few scrapes. Gives what the system holds then, and the sender of
    /// the scrapes that follow.
    ///
    /// # Errors
    /// Samples that are not taken, or a failure of `round`.
    pub fn send_all(
        &self,
        system: &mut dyn System,
        mut round: impl FnMut() -> Result<()>,
    ) -> Result<(Held, Sender<'a>)> {
        let mut sender = Sender::new(self.shape, self.fleet, self.targets, self.start);
        let mut sent = Held::default();
        let mut to_come = self.scrapes;
        while to_come > 0 {
            let count = to_come.min(self.scrapes_a_round.max(1));
            let bodies = Arc::new(sender.scrapes(self.targets, count)?);
            let phase = send(system, &bodies, &self.way)?;
            if phase.dropped > 0 {
                return Err(Error::Other(format!(
                    "{} samples were not taken: {}",
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
