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
use crate::expressions::translate::{Scalars, Translation, Translator, number_type};
use crate::pg::columns::{self, Column};

/// A column of a small side, and the column of the lanes table that has the same value in each
/// joined row.
type Equal = (Column, *mut pg_sys::Node);

/// Finds an expression to group by instead of an expression over small sides. It has the same
/// value in each joined row, and is over the lanes table alone or over a side that is joined
/// earlier.
pub fn instead(join: &HashJoin, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    if !join.plan.has_small(expression) {
        return None;
    }
    over_lanes(join, expression).or_else(|| over_side_before(join, expression))
}

/// The equal expression over the lanes table's own columns, if the engine can group by it.
fn over_lanes(join: &HashJoin, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    let equals = equal_columns(join);
    let replaced = columns::replaced(expression, |column| {
        let equal = equals.iter().find(|(small, _)| *small == column);
        equal.map(|(_, lanes)| *lanes)
    });
    if join.plan.has_small(replaced) {
        return None;
    }
    let mut translator = Translator::new(Scalars::Unknown);
    let is_key =
        aggregate_call::key(&mut translator, crate::pg::tree::plan_node(replaced.cast())).is_ok();
    is_key.then_some(replaced)
}

/// If the expression is one side of a key, the other side of that key, provided that it is over
/// a side that is joined earlier. Consecutive rows mostly find the same row of an earlier side.
fn over_side_before(join: &HashJoin, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    let mut pairs = key_pairs(join).filter(|(left, small)| {
        join.plan.is_small(*left)
            && columns::are_equal(*small, expression)
            && are_alike(*left, *small)
    });
    pairs.next().map(|(left, _)| left)
}

/// The column of the small side of a right semi join that has the value of a column of the lanes table. The planner may
/// want either above such a join, which returns no row of the lanes table.
///
/// # Errors
/// If there is none.
pub fn small_column(join: &HashJoin, column: *mut pg_sys::Node) -> Translation<*mut pg_sys::Node> {
    let pairs = join.plan.dimensions[0].left_keys.iter();
    let mut pairs = pairs.zip(&join.small_keys[0]);
    let found = pairs.find(|(left, small)| {
        let is_column = columns::column(**small).is_some();
        is_column && columns::are_equal(**left, column) && are_alike(**left, **small)
    });
    let (_, small) = found.ok_or("a column of the sub-select's table above the join")?;
    Ok(*small)
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

fn equal_columns(join: &HashJoin) -> Vec<Equal> {
    let columns = key_pairs(join).filter_map(|(left, small)| {
        let column = columns::column(small)?;
        let is_lanes = columns::column(left).is_some() && !join.plan.is_small(left);
        (is_lanes && are_alike(left, small)).then_some((column, left))
    });
    columns.collect()
}

/// Whether equal values of two expressions are identical: both have the same type, and equal
/// values of that type have one representation. Floats do not qualify, because -0 equals 0.
fn are_alike(a: *mut pg_sys::Node, b: *mut pg_sys::Node) -> bool {
    let has_one_form = match number_type(columns::base_type_of(a)) {
        Some(number) => !number.is_float(),
        // Keys that are not numbers are uuids, or texts that are compared byte by byte.
        None => true,
    };
    columns::type_and_collation(a) == columns::type_and_collation(b) && has_one_form
}
