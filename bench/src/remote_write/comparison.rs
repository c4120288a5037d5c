//! Figures of several runs of several systems; bars that are relative to one of them.

use crate::peers::system::is_ours;
use crate::scenario::{Findings, Record};
use serde::Deserialize;

/// Returns the order of turns: all systems, and all of them backwards, so that a drift of the
/// machine affects all alike.
pub fn turns(systems: &[String], rounds: usize) -> Vec<&str> {
    let names = systems.iter().map(String::as_str);
    let round: Vec<&str> = names.clone().chain(names.rev()).collect();
    std::iter::repeat_n(round, rounds).flatten().collect()
}

/// A bar of pg_lanes: at most a multiple of another system's figure in the same run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelativeBar {
    /// The system to which the bar applies.
    pub system: String,
    /// The multiple.
    pub times: f64,
}

/// The figures of one row.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// `(system, figure, notes)` of each run.
    runs: Vec<(String, f64, Vec<String>)>,
}

impl Figures {
    /// Adds the figure of a run.
    pub fn add(&mut self, system: &str, figure: f64, notes: Vec<String>) {
        self.runs.push((system.to_owned(), figure, notes));
    }

    /// Returns the mean of a system's runs.
    pub fn mean(&self, system: &str) -> Option<f64> {
        let of_system = self.of(system);
        let count = of_system.len() as f64;
        (count > 0.0).then(|| of_system.iter().sum::<f64>() / count)
    }

    /// Returns the median of a system's runs, of which some may have been disturbed by a pause of
    /// the machine.
    pub fn median(&self, system: &str) -> Option<f64> {
        let mut of_system = self.of(system);
        of_system.sort_by(f64::total_cmp);
        let (low, high) = (of_system.len().checked_sub(1)? / 2, of_system.len() / 2);
        Some(f64::midpoint(of_system[low], of_system[high]))
    }

    fn of(&self, system: &str) -> Vec<f64> {
        let of_system = self.runs.iter().filter(|(name, ..)| name == system);
        of_system.map(|(_, figure, _)| *figure).collect()
    }

    /// Returns the notes on a system's runs: the figure of each run if there are several, and each
    /// note once.
    pub fn notes(&self, system: &str) -> Vec<String> {
        let of_system: Vec<&(String, f64, Vec<String>)> = self
            .runs
            .iter()
            .filter(|(name, ..)| name == system)
            .collect();
        let mut notes = Vec::new();
        if of_system.len() > 1 {
            let figures: Vec<String> = of_system
                .iter()
                .map(|(_, figure, _)| crate::scenario::record::figure(*figure))
                .collect();
            notes.push(format!("runs: {}", figures.join(" ")));
        }
        for (.., its_notes) in of_system {
            for note in its_notes {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
        }
        notes
    }

    /// Adds a record for each system that has figures. Those of pg_lanes are judged against
    /// `yardstick`.
    pub fn record(
        &self,
        findings: &mut Findings,
        row: &str,
        unit: &str,
        systems: &[String],
        bars: (&str, &[RelativeBar]),
        point: Option<(&str, f64, &str)>,
    ) {
        let (yardstick, bars) = bars;
        for system in systems {
            let Some(mean) = self.mean(system) else {
                continue;
            };
            let mut record = Record::new(row, system, mean, unit).notes(self.notes(system));
            let bar = bars
                .iter()
                .find(|bar| bar.system == *system && is_ours(system));
            if let (Some(bar), Some(theirs)) = (bar, self.mean(yardstick)) {
                record = judged(record, mean, bar.times, theirs, yardstick);
            }
            if let Some((chart, x, x_unit)) = point {
                record = record.point(chart, system, x, x_unit);
            }
            findings.add(record);
        }
    }
}

fn judged(mut record: Record, ours: f64, times: f64, theirs: f64, yardstick: &str) -> Record {
    record.bar = Some(format!("<= {times} x {yardstick}"));
    record.met = Some(ours <= times * theirs);
    if theirs > 0.0 {
        record.notes.insert(0, format!("{:.2} x", ours / theirs));
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn turns_go_forwards_and_backwards() {
        assert_eq!(
            turns(&names(&["a", "b"]), 2),
            ["a", "b", "b", "a", "a", "b", "b", "a"]
        );
    }

    #[test]
    fn an_outlier_does_not_change_the_median() {
        let mut figures = Figures::default();
        assert_eq!(figures.median("us"), None);
        for (figure, median) in [(5.0, 5.0), (7.0, 6.0), (900.0, 7.0), (6.0, 6.5)] {
            figures.add("us", figure, Vec::new());
            figures.add("them", 1.0, Vec::new());
            assert_eq!(figures.median("us"), Some(median));
        }
    }

    #[test]
    fn pg_lanes_is_judged_by_the_yardsticks_mean_and_peers_are_not_judged() {
        let mut figures = Figures::default();
        for (system, figure) in [
            ("lanes, x", 0.4),
            ("them", 1.0),
            ("them", 0.6),
            ("lanes, x", 0.5),
        ] {
            figures.add(system, figure, vec!["once".to_owned()]);
        }
        let bars = [RelativeBar {
            system: "lanes, x".to_owned(),
            times: 0.5,
        }];
        let mut findings = Findings::default();
        let systems = names(&["lanes, x", "them", "absent"]);
        figures.record(&mut findings, "cpu", "s", &systems, ("them", &bars), None);
        let [ours, theirs] = &findings.records[..] else {
            panic!("{:?}", findings.records);
        };
        assert_eq!((ours.value, ours.met), (Some(0.45), Some(false)));
        assert_eq!(ours.bar.as_deref(), Some("<= 0.5 x them"));
        assert_eq!(ours.notes, ["0.56 x", "runs: 0.4000 0.5000", "once"]);
        assert_eq!((theirs.value, theirs.met), (Some(0.8), None));
    }
}
