//! Values between PostgreSQL's datums and lanes.
//!
//! | attribute | lane |
//! |---|---|
//! | dropped | absent |
//! | bool | bitmap |
//! | any type of fixed length | the value's bytes, at a stride that keeps the type's alignment |
//! | text, varchar, bpchar and domains over them | items, dictionary-coded while that pays |
//! | any other type of variable length | items |
//!
//! Lanes of int2, int4, int8, date, time, timestamp, timestamptz and money hold signed integers,
//! lanes of float4 and float8 hold floats, and lanes of uuid hold bytes in their order. A domain is
//! treated as its base type.
//!
//! [`intake`] appends datums to columns, [`outlet`] returns the values of lanes as datums, and
//! [`item`] holds what both know about values of variable length.

use lanes_columnar::kind::{LaneKind, Number};
use pgrx::pg_sys;

use super::descriptor::{Attribute, Descriptor, base_type};
use crate::error;

mod intake;
mod item;
mod outlet;

pub use intake::{RowIntake, missing_bytes};
pub use item::{allocated, bytes16, is_item, item_from_payload, list, payload_of_item, text_item};
pub use outlet::{Outlet, RowOutlet, fixed_bytes, outlets};

// These trust that a datum is a value of a type.
pub(in crate::pg) use intake::to_bytes;
pub(in crate::pg) use item::{
    array_elements, bytes_of, copied, copied_size, flat_size, free, have_equal_bytes, interval,
    is_list, overwrite, payload, restore, serialise, text_payload,
};

/// The lane kinds of a row type's attributes.
pub fn kinds(descriptor: Descriptor<'_>) -> Vec<LaneKind> {
    descriptor.attributes().map(kind).collect()
}

fn kind(attribute: &Attribute) -> LaneKind {
    if attribute.attisdropped {
        return LaneKind::Absent;
    }
    match attribute.attlen {
        -1 => {
            let is_text = |type_of| {
                matches!(
                    type_of,
                    pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID
                )
            };
            LaneKind::Varlena {
                dictionary: is_text(attribute.atttypid) || is_text(base_type(attribute.atttypid)),
                packed: attribute.attstorage != pg_sys::TYPSTORAGE_PLAIN as std::ffi::c_char,
            }
        }
        1 if attribute.atttypid == pg_sys::BOOLOID => LaneKind::Bool,
        length if length > 0 => {
            let width = length as u16;
            let align = match attribute.attalign as u8 {
                b'd' => 8,
                b'i' => 4,
                b's' => 2,
                _ => 1,
            };
            LaneKind::Fixed {
                width,
                stride: width.next_multiple_of(align),
                number: number(attribute.atttypid),
            }
        }
        length => error::refuse(
            &format!("lanes tables hold no columns of type length {length}"),
            "Use a type of fixed or variable length, such as text.",
        ),
    }
}

/// How the bytes of a type of fixed width are compared.
fn number(type_id: pg_sys::Oid) -> Number {
    let of_base = |base| match base {
        pg_sys::INT2OID
        | pg_sys::INT4OID
        | pg_sys::INT8OID
        | pg_sys::DATEOID
        | pg_sys::TIMEOID
        | pg_sys::TIMESTAMPOID
        | pg_sys::TIMESTAMPTZOID
        | pg_sys::MONEYOID => Number::Signed,
        pg_sys::FLOAT4OID | pg_sys::FLOAT8OID => Number::Float,
        pg_sys::UUIDOID => Number::Bytes16,
        _ => Number::Opaque,
    };
    match of_base(type_id) {
        Number::Opaque => of_base(base_type(type_id)),
        number => number,
    }
}
