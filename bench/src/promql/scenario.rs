//! The scenario `promql`: one query at a time on either system, in turns.

use super::counters::Counters;
use super::query::{Call, Query, Times as QueryTimes};
use crate::dashboards::data_source::{DataSource, PrometheusSource};
use crate::dashboards::ready::fill;
use crate::fleet::shape::instance;
use crate::peers::http::now_milliseconds;
use crate::peers::start::start_pair;
use crate::peers::system::System;
use crate::remote_write::comparison::{Figures, RelativeBar};
use crate::remote_write::history::History;
use crate::remote_write::phase::Way;
use crate::remote_write::sender::Fleet;
use crate::scenario::record::figure;
use crate::scenario::{Bar, Findings, Record, Run};
use crate::statistics::Times;
use lanes_support::error::{Error, Result};
use postgres::{Client, Statement};
use serde::Deserialize;
use std::time::Instant;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The system, by its level of acknowledgement.
    system: String,
    /// The version of VictoriaMetrics.
    yardstick: String,
    targets: usize,
    /// The number of scrapes of each target: 8640 are a day at 10 s.
    scrapes: usize,
    scrapes_a_round: usize,
    connections: usize,
    /// The number of times that a query is asked before the measurement.
    warm_up: usize,
    /// The greatest number of times that a query is asked in one turn.
    repeat: usize,
    /// The time after which a turn ends, in seconds.
    budget_seconds: f64,
    /// The time until the views of all metrics have their labels as columns, in seconds.
    ready_seconds: f64,
    fleet: Fleet,
    counters: Counters,
    bars: Bars,
    queries: Vec<Query>,
}

/// The bars of pg_lanes, relative to VictoriaMetrics.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// The bar of a query's median time.
    time: RelativeBar,
    /// The bar of a query's CPU.
    cpu: RelativeBar,
    /// How many milliseconds longer the gateway may take than the same call in SQL.
    http_ms: f64,
    /// How many times as long as the same call in SQL the gateway may take.
    http_times: f64,
}

const UNIT: &str = "ms";
const CPU_UNIT: &str = "CPU ms";
/// The time between the past samples and now.
const ROOM_SECONDS: i64 = 3600;

/// The time from the first sample to the first step: the systems extrapolate differently where data begins.
const BEGINNING_SECONDS: i64 = 600;

/// Runs the scenario.
///
/// # Errors
/// The data cannot be created. A query without a figure is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("promql");
    let shape = definition.counters.shape();
    let interval = definition.fleet.interval_seconds * 1000.0;
    let span = (definition.scrapes as f64 * interval) as i64;
    let start = now_milliseconds() - ROOM_SECONDS * 1000 - span;
    let start = start - start.rem_euclid(60_000);
    let history = History {
        shape: &shape,
        fleet: &definition.fleet,
        targets: definition.targets,
        scrapes: definition.scrapes,
        scrapes_a_round: definition.scrapes_a_round,
        start,
        way: Way::filling(definition.connections, &run.options.client),
    };
    let times = QueryTimes {
        from: start + BEGINNING_SECONDS * 1000,
        to: start + span,
        instance: instance(7),
        instances: (3..13).map(instance).collect(),
    };
    let (mut ours, mut theirs) = start_pair(
        &run.options.servers,
        &definition.system,
        &definition.yardstick,
        &folder,
    )?;
    let mut findings = Findings {
        systems: vec![ours.describe(), theirs.describe()],
        ..Findings::default()
    };
    fill(&history, &mut ours, &mut theirs, definition.ready_seconds)?;
    let queries = definition.queries.iter();
    let requests: Vec<_> = queries
        .map(|query| (query.request(&times), query.by.clone()))
        .collect();
    let calls = requests.iter().map(|(request, _)| Call::of(request));
    let mut in_sql = ours.connect_reader()?;
    Comparison {
        run,
        definition: &definition,
        sources: [ours.base(), theirs.base()]
            .map(|base| PrometheusSource::new(&base, requests.clone())),
        calls: calls.collect::<Result<_>>()?,
        statement: in_sql.prepare(Call::SQL)?,
        in_sql,
        systems: [&ours, &theirs],
        names: [ours.name().to_owned(), theirs.name().to_owned()],
    }
    .measure(&mut findings);
    ours.stop()?;
    theirs.stop()?;
    Ok(findings)
}

/// Both systems, and what they are asked.
struct Comparison<'a> {
    run: &'a Run,
    definition: &'a Definition,
    /// pg_lanes and VictoriaMetrics.
    sources: [PrometheusSource; 2],
    /// The calls of the queries in SQL, and the connection for them.
    calls: Vec<Call>,
    in_sql: Client,
    statement: Statement,
    systems: [&'a dyn System; 2],
    names: [String; 2],
}

/// The figures of one query on one system.
#[derive(Debug, Default)]
struct Turns {
    milliseconds: Vec<f64>,
    cpu_seconds: f64,
}

impl Comparison<'_> {
    fn measure(&mut self, findings: &mut Findings) {
        for (number, query) in self.definition.queries.iter().enumerate() {
            if !self.run.options.wants(&query.name) {
                continue;
            }
            let measured = self
                .compare(number, query)
                .and_then(|values| Ok((values, self.times(number)?, self.times_in_sql(number)?)));
            match measured {
                Ok((values, turns, in_sql)) => {
                    self.report_overhead(query, &turns[0], in_sql, findings);
                    self.report(query, values, turns, findings);
                }
                Err(error) => {
                    let name = &self.names[0];
                    let mut record = Record::failed(&query.name, name, UNIT, error.to_string());
                    record.met = Some(false);
                    findings.add(record);
                }
            }
        }
    }

    /// Fails if the two answers differ. Returns their number of values.
    fn compare(&mut self, number: usize, query: &Query) -> Result<usize> {
        let [ours, theirs] = &mut self.sources;
        let (answer, _) = ours.ask(number)?;
        let (expected, _) = theirs.ask(number)?;
        match answer.difference_beyond(&expected, query.tolerance) {
            None => Ok(answer.values()),
            Some(difference) => Err(Error::Other(format!(
                "the answers differ (VictoriaMetrics's is the second): {difference}"
            ))),
        }
    }

    /// Asks a query of both systems in turns: pg_lanes, VictoriaMetrics, VictoriaMetrics, pg_lanes.
    fn times(&mut self, number: usize) -> Result<[Turns; 2]> {
        for source in &mut self.sources {
            for _ in 0..self.definition.warm_up {
                source.ask(number)?;
            }
        }
        let mut turns = [Turns::default(), Turns::default()];
        for place in [0, 1, 1, 0] {
            let turn = &mut turns[place];
            let tree = self.systems[place].tree();
            let clock = tree.clock();
            let start = Instant::now();
            for _ in 0..self.definition.repeat.max(1) {
                turn.milliseconds.push(self.sources[place].ask(number)?.1);
                if start.elapsed().as_secs_f64() > self.definition.budget_seconds {
                    break;
                }
            }
            turn.cpu_seconds += tree.clock().seconds_since(&clock);
        }
        Ok(turns)
    }

    /// Calls the function of a query in SQL, as often as one turn asks it over HTTP.
    fn times_in_sql(&mut self, number: usize) -> Result<Vec<f64>> {
        let Call {
            promql,
            start,
            end,
            step,
        } = &self.calls[number];
        let begun = Instant::now();
        let mut milliseconds = Vec::new();
        for _ in 0..self.definition.warm_up + self.definition.repeat.max(1) {
            let start_of_call = Instant::now();
            self.in_sql
                .query(&self.statement, &[promql, start, end, step])?;
            milliseconds.push(start_of_call.elapsed().as_secs_f64() * 1e3);
            if begun.elapsed().as_secs_f64() > self.definition.budget_seconds {
                break;
            }
        }
        Ok(milliseconds)
    }

    /// Reports how much longer the gateway takes than the same call in SQL.
    fn report_overhead(
        &self,
        query: &Query,
        over_http: &Turns,
        in_sql: Vec<f64>,
        findings: &mut Findings,
    ) {
        let over_http = Times::new(over_http.milliseconds.clone());
        let (Some(over_http), Some(in_sql)) = (over_http, Times::new(in_sql)) else {
            return;
        };
        let (over_http, in_sql) = (over_http.median(), in_sql.median());
        let bars = &self.definition.bars;
        for (row, value, unit, most) in [
            ("HTTP less SQL", over_http - in_sql, UNIT, bars.http_ms),
            (
                "HTTP beside SQL",
                over_http / in_sql,
                "x SQL",
                bars.http_times,
            ),
        ] {
            let row = format!("{}: {row}", query.name);
            let record = Record::new(row, &self.names[0], value, unit);
            let note = format!("{} ms, in SQL {} ms", figure(over_http), figure(in_sql));
            findings.add(record.bar(Some(Bar::Most(most))).notes(vec![note]));
        }
    }

    fn report(&self, query: &Query, values: usize, turns: [Turns; 2], findings: &mut Findings) {
        let (mut times, mut cpu) = (Figures::default(), Figures::default());
        for (turn, name) in turns.into_iter().zip(&self.names) {
            let asked = turn.milliseconds.len() as f64;
            cpu.add(name, turn.cpu_seconds * 1e3 / asked, Vec::new());
            let Some(milliseconds) = Times::new(turn.milliseconds) else {
                continue;
            };
            let notes = vec![
                format!("p99 {}", figure(milliseconds.p99())),
                format!("{values} values"),
            ];
            times.add(name, milliseconds.median(), notes);
        }
        let bars = &self.definition.bars;
        for (figures, unit, bar, row) in [
            (times, UNIT, &bars.time, query.name.clone()),
            (cpu, CPU_UNIT, &bars.cpu, format!("{}: CPU", query.name)),
        ] {
            let bars = (self.names[1].as_str(), std::slice::from_ref(bar));
            figures.record(findings, &row, unit, &self.names, bars, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_valid() {
        for run in Run::both_forms("promql") {
            let definition: Definition = run.definition().unwrap();
            assert!(definition.queries.len() >= 15);
            let series = definition.counters.shape().series.len();
            assert_eq!(definition.fleet.series_per_target, series);
        }
    }
}
