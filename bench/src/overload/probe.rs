//! Small requests of a separate client, one at a time. They measure the latency before the load,
//! and when it is reached again.

use lanes_support::error::{Error, Result};
use lanes_support::gateway::Gateway;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between a response and the next probe.
const PAUSE: Duration = Duration::from_millis(10);
/// The number of consecutive probes with normal latency that end the wait. A single one may be
/// chance.
const IN_A_ROW: usize = 3;
/// The longest wait for normal latency.
const PATIENCE: Duration = Duration::from_secs(30);

/// The request that is sent.
pub struct ProbeRequest {
    /// The path.
    pub path: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body for each number. Bodies differ if the gateway deduplicates equal ones.
    pub body: Box<dyn Fn(u64) -> Vec<u8> + Send + Sync>,
}

impl ProbeRequest {
    fn send(&self, gateway: &Gateway, number: u64) -> Result<Probe> {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let sent = Instant::now();
        let answer = gateway.post(&self.path, &headers, &(self.body)(number))?;
        Ok(Probe {
            sent,
            took: sent.elapsed(),
            is_acknowledged: (200..300).contains(&answer.status),
        })
    }
}

/// A probe that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The time at which it was sent.
    pub sent: Instant,
    /// The time until its response arrived.
    pub took: Duration,
    /// Whether the response was 2xx.
    pub is_acknowledged: bool,
}

/// The latency of a request while nothing else is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usual {
    /// The median.
    pub median: Duration,
    /// The greatest latency.
    pub slowest: Duration,
}

impl Usual {
    /// Whether a probe's latency is normal: at most the greatest normal latency, or at most twice
    /// the median.
    fn is(&self, probe: &Probe) -> bool {
        probe.is_acknowledged && probe.took <= self.slowest.max(2 * self.median)
    }
}

/// Sends `count` probes and returns the normal latency. The first probes find cold caches and do
/// not count.
///
/// # Errors
/// A probe is not acknowledged.
pub fn usual(request: &ProbeRequest, gateway: &Gateway, count: usize) -> Result<Usual> {
    let mut took = Vec::new();
    for number in 0..count.max(2) {
        let probe = request.send(gateway, number as u64)?;
        if !probe.is_acknowledged {
            return Err(Error::Other(
                "a probe was refused although nothing else was sent".to_owned(),
            ));
        }
        took.push(probe.took);
        std::thread::sleep(PAUSE);
    }
    let mut warm = took.split_off(took.len() / 5);
    warm.sort_unstable();
    Ok(Usual {
        median: warm[warm.len() / 2],
        slowest: warm[warm.len() - 1],
    })
}

/// Sends probes, numbered from `first`, until the load is over and their latency is normal again,
/// or until the wait is too long.
///
/// # Errors
/// A probe has no response.
pub fn watch(
    request: &ProbeRequest,
    gateway: &Gateway,
    first: u64,
    usual: Usual,
    is_over: &AtomicBool,
) -> Result<Vec<Probe>> {
    let mut probes = Vec::new();
    let mut over_at = None;
    for number in first.. {
        if over_at.is_none() && is_over.load(Ordering::Acquire) {
            over_at = Some(Instant::now());
        }
        if let Some(over_at) = over_at
            && (recovered(&probes, usual, over_at).is_some() || over_at.elapsed() > PATIENCE)
        {
            break;
        }
        probes.push(request.send(gateway, number)?);
        std::thread::sleep(PAUSE);
    }
    Ok(probes)
}

/// Returns the time from `end` to the response of the first of several consecutive normal probes
/// that were sent after `end`.
pub fn recovered(probes: &[Probe], usual: Usual, end: Instant) -> Option<Duration> {
    let later: Vec<&Probe> = probes.iter().filter(|probe| probe.sent >= end).collect();
    let row = later
        .windows(IN_A_ROW)
        .find(|row| row.iter().all(|probe| usual.is(probe)))?;
    Some(row[0].sent + row[0].took - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_consecutive_normal_probes_after_the_end_are_a_recovery() {
        let milliseconds = Duration::from_millis;
        let usual = Usual {
            median: milliseconds(2),
            slowest: milliseconds(5),
        };
        let end = Instant::now();
        let probes = |took: &[(u64, bool)]| -> Vec<Probe> {
            let numbered = took.iter().enumerate();
            numbered
                .map(|(number, (took, is_acknowledged))| Probe {
                    sent: end + milliseconds(100 * number as u64),
                    took: milliseconds(*took),
                    is_acknowledged: *is_acknowledged,
                })
                .collect()
        };
        let slow_refused_slow = probes(&[
            (90, true),
            (1, false),
            (4, true),
            (5, true),
            (6, true),
            (5, true),
            (1, true),
            (3, true),
        ]);
        assert_eq!(
            recovered(&slow_refused_slow, usual, end),
            Some(milliseconds(505))
        );
        assert_eq!(recovered(&slow_refused_slow[..7], usual, end), None);
        // A probe that was sent before the end says nothing about the time after it.
        let later = end + milliseconds(550);
        assert_eq!(recovered(&slow_refused_slow, usual, later), None);
    }
}
