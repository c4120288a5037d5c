//! The list of all scenarios, and the order of running one.

use crate::machine::Machine;
use crate::scenario::{Findings, Options, Run};
use crate::scenario::{append, ceiling, changes, context, durability, events, page, shards};
use crate::{dashboards, devops, overload, promql, remote_write, sealed};
use lanes_support::error::{Error, Result};
use lanes_support::place;
use std::time::Instant;

/// A scenario.
pub struct Scenario {
    /// The name of the scenario, its sub-command and its files.
    pub name: &'static str,
    /// The scenario's description in the command line's help.
    pub help: &'static str,
    /// The function that runs it.
    pub run: fn(&Run) -> Result<Findings>,
}

/// All scenarios, in the order in which `lanes-bench all` runs them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "events",
        help: "batches of events in each format, by size and level of acknowledgement",
        run: events::run,
    },
    Scenario {
        name: "shards",
        help: "the gateway's workers and append sessions, one to many of each",
        run: shards::run,
    },
    Scenario {
        name: "append",
        help: "lanes.append of whole batches beside COPY into heap: rows per second of one session",
        run: append::run,
    },
    Scenario {
        name: "changes",
        help: "rows changed and added one by one, beside heap",
        run: changes::run,
    },
    Scenario {
        name: "durability",
        help: "small commits by level of acknowledgement; point reads of the latest value",
        run: durability::run,
    },
    Scenario {
        name: "ceiling",
        help: "trivial GETs over few and many connections: the rate of the HTTP server alone",
        run: ceiling::run,
    },
    Scenario {
        name: "remote-write",
        help: "CPU per million samples of new and of known series, beside VictoriaMetrics and Prometheus",
        run: remote_write::cost::run,
    },
    Scenario {
        name: "ramp",
        help: "remote write of more and more targets at their scrape interval: latencies, drops, CPU, memory, disk",
        run: remote_write::ramp::run,
    },
    Scenario {
        name: "overload",
        help: "three times the sustainable rate: nothing acknowledged is lost, memory is bounded, latency recovers within a second",
        run: overload::scenario::run,
    },
    Scenario {
        name: "size",
        help: "bytes of an hour of sealed samples, beside VictoriaMetrics, and the CPU of sealing and merging",
        run: sealed::size::run,
    },
    Scenario {
        name: "dashboards",
        help: "panels of a node_exporter dashboard in SQL, beside PromQL on VictoriaMetrics",
        run: dashboards::scenario::run,
    },
    Scenario {
        name: "promql",
        help: "PromQL over HTTP on the gateway, beside VictoriaMetrics",
        run: promql::scenario::run,
    },
    Scenario {
        name: "devops",
        help: "TSBS-like queries of a fleet, and star joins, beside heap with indexes, DuckDB and Polars",
        run: devops::scenario::run,
    },
    Scenario {
        name: "sealed",
        help: "queries on sealed rows beside open ones; one series of many, in memory and from an object store",
        run: sealed::scenario::run,
    },
    Scenario {
        name: "offload",
        help: "p99 of ingest with and without sealing and offloading to an object store",
        run: sealed::offload::run,
    },
    Scenario {
        name: "soak",
        help: "remote write at a constant high rate for a long time, with replaced machines and expiring samples: no figure may grow",
        run: remote_write::soak::run,
    },
    Scenario {
        name: "vmagent",
        help: "a real vmagent scrapes a cached node_exporter under many names and writes: retries, drops, durations",
        run: remote_write::through_vmagent::run,
    },
];

/// Returns the scenario of a name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

/// Runs a scenario, prints its table, and writes its files and the report of all results.
///
/// # Errors
/// The scenario could not run at all. A figure that could not be measured is a record that says so.
pub fn execute(scenario: &Scenario, options: &Options, machine: &Machine) -> Result<Findings> {
    let run = Run::read(scenario.name, options)?;
    place::make_folder(&options.folder)?;
    println!("==> {}: {}", scenario.name, run.about.title);
    let start = Instant::now();
    let findings = (scenario.run)(&run)?;
    for failure in &findings.failures {
        println!("  failure: {failure}");
    }
    let (judged, met) = findings.judged();
    println!(
        "met {met} of {judged} judged bars; {} took {:.0} s\n",
        scenario.name,
        start.elapsed().as_secs_f64()
    );
    findings.write(&options.folder.join(format!("{}.json", scenario.name)))?;
    let about = context::describe(&run, &findings, machine);
    context::write(
        &options.folder.join(format!("{}.about.json", scenario.name)),
        &about,
    )?;
    page::write(&options.folder)?;
    Ok(findings)
}

/// Runs several scenarios. A failure does not prevent the others from running.
///
/// # Errors
/// The names of the scenarios that could not run.
pub fn execute_all(scenarios: &[&Scenario], options: &Options) -> Result<()> {
    println!("==> examining the machine");
    let machine = Machine::examine();
    println!("{}", machine.describe());
    let mut failed = Vec::new();
    let mut all = Findings::default();
    for scenario in scenarios {
        match execute(scenario, options, &machine) {
            Ok(findings) => {
                let judged = findings
                    .records
                    .into_iter()
                    .filter(|record| record.met.is_some());
                all.records.extend(judged);
            }
            Err(error) => {
                println!("{}: {error}", scenario.name);
                failed.push(scenario.name);
            }
        }
    }
    if scenarios.len() > 1 {
        println!("==> all figures that have a bar\n{}", all.table());
    }
    println!("report: {}", options.folder.join(page::FILE).display());
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Error::Other(format!(
            "these scenarios could not run: {}",
            failed.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_a_data_file_with_a_short_form_that_fits() {
        for scenario in SCENARIOS {
            Run::both_forms(scenario.name);
        }
    }

    #[test]
    fn every_data_file_is_a_scenario() {
        for file in std::fs::read_dir(crate::scenario::definition::folder()).unwrap() {
            let name = file
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned();
            assert!(find(&name).is_some(), "{name}");
        }
    }
}
