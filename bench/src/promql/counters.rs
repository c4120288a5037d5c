//! The series of the scenario: one counter and one gauge, with the labels of a web service.

use crate::fleet::shape::{Movement, SeriesShape, TargetShape};
use serde::Deserialize;

/// The series of each target.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// The number of values of the label `handler`.
    handlers: usize,
    /// The number of values of the label `code`.
    codes: usize,
    /// By how much a counter grows per second.
    growth: f64,
}

/// The captured value of a series, around which a gauge walks.
const LEVEL: f64 = 1000.0;

impl Counters {
    /// Returns the shape of a target: a counter and a gauge for each handler and code.
    pub fn shape(&self) -> TargetShape {
        let metrics = [
            ("requests_total", Movement::Grows(self.growth)),
            ("requests_in_flight", Movement::Walks(self.growth)),
        ];
        let mut series = Vec::new();
        for (metric, movement) in metrics {
            for place in 0..self.handlers * self.codes {
                let (handler, code) = (place / self.codes, place % self.codes);
                series.push(SeriesShape {
                    labels: vec![
                        ("__name__".to_owned(), metric.to_owned()),
                        ("code".to_owned(), (200 + code).to_string()),
                        ("handler".to_owned(), format!("/api/v1/{handler:03}")),
                    ],
                    value: LEVEL,
                    scale: Some(1.0),
                    movement,
                });
            }
        }
        TargetShape { series }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_of_a_target_has_other_labels() {
        let counters = Counters {
            handlers: 3,
            codes: 2,
            growth: 5.0,
        };
        let mut labels: Vec<_> = counters
            .shape()
            .series
            .into_iter()
            .map(|one| one.labels)
            .collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), 12);
        assert!(labels[0].is_sorted());
    }
}
