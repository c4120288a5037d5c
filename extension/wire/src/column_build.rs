//! One column being collected.

use crate::batch_append::append_bits;
use crate::item_build::ItemBuffer;
use crate::limits::BATCH_BYTES_MAX;
use crate::vector::{Bitmap, bitmap_bytes};
use crate::{BuildError, ColumnSource, ColumnType, ColumnView, Values, ValuesSource};

/// Values of one column of a [`crate::BatchBuilder`], one a row. Buffers keep their memory from
/// batch to batch.
#[derive(Debug)]
pub struct ColumnBuffer {
    name: String,
    column_type: ColumnType,
    rows: usize,
    /// Absent until the first NULL; then one bit a row, 1 = not NULL.
    validity: Option<Vec<u8>>,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Bool(Vec<u8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Uuid(Vec<[u8; 16]>),
    Items(Box<ItemBuffer>),
}

/// Appends `bit` as bit `row` of a bitmap that has `row` bits.
fn push_bit(bits: &mut Vec<u8>, row: usize, bit: bool) {
    if row.is_multiple_of(8) {
        bits.push(0);
    }
    if let Some(last) = bits.last_mut() {
        *last |= u8::from(bit) << (row % 8);
    }
}

/// A bitmap of `rows` ones.
fn all_valid(rows: usize) -> Vec<u8> {
    let mut bits = vec![0xff; bitmap_bytes(rows)];
    if let Some(last) = bits.last_mut()
        && !rows.is_multiple_of(8)
    {
        *last = 0xff >> (8 - rows % 8);
    }
    bits
}

/// Appends fixed-width values, read by `from`.
fn extend<T, const N: usize>(store: &mut Vec<T>, values: &Values<'_>, from: fn([u8; N]) -> T) {
    let arrays = values.arrays::<N>().unwrap_or_default();
    store.extend(arrays.iter().map(|bytes| from(*bytes)));
}

/// A push of one value and of a slice, for a fixed-width store.
macro_rules! fixed {
    ($push:ident, $extend:ident, $store:ident, $value:ty, $types:literal) => {
        #[doc = concat!("Appends one row to a column of type ", $types, ".")]
        #[inline]
        pub fn $push(&mut self, value: $value) -> Result<(), BuildError> {
            match &mut self.store {
                Store::$store(values) => values.push(value),
                _ => return Err(self.wrong_type(stringify!($value))),
            }
            self.rows_added(1);
            Ok(())
        }

        #[doc = concat!("Appends one row a value to a column of type ", $types, ", none of them NULL.")]
        pub fn $extend(&mut self, values: &[$value]) -> Result<(), BuildError> {
            match &mut self.store {
                Store::$store(store) => store.extend_from_slice(values),
                _ => return Err(self.wrong_type(stringify!($value))),
            }
            self.rows_added(values.len());
            Ok(())
        }
    };
}

impl ColumnBuffer {
    pub(crate) fn new(name: &str, column_type: ColumnType) -> Self {
        let store = match column_type {
            ColumnType::Bool => Store::Bool(Vec::new()),
            ColumnType::Int16 => Store::Int16(Vec::new()),
            ColumnType::Int32 | ColumnType::Date => Store::Int32(Vec::new()),
            ColumnType::Int64 | ColumnType::Timestamp => Store::Int64(Vec::new()),
            ColumnType::Float32 => Store::Float32(Vec::new()),
            ColumnType::Float64 => Store::Float64(Vec::new()),
            ColumnType::Uuid => Store::Uuid(Vec::new()),
            ColumnType::Text | ColumnType::Bytes => Store::Items(Box::default()),
        };
        ColumnBuffer {
            name: name.to_owned(),
            column_type,
            rows: 0,
            validity: None,
            store,
        }
    }

    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The column's type.
    pub fn column_type(&self) -> ColumnType {
        self.column_type
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Drops the rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.validity = None;
        match &mut self.store {
            Store::Bool(bits) => bits.clear(),
            Store::Int16(values) => values.clear(),
            Store::Int32(values) => values.clear(),
            Store::Int64(values) => values.clear(),
            Store::Float32(values) => values.clear(),
            Store::Float64(values) => values.clear(),
            Store::Uuid(values) => values.clear(),
            Store::Items(items) => items.clear(),
        }
    }

    fixed!(push_i16, extend_i16, Int16, i16, "`Int16`");
    fixed!(push_i32, extend_i32, Int32, i32, "`Int32` or `Date`");
    fixed!(push_i64, extend_i64, Int64, i64, "`Int64` or `Timestamp`");
    fixed!(push_f32, extend_f32, Float32, f32, "`Float32`");
    fixed!(push_f64, extend_f64, Float64, f64, "`Float64`");
    fixed!(push_uuid, extend_uuid, Uuid, [u8; 16], "`Uuid`");

    /// Appends one row to a column of type `Bool`.
    pub fn push_bool(&mut self, value: bool) -> Result<(), BuildError> {
        match &mut self.store {
            Store::Bool(bits) => push_bit(bits, self.rows, value),
            _ => return Err(self.wrong_type("bool")),
        }
        self.rows_added(1);
        Ok(())
    }

    /// Appends one row to a column of type `Text`.
    pub fn push_text(&mut self, value: &str) -> Result<(), BuildError> {
        if self.column_type != ColumnType::Text {
            return Err(self.wrong_type("text"));
        }
        if value.as_bytes().contains(&0) {
            return Err(BuildError::NulInText);
        }
        self.push_item(value.as_bytes())
    }

    /// Appends one row to a column of type `Bytes`.
    pub fn push_bytes(&mut self, value: &[u8]) -> Result<(), BuildError> {
        if self.column_type != ColumnType::Bytes {
            return Err(self.wrong_type("bytes"));
        }
        self.push_item(value)
    }

    fn push_item(&mut self, item: &[u8]) -> Result<(), BuildError> {
        if let Store::Items(items) = &mut self.store {
            if items.bytes_total() + item.len() as u64 > BATCH_BYTES_MAX as u64 {
                return Err(BuildError::TooLong);
            }
            items.push(item);
        }
        self.rows_added(1);
        Ok(())
    }

    /// Appends one NULL row to a column of any type.
    pub fn push_null(&mut self) {
        match &mut self.store {
            Store::Bool(bits) => push_bit(bits, self.rows, false),
            Store::Int16(values) => values.push(0),
            Store::Int32(values) => values.push(0),
            Store::Int64(values) => values.push(0),
            Store::Float32(values) => values.push(0.0),
            Store::Float64(values) => values.push(0.0),
            Store::Uuid(values) => values.push([0; 16]),
            Store::Items(items) => items.push_null(),
        }
        let rows = self.rows;
        let validity = self.validity.get_or_insert_with(|| all_valid(rows));
        push_bit(validity, rows, false);
        self.rows += 1;
    }

    /// Whether items of this many bytes still fit.
    pub(crate) fn has_room_for(&self, item_bytes: u64) -> bool {
        match &self.store {
            Store::Items(items) => items.bytes_total() + item_bytes <= BATCH_BYTES_MAX as u64,
            _ => true,
        }
    }

    /// Whether a column of the same type would take many times its bytes here.
    pub(crate) fn would_multiply(&self, column: &ColumnView<'_>) -> bool {
        match &self.store {
            Store::Items(items) => items.would_multiply(column.values()),
            _ => false,
        }
    }

    /// Appends all rows of a column of the same type, for whose items there is room.
    pub(crate) fn append(&mut self, column: &ColumnView<'_>) {
        let values = column.values();
        match &mut self.store {
            Store::Bool(bits) => {
                if let Values::Bool(added) = values {
                    append_bits(bits, self.rows, *added);
                }
            }
            Store::Int16(store) => extend(store, values, i16::from_le_bytes),
            Store::Int32(store) => extend(store, values, i32::from_le_bytes),
            Store::Int64(store) => extend(store, values, i64::from_le_bytes),
            Store::Float32(store) => extend(store, values, f32::from_le_bytes),
            Store::Float64(store) => extend(store, values, f64::from_le_bytes),
            Store::Uuid(store) => extend(store, values, |bytes| bytes),
            Store::Items(items) => items.append(values),
        }
        let rows = self.rows;
        match (&mut self.validity, column.validity()) {
            (None, None) => {}
            (validity, Some(added)) => {
                let validity = validity.get_or_insert_with(|| all_valid(rows));
                append_bits(validity, rows, added);
            }
            (Some(validity), None) => {
                let ones = all_valid(column.rows());
                append_bits(validity, rows, Bitmap::new(&ones, column.rows()));
            }
        }
        self.rows += column.rows();
    }

    fn rows_added(&mut self, rows: usize) {
        if let Some(validity) = &mut self.validity {
            for row in self.rows..self.rows + rows {
                push_bit(validity, row, true);
            }
        }
        self.rows += rows;
    }

    fn wrong_type(&self, value: &'static str) -> BuildError {
        BuildError::ValueType {
            column_type: self.column_type,
            value,
        }
    }

    /// Readies [`Self::source`].
    pub(crate) fn prepare(&mut self) {
        if let Store::Items(items) = &mut self.store {
            debug_assert_eq!(items.rows(), self.rows);
            items.prepare();
        }
    }

    /// The column as slices; [`Self::prepare`] comes first.
    pub(crate) fn source(&self) -> ColumnSource<'_> {
        let values = match (&self.store, self.column_type) {
            (Store::Bool(bits), _) => ValuesSource::Bool(bits),
            (Store::Int16(values), _) => ValuesSource::Int16(values),
            (Store::Int32(values), ColumnType::Date) => ValuesSource::Date(values),
            (Store::Int32(values), _) => ValuesSource::Int32(values),
            (Store::Int64(values), ColumnType::Timestamp) => ValuesSource::Timestamp(values),
            (Store::Int64(values), _) => ValuesSource::Int64(values),
            (Store::Float32(values), _) => ValuesSource::Float32(values),
            (Store::Float64(values), _) => ValuesSource::Float64(values),
            (Store::Uuid(values), _) => ValuesSource::Uuid(values),
            (Store::Items(items), ColumnType::Text) => ValuesSource::Text(items.source()),
            (Store::Items(items), _) => ValuesSource::Bytes(items.source()),
        };
        ColumnSource {
            name: &self.name,
            values,
            validity: self.validity.as_deref(),
        }
    }
}
