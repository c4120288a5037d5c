//! A figure with its bar, `{row, system, value, unit, bar, met}`, and notes for the reader.

use serde::{Deserialize, Serialize};

/// A bar for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Bar {
    /// At least this much.
    Least(f64),
    /// At most this much.
    Most(f64),
}

impl Bar {
    /// Whether a figure meets the bar.
    pub fn is_met(&self, value: f64) -> bool {
        match self {
            Bar::Least(least) => value >= *least,
            Bar::Most(most) => value <= *most,
        }
    }

    /// Formats the bar for people.
    pub fn describe(&self, unit: &str) -> String {
        match self {
            Bar::Least(least) => format!(">= {} {unit}", figure(*least)),
            Bar::Most(most) => format!("<= {} {unit}", figure(*most)),
        }
    }
}

/// The position in a chart of the report. The height is the record's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The chart's title.
    pub chart: String,
    /// The name of the line in the chart.
    pub series: String,
    /// The horizontal position.
    pub x: f64,
    /// The unit of `x`.
    pub x_unit: String,
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The measured row.
    pub row: String,
    /// The measured system.
    pub system: String,
    /// The figure. `None` if it could not be measured, for the reason in `error`.
    pub value: Option<f64>,
    /// The figure's unit.
    pub unit: String,
    /// The bar.
    pub bar: Option<String>,
    /// Whether the bar is met. `None` without a bar.
    pub met: Option<bool>,
    /// Notes for the reader, such as `client-bound`.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The reason why there is no figure.
    #[serde(default)]
    pub error: Option<String>,
    /// The position in a chart.
    #[serde(default)]
    pub point: Option<Point>,
}

impl Record {
    /// Creates a figure without a bar.
    pub fn new(row: impl Into<String>, system: &str, value: f64, unit: &str) -> Record {
        Record {
            row: row.into(),
            system: system.to_owned(),
            value: Some(value),
            unit: unit.to_owned(),
            bar: None,
            met: None,
            notes: Vec::new(),
            error: None,
            point: None,
        }
    }

    /// Creates a record of a figure that could not be measured. A bar on it is missed.
    pub fn failed(
        row: impl Into<String>,
        system: &str,
        unit: &str,
        reason: impl Into<String>,
    ) -> Record {
        Record {
            value: None,
            error: Some(reason.into()),
            ..Record::new(row, system, 0.0, unit)
        }
    }

    /// Judges the figure.
    pub fn bar(mut self, bar: Option<Bar>) -> Record {
        if let Some(bar) = bar {
            self.bar = Some(bar.describe(&self.unit));
            self.met = Some(self.value.is_some_and(|value| bar.is_met(value)));
        }
        self
    }

    /// Adds notes for the reader.
    pub fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Record {
        self.notes.extend(notes);
        self
    }

    /// Adds the position in a chart.
    pub fn point(mut self, chart: &str, series: &str, x: f64, x_unit: &str) -> Record {
        self.point = Some(Point {
            chart: chart.to_owned(),
            series: series.to_owned(),
            x,
            x_unit: x_unit.to_owned(),
        });
        self
    }
}

/// Formats a number for people: three or four significant digits, with separators of thousands.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.001 => 4,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(whole) => ("-", whole),
        None => ("", whole),
    };
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        "" => format!("{sign}{grouped}"),
        fraction => format!("{sign}{grouped}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_significant_digits_and_separators() {
        let shown: Vec<String> = [10_234_567.8, 999.6, 12.34, 1.005, 0.01234, 0.0, -1234.0]
            .into_iter()
            .map(figure)
            .collect();
        assert_eq!(
            shown,
            [
                "10,234,568",
                "1,000",
                "12.3",
                "1.00",
                "0.0123",
                "0",
                "-1,234"
            ]
        );
    }

    #[test]
    fn bars_are_judged_and_a_failure_misses_its_bar() {
        let record = |value| Record::new("r", "s", value, "ms").bar(Some(Bar::Most(16.0)));
        assert_eq!(
            (record(16.0).met, record(16.1).met),
            (Some(true), Some(false))
        );
        assert_eq!(record(1.0).bar.unwrap(), "<= 16.0 ms");
        let failed = Record::failed("r", "s", "events/s", "no").bar(Some(Bar::Least(1.0)));
        assert_eq!((failed.met, failed.value), (Some(false), None));
        assert_eq!(Record::new("r", "s", 1.0, "ms").bar(None).met, None);
    }

    #[test]
    fn records_have_the_six_fields_and_optional_ones() {
        let json = serde_json::to_value(Record::new("r", "s", 1.0, "ms")).unwrap();
        for field in ["row", "system", "value", "unit", "bar", "met"] {
            assert!(json.get(field).is_some(), "{field}");
        }
    }
}
