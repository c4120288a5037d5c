//! The scenario `dashboards`: panels cold, warm, and of many clients beside ingest. pg_lanes is asked in
//! SQL, and then in PromQL over HTTP as VictoriaMetrics is.

use super::clients::ask_beside;
use super::data_source::{DataSource, PostgresSource, PrometheusSource};
use super::panel::{Dashboard, Language, Panel};
use super::ready::fill;
use crate::fleet::shape::instance;
use crate::load::Pace;
use crate::peers::http::now_milliseconds;
use crate::peers::lanes::Lanes;
use crate::peers::start::start_pair;
use crate::peers::system::System;
use crate::peers::victoria_metrics::VictoriaMetrics;
use crate::remote_write::comparison::{Figures, RelativeBar};
use crate::remote_write::history::History;
use crate::remote_write::phase::{Phase, Way, send};
use crate::remote_write::sender::{Fleet, Sender};
use crate::scenario::record::figure;
use crate::scenario::{Bar, Findings, Record, Run};
use crate::statistics::Times;
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The system, by its level of acknowledgement.
    system: String,
    /// The version of VictoriaMetrics.
    yardstick: String,
    targets: usize,
    /// The number of scrapes of each target: 361 are an hour at 10 s.
    scrapes: usize,
    scrapes_a_round: usize,
    connections: usize,
    /// The number of queries of a panel before the measurement.
    warm_up: usize,
    /// The greatest number of queries of a panel in one turn.
    repeat: usize,
    /// The time after which a panel's turn ends, in seconds.
    budget_seconds: f64,
    /// The time until the views of all metrics have their labels as columns, in seconds.
    ready_seconds: f64,
    fleet: Fleet,
    busy: Busy,
    bars: Bars,
    panels: Vec<Panel>,
}

/// Many clients beside ingest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Busy {
    clients: usize,
    /// The duration of ingest alone, and of ingest beside clients.
    seconds: f64,
    samples_a_second: f64,
}

/// The bars of pg_lanes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// The bar of a panel's median time, relative to VictoriaMetrics.
    panel: RelativeBar,
    busy: BusyBars,
}

/// The bars of many clients beside ingest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BusyBars {
    /// The bar of the p99 of all panels' times, relative to VictoriaMetrics.
    panels: RelativeBar,
    /// The greatest p99 of ingest, as a multiple of that without clients.
    ingest: f64,
}

const UNIT: &str = "ms";
const COLD: &str = "all panels once, cold";
const CLIENTS: &str = "clients";
/// The time between the past samples and now. It keeps the samples of the busy phases out of the
/// future.
const ROOM_SECONDS: i64 = 3600;
const MINUTE: i64 = 60_000;

/// Runs the scenario.
///
/// # Errors
/// The data cannot be created. A panel without a figure is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("dashboards");
    let shape = definition.fleet.shape(&folder)?;
    let span = definition.scrapes as f64 * definition.fleet.interval_seconds * 1000.0;
    let start = now_milliseconds() - ROOM_SECONDS * 1000 - span as i64;
    let start = start - start.rem_euclid(MINUTE);
    let history = History {
        shape: &shape,
        fleet: &definition.fleet,
        targets: definition.targets,
        scrapes: definition.scrapes,
        scrapes_a_round: definition.scrapes_a_round,
        start,
        way: Way::filling(definition.connections, &run.options.client),
    };
    let dashboard = Dashboard {
        to: start + 60 * MINUTE - 1,
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
    let [ours_next, theirs_next] =
        fill(&history, &mut ours, &mut theirs, definition.ready_seconds)?;
    let measured = Dashboards {
        run,
        definition: &definition,
        dashboard: &dashboard,
        names: [ours.name().to_owned(), theirs.name().to_owned()],
    }
    .measure(
        (&mut ours, ours_next),
        (&mut theirs, theirs_next),
        &mut findings,
    );
    ours.stop()?;
    theirs.stop()?;
    measured.map(|()| findings)
}

struct Dashboards<'a> {
    run: &'a Run,
    definition: &'a Definition,
    dashboard: &'a Dashboard,
    /// The names of pg_lanes and of VictoriaMetrics.
    names: [String; 2],
}

impl Dashboards<'_> {
    fn measure(
        &self,
        (ours, mut ours_next): (&mut Lanes, Sender),
        (theirs, mut theirs_next): (&mut VictoriaMetrics, Sender),
        findings: &mut Findings,
    ) -> Result<()> {
        let mut right = Vec::new();
        for language in [Language::Sql, Language::Promql] {
            if self.run.options.wants(COLD) {
                ours.restart_postgres()?;
                theirs.restart()?;
                let sources = (self.ours(ours, language)?, self.prometheus(theirs));
                self.cold(language, sources, findings)?;
            }
            let sources = (self.ours(ours, language)?, self.prometheus(theirs));
            right.push((language, self.warm(language, sources, findings)));
        }
        for (language, right) in right {
            if right.is_empty() || !self.run.options.wants(CLIENTS) {
                continue;
            }
            let clients = || 0..self.definition.busy.clients;
            let sources = clients().map(|_| self.ours(ours, language));
            let mut sources = sources.collect::<Result<Vec<_>>>()?;
            let of_ours = self.busy(ours, &mut ours_next, &mut sources, &right)?;
            let mut sources: Vec<_> = clients().map(|_| self.prometheus(theirs)).collect();
            let of_theirs = self.busy(theirs, &mut theirs_next, &mut sources, &right)?;
            self.report_busy(language, [of_ours, of_theirs], findings);
        }
        Ok(())
    }

    /// A client of pg_lanes that asks the panels in a language.
    fn ours(&self, ours: &Lanes, language: Language) -> Result<Box<dyn DataSource + Send>> {
        let panels = &self.definition.panels;
        Ok(match language {
            Language::Sql => {
                let client = ours.connect_reader()?;
                Box::new(PostgresSource::new(client, panels, self.dashboard)?)
            }
            Language::Promql => {
                let requests = panels.iter();
                let requests =
                    requests.map(|panel| (panel.promql_request(self.dashboard), panel.by.clone()));
                Box::new(PrometheusSource::new(&ours.base(), requests.collect()))
            }
        })
    }

    fn prometheus(&self, theirs: &VictoriaMetrics) -> PrometheusSource {
        let panels = self.definition.panels.iter();
        let requests =
            panels.map(|panel| (panel.prometheus_request(self.dashboard), panel.by.clone()));
        PrometheusSource::new(&theirs.base(), requests.collect())
    }

    /// Queries each panel once after a restart. The report shows their sum, because the first panel
    /// pays for what all need.
    fn cold(
        &self,
        language: Language,
        (mut ours, mut theirs): Sources,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut figures = Figures::default();
        let panels = self.definition.panels.len();
        let sources: [&mut dyn DataSource; 2] = [&mut ours, &mut theirs];
        for (source, name) in sources.into_iter().zip(&self.names) {
            let times = (0..panels)
                .map(|panel| source.ask(panel).map(|(_, milliseconds)| milliseconds))
                .collect::<Result<Vec<f64>>>()?;
            let slowest = times
                .iter()
                .copied()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(&b.1));
            let notes = slowest.map(|(panel, time)| {
                let name = &self.definition.panels[panel].name;
                format!("of that {} for `{name}`", figure(time))
            });
            figures.add(name, times.iter().sum(), notes.into_iter().collect());
        }
        self.record(&figures, &language.row(COLD), findings);
        Ok(())
    }

    /// Measures the panels one by one, and returns the numbers of those with correct answers.
    fn warm(
        &self,
        language: Language,
        mut sources: Sources,
        findings: &mut Findings,
    ) -> Vec<usize> {
        let mut right = Vec::new();
        for (number, panel) in self.definition.panels.iter().enumerate() {
            let row = language.row(&panel.name);
            if !self.run.options.wants(&row) {
                continue;
            }
            let tolerance = panel.tolerance(language);
            let timed = compare(number, &mut sources, tolerance)
                .and_then(|values| Ok((values, self.times(number, &mut sources)?)));
            match timed {
                Ok((values, times)) => {
                    right.push(number);
                    let most = panel.most_ms.filter(|_| language == Language::Sql);
                    self.report_panel(&row, most, values, times, findings);
                }
                Err(error) => {
                    let ours = &self.names[0];
                    let mut record = Record::failed(&row, ours, UNIT, error.to_string());
                    record.met = Some(false);
                    findings.add(record);
                }
            }
        }
        right
    }

    /// Times a panel on both systems in turns: pg_lanes, VictoriaMetrics, VictoriaMetrics,
    /// pg_lanes.
    fn times(&self, panel: usize, (ours, theirs): &mut Sources) -> Result<[Vec<f64>; 2]> {
        for _ in 0..self.definition.warm_up {
            ours.ask(panel)?;
            theirs.ask(panel)?;
        }
        let mut times = [Vec::new(), Vec::new()];
        for place in [0, 1, 1, 0] {
            let source: &mut dyn DataSource = match place {
                0 => ours,
                _ => theirs,
            };
            let start = Instant::now();
            for _ in 0..self.definition.repeat.max(1) {
                times[place].push(source.ask(panel)?.1);
                if start.elapsed().as_secs_f64() > self.definition.budget_seconds {
                    break;
                }
            }
        }
        Ok(times)
    }

    fn report_panel(
        &self,
        row: &str,
        most: Option<f64>,
        values: usize,
        times: [Vec<f64>; 2],
        findings: &mut Findings,
    ) {
        let mut figures = Figures::default();
        for (times, name) in times.into_iter().zip(&self.names) {
            let Some(times) = Times::new(times) else {
                continue;
            };
            let mut notes = vec![format!("p99 {}", figure(times.p99()))];
            if *name == self.names[0] {
                notes.push(format!("{values} values"));
                if let Some(most) = most {
                    let row = format!("{row}: alone");
                    let record = Record::new(row, name, times.median(), UNIT);
                    findings.add(record.bar(Some(Bar::Most(most))));
                }
            }
            figures.add(name, times.median(), notes);
        }
        self.record(&figures, row, findings);
    }

    fn record(&self, figures: &Figures, row: &str, findings: &mut Findings) {
        let bars = std::slice::from_ref(&self.definition.bars.panel);
        let bars = (self.names[1].as_str(), bars);
        figures.record(findings, row, UNIT, &self.names, bars, None);
    }

    /// Measures ingest alone, then ingest with all clients.
    fn busy<S: DataSource + Send>(
        &self,
        system: &mut dyn System,
        sender: &mut Sender,
        sources: &mut [S],
        panels: &[usize],
    ) -> Result<BusyFigures> {
        let alone = self.ingest(system, sender)?;
        let (beside, times) = ask_beside(sources, panels, || self.ingest(system, sender))?;
        let times =
            Times::new(times).ok_or_else(|| Error::Other("no panel was queried".to_owned()))?;
        Ok(BusyFigures {
            alone,
            beside,
            times,
        })
    }

    /// Sends samples at the requested rate for the requested time.
    fn ingest(&self, system: &mut dyn System, sender: &mut Sender) -> Result<Phase> {
        let (definition, busy) = (self.definition, &self.definition.busy);
        let of_scrape = definition.targets * definition.fleet.series_per_target;
        let scrapes = (busy.samples_a_second * busy.seconds / of_scrape as f64).ceil();
        let bodies = Arc::new(sender.scrapes(definition.targets, scrapes.max(1.0) as usize)?);
        let way = Way {
            pace: Pace::Open(bodies.len() as f64 / busy.seconds),
            connections: definition.connections,
            attempts_again: 0,
            settle: Duration::ZERO,
            client: self.run.options.client.clone(),
        };
        send(system, &bodies, &way)
    }

    fn report_busy(&self, language: Language, busy: [BusyFigures; 2], findings: &mut Findings) {
        let clients = self.definition.busy.clients;
        let mut figures = Figures::default();
        for (one, name) in busy.iter().zip(&self.names) {
            let seconds = one.beside.outcome.seconds;
            figures.add(
                name,
                one.times.p99(),
                vec![
                    format!("p50 {}", figure(one.times.median())),
                    format!("{} panels/s", figure(one.times.count() as f64 / seconds)),
                ],
            );
        }
        let bars = std::slice::from_ref(&self.definition.bars.busy.panels);
        figures.record(
            findings,
            &language.row(&format!("panels of {clients} clients beside ingest: p99")),
            UNIT,
            &self.names,
            (self.names[1].as_str(), bars),
            None,
        );
        for (one, name) in busy.iter().zip(&self.names) {
            let (alone, beside) = (one.alone.outcome.latency, one.beside.outcome.latency);
            let is_ours = *name == self.names[0];
            let bar = is_ours.then_some(Bar::Most(self.definition.bars.busy.ingest));
            let mut notes = vec![
                format!("{} ms, alone {} ms", figure(beside.p99), figure(alone.p99)),
                format!("{} samples/s", figure(one.beside.rate())),
            ];
            notes.extend(one.beside.outcome.labels());
            findings.add(
                Record::new(
                    language.row(&format!("ingest beside {clients} clients: p99")),
                    name,
                    beside.p99 / alone.p99,
                    "x alone",
                )
                .bar(bar)
                .notes(notes),
            );
        }
    }
}

/// The measurements of one system: ingest alone, ingest beside many clients, and the times of their
/// panels.
struct BusyFigures {
    alone: Phase,
    beside: Phase,
    times: Times,
}

/// A client of pg_lanes, and one of VictoriaMetrics.
type Sources = (Box<dyn DataSource + Send>, PrometheusSource);

/// Fails if the two answers differ. Returns their number of values.
fn compare(panel: usize, (ours, theirs): &mut Sources, tolerance: f64) -> Result<usize> {
    let (answer, _) = ours.ask(panel)?;
    let (expected, _) = theirs.ask(panel)?;
    match answer.difference_beyond(&expected, tolerance) {
        None => Ok(answer.values()),
        Some(difference) => Err(Error::Other(format!(
            "the answers differ (VictoriaMetrics's is the second): {difference}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_valid_and_every_macro_is_known() {
        for run in Run::both_forms("dashboards") {
            let definition: Definition = run.definition().unwrap();
            let dashboard = Dashboard {
                to: 60 * MINUTE - 1,
                instance: "a".to_owned(),
                instances: vec!["b".to_owned()],
            };
            assert!(definition.panels.len() >= 25);
            for panel in &definition.panels {
                let sql = panel.expanded_sql(&dashboard).unwrap();
                assert!(!sql.contains('$'), "{sql}");
                let request = panel.prometheus_request(&dashboard);
                assert!(
                    request
                        .parameters
                        .iter()
                        .all(|(_, value)| !value.contains('$'))
                );
            }
        }
    }
}
