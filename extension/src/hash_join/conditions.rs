//! Conditions on one small side in the FILTER of an aggregate, such as `FILTER (WHERE mode = 'idle')`.
//!
//! PostgreSQL evaluates such a condition once for each small row that finds a left row, as it does with what is
//! [grouped by](super::group_codes). The rows of a vector are then given a code each: FALSE, TRUE or NULL.

use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use crate::custom_scan::translate::number_type;
use crate::pg::{nodes, tree};

/// The code of a condition that does not hold.
pub const FALSE: u64 = 0;
/// The code of a condition that holds.
pub const TRUE: u64 = 1;
/// The code of a condition that is NULL.
pub const NULL: u64 = 2;

/// The conditions in the filters of some calls that are over one small side alone, and that the engine does not know:
/// they look at columns that are no numbers. AND, OR and NOT around them stay the engine's.
///
/// # Safety
/// Live calls over a join that gives all of their columns.
pub unsafe fn of_filters(
    plan: &HashJoinPlan,
    calls: impl Iterator<Item = *mut pg_sys::Aggref>,
) -> Vec<*mut pg_sys::Node> {
    let mut conditions = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        for call in calls {
            let filter = (*call).aggfilter.cast::<pg_sys::Node>();
            if !filter.is_null() {
                add(plan, filter, &mut conditions);
            }
        }
    }
    conditions
}

unsafe fn add(
    plan: &HashJoinPlan,
    node: *mut pg_sys::Node,
    conditions: &mut Vec<*mut pg_sys::Node>,
) {
    // SAFETY: a live expression; the cast follows the tag.
    unsafe {
        if (*node).type_ == pg_sys::NodeTag::T_BoolExpr {
            let parts = (*node.cast::<pg_sys::BoolExpr>()).args;
            for part in nodes::list::<pg_sys::Node>(parts) {
                add(plan, part, conditions);
            }
            return;
        }
        let is_evaluated = plan.is_small(node)
            && has_other_than_numbers(node)
            && plan.dimension_of(node).is_ok()
            && !pg_sys::contain_volatile_functions(node)
            && !nodes::contains_subplan(node);
        if is_evaluated {
            conditions.push(node);
        }
    }
}

/// Whether an expression has a column that is no number.
unsafe fn has_other_than_numbers(expression: *mut pg_sys::Node) -> bool {
    let mut types = Vec::new();
    // SAFETY: a live expression; the cast follows the tag.
    unsafe {
        tree::walk_expression(expression, &mut |node, _| {
            if (*node).type_ == pg_sys::NodeTag::T_Var {
                types.push((*node.cast::<pg_sys::Var>()).vartype);
            }
            false
        });
    }
    types
        .into_iter()
        .any(|type_of| number_type(type_of).is_none())
}
