//! Samples as rows of `lanes.samples`, column by column, as they are laid out in the batch.

use lanes_wire::{BuildError, ColumnSource, ValuesSource};

use crate::model::{Payload, RowKind};
use crate::series::SeriesId;

/// The range of milliseconds since the Unix epoch that can be stored: both PostgreSQL's
/// timestamptz, which begins in 4714 BC, and microseconds in 64 bits can represent it.
pub const TIMESTAMP_MS_RANGE: std::ops::RangeInclusive<i64> =
    -210_866_803_200_000..=i64::MAX / 1000;

/// Samples that are ready to be appended. The three columns have the same length.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct SampleRows {
    /// Microseconds since the Unix epoch.
    pub timestamps_us: Vec<i64>,
    /// Series ids.
    pub series: Vec<SeriesId>,
    /// Values. They are only moved, never computed with, so every NaN keeps its bits.
    pub values: Vec<f64>,
}

impl SampleRows {
    /// The bytes of one row.
    pub const ROW_BYTES: usize = 20;

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there are no rows.
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

    /// Adds all rows of `other`.
    pub fn extend(&mut self, other: &SampleRows) {
        self.timestamps_us.extend_from_slice(&other.timestamps_us);
        self.series.extend_from_slice(&other.series);
        self.values.extend_from_slice(&other.values);
    }

    /// Keeps the rows whose series satisfies a condition.
    pub fn retain(&mut self, mut keeps: impl FnMut(SeriesId) -> bool) {
        let mut kept = 0;
        for row in 0..self.len() {
            if keeps(self.series[row]) {
                self.timestamps_us[kept] = self.timestamps_us[row];
                self.series[kept] = self.series[row];
                self.values[kept] = self.values[row];
                kept += 1;
            }
        }
        self.timestamps_us.truncate(kept);
        self.series.truncate(kept);
        self.values.truncate(kept);
    }

    /// Drops the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.timestamps_us.clear();
        self.series.clear();
        self.values.clear();
    }

    /// The bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.timestamps_us.capacity() * 8 + self.series.capacity() * 4 + self.values.capacity() * 8
    }
}

/// Buffers for the rows of many requests and the batch that they become.
#[derive(Debug, Default)]
pub struct SampleJoiner {
    rows: SampleRows,
    batch: Vec<u8>,
}

impl Payload for SampleRows {
    type Joiner = SampleJoiner;

    const KIND: RowKind = RowKind::Sample;

    fn rows(&self) -> usize {
        self.len()
    }

    /// Encodes the columns `ts`, `series` and `value`.
    fn encode<'a>(
        payloads: &[&'a Self],
        joiner: &'a mut SampleJoiner,
    ) -> Result<&'a [u8], BuildError> {
        let SampleJoiner { rows: all, batch } = joiner;
        if let [alone] = payloads {
            encode_one(alone, batch)?;
        } else {
            all.clear();
            payloads.iter().for_each(|rows| all.extend(rows));
            encode_one(all, batch)?;
        }
        Ok(batch)
    }

    fn joiner_bytes(joiner: &SampleJoiner) -> usize {
        joiner.rows.heap_bytes() + joiner.batch.capacity()
    }
}

fn encode_one(rows: &SampleRows, out: &mut Vec<u8>) -> Result<(), BuildError> {
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
    fn columns_keep_every_bit() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        let mut rows = SampleRows::default();
        rows.push(1_700_000_000_000_000, 7, stale);
        rows.push(-1, i32::MAX, -0.0);
        let mut joiner = SampleJoiner::default();
        let bytes = SampleRows::encode(&[&rows], &mut joiner).unwrap();
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
        let (mut first, mut second) = (SampleRows::default(), SampleRows::default());
        first.push(1, 1, 1.0);
        second.push(2, 2, 2.0);
        second.push(3, 3, 3.0);
        let mut joiner = SampleJoiner::default();
        let bytes = SampleRows::encode(&[&first, &second], &mut joiner).unwrap();
        let view = BatchView::verify(bytes).unwrap();
        let series = view.columns()[1].values().arrays::<4>().unwrap();
        assert_eq!(series.as_flattened(), [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn the_format_accepts_every_timestamp_that_can_be_received() {
        let mut rows = SampleRows::default();
        for milliseconds in [*TIMESTAMP_MS_RANGE.start(), *TIMESTAMP_MS_RANGE.end()] {
            rows.push(milliseconds * 1000, 1, 0.0);
        }
        let mut joiner = SampleJoiner::default();
        let bytes = SampleRows::encode(&[&rows], &mut joiner).unwrap();
        assert!(BatchView::verify(bytes).is_ok());
    }
}
