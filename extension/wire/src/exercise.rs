use crate::{BatchError, BatchView, ColumnType, Values, limits};

/// Verifies `data` and, if it is a batch, reads everything that its view offers and asserts the
/// crate's invariants. For fuzz targets and property tests: a panic is a bug of
/// [`BatchView::verify`].
///
/// # Errors
/// What [`BatchView::verify`] finds.
pub fn exercise(data: &[u8]) -> Result<(), BatchError> {
    let view = BatchView::verify(data)?;
    assert!(view.rows() <= limits::ROWS_MAX);
    assert!(view.columns().len() <= limits::COLUMNS_MAX);
    assert!(view.rows() == 0 || !view.columns().is_empty());
    let mut wide = Vec::new();
    let mut words = Vec::new();
    for column in view.columns() {
        let rows = view.rows();
        assert_eq!(column.rows(), rows);
        assert!((1..=limits::NAME_BYTES_MAX).contains(&column.name().len()));
        let same_name = |other: &&crate::ColumnView<'_>| other.name() == column.name();
        assert_eq!(view.columns().iter().filter(same_name).count(), 1);
        let nulls = (0..rows).filter(|row| column.is_null(*row)).count();
        assert_eq!(nulls, column.null_count());
        assert_eq!(column.validity().is_some(), nulls > 0);
        match column.values() {
            Values::Bool(bits) => {
                assert_eq!(column.column_type(), ColumnType::Bool);
                assert_eq!(bits.rows(), rows);
                bits.words_into(&mut words);
                assert_eq!(words.len(), rows.div_ceil(64));
            }
            Values::Fixed { width, bytes } => {
                assert_eq!(column.column_type().width(), Some(*width));
                assert_eq!(bytes.len(), rows * width);
            }
            Values::Items(items) => assert_eq!(items.len(), rows),
            Values::Codes { codes, items } => {
                assert_eq!(codes.len(), rows);
                codes.widen_into(&mut wide);
                for (row, code) in wide.iter().enumerate() {
                    assert_eq!(*code, codes.get(row));
                    assert!((*code as usize) < items.len());
                }
                let _ = items.iter().map(<[u8]>::len).sum::<usize>();
            }
        }
        let is_text = column.column_type() == ColumnType::Text;
        for row in 0..rows {
            if let Some(item) = column.item(row)
                && is_text
            {
                assert!(std::str::from_utf8(item).is_ok_and(|text| !text.contains('\0')));
            }
        }
        match column.column_type() {
            ColumnType::Timestamp => {
                for (row, value) in column.values().arrays().unwrap_or(&[]).iter().enumerate() {
                    let value = i64::from_le_bytes(*value);
                    assert!(
                        column.is_null(row)
                            || value == i64::MIN
                            || value >= limits::TIMESTAMP_MICROSECONDS_MIN
                    );
                }
            }
            ColumnType::Text | ColumnType::Bytes => {
                assert!(column.values().arrays::<4>().is_none())
            }
            _ => {}
        }
    }
    Ok(())
}
