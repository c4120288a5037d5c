//! A column that is collected from arrays.

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::DataType;
use lanes_wire::{ColumnSource, ColumnType, ItemsSource, ValuesSource};

use crate::events::format::Malformed;
use crate::model::ColumnKind;

/// The values of one column of a batch.
///
/// # Invariants
/// `values` has one value per row, `validity` one bit per row. Rows that are NULL have an arbitrary
/// value.
pub(super) struct Column {
    pub(super) name: String,
    /// `None` until the first NULL.
    pub(super) validity: Option<BooleanBufferBuilder>,
    pub(super) values: ColumnValues,
}

/// Values in the form in which they are sent.
pub(super) enum ColumnValues {
    Bool(BooleanBufferBuilder),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Timestamp(Vec<i64>),
    Date(Vec<i32>),
    Uuid(Vec<[u8; 16]>),
    Text(Items),
    Bytes(Items),
    Dictionary(Dictionary),
}

/// Items, one per row.
#[derive(Default)]
pub(super) struct Items {
    pub(super) ends: Vec<u32>,
    pub(super) bytes: Vec<u8>,
}

/// Items that rows share.
#[derive(Default)]
pub(super) struct Dictionary {
    pub(super) codes: Vec<u32>,
    pub(super) items: Items,
    /// The dictionary of the last record batch, and for each key the code of its item if rows have
    /// used it.
    pub(super) last: Option<(ArrayRef, Vec<Option<u32>>)>,
    /// The code of rows that are NULL.
    pub(super) null_code: Option<u32>,
}

/// Returns the name, truncated for a message.
pub(super) fn clipped(name: &str) -> String {
    match name.char_indices().nth(64) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

impl Column {
    /// Creates an empty column for arrays of a type, which must have a counterpart.
    pub(super) fn new(
        name: &str,
        data_type: &DataType,
        kind: ColumnKind,
    ) -> Result<Self, Malformed> {
        use ColumnValues as To;
        use DataType as From;
        let values = match data_type {
            From::Boolean => To::Bool(BooleanBufferBuilder::new(0)),
            From::Int8 | From::UInt8 | From::Int16 => To::Int16(Vec::new()),
            From::UInt16 | From::Int32 => To::Int32(Vec::new()),
            From::UInt32 | From::Int64 | From::UInt64 => To::Int64(Vec::new()),
            From::Float16 | From::Float32 => To::Float32(Vec::new()),
            From::Float64 => To::Float64(Vec::new()),
            From::Timestamp(..) => To::Timestamp(Vec::new()),
            From::Date32 | From::Date64 => To::Date(Vec::new()),
            From::FixedSizeBinary(16) if kind == ColumnKind::Uuid => To::Uuid(Vec::new()),
            From::Binary | From::LargeBinary | From::BinaryView => To::Bytes(Items::default()),
            From::FixedSizeBinary(1..) => To::Bytes(Items::default()),
            From::Dictionary(_, items) if is_text(items) => To::Dictionary(Dictionary::default()),
            From::Null
            | From::Decimal32(..)
            | From::Decimal64(..)
            | From::Decimal128(..)
            | From::Decimal256(..) => To::Text(Items::default()),
            text if is_text(text) => To::Text(Items::default()),
            other => {
                return Err(Malformed::ArrowType {
                    column: name.to_owned(),
                    found: clipped(&other.to_string()),
                });
            }
        };
        Ok(Column {
            name: name.to_owned(),
            validity: None,
            values,
        })
    }

    /// The column as slices.
    pub(super) fn source(&self) -> ColumnSource<'_> {
        let values = match &self.values {
            ColumnValues::Bool(bits) => ValuesSource::Bool(bits.as_slice()),
            ColumnValues::Int16(values) => ValuesSource::Int16(values),
            ColumnValues::Int32(values) => ValuesSource::Int32(values),
            ColumnValues::Int64(values) => ValuesSource::Int64(values),
            ColumnValues::Float32(values) => ValuesSource::Float32(values),
            ColumnValues::Float64(values) => ValuesSource::Float64(values),
            ColumnValues::Timestamp(values) => ValuesSource::Timestamp(values),
            ColumnValues::Date(values) => ValuesSource::Date(values),
            ColumnValues::Uuid(values) => ValuesSource::Uuid(values),
            ColumnValues::Text(items) => ValuesSource::Text(items.source()),
            ColumnValues::Bytes(items) => ValuesSource::Bytes(items.source()),
            ColumnValues::Dictionary(dictionary) => ValuesSource::Text(ItemsSource::Dictionary {
                codes: &dictionary.codes,
                item_ends: &dictionary.items.ends,
                item_bytes: &dictionary.items.bytes,
            }),
        };
        ColumnSource {
            name: &self.name,
            values,
            validity: self.validity.as_ref().map(BooleanBufferBuilder::as_slice),
        }
    }

    /// The type in the batch.
    pub(super) fn column_type(&self) -> ColumnType {
        match &self.values {
            ColumnValues::Bool(_) => ColumnType::Bool,
            ColumnValues::Int16(_) => ColumnType::Int16,
            ColumnValues::Int32(_) => ColumnType::Int32,
            ColumnValues::Int64(_) => ColumnType::Int64,
            ColumnValues::Float32(_) => ColumnType::Float32,
            ColumnValues::Float64(_) => ColumnType::Float64,
            ColumnValues::Timestamp(_) => ColumnType::Timestamp,
            ColumnValues::Date(_) => ColumnType::Date,
            ColumnValues::Uuid(_) => ColumnType::Uuid,
            ColumnValues::Text(_) | ColumnValues::Dictionary(_) => ColumnType::Text,
            ColumnValues::Bytes(_) => ColumnType::Bytes,
        }
    }
}

impl Items {
    fn source(&self) -> ItemsSource<'_> {
        ItemsSource::Plain {
            ends: &self.ends,
            bytes: &self.bytes,
        }
    }

    /// Appends one item. The caller's budget keeps offsets within `u32`.
    pub(super) fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len() as u32);
    }
}
