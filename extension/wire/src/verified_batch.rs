//! A verified batch that owns its bytes, so that it can be read again later without being checked
//! again.

use std::ops::Range;

use crate::batch_view::{BatchView, ColumnView, Values};
use crate::vector::{Bitmap, Codes, Items, chunks};
use crate::{BatchError, ColumnType};

/// Bytes with the places of the vectors that a [`BatchView`] found and checked.
///
/// `B` returns the same bytes at each call, as every unchanged buffer does.
#[derive(Clone, Debug)]
pub struct VerifiedBatch<B> {
    bytes: B,
    rows: usize,
    columns: Box<[ColumnPlaces]>,
}

/// Where bytes of the buffer lie. A buffer is no longer than [`crate::limits::BATCH_BYTES_MAX`],
/// which fits `u32`.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    end: u32,
}

const _: () = assert!(crate::limits::BATCH_BYTES_MAX <= u32::MAX as usize);

impl Place {
    /// The place of a part of `bytes`.
    fn of(part: &[u8], bytes: &[u8]) -> Self {
        if part.is_empty() {
            return Self { start: 0, end: 0 };
        }
        let start = part.as_ptr().addr() - bytes.as_ptr().addr();
        Self {
            start: start as u32,
            end: (start + part.len()) as u32,
        }
    }

    fn in_bytes(self, bytes: &[u8]) -> &[u8] {
        let Range { start, end } = self.start as usize..self.end as usize;
        &bytes[start..end]
    }
}

#[derive(Clone, Debug)]
struct ColumnPlaces {
    name: Place,
    column_type: ColumnType,
    null_count: u32,
    validity: Option<Place>,
    values: ValuesPlaces,
}

#[derive(Clone, Copy, Debug)]
enum ValuesPlaces {
    Bool(Place),
    Fixed(Place),
    Items(ItemsPlaces),
    Codes {
        codes: Place,
        width: u8,
        items: ItemsPlaces,
    },
}

#[derive(Clone, Copy, Debug)]
struct ItemsPlaces {
    ends: Place,
    bytes: Place,
}

impl ItemsPlaces {
    fn of(items: &Items<'_>, bytes: &[u8]) -> Self {
        Self {
            ends: Place::of(items.ends_bytes(), bytes),
            bytes: Place::of(items.bytes(), bytes),
        }
    }

    fn in_bytes(self, bytes: &[u8], column_type: ColumnType) -> Items<'_> {
        let items = self.bytes.in_bytes(bytes);
        let is_text = column_type == ColumnType::Text;
        let text = is_text.then(|| text(items));
        Items::new(chunks(self.ends.in_bytes(bytes)), items, text)
    }
}

/// Bytes that were found to be text.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("verified bytes do not change")
}

impl<B: AsRef<[u8]>> VerifiedBatch<B> {
    /// Checks `bytes` and stores them.
    ///
    /// # Errors
    /// The errors of [`BatchView::verify`].
    pub fn verify(bytes: B) -> Result<Self, BatchError> {
        Self::verify_with(bytes, |_| Ok(())).map(|(batch, ())| batch)
    }

    /// Checks `bytes`, passes the view to `judge`, and stores the bytes with its result.
    ///
    /// # Errors
    /// The errors of [`BatchView::verify`] and of `judge`.
    pub fn verify_with<T, E: From<BatchError>>(
        bytes: B,
        judge: impl FnOnce(&BatchView<'_>) -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        let view = BatchView::verify(bytes.as_ref())?;
        let judged = judge(&view)?;
        let (rows, columns) = (view.rows(), places(&view, bytes.as_ref()));
        let batch = Self {
            bytes,
            rows,
            columns,
        };
        Ok((batch, judged))
    }

    /// The batch.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of memory: the batch, and the description of its columns.
    pub fn heap_bytes(&self) -> usize {
        self.bytes().len() + size_of_val(&*self.columns)
    }

    /// The view that was verified.
    ///
    /// # Panics
    /// If the bytes have changed since.
    pub fn view(&self) -> BatchView<'_> {
        let columns = self.columns.iter().map(|column| self.column(column));
        BatchView::of_verified(self.rows, columns.collect())
    }

    fn column(&self, places: &ColumnPlaces) -> ColumnView<'_> {
        let (bytes, rows) = (self.bytes(), self.rows);
        let column_type = places.column_type;
        let values = match places.values {
            ValuesPlaces::Bool(bits) => Values::Bool(Bitmap::new(bits.in_bytes(bytes), rows)),
            ValuesPlaces::Fixed(values) => Values::Fixed {
                width: column_type.width().unwrap_or(0),
                bytes: values.in_bytes(bytes),
            },
            ValuesPlaces::Items(items) => Values::Items(items.in_bytes(bytes, column_type)),
            ValuesPlaces::Codes {
                codes,
                width,
                items,
            } => {
                let codes = codes.in_bytes(bytes);
                Values::Codes {
                    codes: match width {
                        1 => Codes::U8(codes),
                        2 => Codes::U16(chunks(codes)),
                        _ => Codes::U32(chunks(codes)),
                    },
                    items: items.in_bytes(bytes, column_type),
                }
            }
        };
        ColumnView {
            name: text(places.name.in_bytes(bytes)),
            column_type,
            rows,
            null_count: places.null_count as usize,
            validity: places
                .validity
                .map(|bits| Bitmap::new(bits.in_bytes(bytes), rows)),
            values,
        }
    }
}

fn places(view: &BatchView<'_>, bytes: &[u8]) -> Box<[ColumnPlaces]> {
    let columns = view.columns().iter().map(|column| ColumnPlaces {
        name: Place::of(column.name().as_bytes(), bytes),
        column_type: column.column_type(),
        null_count: column.null_count() as u32,
        validity: column.validity().map(|bits| Place::of(bits.bytes(), bytes)),
        values: match column.values() {
            Values::Bool(bits) => ValuesPlaces::Bool(Place::of(bits.bytes(), bytes)),
            Values::Fixed { bytes: values, .. } => ValuesPlaces::Fixed(Place::of(values, bytes)),
            Values::Items(items) => ValuesPlaces::Items(ItemsPlaces::of(items, bytes)),
            Values::Codes { codes, items } => {
                let (width, codes) = match codes {
                    Codes::U8(codes) => (1, *codes),
                    Codes::U16(codes) => (2, codes.as_flattened()),
                    Codes::U32(codes) => (4, codes.as_flattened()),
                };
                ValuesPlaces::Codes {
                    codes: Place::of(codes, bytes),
                    width,
                    items: ItemsPlaces::of(items, bytes),
                }
            }
        },
    });
    columns.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BatchBuilder;

    /// A batch of all types, with NULLs in every second column.
    fn batch(rows: u32, items: u32) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        for (index, column_type) in ColumnType::ALL.into_iter().enumerate() {
            builder.add_column(column_type.name(), column_type).unwrap();
            let column = builder.column(index);
            for row in 0..rows {
                if row % 3 == 2 && index % 2 == 0 {
                    column.push_null();
                    continue;
                }
                match column_type {
                    ColumnType::Bool => column.push_bool(row % 2 == 0),
                    ColumnType::Int16 => column.push_i16(row as i16),
                    ColumnType::Int32 | ColumnType::Date => column.push_i32(row as i32),
                    ColumnType::Int64 | ColumnType::Timestamp => column.push_i64(row.into()),
                    ColumnType::Float32 => column.push_f32(row as f32),
                    ColumnType::Float64 => column.push_f64(row.into()),
                    ColumnType::Uuid => column.push_uuid([row as u8; 16]),
                    ColumnType::Text => column.push_text(&format!("grün {}", row % items)),
                    ColumnType::Bytes => column.push_bytes(&(row % items).to_be_bytes()),
                }
                .unwrap();
            }
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_view_is_the_one_that_was_verified() {
        // No rows; plain items; dictionaries with codes of one and of two bytes.
        for (rows, items) in [(0, 1), (5, 5), (1000, 3), (2000, 300), (2000, 2000)] {
            let bytes = batch(rows, items);
            let owned = VerifiedBatch::verify(bytes.clone()).unwrap();
            let view = BatchView::verify(&bytes).unwrap();
            assert_eq!(format!("{:?}", owned.view()), format!("{view:?}"));
            assert_eq!(owned.rows(), view.rows());
        }
    }

    #[test]
    fn bytes_that_are_no_batch_are_refused() {
        let mut bytes = batch(3, 1);
        bytes.truncate(bytes.len() / 2);
        assert!(VerifiedBatch::verify(bytes).is_err());
    }
}
