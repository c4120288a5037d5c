//! The type of a column of a small side: how its values are kept, and how they are compared as
//! keys.

use lanes_columnar::join::equal::SmallKey;
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use crate::expressions::translate::{number_type, to_scalar};
use crate::pg::datum;

/// The type of a column or an expression.
#[derive(Clone, Copy)]
pub struct Column {
    /// The number type, if the values are numbers.
    pub number: Option<NumberType>,
    /// Whether the values are uuids.
    pub is_uuid: bool,
    /// Whether values are passed by value.
    pub by_value: bool,
    pub length: i16,
}

impl Column {
    /// The column for an SQL type.
    pub fn of(type_of: pg_sys::Oid) -> Column {
        let (mut length, mut by_value) = (0, false);
        // SAFETY: catalogue look-ups.
        let base = unsafe {
            pg_sys::get_typlenbyval(type_of, &raw mut length, &raw mut by_value);
            pg_sys::getBaseType(type_of)
        };
        Column {
            number: number_type(base),
            is_uuid: base == pg_sys::UUIDOID,
            by_value,
            length,
        }
    }

    /// A value as a key. Values that are neither numbers nor uuids are texts; they are written
    /// to `item`.
    ///
    /// # Safety
    /// The value has the column's type.
    pub unsafe fn key<'a>(
        &self,
        value: Option<pg_sys::Datum>,
        item: &'a mut Vec<u8>,
    ) -> SmallKey<'a> {
        let Some(value) = value else {
            return SmallKey::Null;
        };
        match self.number {
            Some(NumberType::F32) => SmallKey::Float(f32::from_bits(value.value() as u32).into()),
            Some(NumberType::F64) => SmallKey::Float(f64::from_bits(value.value() as u64)),
            Some(number) => SmallKey::Integer(to_scalar(number, value).0 as i64),
            // SAFETY: the caller's promise.
            None if self.is_uuid => SmallKey::Bytes16(unsafe { datum::bytes16(value) }),
            None => {
                // SAFETY: the caller's promise.
                unsafe { datum::text_item(value, item) }
                SmallKey::Text(item)
            }
        }
    }
}
