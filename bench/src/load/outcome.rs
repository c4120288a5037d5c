//! What came of a load, and whether it may be believed.

use super::latency::{Latencies, Latency};
use super::plan::{Pace, Plan};
use crate::usage::Usage;
use std::collections::BTreeMap;
use std::time::Instant;

/// Rate times latency may differ from what is in flight by this share.
pub const LITTLE_SHARE: f64 = 0.2;
/// A client thread that uses this much of a processor is what bounds the figures.
const BUSY_SHARE: f64 = 0.9;

/// Requests that got no answer because of their connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Errors {
    /// Attempts to connect that failed.
    pub connect: u64,
    /// Requests whose connection was closed before their answer.
    pub closed: u64,
    /// Requests whose answer was not HTTP/1.1.
    pub malformed: u64,
}

impl Errors {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.connect + self.closed + self.malformed
    }
}

/// What one worker counted.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Answers by status; of a request that was tried again, the last.
    pub statuses: BTreeMap<u16, u64>,
    /// Sum of the weights of requests that were answered 2xx.
    pub checksum: u64,
    /// Answers that came within the window.
    pub completed: u64,
    /// Those of them that were 2xx.
    pub acknowledged_in_window: u64,
    /// Latencies of the requests that were meant for the window.
    pub latencies: Latencies,
    /// How long after its time each of them was sent.
    pub lateness: Latencies,
    /// Requests that were sent again.
    pub retries: u64,
    /// Refusals that led to a retry.
    pub refused_again: u64,
    /// Answers 503 or 429 that do not say when to come again.
    pub refused_for_good: u64,
    /// Requests whose answer did not come before the drain ended.
    pub unanswered: u64,
    /// Requests that no connection was free for.
    pub unsent: u64,
    /// Broken connections.
    pub errors: Errors,
    /// CPU of the worker's thread within the window.
    pub cpu_seconds: f64,
    /// When the worker ended, in nanoseconds since the start.
    pub ended: u64,
    /// Requests in flight, times nanoseconds.
    population_nanoseconds: f64,
}

impl Tally {
    /// Counts an answer for good.
    pub fn answer(&mut self, status: u16, weight: u64) {
        *self.statuses.entry(status).or_default() += 1;
        if (200..300).contains(&status) {
            self.checksum = self.checksum.wrapping_add(weight);
        }
    }

    /// So many requests were in flight from one time to another.
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

/// A watched system in the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// CPU used from the opening of the window until everything was answered.
    pub cpu_seconds: f64,
    /// At the end.
    pub usage: Usage,
}

/// Little's law: what is in flight is rate times latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Mean of what was in flight, counted over time.
    pub in_flight: f64,
    /// Completions a second times mean latency.
    pub expected: f64,
}

impl Gate {
    /// Whether both agree within a fifth. Less than one request in flight is too little to tell them apart by sampling.
    pub fn holds(&self) -> bool {
        let larger = self.in_flight.max(self.expected);
        larger < 1.0 || (self.in_flight - self.expected).abs() <= LITTLE_SHARE * larger
    }
}

/// What came of a load.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// All workers' counts together.
    pub tally: Tally,
    /// The window in seconds; shorter than asked for when the source ended before.
    pub seconds: f64,
    /// Latencies of the requests that were meant for the window.
    pub latency: Latency,
    /// How long after its time a request was sent.
    pub lateness: Latency,
    /// CPU seconds in the window of each of the client's threads.
    pub client_cpu: Vec<f64>,
    /// The systems that were watched.
    pub watched: Vec<Watched>,
    /// When the window closed: nothing was meant to be sent from then on.
    pub closed_at: Instant,
    /// What was asked for, in an open loop.
    pub offered: Option<f64>,
    /// Requests that are under way at any time in a closed loop.
    pub concurrency: f64,
}

impl Outcome {
    /// Puts the workers' counts together.
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

    /// Answers a second within the window, whatever their status.
    pub fn rate(&self) -> f64 {
        self.tally.completed as f64 / self.seconds
    }

    /// Answers 2xx a second within the window: what came in the drain was asked for in the window and is no part of it.
    pub fn goodput(&self) -> f64 {
        self.tally.acknowledged_in_window as f64 / self.seconds
    }

    /// Requests answered 2xx in the whole run, warm-up and drain included.
    pub fn acknowledged(&self) -> u64 {
        self.tally
            .statuses
            .range(200..300)
            .map(|(_, count)| count)
            .sum()
    }

    /// Requests that were answered 503 or 429.
    pub fn refused(&self) -> u64 {
        let of_status = |status| self.tally.statuses.get(&status).copied();
        [429, 503].into_iter().filter_map(of_status).sum()
    }

    /// Requests that were not answered 2xx, for any reason.
    pub fn failed(&self) -> u64 {
        let answered: u64 = self.tally.statuses.values().sum();
        answered - self.acknowledged()
            + self.tally.errors.sum()
            + self.tally.unanswered
            + self.tally.unsent
    }

    /// Little's law. What is in flight is known in a closed loop and counted in an open one.
    pub fn gate(&self) -> Gate {
        Gate {
            in_flight: match self.offered {
                None => self.concurrency,
                Some(_) => self.tally.population_nanoseconds / 1e9 / self.seconds,
            },
            expected: self.rate() * self.latency.mean / 1e3,
        }
    }

    /// Whether a thread of the client had no time left.
    pub fn is_client_bound(&self) -> bool {
        self.client_cpu
            .iter()
            .any(|cpu| *cpu >= BUSY_SHARE * self.seconds)
    }

    /// Whether less was answered than was asked for.
    pub fn is_overloaded(&self) -> bool {
        self.offered
            .is_some_and(|offered| self.rate() < 0.95 * offered)
    }

    /// What a reader of the figures has to know.
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
            (errors.connect, "connections not opened"),
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

    /// One worker that answered `completed` requests of `milliseconds` each within a second, in an open loop.
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
    fn goodput_is_what_was_acknowledged_in_the_window() {
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
    fn littles_law_gates() {
        // 1000 a second of 10 ms each: 10 in flight.
        assert!(outcome(1000, 10, 10, 0.1).gate().holds());
        assert!(outcome(1000, 10, 12, 0.1).gate().holds());
        assert!(!outcome(1000, 10, 13, 0.1).gate().holds());
        assert!(!outcome(1000, 10, 5, 0.1).gate().holds());
        // A closed loop of 200 connections whose client flushes a backlog: more answers, all late, than could be in flight.
        let mut flushed = outcome(5000, 1200, 0, 0.1);
        flushed.offered = None;
        assert!(
            flushed.labels()[0].contains("Little's law fails"),
            "{:?}",
            flushed.labels()
        );
    }

    #[test]
    fn a_busy_client_is_named() {
        assert!(!outcome(10, 1, 0, 0.89).is_client_bound());
        assert_eq!(outcome(10, 1, 0, 0.95).labels(), ["client-bound"]);
    }

    #[test]
    fn workers_are_added_up() {
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
