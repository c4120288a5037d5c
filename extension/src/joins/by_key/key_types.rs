//! Checks of the types that keys of a join may have, beyond integers, times and texts of the
//! lanes table: uuids, floats of different widths, and keys over the columns of an earlier side.

use lanes_columnar::aggregate::Key;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use crate::expressions::translate::{Translation, number_type};
use crate::pg::tree::{Expr, OpExpr};
use crate::pg::{catalog, ports};

/// Checks that an equality compares a uuid column with a uuid.
pub fn check_uuid(clause: OpExpr<'_>, small: Expr<'_>) -> Translation<()> {
    let is_uuid = catalog::base_type(small.type_of()) == pg_sys::UUIDOID;
    match clause.opfuncid().to_u32() == pg_sys::F_UUID_EQ && is_uuid {
        true => Ok(()),
        false => Err("a key of the join that is no equality of uuids".into()),
    }
}

/// Checks that an equality compares a float with a float.
pub fn check_float(clause: OpExpr<'_>, small: Expr<'_>) -> Translation<()> {
    let is_equality =
        ports::btree_operator(clause.opno()).is_some_and(|(comparison, family, _)| {
            comparison == Comparison::Equal && family == ports::FLOAT_BTREE_FAM_OID
        });
    let is_float = number_type(small.stripped().type_of()).is_some_and(NumberType::is_float);
    match is_equality && is_float {
        true => Ok(()),
        false => Err("a key of the join that is no equality of floats".into()),
    }
}

/// Checks that an equality compares numbers, or times of one type.
pub fn check_integer(clause: OpExpr<'_>, small: Expr<'_>) -> Translation<()> {
    let equality = ports::btree_operator(clause.opno())
        .filter(|(comparison, ..)| *comparison == Comparison::Equal);
    let Some((_, family, types)) = equality else {
        return Err("a key of the join that is no equality of numbers".into());
    };
    let is_integer = family == pg_sys::INTEGER_BTREE_FAM_OID;
    let number = number_type(small.stripped().type_of());
    let is_number = number.is_some_and(|number| !number.is_float());
    if !is_number || !is_integer && types.0 != types.1 {
        return Err("a key of the join of two types".into());
    }
    Ok(())
}

/// Checks that an equality compares texts by their bytes.
pub fn check_text(clause: OpExpr<'_>, small: Expr<'_>) -> Translation<()> {
    let is_deterministic = catalog::is_deterministic(clause.inputcollid());
    let is_text = matches!(
        catalog::base_type(small.type_of()),
        pg_sys::TEXTOID | pg_sys::VARCHAROID
    );
    match clause.opfuncid().to_u32() == pg_sys::F_TEXTEQ && is_deterministic && is_text {
        true => Ok(()),
        false => Err("a key of the join that is compared by more than bytes".into()),
    }
}

/// Checks that an equality over small sides alone compares values that can have codes: texts,
/// uuids, floats, integers or times.
pub fn check_given(clause: OpExpr<'_>, left: Expr<'_>, small: Expr<'_>) -> Translation<()> {
    for side in [left, small] {
        if side.is_volatile() || side.has_subplan() {
            return Err("a key of the join that is volatile or a subquery".into());
        }
    }
    match number_type(left.stripped().type_of()) {
        Some(number) if number.is_float() => check_float(clause, small),
        Some(_) => check_integer(clause, small),
        None if catalog::base_type(left.type_of()) == pg_sys::UUIDOID => check_uuid(clause, small),
        None => check_text(clause, left).and_then(|()| check_text(clause, small)),
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
