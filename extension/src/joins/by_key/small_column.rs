//! The type of a column of a small side: how its values are kept, and how they are compared as
//! keys.

use lanes_columnar::join::equal::SmallKey;
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use crate::expressions::translate::{number_type, to_scalar};
use crate::pg::catalog::base_type;
use crate::pg::datum;
use crate::pg::exec::memory::ValueLayout;

/// The type of a column or an expression.
#[derive(Clone, Copy)]
pub struct Column {
    /// The number type, if the values are numbers.
    pub number: Option<NumberType>,
    /// Whether the values are uuids.
    pub is_uuid: bool,
    /// How values are passed.
    pub layout: ValueLayout,
}

impl Column {
    /// The column for an SQL type.
    pub fn of(type_of: pg_sys::Oid) -> Column {
        let base = base_type(type_of);
        Column {
            number: number_type(base),
            is_uuid: base == pg_sys::UUIDOID,
            layout: ValueLayout::of_type(type_of),
        }
    }

    /// A value as a key. Values that are neither numbers nor uuids are texts; they are written
    /// to `item`.
    pub fn key<'a>(&self, value: Option<pg_sys::Datum>, item: &'a mut Vec<u8>) -> SmallKey<'a> {
        let Some(value) = value else {
            return SmallKey::Null;
        };
        match self.number {
            Some(NumberType::F32) => SmallKey::Float(f32::from_bits(value.value() as u32).into()),
            Some(NumberType::F64) => SmallKey::Float(f64::from_bits(value.value() as u64)),
            Some(number) => SmallKey::Integer(to_scalar(number, value).0 as i64),
            None if self.is_uuid => SmallKey::Bytes16(datum::bytes16(value)),
            None => {
                datum::text_item(value, item);
                SmallKey::Text(item)
            }
        }
    }
}
