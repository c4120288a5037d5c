//! Series in memory, for tests and measurements.

use crate::error::Error;
use crate::labels::Labels;
use crate::source::{Samples, Selection, SeriesSink, Source};

/// A series with its columns.
#[derive(Debug, Clone)]
pub struct MemorySeries {
    /// The label set.
    pub labels: Labels,
    /// Milliseconds since 1970, strictly increasing.
    pub timestamps: Vec<i64>,
    /// The values.
    pub values: Vec<f64>,
}

/// Series in memory, in the order in which they are read.
#[derive(Debug, Clone, Default)]
pub struct MemorySource {
    /// The series.
    pub series: Vec<MemorySeries>,
}

impl Source for MemorySource {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        for series in self
            .series
            .iter()
            .filter(|series| selection.matches(&series.labels))
        {
            let start = series
                .timestamps
                .partition_point(|time| *time < selection.start);
            let end = series
                .timestamps
                .partition_point(|time| *time <= selection.end);
            if start < end {
                let samples = Samples {
                    timestamps: &series.timestamps[start..end],
                    values: &series.values[start..end],
                };
                each(&series.labels, samples)?;
            }
        }
        Ok(())
    }
}
