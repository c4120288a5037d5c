//! Which aggregates ignore their ORDER BY.

use pgrx::pg_sys;

use super::aggregate_call::{end_of, is_distinct};
use super::bit_call;
use super::variance_call::spread_of;
use crate::pg::tree::Aggref;

/// Whether the order of rows does not change the result of an aggregate as the engine computes it. PostgreSQL passes
/// distinct values in their order, which matters to sums of floats alone.
pub fn is_ignored(call: Aggref<'_>) -> bool {
    let function = call.aggfnoid().to_u32();
    if is_distinct(call) {
        return !adds_floats(function);
    }
    // Sort keys that are no columns may raise an error.
    let mut keys = call
        .aggorder()
        .iter()
        .map(|clause| clause.expr(call.args()));
    is_exact(function) && keys.all(|key| key.stripped().as_var().is_some())
}

/// Whether an aggregate of the engine adds floats, so that their order changes the result.
fn adds_floats(function: u32) -> bool {
    use pg_sys::*;
    let is_sum = matches!(
        function,
        F_SUM_FLOAT4 | F_SUM_FLOAT8 | F_AVG_FLOAT4 | F_AVG_FLOAT8
    );
    is_sum || spread_of(function).is_some_and(|(number, _)| number.is_float())
}

/// Whether an aggregate of the engine has the same result in any order of its rows.
fn is_exact(function: u32) -> bool {
    use pg_sys::*;
    let is_integer = matches!(
        function,
        F_COUNT_ANY | F_SUM_INT2 | F_SUM_INT4 | F_SUM_INT8 | F_AVG_INT2 | F_AVG_INT4 | F_AVG_INT8
    );
    let is_truth = matches!(function, F_BOOL_AND | F_EVERY | F_BOOL_OR);
    let is_spread = spread_of(function).is_some_and(|(number, _)| !number.is_float());
    is_integer
        || is_truth
        || is_spread
        || end_of(function).is_some()
        || bit_call::operation(function).is_some()
}
