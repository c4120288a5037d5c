//! Verified batches into a batch being collected: many small requests become one large batch, their
//! vectors copied.

use crate::batch_view::{BatchView, ColumnView, Values};
use crate::vector::Bitmap;
use crate::{BatchBuilder, BuildError, limits};

impl BatchBuilder {
    /// Appends all rows of a batch. A builder without columns takes over the batch's; otherwise
    /// both must have the same columns, in whichever order.
    ///
    /// # Errors
    /// Columns that differ, or more rows or bytes than a batch holds; a dictionary of long items,
    /// where the items so far are too many for one. Nothing is appended then.
    pub fn append(&mut self, batch: &BatchView<'_>) -> Result<(), BuildError> {
        if self.columns_mut().is_empty() {
            for column in batch.columns() {
                self.add_column(column.name(), column.column_type())?;
            }
        }
        let rows = self.rows() + batch.rows();
        if rows > limits::ROWS_MAX {
            return Err(BuildError::TooManyRows { rows });
        }
        let sources = self.sources(batch)?;
        for (buffer, source) in self.columns_mut().iter_mut().zip(sources) {
            buffer.append(source);
        }
        Ok(())
    }

    /// The batch's columns in the order of this builder's, each of them checked to fit.
    fn sources<'v, 'b>(
        &mut self,
        batch: &'v BatchView<'b>,
    ) -> Result<Vec<&'v ColumnView<'b>>, BuildError> {
        let columns = batch.columns();
        let unknown = |name: &str| BuildError::OtherColumns {
            name: name.to_owned(),
        };
        let buffers = self.columns_mut();
        if let Some(column) = columns
            .iter()
            .find(|column| buffers.iter().all(|buffer| buffer.name() != column.name()))
        {
            return Err(unknown(column.name()));
        }
        buffers
            .iter()
            .enumerate()
            .map(|(place, buffer)| {
                // Nearly always in the same order.
                let same_place = columns
                    .get(place)
                    .filter(|column| column.name() == buffer.name());
                let column = same_place
                    .or_else(|| batch.column(buffer.name()))
                    .filter(|column| column.column_type() == buffer.column_type())
                    .ok_or_else(|| unknown(buffer.name()))?;
                if !buffer.has_room_for(item_bytes(column)) || buffer.would_multiply(column) {
                    return Err(BuildError::TooLong);
                }
                Ok(column)
            })
            .collect()
    }
}

/// The most bytes that the rows' items may come to.
fn item_bytes(column: &ColumnView<'_>) -> u64 {
    match column.values() {
        Values::Items(items) => items.bytes_total() as u64,
        Values::Codes { codes, items } => {
            let longest = items.iter().map(<[u8]>::len).max().unwrap_or(0);
            codes.len() as u64 * longest as u64
        }
        Values::Bool(_) | Values::Fixed { .. } => 0,
    }
}

/// Appends the bits of `added` to a bitmap that has `rows` bits; bits of its last byte past these
/// are zero.
pub(crate) fn append_bits(bits: &mut Vec<u8>, rows: usize, added: Bitmap<'_>) {
    let shift = rows % 8;
    let mut left = added.rows();
    for word in added.words() {
        let taken = left.min(64);
        left -= taken;
        let mut wide = u128::from(word) << shift;
        if shift > 0
            && let Some(last) = bits.pop()
        {
            wide |= u128::from(last);
        }
        // The next word of 64 rows leaves the shift as it is.
        bits.extend_from_slice(&wide.to_le_bytes()[..(shift + taken).div_ceil(8)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ColumnType, ColumnView};

    #[test]
    fn columns_get_other_names_and_are_left_out() {
        let bytes = batch(&[Some(7), None, Some(9)], false, 1);
        let view = BatchView::verify(&bytes).unwrap();
        let count = view.columns().len();
        let names: Vec<String> = (0..count).map(|index| format!("column {index}")).collect();
        let left_out = |index: &usize| index % 3 == 1;
        let wanted = |index: usize| Some(names[index].as_str()).filter(|_| !left_out(&index));
        let wanted: Vec<Option<&str>> = (0..count).map(wanted).collect();

        let mut builder = BatchBuilder::new();
        builder.append(&view.renamed(&wanted)).unwrap();
        let mut out = Vec::new();
        builder.finish(&mut out).unwrap();
        let renamed = BatchView::verify(&out).unwrap();

        let kept: Vec<usize> = (0..count).filter(|index| !left_out(index)).collect();
        assert_eq!((renamed.rows(), renamed.columns().len()), (3, kept.len()));
        for (column, index) in renamed.columns().iter().zip(kept) {
            let source = &view.columns()[index];
            assert_eq!(column.name(), names[index]);
            assert_eq!(column.column_type(), source.column_type());
            for row in 0..3 {
                assert_eq!(value(column, row), value(source, row));
            }
        }
    }

    /// Rows of a batch in all types, from seeds; `None` is NULL in every column.
    fn batch(seeds: &[Option<u32>], reversed: bool, items: u32) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        let mut types = ColumnType::ALL.to_vec();
        if reversed {
            types.reverse();
        }
        for column_type in &types {
            builder
                .add_column(column_type.name(), *column_type)
                .unwrap();
        }
        for seed in seeds {
            for (index, column_type) in types.iter().enumerate() {
                let column = builder.column(index);
                let Some(seed) = *seed else {
                    column.push_null();
                    continue;
                };
                match column_type {
                    ColumnType::Bool => column.push_bool(seed % 3 == 0),
                    ColumnType::Int16 => column.push_i16(seed as i16),
                    ColumnType::Int32 => column.push_i32(seed as i32),
                    ColumnType::Date => column.push_i32(seed as i32 % 1000),
                    ColumnType::Int64 => column.push_i64(seed.into()),
                    ColumnType::Timestamp => column.push_i64(i64::from(seed) * 1000),
                    ColumnType::Float32 => column.push_f32(f32::from_bits(seed)),
                    ColumnType::Float64 => column.push_f64(seed.into()),
                    ColumnType::Uuid => column.push_uuid([seed as u8; 16]),
                    ColumnType::Text => column.push_text(&format!("text {}", seed % items)),
                    ColumnType::Bytes => column.push_bytes(&(seed % items).to_be_bytes()),
                }
                .unwrap();
            }
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        bytes
    }

    /// The value of a row as bytes; `None` for NULL.
    fn value(column: &ColumnView<'_>, row: usize) -> Option<Vec<u8>> {
        if column.is_null(row) {
            return None;
        }
        Some(match column.values() {
            Values::Bool(bits) => vec![u8::from(bits.get(row))],
            Values::Fixed { width, bytes } => bytes[row * width..(row + 1) * width].to_vec(),
            Values::Items(_) | Values::Codes { .. } => column.item(row).unwrap().to_vec(),
        })
    }

    proptest! {
        #[test]
        fn rows_arrive_in_order_whatever_the_parts(
            parts in prop::collection::vec(
                (prop::collection::vec(prop::option::weighted(0.9, any::<u32>()), 0..150), any::<bool>(), 1u32..2000),
                1..6,
            ),
        ) {
            let parts: Vec<Vec<u8>> = parts
                .iter()
                .map(|(seeds, reversed, items)| batch(seeds, *reversed, *items))
                .collect();
            let views: Vec<BatchView<'_>> =
                parts.iter().map(|part| BatchView::verify(part).unwrap()).collect();
            let mut builder = BatchBuilder::new();
            // Twice, so that cleared buffers are seen to be clean.
            for _ in 0..2 {
                builder.clear();
                for view in &views {
                    builder.append(view).unwrap();
                }
            }
            let mut joined = Vec::new();
            builder.finish(&mut joined).unwrap();
            let joined = BatchView::verify(&joined).unwrap();
            prop_assert_eq!(joined.rows(), views.iter().map(BatchView::rows).sum::<usize>());
            for column in joined.columns() {
                let rows: Vec<_> = (0..joined.rows()).map(|row| value(column, row)).collect();
                let expected: Vec<_> = views
                    .iter()
                    .flat_map(|view| {
                        let column = view.column(column.name()).unwrap();
                        (0..view.rows()).map(|row| value(column, row))
                    })
                    .collect();
                prop_assert_eq!(rows, expected, "{}", column.name());
            }
        }
    }

    #[test]
    fn other_columns_are_refused_and_leave_no_trace() {
        let encoded = |names: &[(&str, ColumnType)]| {
            let mut builder = BatchBuilder::new();
            for (name, column_type) in names {
                let index = builder.add_column(name, *column_type).unwrap();
                builder.column(index).push_null();
            }
            let mut bytes = Vec::new();
            builder.finish(&mut bytes).unwrap();
            bytes
        };
        let mut builder = BatchBuilder::new();
        let both = encoded(&[("a", ColumnType::Int32), ("b", ColumnType::Text)]);
        builder.append(&BatchView::verify(&both).unwrap()).unwrap();
        for other in [
            &[("a", ColumnType::Int32)][..],
            &[("a", ColumnType::Int32), ("b", ColumnType::Bytes)],
            &[
                ("a", ColumnType::Int32),
                ("b", ColumnType::Text),
                ("c", ColumnType::Bool),
            ],
        ] {
            let bytes = encoded(other);
            let refused = builder.append(&BatchView::verify(&bytes).unwrap());
            assert!(
                matches!(refused, Err(BuildError::OtherColumns { .. })),
                "{other:?}"
            );
        }
        assert_eq!(builder.rows(), 1);
        assert!(
            builder
                .columns_mut()
                .iter()
                .all(|column| column.rows() == 1)
        );
    }

    #[test]
    fn a_dictionary_of_long_items_is_never_written_out() {
        let encoded = |items: &mut dyn Iterator<Item = String>| {
            let mut builder = BatchBuilder::new();
            let index = builder.add_column("a", ColumnType::Text).unwrap();
            for item in items {
                builder.column(index).push_text(&item).unwrap();
            }
            let mut bytes = Vec::new();
            builder.finish(&mut bytes).unwrap();
            bytes
        };
        // Of 40 MB written out, and of more items than a dictionary pays for.
        let long = encoded(&mut std::iter::repeat_n("x".repeat(1000), 40_000));
        let many = encoded(&mut (0..limits::DICTIONARY_ITEMS_FLOOR + 5_000).map(|n| n.to_string()));
        let (long, many) = (
            BatchView::verify(&long).unwrap(),
            BatchView::verify(&many).unwrap(),
        );
        let mut builder = BatchBuilder::new();
        builder.append(&long).unwrap();
        builder.append(&many).unwrap();
        let mut joined = Vec::new();
        builder.finish(&mut joined).unwrap();
        assert!(joined.len() < 2_000_000, "{}", joined.len());
        let joined = BatchView::verify(&joined).unwrap();
        assert_eq!(joined.rows(), long.rows() + many.rows());
        assert_eq!(joined.columns()[0].item(long.rows()), Some(&b"0"[..]));
        builder.clear();
        builder.append(&many).unwrap();
        assert!(matches!(builder.append(&long), Err(BuildError::TooLong)));
        assert_eq!(builder.rows(), many.rows());
    }
}
