//! The run, its figures and their bars.

use super::event_feed::EventFeed;
use super::feed::{Feed, Stored};
use super::probe::{self, Usual};
use super::recorded::Recorded;
use super::sample_feed::SampleFeed;
use crate::fleet::shape::TargetShape;
use crate::load::{self, Outcome, Pace, Plan, Repeated, goes_on};
use crate::remote_write::sender::Fleet;
use crate::scenario::system::{NAME, Setup, System};
use crate::scenario::{Bar, Findings, Record, Run};
use crate::usage::peak_bytes;
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The requested rate as a multiple of the sustainable rate.
    times: f64,
    /// The duration of the load.
    seconds: f64,
    /// The duration of each closed loop that searches for the sustainable rate.
    trial_seconds: f64,
    /// The numbers of connections of these loops, in ascending order, until the rate falls.
    trial_connections: Vec<usize>,
    /// The number of the client's threads.
    threads: usize,
    /// The number of connections is the number of responses in this time at the sustainable rate
    /// ...
    connection_seconds: f64,
    /// ... but at most this.
    connections_max: usize,
    /// The number of probes that measure the normal latency.
    probes: usize,
    /// The gateway's budget for requests without a response, in MiB.
    pending_mib: u64,
    /// The gateway's budget for known series, in MiB. The index of all series may take the same
    /// amount again.
    series_cache_mib: u64,
    /// The gateway's memory for each connection, in KiB. Most connections wait, and take less than
    /// the greatest amount.
    connection_kib: u64,
    /// The gateway's other memory, in MiB: its program, threads, and batches in flight with their
    /// copies.
    base_mib: u64,
    loads: Vec<LoadDefinition>,
    fleet: Fleet,
    bars: Bars,
    #[serde(default)]
    setup: Setup,
}

/// The bars.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    recovery_seconds: f64,
    /// The share of the sustainable rate that has to be acknowledged during the load.
    goodput_share: f64,
}

/// One load.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadDefinition {
    name: String,
    kind: Kind,
    /// The level of acknowledgement, `memory` or `wal`.
    ack: String,
    /// The number of events in a request.
    #[serde(default)]
    batch: usize,
    /// The number of targets of the fleet.
    #[serde(default)]
    targets: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Events,
    Samples,
}

const MIB: u64 = 1 << 20;

/// Runs the scenario.
///
/// # Errors
/// The data cannot be created. A load that cannot be measured is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let mut definition: Definition = run.definition()?;
    for (setting, mib) in [
        ("receive.pending_bytes_max", definition.pending_mib),
        ("series.cache_bytes_max", definition.series_cache_mib),
    ] {
        let settings = &mut definition.setup.gateway;
        settings.insert(setting.to_owned(), format!("{mib}MiB"));
    }
    let mut findings = Findings::default();
    let mut shape = None;
    for load in &definition.loads {
        let name = format!("{}, {}", load.name, load.ack);
        if !run.options.wants(&name) {
            continue;
        }
        let measured = match load.kind {
            Kind::Events => {
                let feed = EventFeed::new(load.batch, &load.ack);
                measure(run, &definition, &name, feed, &mut findings)
            }
            Kind::Samples => {
                let shape = shape_once(run, &definition, &mut shape)?;
                SampleFeed::new(shape, &definition.fleet, load.targets, &load.ack)
                    .and_then(|feed| measure(run, &definition, &name, feed, &mut findings))
            }
        };
        if let Err(error) = measured {
            let bar = Bar::Most(0.0);
            let row = format!("{name}: acknowledged but not stored");
            findings.add(Record::failed(row, NAME, "requests", error.to_string()).bar(Some(bar)));
        }
    }
    Ok(findings)
}

fn shape_once<'a>(
    run: &Run,
    definition: &Definition,
    shape: &'a mut Option<TargetShape>,
) -> Result<&'a TargetShape> {
    let made = match shape.take() {
        Some(shape) => shape,
        None => definition
            .fleet
            .shape(&run.options.folder.join("overload"))?,
    };
    Ok(shape.insert(made))
}

fn measure(
    run: &Run,
    definition: &Definition,
    name: &str,
    mut feed: impl Feed,
    findings: &mut Findings,
) -> Result<()> {
    let mut system = System::start("overload", &definition.setup, &run.options.servers)?;
    findings.systems = system.versions()?;
    let base = Plan {
        threads: definition.threads,
        warm_up: Duration::from_secs_f64(definition.trial_seconds / 3.0),
        window: Duration::from_secs_f64(definition.trial_seconds),
        processors: run.options.client.clone(),
        watched: system.parts()?.to_vec(),
        ..Plan::new(system.address(), Arc::new(Repeated(Vec::new())))
    };
    let (sustainable, connections) = climb(definition, &system, &mut feed, &base)?;
    let note = format!("closed loop, {connections} connections");
    findings.add(
        Record::new(
            format!("{name}: sustainable"),
            NAME,
            sustainable,
            "requests/s",
        )
        .notes([note]),
    );
    let offered = sustainable * definition.times;
    let count = (offered * definition.seconds).ceil() as u64;
    let requests = Arc::new(Recorded::new(feed.requests(&system, count)?));
    let plan = Plan {
        source: requests.clone(),
        pace: Pace::Open(offered),
        connections: ((sustainable * definition.connection_seconds) as usize)
            .clamp(1, definition.connections_max),
        warm_up: Duration::ZERO,
        window: Duration::from_secs_f64(definition.seconds),
        drain: Duration::from_secs(60),
        abandons_backlog: true,
        ..base
    };
    let (outcome, recovery, usual) = overload(&system, &feed, &plan, definition.probes)?;
    let gateway = system.gateway().process_id().unwrap_or_default();
    let peak = peak_bytes(gateway).ok_or_else(|| {
        Error::Other("the kernel does not report the gateway's memory".to_owned())
    })?;
    system.tree()?;
    let numbers = requests.numbers();
    let verdict = Verdict::of(&numbers, &feed.stored(&system)?);
    let overload = Overload {
        sustainable,
        plan,
        outcome,
        verdict,
        peak,
        recovery,
        usual,
    };
    overload.add(findings, definition, name);
    Ok(())
}

/// Returns the best rate of closed loops over more and more connections, and the number of
/// connections that reached it.
fn climb(
    definition: &Definition,
    system: &System,
    feed: &mut impl Feed,
    base: &Plan,
) -> Result<(f64, usize)> {
    let mut steps = Vec::new();
    for connections in &definition.trial_connections {
        let outcome = feed.trial(
            system,
            &Plan {
                connections: *connections,
                ..base.clone()
            },
        )?;
        let acknowledged = outcome.rate() * outcome.acknowledged() as f64
            / (outcome.acknowledged() + outcome.failed()).max(1) as f64;
        steps.push((*connections as f64, acknowledged));
        if !goes_on(&steps) {
            break;
        }
    }
    let best = steps
        .into_iter()
        .max_by(|left, right| left.1.total_cmp(&right.1));
    let (connections, rate) = best.ok_or_else(|| Error::Other("no trial is defined".to_owned()))?;
    Ok((rate, connections as usize))
}

/// Runs probes, then the load while probing, then probes. Returns the outcome of the load, the time
/// until latency was normal again, and the normal latency.
fn overload(
    system: &System,
    feed: &impl Feed,
    plan: &Plan,
    probes: usize,
) -> Result<(Outcome, Option<Duration>, Usual)> {
    let (request, gateway) = (feed.probe(), system.gateway());
    let usual = probe::usual(&request, gateway, probes)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching =
            scope.spawn(|| probe::watch(&request, gateway, probes as u64, usual, &is_over));
        let outcome = load::run(plan);
        is_over.store(true, Ordering::Release);
        let probes = watching
            .join()
            .map_err(|_| Error::Other("the probe panicked".to_owned()))??;
        let outcome = outcome?;
        let recovery = probe::recovered(&probes, usual, outcome.closed_at);
        Ok((outcome, recovery, usual))
    })
}

/// The comparison of the stored requests with the acknowledged ones.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    /// Requests that were acknowledged but are not stored completely and once.
    lost: u64,
    /// Requests that were not acknowledged but are stored in part or more than once.
    torn: u64,
    /// Requests that were not acknowledged but are stored: their response was late.
    late: u64,
}

impl Verdict {
    fn of(
        acknowledged: &std::collections::BTreeSet<u64>,
        stored: &BTreeMap<u64, Stored>,
    ) -> Verdict {
        let whole = |number: &u64| stored.get(number) == Some(&Stored::Whole);
        let others = |wanted: Stored| {
            let of_others = stored
                .iter()
                .filter(|(number, found)| **found == wanted && !acknowledged.contains(number));
            of_others.count() as u64
        };
        Verdict {
            lost: acknowledged.iter().filter(|number| !whole(number)).count() as u64,
            torn: others(Stored::Otherwise),
            late: others(Stored::Whole),
        }
    }
}

/// The outcome of an overload.
struct Overload {
    /// The sustainable rate in requests per second.
    sustainable: f64,
    plan: Plan,
    outcome: Outcome,
    verdict: Verdict,
    /// The gateway's greatest memory, in bytes.
    peak: u64,
    /// The time from the end of the load until latency was normal again, if it was.
    recovery: Option<Duration>,
    usual: Usual,
}

/// The bar of requests that must not occur.
const NONE: Option<Bar> = Some(Bar::Most(0.0));

impl Overload {
    fn add(&self, findings: &mut Findings, definition: &Definition, name: &str) {
        self.add_rates(findings, definition, name);
        self.add_verdict(findings, name);
        self.add_refusals(findings, name);
        self.add_memory(findings, definition, name);
        self.add_recovery(findings, definition, name);
    }

    fn add_rates(&self, findings: &mut Findings, definition: &Definition, name: &str) {
        let outcome = &self.outcome;
        let offered = outcome.offered.unwrap_or_default();
        let notes = format!(
            "{:.0} s over {} connections; {} requests found no free connection and were not sent",
            outcome.seconds, self.plan.connections, outcome.tally.unsent
        );
        let record = Record::new(format!("{name}: offered"), NAME, offered, "requests/s");
        findings.add(record.notes([notes]));
        let mut notes = vec![
            format!(
                "p50 {:.0} ms, p99 {:.0} ms from a request's due time",
                outcome.latency.p50, outcome.latency.p99
            ),
            format!(
                "{} more were acknowledged after the end of the load",
                outcome.acknowledged() - outcome.tally.acknowledged_in_window
            ),
        ];
        if outcome.is_client_bound() {
            notes.push("client-bound".to_owned());
        }
        let goodput = outcome.goodput();
        let record = Record::new(format!("{name}: goodput"), NAME, goodput, "requests/s");
        findings.add(record.notes(notes));
        let share = goodput / self.sustainable.max(f64::MIN_POSITIVE);
        let row = format!("{name}: goodput, share of the sustainable rate");
        let bar = Bar::Least(definition.bars.goodput_share);
        findings.add(Record::new(row, NAME, share, "ratio").bar(Some(bar)));
    }

    /// Adds the comparison of the stored requests with the acknowledged ones.
    fn add_verdict(&self, findings: &mut Findings, name: &str) {
        let verdict = &self.verdict;
        let of = format!("of {}", self.outcome.acknowledged());
        let late = format!("{} were stored but not acknowledged in time", verdict.late);
        for (what, requests, note) in [
            ("acknowledged but not stored", verdict.lost, of),
            ("stored in part or twice", verdict.torn, late),
        ] {
            let row = format!("{name}: {what}");
            let record = Record::new(row, NAME, requests as f64, "requests");
            findings.add(record.bar(NONE).notes([note]));
        }
    }

    fn add_refusals(&self, findings: &mut Findings, name: &str) {
        let outcome = &self.outcome;
        let refused = outcome.refused();
        let neither = outcome.failed() - refused - outcome.tally.unsent;
        let labels = match neither {
            0 => Vec::new(),
            _ => outcome.labels(),
        };
        let for_good = outcome.tally.refused_for_good;
        for (what, requests, bar, notes) in [
            ("refused with 503 or 429", refused, None, Vec::new()),
            ("refused without Retry-After", for_good, NONE, Vec::new()),
            ("neither acknowledged nor refused", neither, NONE, labels),
        ] {
            let row = format!("{name}: {what}");
            let record = Record::new(row, NAME, requests as f64, "requests");
            findings.add(record.bar(bar).notes(notes));
        }
    }

    fn add_memory(&self, findings: &mut Findings, definition: &Definition, name: &str) {
        let (pending, series, base) = (
            definition.pending_mib,
            definition.series_cache_mib,
            definition.base_mib,
        );
        let connections = self.plan.connections as u64 * definition.connection_kib / 1024;
        let bar = Bar::Most((pending + 2 * series + connections + base) as f64);
        let peak = self.peak as f64 / MIB as f64;
        let row = format!("{name}: the gateway's memory, peak");
        let note = format!(
            "{pending} for requests, twice {series} for series, {connections} for connections, \
             {base} for everything else"
        );
        findings.add(
            Record::new(row, NAME, peak, "MiB")
                .bar(Some(bar))
                .notes([note]),
        );
    }

    fn add_recovery(&self, findings: &mut Findings, definition: &Definition, name: &str) {
        let row = format!("{name}: normal latency, after the end of the load");
        let bar = Some(Bar::Most(definition.bars.recovery_seconds));
        findings.add(match self.recovery {
            Some(recovery) => {
                let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
                let probe = format!(
                    "a single request: median {:.2} ms, slowest {:.2} ms",
                    milliseconds(self.usual.median),
                    milliseconds(self.usual.slowest)
                );
                let seconds = recovery.as_secs_f64();
                Record::new(row, NAME, seconds, "s").bar(bar).notes([probe])
            }
            None => Record::failed(row, NAME, "s", "it was not").bar(bar),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_requests_are_stored_and_others_completely_or_not_at_all() {
        let stored = [
            (1, Stored::Whole),
            (2, Stored::Otherwise),
            (4, Stored::Whole),
            (5, Stored::Otherwise),
        ];
        let verdict = Verdict::of(&[1, 2, 3].into(), &stored.into());
        assert_eq!(
            verdict,
            Verdict {
                lost: 2,
                torn: 1,
                late: 1
            }
        );
    }

    #[test]
    fn the_data_file_is_valid() {
        for run in Run::both_forms("overload") {
            let definition: Definition = run.definition().unwrap();
            assert!(definition.trial_connections.is_sorted() && definition.times > 1.0);
        }
    }
}
