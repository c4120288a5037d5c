//! Rows of `lanes.samples`, column by column, as they will lie in the batch.

use lanes_wire::{BuildError, ColumnSource, ValuesSource};
use prometheus::IntCounter;

use super::payload::Payload;
use super::series_cache::SeriesId;
use crate::observe::Metrics;

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

    /// Drops the rows and keeps the memory.
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

/// Rows of many requests, and the batch that they become.
#[derive(Debug, Default)]
pub struct RowsJoiner {
    rows: Rows,
    batch: Vec<u8>,
}

impl Payload for Rows {
    type Joiner = RowsJoiner;

    fn rows(&self) -> usize {
        self.len()
    }

    /// Columns `ts`, `series` and `value`.
    fn encode<'a>(
        payloads: &[&'a Self],
        joiner: &'a mut RowsJoiner,
    ) -> Result<&'a [u8], BuildError> {
        let RowsJoiner { rows: all, batch } = joiner;
        if let [alone] = payloads {
            encode_one(alone, batch)?;
        } else {
            all.clear();
            payloads.iter().for_each(|rows| all.extend(rows));
            encode_one(all, batch)?;
        }
        Ok(batch)
    }

    fn joiner_bytes(joiner: &RowsJoiner) -> usize {
        joiner.rows.heap_bytes() + joiner.batch.capacity()
    }

    fn stored(metrics: &Metrics) -> &IntCounter {
        &metrics.samples_stored
    }
}

fn encode_one(rows: &Rows, out: &mut Vec<u8>) -> Result<(), BuildError> {
    let column = |name, values| ColumnSource {
        name,
        values,
        validity: None,
    };
    let columns = [
        column("ts", ValuesSource::Timestamp(&rows.timestamps_us)),
        column("series", ValuesSource::Int32(&rows.series)),
        column("value", ValuesSource::Float64(&rows.values)),
    ];
    lanes_wire::encode(rows.len(), &columns, out)
}

#[cfg(test)]
mod tests {
    use lanes_wire::{BatchView, ColumnType};

    use super::*;

    #[test]
    fn columns_arrive_to_the_bit() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        let mut rows = Rows::default();
        rows.push(1_700_000_000_000_000, 7, stale);
        rows.push(-1, i32::MAX, -0.0);
        let mut joiner = RowsJoiner::default();
        let bytes = Rows::encode(&[&rows], &mut joiner).unwrap();
        let view = BatchView::verify(bytes).unwrap();
        assert_eq!(view.rows(), 2);
        let columns: Vec<(&str, ColumnType)> = view
            .columns()
            .iter()
            .map(|column| (column.name(), column.column_type()))
            .collect();
        let expected = [
            ("ts", ColumnType::Timestamp),
            ("series", ColumnType::Int32),
            ("value", ColumnType::Float64),
        ];
        assert_eq!(columns, expected);
        let values = view.columns()[2].values().arrays::<8>().unwrap();
        assert_eq!(u64::from_le_bytes(values[0]), 0x7ff0_0000_0000_0002);
        assert_eq!(u64::from_le_bytes(values[1]), (-0.0f64).to_bits());
    }

    #[test]
    fn rows_of_many_requests_keep_their_order() {
        let (mut first, mut second) = (Rows::default(), Rows::default());
        first.push(1, 1, 1.0);
        second.push(2, 2, 2.0);
        second.push(3, 3, 3.0);
        let mut joiner = RowsJoiner::default();
        let bytes = Rows::encode(&[&first, &second], &mut joiner).unwrap();
        let view = BatchView::verify(bytes).unwrap();
        let series = view.columns()[1].values().arrays::<4>().unwrap();
        assert_eq!(series.as_flattened(), [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn every_timestamp_that_is_received_is_one_that_the_format_takes() {
        let mut rows = Rows::default();
        for milliseconds in [
            *crate::receive::TIMESTAMP_MS_RANGE.start(),
            *crate::receive::TIMESTAMP_MS_RANGE.end(),
        ] {
            rows.push(milliseconds * 1000, 1, 0.0);
        }
        let mut joiner = RowsJoiner::default();
        let bytes = Rows::encode(&[&rows], &mut joiner).unwrap();
        assert!(BatchView::verify(bytes).is_ok());
    }
}
