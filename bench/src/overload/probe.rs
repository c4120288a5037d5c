//! Small requests of a client of its own, one at a time: what a request takes before the load, and when it takes that again.

use lanes_support::error::{Error, Result};
use lanes_support::gateway::Gateway;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between an answer and the next probe.
const PAUSE: Duration = Duration::from_millis(10);
/// So many in a row take their usual time: one alone may be lucky.
const IN_A_ROW: usize = 3;
/// How long a return to the usual is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is sent.
pub struct ProbeRequest {
    /// Where.
    pub path: String,
    /// With which headers.
    pub headers: Vec<(String, String)>,
    /// The body of each number; no two are alike where the gateway recognises repeated ones.
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

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When it was sent.
    pub sent: Instant,
    /// Until its answer was there.
    pub took: Duration,
    /// Whether that was 2xx.
    pub is_acknowledged: bool,
}

/// What a request takes when nothing else is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usual {
    /// Half of them took no longer.
    pub median: Duration,
    /// The slowest.
    pub slowest: Duration,
}

impl Usual {
    /// Whether a probe was as fast as probes usually are: no slower than the slowest of them, or than twice the median.
    fn is(&self, probe: &Probe) -> bool {
        probe.is_acknowledged && probe.took <= self.slowest.max(2 * self.median)
    }
}

/// Sends so many, and learns what is usual; the first ones, which find everything cold, do not count.
///
/// # Errors
/// One of them is not acknowledged.
pub fn usual(request: &ProbeRequest, gateway: &Gateway, count: usize) -> Result<Usual> {
    let mut took = Vec::new();
    for number in 0..count.max(2) {
        let probe = request.send(gateway, number as u64)?;
        if !probe.is_acknowledged {
            return Err(Error::Other(
                "a probe is refused though nothing else is sent".to_owned(),
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

/// Sends them, with numbers from `first`, until the load is over and they take their usual time again, or do not for long.
///
/// # Errors
/// There was no answer at all.
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

/// How long after `end` the first of several usual ones in a row, sent after it, was answered.
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
    fn several_usual_ones_in_a_row_after_the_end_are_a_recovery() {
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
        // What was sent before the end tells nothing of the time after it.
        let later = end + milliseconds(550);
        assert_eq!(recovered(&slow_refused_slow, usual, later), None);
    }
}
