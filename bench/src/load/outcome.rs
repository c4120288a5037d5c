//! The figures of a load, and whether they are plausible.

use super::latency::{Latencies, Latency};
use super::plan::{Pace, Plan};
use crate::usage::Usage;
use std::collections::BTreeMap;
use std::time::Instant;

/// The greatest relative difference between rate times latency and the requests in flight.
pub const LITTLE_SHARE: f64 = 0.2;
/// A client thread that uses this share of a processor bounds the figures.
const BUSY_SHARE: f64 = 0.9;

/// Requests without a response because of their connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Errors {
    /// Failed attempts to connect.
    pub connect: u64,
    /// Requests whose connection was closed before their response.
    pub closed: u64,
    /// Requests whose response was not HTTP/1.1.
    pub malformed: u64,
}

impl Errors {
    /// Returns the number of all errors.
    pub fn sum(&self) -> u64 {
        self.connect + self.closed + self.malformed
    }
}

/// The counts of one worker.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Responses by status. A request that was retried counts with its last response.
    pub statuses: BTreeMap<u16, u64>,
    /// The sum of the weights of requests with a 2xx response.
    pub checksum: u64,
    /// Responses within the window.
    pub completed: u64,
    /// 2xx responses within the window.
    pub acknowledged_in_window: u64,
    /// Latencies of the requests that were due in the window.
    pub latencies: Latencies,
    /// The delay between each request's due time and its sending.
    pub lateness: Latencies,
    /// The number of retries.
    pub retries: u64,
    /// Refusals that led to a retry.
    pub refused_again: u64,
    /// Responses 503 or 429 without `Retry-After`.
    pub refused_for_good: u64,
    /// Requests without a response at the end of the drain.
    pub unanswered: u64,
    /// Requests for which no connection was free.
    pub unsent: u64,
    /// Broken connections.
    pub errors: Errors,
    /// CPU time of the worker's thread within the window.
    pub cpu_seconds: f64,
    /// The time at which the worker ended, in nanoseconds since the start.
    pub ended: u64,
    /// Requests in flight, times nanoseconds.
    population_nanoseconds: f64,
}

impl Tally {
    /// Counts a final response.
    pub fn answer(&mut self, status: u16, weight: u64) {
        *self.statuses.entry(status).or_default() += 1;
        if (200..300).contains(&status) {
            self.checksum = self.checksum.wrapping_add(weight);
        }
    }

    /// Counts `population` requests in flight from one time to another.
    pub fn count_population(&mut self, population: f64, from: u64, to: u64) {
        self.population_nanoseconds += population * to.saturating_sub(from) as f64;
    }

    fn add(&mut self, other: &Tally) {
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.checksum = self.checksum.wrapping_add(other.checksum);
        self.completed += other.completed;
        self.acknowledged_in_window += other.acknowledged_in_window;
        self.latencies.add_all(&other.latencies);
        self.lateness.add_all(&other.lateness);
        self.retries += other.retries;
        self.refused_again += other.refused_again;
        self.refused_for_good += other.refused_for_good;
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
        self.errors.connect += other.errors.connect;
        self.errors.closed += other.errors.closed;
        self.errors.malformed += other.errors.malformed;
        self.cpu_seconds += other.cpu_seconds;
        self.ended = self.ended.max(other.ended);
        self.population_nanoseconds += other.population_nanoseconds;
    }
}

/// The measurements of a watched system.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// CPU time from the opening of the window until every request had a response.
    pub cpu_seconds: f64,
    /// The usage at the end.
    pub usage: Usage,
}

/// Little's law: the number of requests in flight is rate times latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// The mean number of requests in flight, counted over time.
    pub in_flight: f64,
    /// Responses per second times mean latency.
    pub expected: f64,
}

impl Gate {
    /// Whether both agree within a fifth. Less than one request in flight is too little for a
    /// comparison.
    pub fn holds(&self) -> bool {
        let larger = self.in_flight.max(self.expected);
        larger < 1.0 || (self.in_flight - self.expected).abs() <= LITTLE_SHARE * larger
    }
}

/// The outcome of a load.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The sum of all workers' counts.
    pub tally: Tally,
    /// The length of the window in seconds. It is shorter than requested if the source ended early.
    pub seconds: f64,
    /// Latencies of the requests that were due in the window.
    pub latency: Latency,
    /// The delay between each request's due time and its sending.
    pub lateness: Latency,
    /// CPU seconds of each client thread within the window.
    pub client_cpu: Vec<f64>,
    /// The systems that were watched.
    pub watched: Vec<Watched>,
    /// The time at which the window closed. No request was due afterwards.
    pub closed_at: Instant,
    /// The requested rate of an open loop.
    pub offered: Option<f64>,
    /// The number of requests in flight at any time in a closed loop.
    pub concurrency: f64,
}

impl Outcome {
    /// Adds the workers' counts up.
    pub fn new(
        tallies: &[Tally],
        (seconds, closed_at): (f64, Instant),
        plan: &Plan,
        watched: Vec<Watched>,
    ) -> Outcome {
        let mut tally = Tally::default();
        tallies.iter().for_each(|one| tally.add(one));
        Outcome {
            seconds,
            closed_at,
            latency: tally.latencies.summary(),
            lateness: tally.lateness.summary(),
            client_cpu: tallies.iter().map(|tally| tally.cpu_seconds).collect(),
            watched,
            offered: match plan.pace {
                Pace::Closed => None,
                Pace::Open(per_second) => Some(per_second),
            },
            concurrency: (plan.connections * plan.depth) as f64,
            tally,
        }
    }

    /// Returns responses per second within the window, whatever their status.
    pub fn rate(&self) -> f64 {
        self.tally.completed as f64 / self.seconds
    }

    /// Returns 2xx responses per second within the window. Responses of the drain do not count.
    pub fn goodput(&self) -> f64 {
        self.tally.acknowledged_in_window as f64 / self.seconds
    }

    /// Returns the number of 2xx responses in the whole run, including warm-up and drain.
    pub fn acknowledged(&self) -> u64 {
        self.tally
            .statuses
            .range(200..300)
            .map(|(_, count)| count)
            .sum()
    }

    /// Returns the number of responses 503 and 429.
    pub fn refused(&self) -> u64 {
        let of_status = |status| self.tally.statuses.get(&status).copied();
        [429, 503].into_iter().filter_map(of_status).sum()
    }

    /// Returns the number of requests without a 2xx response, for any reason.
    pub fn failed(&self) -> u64 {
        let answered: u64 = self.tally.statuses.values().sum();
        answered - self.acknowledged()
            + self.tally.errors.sum()
            + self.tally.unanswered
            + self.tally.unsent
    }

    /// Returns the comparison by Little's law. The number of requests in flight is known in a
    /// closed loop and counted in an open one.
    pub fn gate(&self) -> Gate {
        Gate {
            in_flight: match self.offered {
                None => self.concurrency,
                Some(_) => self.tally.population_nanoseconds / 1e9 / self.seconds,
            },
            expected: self.rate() * self.latency.mean / 1e3,
        }
    }

    /// Whether a client thread was saturated.
    pub fn is_client_bound(&self) -> bool {
        self.client_cpu
            .iter()
            .any(|cpu| *cpu >= BUSY_SHARE * self.seconds)
    }

    /// Whether the rate of responses was below the requested rate.
    pub fn is_overloaded(&self) -> bool {
        self.offered
            .is_some_and(|offered| self.rate() < 0.95 * offered)
    }

    /// Returns the notes that belong beside the figures.
    pub fn labels(&self) -> Vec<String> {
        let mut labels = Vec::new();
        let gate = self.gate();
        if !gate.holds() {
            labels.push(format!(
                "Little's law fails: {:.1} in flight, rate x latency {:.1}",
                gate.in_flight, gate.expected
            ));
        }
        if self.is_client_bound() {
            labels.push("client-bound".to_owned());
        }
        if self.is_overloaded() {
            labels.push("overloaded".to_owned());
        }
        if self.failed() > 0 {
            labels.push(self.describe_failures());
        }
        if self.tally.retries > 0 {
            labels.push(format!("{} retries", self.tally.retries));
        }
        labels
    }

    fn describe_failures(&self) -> String {
        let errors = self.tally.errors;
        let mut parts: Vec<String> = self
            .tally
            .statuses
            .iter()
            .filter(|(status, _)| !(200..300).contains(*status))
            .map(|(status, count)| format!("{count} x {status}"))
            .collect();
        for (count, what) in [
            (errors.connect, "failed to connect"),
            (errors.closed, "lost with their connection"),
            (errors.malformed, "answers not HTTP"),
            (self.tally.unanswered, "unanswered"),
            (self.tally.unsent, "never sent"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Repeated;
    use std::sync::Arc;

    fn plan(pace: Pace) -> Plan {
        Plan {
            pace,
            connections: 200,
            ..Plan::new(([127, 0, 0, 1], 1).into(), Arc::new(Repeated(Vec::new())))
        }
    }

    /// Returns the outcome of one worker that received `completed` responses after `milliseconds`
    /// each, within one second of an open loop.
    fn outcome(completed: u64, milliseconds: u64, population: u64, cpu_seconds: f64) -> Outcome {
        let mut tally = Tally {
            completed,
            cpu_seconds,
            ..Tally::default()
        };
        for _ in 0..completed {
            tally.latencies.add(milliseconds * 1_000_000);
            tally.answer(204, 2);
        }
        tally.count_population(population as f64, 0, 1_000_000_000);
        Outcome::new(
            &[tally],
            (1.0, Instant::now()),
            &plan(Pace::Open(completed as f64)),
            Vec::new(),
        )
    }

    #[test]
    fn goodput_counts_acknowledged_requests_of_the_window() {
        let mut tally = Tally {
            completed: 30,
            acknowledged_in_window: 10,
            ..Tally::default()
        };
        (0..25).for_each(|_| tally.answer(204, 1));
        (0..20).for_each(|_| tally.answer(503, 1));
        let window = (2.0, Instant::now());
        let two = [tally.clone(), tally];
        let outcome = Outcome::new(&two, window, &plan(Pace::Open(100.0)), Vec::new());
        assert_eq!(outcome.goodput(), 10.0);
        assert_eq!((outcome.rate(), outcome.acknowledged()), (30.0, 50));
    }

    #[test]
    fn littles_law_is_checked() {
        // 1000 per second with 10 ms each are 10 in flight.
        assert!(outcome(1000, 10, 10, 0.1).gate().holds());
        assert!(outcome(1000, 10, 12, 0.1).gate().holds());
        assert!(!outcome(1000, 10, 13, 0.1).gate().holds());
        assert!(!outcome(1000, 10, 5, 0.1).gate().holds());
        // A closed loop of 200 connections whose client flushes a backlog: more responses, all
        // late, than could be in flight.
        let mut flushed = outcome(5000, 1200, 0, 0.1);
        flushed.offered = None;
        assert!(
            flushed.labels()[0].contains("Little's law fails"),
            "{:?}",
            flushed.labels()
        );
    }

    #[test]
    fn a_saturated_client_is_reported() {
        assert!(!outcome(10, 1, 0, 0.89).is_client_bound());
        assert_eq!(outcome(10, 1, 0, 0.95).labels(), ["client-bound"]);
    }

    #[test]
    fn the_counts_of_workers_are_added_up() {
        let mut first = Tally::default();
        first.answer(204, 5);
        first.answer(503, 7);
        first.errors.closed = 2;
        let mut second = Tally::default();
        second.answer(204, 6);
        second.unsent = 1;
        let outcome = Outcome::new(
            &[first, second],
            (1.0, Instant::now()),
            &plan(Pace::Open(10.0)),
            Vec::new(),
        );
        assert_eq!(
            (
                outcome.acknowledged(),
                outcome.tally.checksum,
                outcome.failed()
            ),
            (2, 11, 4)
        );
        assert_eq!(
            outcome.labels(),
            [
                "overloaded",
                "1 x 503, 2 lost with their connection, 1 never sent"
            ]
        );
    }
}
