//! Rows to the batch format.

use lanes_wire::{BuildError, ColumnSource, ValuesSource};

use super::rows::Rows;

/// Replaces `out` by the batch of `rows` for columns `ts`, `series` and `value`.
///
/// # Errors
/// If there are more rows than a batch holds ([`lanes_wire::limits::ROWS_MAX`]).
pub fn encode(rows: &Rows, out: &mut Vec<u8>) -> Result<(), BuildError> {
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
        let mut bytes = Vec::new();
        encode(&rows, &mut bytes).unwrap();
        let view = BatchView::verify(&bytes).unwrap();
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
    fn every_timestamp_that_is_received_is_one_that_the_format_takes() {
        let mut rows = Rows::default();
        for milliseconds in [
            *crate::receive::TIMESTAMP_MS_RANGE.start(),
            *crate::receive::TIMESTAMP_MS_RANGE.end(),
        ] {
            rows.push(milliseconds * 1000, 1, 0.0);
        }
        let mut bytes = Vec::new();
        encode(&rows, &mut bytes).unwrap();
        assert!(BatchView::verify(&bytes).is_ok());
    }
}
