//! Keys of a join that are no integers, times or texts: uuids, and floats, of which both sides may have different
//! widths.

use lanes_columnar::aggregate::Key;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use crate::custom_scan::translate::{Translation, number_type, strip};
use crate::pg::ports;

/// Checks that an equality compares a column of uuid with a uuid.
///
/// # Safety
/// A live operator of the planner's, and its side over the small side.
pub unsafe fn check_uuid(clause: *mut pg_sys::OpExpr, small: *mut pg_sys::Node) -> Translation<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let is_uuid = pg_sys::getBaseType(pg_sys::exprType(small)) == pg_sys::UUIDOID;
        match (*clause).opfuncid.to_u32() == pg_sys::F_UUID_EQ && is_uuid {
            true => Ok(()),
            false => Err("a key of the join that is no equality of uuids".into()),
        }
    }
}

/// Checks that an equality compares a float with a float.
///
/// # Safety
/// As for [`check_uuid`].
pub unsafe fn check_float(
    clause: *mut pg_sys::OpExpr,
    small: *mut pg_sys::Node,
) -> Translation<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let is_equality =
            ports::btree_operator((*clause).opno).is_some_and(|(comparison, family, _)| {
                comparison == Comparison::Equal && family == ports::FLOAT_BTREE_FAM_OID
            });
        let is_float =
            number_type(pg_sys::exprType(strip(small))).is_some_and(NumberType::is_float);
        match is_equality && is_float {
            true => Ok(()),
            false => Err("a key of the join that is no equality of floats".into()),
        }
    }
}

/// A key of the lanes table that is compared with numbers of a type: as wide as these, as PostgreSQL compares `real`
/// with `double precision`.
pub fn widened(key: Key, small: Option<NumberType>) -> Key {
    match (key, small) {
        (Key::Number(value), Some(NumberType::F64)) if value.number() == NumberType::F32 => {
            Key::Number(Value::convert(NumberType::F64, value))
        }
        (key, _) => key,
    }
}
