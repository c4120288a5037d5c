//! Appending of arrays to columns.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, ByteViewType, Date32Type, Date64Type, Decimal32Type,
    Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use lanes_wire::limits;

use super::column::{Column, ColumnValues, Dictionary, Items};
use crate::events::format::Malformed;
use crate::model::Room;

/// The bytes that columns may still take.
pub(super) struct Budget<'m> {
    bytes_max: usize,
    bytes_left: usize,
    /// The bytes that reading the body takes, regardless of the columns.
    reading_bytes: usize,
    room: &'m mut Room,
}

impl<'m> Budget<'m> {
    /// Creates a budget. Reading takes up to twice the length of the body.
    pub(super) fn new(body_bytes: usize, bytes_max: usize, room: &'m mut Room) -> Self {
        Budget {
            bytes_max,
            bytes_left: bytes_max,
            reading_bytes: 2 * body_bytes,
            room,
        }
    }

    /// Takes the bytes for reading.
    pub(super) fn begin(&mut self) -> Result<(), Malformed> {
        Ok(self.room.cover(self.reading_bytes)?)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Malformed> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                // The columns double, and the batch is built beside them.
                let columns_bytes = 3 * (self.bytes_max - left);
                Ok(self.room.cover(self.reading_bytes + columns_bytes)?)
            }
            None => Err(Malformed::TooLarge {
                bytes_max: self.bytes_max,
            }),
        }
    }
}

/// Why a value cannot be converted. The column and its row in the request are added later.
enum Fault {
    /// The value is not one that PostgreSQL can store: the row in the array, the value, and what is
    /// expected.
    Value(usize, String, &'static str),
    /// The text contains a NUL: the row in the array.
    Nul(usize),
    /// A complete message.
    Other(Malformed),
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Other(malformed)
    }
}

const TIMESTAMP: &str = "a timestamp that PostgreSQL can hold";
const DATE: &str = "a date that PostgreSQL can hold";
const BIGINT: &str = "an integer below 9223372036854775808";
const MILLISECONDS_A_DAY: i64 = 86_400_000;

impl Column {
    /// Appends an array of the type that the column was created for, after `rows` rows of earlier
    /// arrays.
    pub(super) fn append(
        &mut self,
        array: &ArrayRef,
        rows: usize,
        budget: &mut Budget<'_>,
    ) -> Result<(), Malformed> {
        let added = array.len();
        // An item takes an end offset or a code, or is accounted for where it is copied. A boolean
        // is accounted for as a byte.
        let width = self.column_type().width().unwrap_or(size_of::<u32>());
        budget.charge(added * width)?;
        let nulls = array.logical_nulls();
        self.append_validity(nulls.as_ref(), rows, added);
        self.append_values(array, nulls.as_ref(), budget)
            .map_err(|fault| match fault {
                Fault::Value(row, found, expected) => Malformed::Value {
                    row: rows + row + 1,
                    column: self.name.clone(),
                    found,
                    expected,
                },
                Fault::Nul(row) => Malformed::Nul {
                    row: rows + row + 1,
                    column: self.name.clone(),
                },
                Fault::Other(malformed) => malformed,
            })
    }

    fn append_validity(&mut self, nulls: Option<&NullBuffer>, rows: usize, added: usize) {
        let has_nulls = nulls.is_some_and(|nulls| nulls.null_count() > 0);
        if !has_nulls && self.validity.is_none() {
            return;
        }
        let validity = self.validity.get_or_insert_with(|| {
            let mut bits = BooleanBufferBuilder::new(rows + added);
            bits.append_n(rows, true);
            bits
        });
        match nulls {
            Some(nulls) => validity.append_buffer(nulls.inner()),
            None => validity.append_n(added, true),
        }
    }

    fn append_values(
        &mut self,
        array: &ArrayRef,
        nulls: Option<&NullBuffer>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Fault> {
        use ColumnValues as To;
        use DataType as From;
        match (&mut self.values, array.data_type()) {
            (To::Bool(bits), From::Boolean) => {
                bits.append_buffer(array.as_boolean().values());
            }
            (To::Int16(to), From::Int8) => widen::<Int8Type, _>(to, array),
            (To::Int16(to), From::UInt8) => widen::<UInt8Type, _>(to, array),
            (To::Int16(to), From::Int16) => copy::<Int16Type>(to, array),
            (To::Int32(to), From::UInt16) => widen::<UInt16Type, _>(to, array),
            (To::Int32(to), From::Int32) => copy::<Int32Type>(to, array),
            (To::Int64(to), From::UInt32) => widen::<UInt32Type, _>(to, array),
            (To::Int64(to), From::Int64) => copy::<Int64Type>(to, array),
            (To::Int64(to), From::UInt64) => {
                convert::<UInt64Type, _>(to, array, BIGINT, |value| i64::try_from(value).ok())?;
            }
            (To::Float32(to), From::Float16) => widen::<Float16Type, _>(to, array),
            (To::Float32(to), From::Float32) => copy::<Float32Type>(to, array),
            (To::Float64(to), From::Float64) => copy::<Float64Type>(to, array),
            (To::Timestamp(to), From::Timestamp(unit, _)) => timestamps(to, array, *unit)?,
            (To::Date(to), From::Date32) => {
                convert::<Date32Type, _>(to, array, DATE, storable_date)?;
            }
            (To::Date(to), From::Date64) => {
                convert::<Date64Type, _>(to, array, DATE, |milliseconds| {
                    let days = milliseconds.div_euclid(MILLISECONDS_A_DAY);
                    storable_date(i32::try_from(days).ok()?)
                })?;
            }
            (To::Uuid(to), From::FixedSizeBinary(16)) => {
                let (values, _) = array.as_fixed_size_binary().value_data().as_chunks();
                to.extend_from_slice(values);
            }
            (To::Bytes(to), From::FixedSizeBinary(_)) => {
                let values = array.as_fixed_size_binary();
                budget.charge(values.value_data().len())?;
                (0..values.len()).for_each(|row| to.push(values.value(row)));
            }
            (To::Bytes(to), From::Binary) => items(to, array.as_binary::<i32>(), budget)?,
            (To::Bytes(to), From::LargeBinary) => items(to, array.as_binary::<i64>(), budget)?,
            (To::Bytes(to), From::BinaryView) => {
                views(to, array.as_binary_view(), nulls, budget)?;
            }
            (To::Text(to), _) => return append_text(to, array, nulls, budget, &self.name),
            (To::Dictionary(to), From::Dictionary(..)) => to.append(array, nulls, budget)?,
            (_, other) => return Err(unsupported(&self.name, other)),
        }
        Ok(())
    }
}

/// Appends an array to a column of text.
fn append_text(
    to: &mut Items,
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
    budget: &mut Budget<'_>,
    column: &str,
) -> Result<(), Fault> {
    use DataType as From;
    match array.data_type() {
        From::Utf8 => text(to, array.as_string::<i32>(), nulls, budget)?,
        From::LargeUtf8 => text(to, array.as_string::<i64>(), nulls, budget)?,
        From::Utf8View => {
            let start = to.bytes.len();
            views(to, array.as_string_view(), nulls, budget)?;
            if let Some(row) = first_nul(to, start, array.len()) {
                return Err(Fault::Nul(row));
            }
        }
        From::Null => {
            let end = to.bytes.len() as u32;
            to.ends.extend(std::iter::repeat_n(end, array.len()));
        }
        From::Decimal32(..) => {
            decimals::<Decimal32Type>(to, array, budget)?;
        }
        From::Decimal64(..) => {
            decimals::<Decimal64Type>(to, array, budget)?;
        }
        From::Decimal128(..) => {
            decimals::<Decimal128Type>(to, array, budget)?;
        }
        From::Decimal256(..) => {
            decimals::<Decimal256Type>(to, array, budget)?;
        }
        other => return Err(unsupported(column, other)),
    }
    Ok(())
}

fn unsupported(column: &str, found: &DataType) -> Fault {
    Fault::Other(Malformed::ArrowType {
        column: column.to_owned(),
        found: found.to_string(),
    })
}

fn copy<T: ArrowPrimitiveType>(to: &mut Vec<T::Native>, array: &ArrayRef) {
    to.extend_from_slice(array.as_primitive::<T>().values());
}

fn widen<T: ArrowPrimitiveType, V: From<T::Native>>(to: &mut Vec<V>, array: &ArrayRef) {
    let values = array.as_primitive::<T>().values();
    to.extend(values.iter().map(|value| V::from(*value)));
}

/// Appends values of which some have no counterpart. Values under NULLs are ignored.
fn convert<T: ArrowPrimitiveType, V: Default>(
    to: &mut Vec<V>,
    array: &ArrayRef,
    expected: &'static str,
    convert: impl Fn(T::Native) -> Option<V>,
) -> Result<(), Fault> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    to.reserve(array.len());
    for (row, value) in array.values().iter().enumerate() {
        match convert(*value) {
            Some(value) => to.push(value),
            None if array.is_null(row) => to.push(V::default()),
            None => return Err(Fault::Value(row, format!("{value:?}"), expected)),
        }
    }
    Ok(())
}

fn storable_timestamp(microseconds: i64) -> Option<i64> {
    limits::is_storable_timestamp(microseconds).then_some(microseconds)
}

fn storable_date(days: i32) -> Option<i32> {
    limits::is_storable_date(days).then_some(days)
}

fn timestamps(to: &mut Vec<i64>, array: &ArrayRef, unit: TimeUnit) -> Result<(), Fault> {
    let times =
        |factor: i64| move |value: i64| value.checked_mul(factor).and_then(storable_timestamp);
    match unit {
        TimeUnit::Second => {
            convert::<TimestampSecondType, _>(to, array, TIMESTAMP, times(1_000_000))
        }
        TimeUnit::Millisecond => {
            convert::<TimestampMillisecondType, _>(to, array, TIMESTAMP, times(1_000))
        }
        TimeUnit::Microsecond => {
            convert::<TimestampMicrosecondType, _>(to, array, TIMESTAMP, storable_timestamp)
        }
        TimeUnit::Nanosecond => {
            convert::<TimestampNanosecondType, _>(to, array, TIMESTAMP, |nanoseconds| {
                Some(nanoseconds.div_euclid(1_000))
            })
        }
    }
}

/// Appends contiguous items.
fn items<T: ByteArrayType>(
    to: &mut Items,
    array: &GenericByteArray<T>,
    budget: &mut Budget<'_>,
) -> Result<(), Fault> {
    let offsets = array.value_offsets();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Ok(());
    };
    let (first, last) = (first.as_usize(), last.as_usize());
    budget.charge(last - first)?;
    let start = to.bytes.len();
    to.bytes.extend_from_slice(&array.value_data()[first..last]);
    let end = |offset: &T::Offset| (start + offset.as_usize() - first) as u32;
    to.ends.extend(offsets[1..].iter().map(end));
    Ok(())
}

/// Appends contiguous text.
fn text<T: ByteArrayType<Native = str>>(
    to: &mut Items,
    array: &GenericByteArray<T>,
    nulls: Option<&NullBuffer>,
    budget: &mut Budget<'_>,
) -> Result<(), Fault> {
    let start = to.bytes.len();
    items(to, array, budget)?;
    let Some(row) = first_nul(to, start, array.len()) else {
        return Ok(());
    };
    if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
        return Err(Fault::Nul(row));
    }
    // What lies under a NULL is meaningless and must not be sent: append again without it.
    let rows_before = to.ends.len() - array.len();
    to.ends.truncate(rows_before);
    to.bytes.truncate(start);
    for row in 0..array.len() {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        let item = if is_null { "" } else { array.value(row) };
        if item.as_bytes().contains(&0) {
            return Err(Fault::Nul(row));
        }
        to.push(item.as_bytes());
    }
    Ok(())
}

/// Returns the row, among the last `rows`, of the first NUL at or after byte `start`.
fn first_nul(items: &Items, start: usize, rows: usize) -> Option<usize> {
    let byte = start + memchr::memchr(0, &items.bytes[start..])?;
    let ends = &items.ends[items.ends.len() - rows..];
    Some(ends.partition_point(|end| *end as usize <= byte))
}

/// Appends items that may be anywhere, and that may overlap.
fn views<T: ByteViewType>(
    to: &mut Items,
    array: &GenericByteViewArray<T>,
    nulls: Option<&NullBuffer>,
    budget: &mut Budget<'_>,
) -> Result<(), Fault> {
    for row in 0..array.len() {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        let item: &[u8] = if is_null {
            &[]
        } else {
            array.value(row).as_ref()
        };
        budget.charge(item.len())?;
        to.push(item);
    }
    Ok(())
}

fn decimals<T: DecimalType>(
    to: &mut Items,
    array: &ArrayRef,
    budget: &mut Budget<'_>,
) -> Result<(), Fault> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    for row in 0..array.len() {
        let item = if array.is_null(row) {
            String::new()
        } else {
            array.value_as_string(row)
        };
        budget.charge(item.len())?;
        to.push(item.as_bytes());
    }
    Ok(())
}

impl Dictionary {
    fn append(
        &mut self,
        array: &ArrayRef,
        nulls: Option<&NullBuffer>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Fault> {
        let array = array.as_any_dictionary();
        let values = array.values();
        // A stream keeps one dictionary over many record batches. Only a new dictionary starts
        // again.
        let is_same = |last: &ArrayRef| {
            std::ptr::eq(last.as_ref(), values.as_ref()) || last.to_data().ptr_eq(&values.to_data())
        };
        let mut codes_by_key = match self.last.take() {
            Some((last, codes)) if is_same(&last) => codes,
            _ => {
                budget.charge(values.len() * size_of::<Option<u32>>())?;
                vec![None; values.len()]
            }
        };
        let keys = match values.len() {
            0 => vec![0; array.len()],
            _ => array.normalized_keys(),
        };
        self.codes.reserve(keys.len());
        for (row, key) in keys.into_iter().enumerate() {
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
            let slot = if is_null {
                &mut self.null_code
            } else {
                match codes_by_key.get_mut(key) {
                    Some(slot) => slot,
                    None => {
                        return Err(Fault::Value(
                            row,
                            format!("key {key}"),
                            "a key of the dictionary",
                        ));
                    }
                }
            };
            let code = match *slot {
                Some(code) => code,
                None => {
                    let item = if is_null { "" } else { item(values, key) };
                    if item.as_bytes().contains(&0) {
                        return Err(Fault::Nul(row));
                    }
                    budget.charge(item.len() + size_of::<u32>())?;
                    self.items.push(item.as_bytes());
                    let code = (self.items.ends.len() - 1) as u32;
                    *slot = Some(code);
                    code
                }
            };
            self.codes.push(code);
        }
        self.last = Some((values.clone(), codes_by_key));
        Ok(())
    }
}

/// Returns an item of a dictionary of text.
fn item(values: &ArrayRef, key: usize) -> &str {
    match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value(key),
        DataType::LargeUtf8 => values.as_string::<i64>().value(key),
        _ => values.as_string_view().value(key),
    }
}
