//! Rows of `lanes.samples`, column by column, as they will lie in the batch.

use super::series_cache::SeriesId;

/// Samples ready to append. The three columns have one length.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Rows {
    /// Microseconds since the Unix epoch.
    pub timestamps_us: Vec<i64>,
    /// Series ids.
    pub series: Vec<SeriesId>,
    /// Values; only moved, never computed with, so every NaN keeps its bits.
    pub values: Vec<f64>,
}

impl Rows {
    /// Bytes of one row.
    pub const ROW_BYTES: usize = 20;

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Adds one row.
    #[inline]
    pub fn push(&mut self, timestamp_us: i64, series: SeriesId, value: f64) {
        self.timestamps_us.push(timestamp_us);
        self.series.push(series);
        self.values.push(value);
    }

    /// Adds all rows of another.
    pub fn extend(&mut self, other: &Rows) {
        self.timestamps_us.extend_from_slice(&other.timestamps_us);
        self.series.extend_from_slice(&other.series);
        self.values.extend_from_slice(&other.values);
    }

    /// Forgets the rows, keeps the memory.
    pub fn clear(&mut self) {
        self.timestamps_us.clear();
        self.series.clear();
        self.values.clear();
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.timestamps_us.capacity() * 8 + self.series.capacity() * 4 + self.values.capacity() * 8
    }
}
