//! Checks of the types that keys of a join may have, beyond integers, times and texts of the
//! lanes table: uuids, floats of different widths, and keys over the columns of an earlier side.

use lanes_columnar::aggregate::Key;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use crate::expressions::translate::{Translation, number_type, strip};
use crate::pg::{nodes, ports};

/// Checks that an equality compares a uuid column with a uuid.
///
/// # Safety
/// A live operator of the planner's, and its operand over the small side.
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

/// Checks that an equality compares numbers, or times of one type.
///
/// # Safety
/// As for [`check_uuid`].
pub unsafe fn check_integer(
    clause: *mut pg_sys::OpExpr,
    small: *mut pg_sys::Node,
) -> Translation<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let equality = ports::btree_operator((*clause).opno)
            .filter(|(comparison, ..)| *comparison == Comparison::Equal);
        let Some((_, family, types)) = equality else {
            return Err("a key of the join that is no equality of numbers".into());
        };
        let is_integer = family == pg_sys::INTEGER_BTREE_FAM_OID;
        let is_number =
            number_type(pg_sys::exprType(strip(small))).is_some_and(|number| !number.is_float());
        if !is_number || !is_integer && types.0 != types.1 {
            return Err("a key of the join of two types".into());
        }
        Ok(())
    }
}

/// Checks that an equality compares texts by their bytes.
///
/// # Safety
/// As for [`check_uuid`].
pub unsafe fn check_text(clause: *mut pg_sys::OpExpr, small: *mut pg_sys::Node) -> Translation<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let collation = (*clause).inputcollid;
        let is_deterministic =
            collation == pg_sys::InvalidOid || pg_sys::get_collation_isdeterministic(collation);
        let is_text = matches!(
            pg_sys::getBaseType(pg_sys::exprType(small)),
            pg_sys::TEXTOID | pg_sys::VARCHAROID
        );
        match (*clause).opfuncid.to_u32() == pg_sys::F_TEXTEQ && is_deterministic && is_text {
            true => Ok(()),
            false => Err("a key of the join that is compared by more than bytes".into()),
        }
    }
}

/// Checks that an equality over small sides alone compares values that can have codes: texts,
/// uuids, floats, integers or times.
///
/// # Safety
/// As for [`check_uuid`], with both operands.
pub unsafe fn check_given(
    clause: *mut pg_sys::OpExpr,
    left: *mut pg_sys::Node,
    small: *mut pg_sys::Node,
) -> Translation<()> {
    // SAFETY: the caller's promise.
    unsafe {
        for side in [left, small] {
            if pg_sys::contain_volatile_functions(side) || nodes::contains_subplan(side) {
                return Err("a key of the join that is volatile or a subquery".into());
            }
        }
        match number_type(pg_sys::exprType(strip(left))) {
            Some(number) if number.is_float() => check_float(clause, small),
            Some(_) => check_integer(clause, small),
            None if pg_sys::getBaseType(pg_sys::exprType(left)) == pg_sys::UUIDOID => {
                check_uuid(clause, small)
            }
            None => check_text(clause, left).and_then(|()| check_text(clause, small)),
        }
    }
}

/// Widens a key of the lanes table to the number type that it is compared with, as PostgreSQL
/// does when it compares `real` with `double precision`.
pub fn widened(key: Key, small: Option<NumberType>) -> Key {
    match (key, small) {
        (Key::Number(value), Some(NumberType::F64)) if value.number() == NumberType::F32 => {
            Key::Number(Value::convert(NumberType::F64, value))
        }
        (key, _) => key,
    }
}
