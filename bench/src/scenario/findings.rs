//! The records of a run: the table for people, `<scenario>.json` for programs.

use super::record::{Record, figure};
use lanes_support::error::{Error, Result};
use std::path::Path;

/// The results of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// The figures, in the order of the report.
    pub records: Vec<Record>,
    /// Failures other than those of single figures.
    pub failures: Vec<String>,
    /// The versions and settings of the measured systems.
    pub systems: Vec<String>,
}

impl Findings {
    /// Adds a figure and prints it.
    pub fn add(&mut self, record: Record) {
        println!("{}", line(&record));
        self.records.push(record);
    }

    /// Returns the number of judged bars, and how many of them are met.
    pub fn judged(&self) -> (usize, usize) {
        let judged: Vec<bool> = self
            .records
            .iter()
            .filter_map(|record| record.met)
            .collect();
        (judged.len(), judged.iter().filter(|met| **met).count())
    }

    /// Formats the table.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for record in &self.records {
            text.push_str(&line(record));
            text.push('\n');
        }
        for failure in &self.failures {
            text.push_str(&format!("  failure: {failure}\n"));
        }
        let (judged, met) = self.judged();
        text.push_str(&format!("met {met} of {judged} judged bars\n"));
        text
    }

    /// Writes the list of records.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let json = serde_json::json!(self.records);
        std::fs::write(file, format!("{json:#}\n")).map_err(Error::file("write", file))
    }
}

fn line(record: &Record) -> String {
    let value = match (&record.value, &record.error) {
        (Some(value), _) => format!("{:>13} {:<14}", figure(*value), record.unit),
        (None, reason) => format!("error: {}", reason.as_deref().unwrap_or("no figure")),
    };
    let mut text = format!("  {:<52} {:<20} {value}", record.row, record.system);
    if let Some(bar) = &record.bar {
        let verdict = if record.met == Some(true) {
            "met"
        } else {
            "MISSED"
        };
        text.push_str(&format!(" {bar}: {verdict}"));
    }
    if !record.notes.is_empty() {
        text.push_str(&format!(" [{}]", record.notes.join("; ")));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Bar;

    #[test]
    fn the_table_reports_missed_bars_and_errors() {
        let mut findings = Findings::default();
        findings.add(Record::new("events", "lanes", 5e6, "events/s").bar(Some(Bar::Least(1e7))));
        findings.add(
            Record::new("p99", "lanes", 3.0, "ms")
                .bar(Some(Bar::Most(16.0)))
                .notes(["client-bound".to_owned()]),
        );
        findings.add(Record::failed("json", "lanes", "events/s", "no such route"));
        let table = findings.table();
        assert!(table.contains(">= 10,000,000 events/s: MISSED"), "{table}");
        assert!(table.contains("<= 16.0 ms: met [client-bound]"), "{table}");
        assert!(
            table.contains("error: no such route") && table.contains("met 1 of 2 judged bars"),
            "{table}"
        );
    }
}
