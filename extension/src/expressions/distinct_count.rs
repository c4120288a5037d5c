//! `count(DISTINCT x)` of what the engine cannot group by itself: rows of several values, and values that PostgreSQL
//! computes.

use lanes_columnar::aggregate::Argument;
use lanes_columnar::aggregate::distinct::Distinct;
use pgrx::pg_sys::{self, Oid};

use super::aggregate_call;
use super::row_function::KeysByCode;
use super::translate::{Translation, Translator};
use crate::pg::catalog;
use crate::pg::tree::{Aggref, Expr, Node, RowExpr};

/// The argument of the count. `None`: the engine can group by the expression itself, or nothing can.
///
/// # Errors
/// Why the engine cannot group by a value of a row.
pub fn argument(
    translator: &mut Translator,
    call: Aggref<'_>,
    counted: Expr<'_>,
    by_code: &mut KeysByCode,
) -> Translation<Option<Argument>> {
    let clause = call.aggdistinct().first();
    let is_row = clause.is_some_and(|clause| is_equality_of_rows(clause.eqop()));
    if is_row && let Some(row) = counted.downcast::<RowExpr<'_>>() {
        // Constants are equal in all rows, if their type has an equality.
        let is_same = |value: &Expr<'_>| {
            value.as_const().is_some() && aggregate_call::is_grouped_by_bytes(value.type_of())
        };
        let varying = row.args().iter().filter(|value| !is_same(value));
        let keys = varying.map(|value| aggregate_call::key(translator, value));
        let keys: Vec<_> = keys.collect::<Translation<_>>()?;
        let keys = keys.into_iter().map(|(key, _)| key).collect();
        return Ok(Some(Argument::Distinct(Distinct::of_rows(keys))));
    }
    let before = translator.progress();
    let is_own = aggregate_call::key(translator, counted).is_ok();
    translator.go_back(before);
    if is_own || !translator.has_row_functions || !counted.has_vars() {
        return Ok(None);
    }
    let codes = clause.and_then(|clause| by_code.counted(translator, counted, clause));
    Ok(codes.map(|codes| Argument::Distinct(Distinct::of_codes(codes))))
}

/// Whether an operator is the equality of rows, which is that of their values.
fn is_equality_of_rows(operator: Oid) -> bool {
    catalog::operator_function(operator).to_u32() == pg_sys::F_RECORD_EQ
}
