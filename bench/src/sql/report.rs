//! The table for people, and `sql.json` for programs. The file is a list of `{row, system, median,
//! p99, unit, bar, met, executions, server_cpu_ms, client_cpu_ms, error, notes}`.

use crate::sql::definition::Definition;
use crate::sql::judge::Line;
use crate::sql::measurement::Kind;
use lanes_support::error::{Error, Result};
use serde_json::{Value, json};
use std::path::Path;

/// A row of the table with all its lines.
#[derive(Debug)]
pub struct Section {
    /// The row's name.
    pub row: String,
    /// What the query computes.
    pub title: String,
    /// A note for the reader.
    pub note: Option<String>,
    /// One line per system.
    pub lines: Vec<Line>,
}

impl Section {
    /// Creates the section of a definition.
    pub fn of(definition: &Definition, lines: Vec<Line>) -> Section {
        Section {
            row: definition.row.clone(),
            title: definition.title.clone(),
            note: definition.note.clone(),
            lines,
        }
    }
}

/// Formats the table as text.
pub fn table(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        text.push_str(&format!("\n{}: {}\n", section.row, section.title));
        if let Some(note) = &section.note {
            text.push_str(&format!("  ({note})\n"));
        }
        text.push_str(&format!(
            "  {:<34}{:>11}{:>11}    {:>6}{:>10}{:>10}{:>9}  bar\n",
            "system", "median", "p99", "n", "cpu ms", "client", "to ours"
        ));
        let ours = section
            .lines
            .iter()
            .find(|line| line.measurement.kind == Kind::Ours)
            .and_then(|line| line.measurement.median());
        for line in &section.lines {
            text.push_str(&row(line, ours));
        }
    }
    let judged: Vec<bool> = sections
        .iter()
        .flat_map(|section| &section.lines)
        .filter_map(|line| line.met)
        .collect();
    let met = judged.iter().filter(|met| **met).count();
    text.push_str(&format!(
        "\n{met} of {} judged bars are met\n",
        judged.len()
    ));
    text
}

fn row(line: &Line, ours: Option<f64>) -> String {
    let measurement = &line.measurement;
    let mut text = match &measurement.times {
        Ok(times) => {
            let cpu =
                |cpu: Option<f64>| cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.3}"));
            let ratio = match (measurement.kind, ours) {
                (Kind::Peer, Some(ours))
                    if ours > 0.0
                        && measurement.unit == crate::sql::measurement::Unit::Milliseconds =>
                {
                    format!("{:.1}x", times.median() / ours)
                }
                _ => "-".to_owned(),
            };
            format!(
                "  {:<34}{:>11.3}{:>11.3} {:<2} {:>6}{:>10}{:>10}{ratio:>9}",
                measurement.system,
                times.median(),
                times.p99(),
                measurement.unit.name(),
                times.count(),
                cpu(measurement.server_cpu),
                cpu(measurement.client_cpu),
            )
        }
        Err(reason) => format!("  {:<34} error: {reason}", measurement.system),
    };
    if let Some(bar) = &line.bar {
        let verdict = match line.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not judged",
        };
        text.push_str(&format!("  {bar}: {verdict}"));
    }
    if is_client_bound(line) {
        text.push_str("  [client-bound]");
    }
    for note in &measurement.notes {
        text.push_str(&format!("\n      {note}"));
    }
    text.push('\n');
    text
}

/// Whether the client used more CPU than the server.
fn is_client_bound(line: &Line) -> bool {
    let cpu = (line.measurement.client_cpu, line.measurement.server_cpu);
    matches!(cpu, (Some(client), Some(server)) if client > server)
}

/// Returns the list for programs.
pub fn to_json(sections: &[Section]) -> Value {
    let lines = sections
        .iter()
        .flat_map(|section| &section.lines)
        .map(|line| {
            let measurement = &line.measurement;
            let times = measurement.times.as_ref();
            json!({
                "row": measurement.row,
                "system": measurement.system,
                "median": times.ok().map(|times| times.median()),
                "p99": times.ok().map(|times| times.p99()),
                "unit": measurement.unit.name(),
                "bar": line.bar,
                "met": line.met,
                "executions": times.ok().map(|times| times.count()),
                "server_cpu_ms": measurement.server_cpu,
                "client_cpu_ms": measurement.client_cpu,
                "error": times.err(),
                "notes": measurement.notes,
            })
        });
    lines.collect()
}

/// Writes a JSON file.
pub fn write(path: &Path, json: &Value) -> Result<()> {
    std::fs::write(path, format!("{json:#}\n")).map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::measurement::Measurement;
    use crate::statistics::Times;

    fn section() -> Section {
        let line = |system: &str,
                    kind,
                    times: std::result::Result<Vec<f64>, &str>,
                    met: Option<bool>| Line {
            measurement: Measurement::new(
                "asof",
                system,
                kind,
                times
                    .map(|times| Times::new(times).unwrap())
                    .map_err(str::to_owned),
            ),
            bar: met.map(|_| "<= 10 ms".to_owned()),
            met,
        };
        Section {
            row: "asof".to_owned(),
            title: "a join".to_owned(),
            note: None,
            lines: vec![
                line("lanes", Kind::Ours, Ok(vec![12.0]), Some(false)),
                line("polars", Kind::Peer, Ok(vec![36.0, 36.0]), None),
                line("chdb", Kind::Peer, Err("no such function"), None),
            ],
        }
    }

    #[test]
    fn the_list_has_a_line_per_system_and_reports_missed_bars() {
        let json = to_json(&[section()]);
        assert_eq!(json[0]["met"], json!(false));
        assert_eq!(json[0]["bar"], json!("<= 10 ms"));
        assert_eq!(json[1]["median"], json!(36.0));
        assert_eq!(
            (&json[1]["met"], &json[1]["unit"], &json[1]["executions"]),
            (&Value::Null, &json!("ms"), &json!(2))
        );
        assert_eq!(
            (&json[2]["error"], &json[2]["median"]),
            (&json!("no such function"), &Value::Null)
        );
    }

    #[test]
    fn the_table_shows_ratios_errors_and_verdicts() {
        let text = table(&[section()]);
        assert!(
            text.contains("3.0x") && text.contains("error: no such function"),
            "{text}"
        );
        assert!(
            text.contains("<= 10 ms: MISSED") && text.contains("0 of 1 judged bars are met"),
            "{text}"
        );
    }

    #[test]
    fn a_client_that_uses_more_cpu_than_the_server_is_reported() {
        let mut section = section();
        section.lines[0].measurement.server_cpu = Some(1.0);
        section.lines[0].measurement.client_cpu = Some(2.0);
        assert!(table(&[section]).contains("[client-bound]"));
    }
}
