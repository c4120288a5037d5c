//! One load on one system: latencies, CPU of every process, verification.

use super::requests::Requests;
use crate::fleet::bodies::{Body, Held};
use crate::load::{self, Outcome, Pace, Plan};
use crate::peers::system::System;
use crate::pinning::Processors;
use crate::usage::{Usage, Work};
use lanes_support::error::{Error, Result};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A list of requests ends the load; a system that takes longer than this for them does not answer.
const TIME_MAX: Duration = Duration::from_secs(900);
/// How long answers are waited for after the last request of an open loop.
const DRAIN: Duration = Duration::from_secs(30);

/// How often a refused request is sent again while series are made known.
pub const ATTEMPTS_TO_KNOW: u32 = 100;

/// How a phase is sent.
#[derive(Debug, Clone)]
pub struct Way {
    /// Requests a second, or each connection as fast as it is answered.
    pub pace: Pace,
    /// Keep-alive connections.
    pub connections: usize,
    /// Requests that are refused with 429 or 503 are sent again so often.
    pub attempts_again: u32,
    /// After the last answer, until CPU is read: work put off is work.
    pub settle: Duration,
    /// Where the client runs.
    pub client: Processors,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Requests, latencies, failures, the client's CPU.
    pub outcome: Outcome,
    /// Samples that were acknowledged.
    pub samples: u64,
    /// Samples of requests that were not.
    pub dropped: u64,
    /// What a store has more with everything that was sent.
    pub sent: Held,
    /// CPU of all processes of the system, with what they did until the settling ended.
    pub cpu_seconds: f64,
    /// The same by what processes do.
    pub cpu_by_work: BTreeMap<Work, f64>,
    /// All processes at the end.
    pub usage: Usage,
}

impl Phase {
    /// CPU seconds of the system for a million samples.
    pub fn cpu_per_million(&self) -> f64 {
        self.per_million(self.cpu_seconds)
    }

    fn per_million(&self, seconds: f64) -> f64 {
        seconds * 1e6 / (self.samples as f64).max(1.0)
    }

    /// Of that, what each kind of work took, where there are several.
    pub fn shares(&self) -> Option<String> {
        let shares: Vec<String> = self
            .cpu_by_work
            .iter()
            .map(|(work, seconds)| format!("{} {:.2}", work.name(), self.per_million(*seconds)))
            .collect();
        (shares.len() > 1).then(|| shares.join(", "))
    }

    /// Samples acknowledged a second.
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

/// Fails when the system does not hold, from a time on (milliseconds since 1970), what was acknowledged. Requests whose answer is not known may be in it or not.
pub fn verify(
    system: &dyn System,
    (job, since): (&str, i64),
    sent: Held,
    acknowledged: u64,
) -> Result<()> {
    let held = system.held(job, since)?;
    let right = match acknowledged == sent.samples {
        true => held.agrees(&sent),
        false => (acknowledged..=sent.samples).contains(&held.samples),
    };
    if right {
        return Ok(());
    }
    Err(Error::Other(format!(
        "{} holds {} samples with the sum {}; sent were {} with the sum {}, acknowledged {acknowledged}",
        system.name(),
        held.samples,
        held.sum,
        sent.samples,
        sent.sum
    )))
}
