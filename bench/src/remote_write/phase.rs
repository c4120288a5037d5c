//! One load on one system: latencies, CPU of every process, verification.

use super::requests::Requests;
use crate::fleet::bodies::{Body, SampleTotals};
use crate::load::{self, Outcome, Pace, Plan};
use crate::peers::system::System;
use crate::pinning::Processors;
use crate::usage::{Usage, Work};
use lanes_support::error::{Error, Result};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The longest time of a load, which normally ends with its list of requests. A slower system is
/// considered unresponsive.
const TIME_MAX: Duration = Duration::from_secs(900);
/// The longest wait for responses after the last request of an open loop.
const DRAIN: Duration = Duration::from_secs(30);

/// The number of retries of a refused request while series are made known.
pub const ATTEMPTS_TO_KNOW: u32 = 100;

/// How a phase sends its requests.
#[derive(Debug, Clone)]
pub struct Way {
    /// The pace of the requests.
    pub pace: Pace,
    /// The number of keep-alive connections.
    pub connections: usize,
    /// The number of retries of requests that are refused with 429 or 503.
    pub attempts_again: u32,
    /// The time from the last response until CPU is read, so that deferred work is counted.
    pub settle: Duration,
    /// The client's processors.
    pub client: Processors,
}

impl Way {
    /// Sends as fast as a system accepts, and again what it refuses: to fill it before a measurement.
    pub fn filling(connections: usize, client: &Processors) -> Way {
        Way {
            pace: Pace::Closed,
            connections,
            attempts_again: ATTEMPTS_TO_KNOW,
            settle: Duration::ZERO,
            client: client.clone(),
        }
    }
}

/// The figures of a phase.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Requests, latencies, failures, the client's CPU.
    pub outcome: Outcome,
    /// The number of acknowledged samples.
    pub samples: u64,
    /// The number of samples of requests that were not acknowledged.
    pub dropped: u64,
    /// What a store has gained if it contains everything that was sent.
    pub sent: SampleTotals,
    /// CPU time of all processes of the system until the end of the settling time.
    pub cpu_seconds: f64,
    /// The CPU time by the kind of work of the processes.
    pub cpu_by_work: BTreeMap<Work, f64>,
    /// The usage of all processes at the end.
    pub usage: Usage,
}

impl Phase {
    /// Returns CPU seconds of the system per million samples.
    pub fn cpu_per_million(&self) -> f64 {
        self.per_million(self.cpu_seconds)
    }

    fn per_million(&self, seconds: f64) -> f64 {
        seconds * 1e6 / (self.samples as f64).max(1.0)
    }

    /// Returns the shares of each kind of work, if there are several.
    pub fn shares(&self) -> Option<String> {
        let shares: Vec<String> = self
            .cpu_by_work
            .iter()
            .map(|(work, seconds)| format!("{} {:.2}", work.name(), self.per_million(*seconds)))
            .collect();
        (shares.len() > 1).then(|| shares.join(", "))
    }

    /// Returns acknowledged samples per second.
    pub fn rate(&self) -> f64 {
        self.samples as f64 / self.outcome.seconds
    }
}

/// Sends these bodies.
pub fn send(system: &mut dyn System, bodies: &Arc<Vec<Body>>, way: &Way) -> Result<Phase> {
    let requests = Requests::new(system, Arc::clone(bodies));
    let (sent, count) = (requests.holds(), requests.count());
    let address = SocketAddr::from(([127, 0, 0, 1], system.port()));
    let window = match way.pace {
        Pace::Closed => TIME_MAX,
        Pace::Open(rate) => Duration::from_secs_f64(count as f64 / rate),
    };
    let plan = Plan {
        pace: way.pace,
        connections: way.connections,
        warm_up: Duration::ZERO,
        window,
        drain: DRAIN,
        attempts_again: way.attempts_again,
        processors: way.client.clone(),
        ..Plan::new(address, Arc::new(requests))
    };
    let tree = system.tree();
    let (before, mut cpu_by_work) = (tree.cpu_seconds(), tree.cpu_by_work());
    let outcome = load::run(&plan)?;
    std::thread::sleep(way.settle);
    system.check()?;
    let usage = tree.usage();
    let earlier = std::mem::replace(&mut cpu_by_work, tree.cpu_by_work());
    for (work, seconds) in &mut cpu_by_work {
        *seconds -= earlier.get(work).copied().unwrap_or_default();
    }
    let samples = outcome.tally.checksum;
    Ok(Phase {
        samples,
        dropped: sent.samples.saturating_sub(samples),
        sent,
        cpu_seconds: usage.cpu_seconds - before,
        cpu_by_work,
        usage,
        outcome,
    })
}

/// Fails if the system does not contain, from a time on (milliseconds since 1970), what was
/// acknowledged. Requests with an unknown result may be present or absent.
pub fn verify(
    system: &dyn System,
    (job, since): (&str, i64),
    sent: SampleTotals,
    acknowledged: u64,
) -> Result<()> {
    let held = system.stored_samples(job, since)?;
    let right = match acknowledged == sent.samples {
        true => held.agrees(&sent),
        false => (acknowledged..=sent.samples).contains(&held.samples),
    };
    if right {
        return Ok(());
    }
    Err(Error::Other(format!(
        "{} contains {} samples with the sum {}; {} with the sum {} were sent, {acknowledged} acknowledged",
        system.name(),
        held.samples,
        held.sum,
        sent.samples,
        sent.sum
    )))
}
