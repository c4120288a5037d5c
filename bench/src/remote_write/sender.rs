//! A fleet whose time advances: the bodies of its next scrapes.

use crate::fleet::bodies::{Bodies, Body};
use crate::fleet::capture::capture;
use crate::fleet::shape::TargetShape;
use crate::fleet::values::Values;
use lanes_support::error::Result;
use serde::Deserialize;
use std::path::Path;

/// The seed of the values, which are equal in each run with the same page.
const SEED: u64 = 0x1a9e5;

/// A fleet as a data file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// The number of series of a target.
    pub series_per_target: usize,
    /// The seconds between scrapes of a target.
    pub interval_seconds: f64,
    /// The number of targets in a request.
    pub targets_per_request: usize,
}

impl Fleet {
    /// Returns the requests per second of a number of targets.
    pub fn requests_per_second(&self, targets: usize) -> f64 {
        targets.div_ceil(self.targets_per_request.max(1)) as f64 / self.interval_seconds
    }
}

impl Fleet {
    /// Returns the shape of a target, from this machine's node_exporter, whose log is written to
    /// the folder.
    pub fn shape(&self, folder: &Path) -> Result<TargetShape> {
        Ok(TargetShape::of(&capture(folder)?, self.series_per_target))
    }
}

/// Generates the scrapes of a number of targets, one after another.
pub struct Sender<'a> {
    shape: &'a TargetShape,
    fleet: &'a Fleet,
    values: Values,
    bodies: Bodies,
    /// The time of the next scrape, in milliseconds since 1970.
    time: i64,
    next_to_replace: usize,
    revision: usize,
}

impl<'a> Sender<'a> {
    /// Creates a sender whose first scrape is at `time`, in milliseconds since 1970. Equal
    /// arguments produce equal bytes.
    pub fn new(shape: &'a TargetShape, fleet: &'a Fleet, targets: usize, time: i64) -> Sender<'a> {
        Sender {
            shape,
            fleet,
            values: Values::new(shape, targets, SEED),
            bodies: Bodies::new(shape, 0..targets, fleet.targets_per_request),
            time,
            next_to_replace: 0,
            revision: 1,
        }
    }

    /// Returns the bodies of the next scrape of the first `targets` targets.
    pub fn scrape(&mut self, targets: usize) -> Result<Vec<Body>> {
        let interval = (self.fleet.interval_seconds * 1000.0) as i64;
        let bodies = self
            .bodies
            .scrape(&self.values, targets, self.time, interval)?;
        self.values.advance(self.shape, self.fleet.interval_seconds);
        self.time += interval;
        Ok(bodies)
    }

    /// Returns the bodies of the next `count` scrapes.
    pub fn scrapes(&mut self, targets: usize, count: usize) -> Result<Vec<Body>> {
        let mut bodies = Vec::new();
        for _ in 0..count {
            bodies.append(&mut self.scrape(targets)?);
        }
        Ok(bodies)
    }

    /// Replaces the machines of a number of targets and returns the number of new series.
    pub fn churn(&mut self, targets: usize) -> usize {
        for _ in 0..targets {
            self.bodies.replace(self.next_to_replace, self.revision);
            self.next_to_replace += 1;
            if self.next_to_replace == self.values.targets() {
                (self.next_to_replace, self.revision) = (0, self.revision + 1);
            }
        }
        targets * self.shape.series.len()
    }

    /// Returns the time of the next scrape, in milliseconds since 1970.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// Moves the next scrape to a time, in milliseconds since 1970, unless it is already later.
    pub fn skip_to(&mut self, time: i64) {
        self.time = self.time.max(time);
    }
}
