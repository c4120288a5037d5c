//! Columns of small sides that equal a column of the lanes table, because the join compares both
//! as keys.
//!
//! In a join by `small.ts = lanes.ts`, `GROUP BY small.ts` groups by the lanes table's own
//! column. Then no value of a small row is needed, and rows of one group follow one another in
//! the vectors of a sorted table.

use pgrx::pg_sys;

use super::plan::JoinKind;
use super::sides::HashJoin;
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translator, number_type};
use crate::pg::tree;

/// A column of a small side, and the column of the lanes table that has the same value in each
/// joined row.
type Equal = (*mut pg_sys::Var, *mut pg_sys::Var);

/// Finds an expression to group by instead of an expression over small sides. It has the same
/// value in each joined row, and is over the lanes table alone or over a side that is joined
/// earlier.
///
/// # Safety
/// A live expression of the planner's.
pub unsafe fn instead(join: &HashJoin, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's promise.
    unsafe {
        if !join.plan.has_small(expression) {
            return None;
        }
        over_lanes(join, expression).or_else(|| over_side_before(join, expression))
    }
}

/// The equal expression over the lanes table's own columns, if the engine can group by it.
unsafe fn over_lanes(join: &HashJoin, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller has a live expression; casts follow tags.
    unsafe {
        let equals = equal_columns(join);
        let replaced = tree::replaced(expression, &mut |node| {
            let column = tree::is_a(node, pg_sys::NodeTag::T_Var).then(|| node.cast())?;
            let equal = equals.iter().find(|(small, _)| is_same(*small, column));
            equal.map(|(_, lanes)| lanes.cast())
        });
        if join.plan.has_small(replaced) {
            return None;
        }
        let mut translator = Translator::new(Scalars::Unknown);
        let is_key = aggregate_call::key(&mut translator, replaced).is_ok();
        is_key.then_some(replaced)
    }
}

/// If the expression is one side of a key, the other side of that key, provided that it is over
/// a side that is joined earlier. Consecutive rows mostly find the same row of an earlier side.
unsafe fn over_side_before(
    join: &HashJoin,
    expression: *mut pg_sys::Node,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller has a live expression.
    let is_expression =
        |small: *mut pg_sys::Node| unsafe { pg_sys::equal(small.cast(), expression.cast()) };
    let mut pairs = key_pairs(join).filter(|(left, small)| {
        // SAFETY: the planner's live expressions.
        unsafe { join.plan.is_small(*left) && is_expression(*small) && are_alike(*left, *small) }
    });
    pairs.next().map(|(left, _)| left)
}

/// Whether two columns are the same column.
unsafe fn is_same(a: *mut pg_sys::Var, b: *mut pg_sys::Var) -> bool {
    // SAFETY: the caller has live columns.
    unsafe {
        ((*a).varno, (*a).varattno, (*a).varlevelsup)
            == ((*b).varno, (*b).varattno, (*b).varlevelsup)
    }
}

/// Both sides of each key of the inner joins. Other kinds of join also return rows without a
/// match, whose sides differ.
fn key_pairs(join: &HashJoin) -> impl Iterator<Item = (*mut pg_sys::Node, *mut pg_sys::Node)> {
    let dimensions = join.plan.dimensions.iter().zip(&join.small_keys);
    let inner = dimensions.filter(|(dimension, _)| dimension.kind == JoinKind::Inner);
    inner.flat_map(|(dimension, small_keys)| {
        let left_keys = dimension.left_keys.iter().copied();
        left_keys.zip(small_keys.iter().copied())
    })
}

unsafe fn equal_columns(join: &HashJoin) -> Vec<Equal> {
    let columns = key_pairs(join).filter_map(|(left, small)| {
        // SAFETY: the planner's live expressions; casts follow tags.
        unsafe {
            let are_columns = [left, small].map(|key| tree::is_a(key, pg_sys::NodeTag::T_Var));
            let is_lanes = are_columns == [true; 2] && !join.plan.is_small(left);
            (is_lanes && are_alike(left, small)).then(|| (small.cast(), left.cast()))
        }
    });
    columns.collect()
}

/// Whether equal values of two expressions are identical: both have the same type, and equal
/// values of that type have one representation. Floats do not qualify, because -0 equals 0.
unsafe fn are_alike(a: *mut pg_sys::Node, b: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller has live expressions.
    unsafe {
        let kind = |node| {
            let type_of = pg_sys::exprType(node);
            (
                type_of,
                pg_sys::exprTypmod(node),
                pg_sys::exprCollation(node),
            )
        };
        let base = pg_sys::getBaseType(pg_sys::exprType(a));
        let has_one_form = match number_type(base) {
            Some(number) => !number.is_float(),
            // Keys that are not numbers are uuids, or texts that are compared byte by byte.
            None => true,
        };
        kind(a) == kind(b) && has_one_form
    }
}
