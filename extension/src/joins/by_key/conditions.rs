//! Conditions on one small side in the FILTER of an aggregate, such as `FILTER (WHERE mode =
//! 'idle')`.
//!
//! PostgreSQL evaluates such a condition once for each small row that finds a left row, as it
//! evaluates [grouping expressions](super::group_codes). Each row of a vector then has a code:
//! FALSE, TRUE or NULL.
//!
//! A filter over a single small side is one condition, because PostgreSQL would evaluate it for
//! the same small rows. Any other filter is split at AND, OR and NOT, which the engine
//! evaluates. PostgreSQL might not evaluate a part of such a filter for each small row, since
//! another part may already have decided the result. So a part becomes a condition only if it
//! cannot fail.

use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use crate::expressions::translate::number_type;
use crate::pg::columns::{self, is_volatile_or_subquery};
use crate::pg::{nodes, tree};

/// The conditions in the filters of these calls that the engine cannot evaluate, because they
/// have columns that are not numbers.
pub fn of_filters(
    plan: &HashJoinPlan,
    calls: impl Iterator<Item = *mut pg_sys::Aggref>,
) -> Vec<*mut pg_sys::Node> {
    let mut conditions = Vec::new();
    // SAFETY: the calls are those of a live query or plan.
    unsafe {
        for call in calls {
            let filter = (*call).aggfilter.cast::<pg_sys::Node>();
            if filter.is_null() {
                continue;
            }
            match is_condition(plan, filter) {
                true => conditions.push(filter),
                false => add_parts(plan, filter, &mut conditions),
            }
        }
    }
    conditions
}

/// Adds the parts of a filter that are conditions and cannot fail.
unsafe fn add_parts(
    plan: &HashJoinPlan,
    node: *mut pg_sys::Node,
    conditions: &mut Vec<*mut pg_sys::Node>,
) {
    // SAFETY: a live expression; the cast follows the tag.
    unsafe {
        if (*node).type_ == pg_sys::NodeTag::T_BoolExpr {
            let parts = (*node.cast::<pg_sys::BoolExpr>()).args;
            for part in nodes::list::<pg_sys::Node>(parts) {
                add_parts(plan, part, conditions);
            }
        } else if is_condition(plan, node) && cannot_fail(node) {
            conditions.push(node);
        }
    }
}

/// Whether an expression is over a single small side, has a column that is not a number, and
/// always has the same value for a small row.
fn is_condition(plan: &HashJoinPlan, node: *mut pg_sys::Node) -> bool {
    plan.is_small(node)
        && has_other_than_numbers(node)
        && plan.dimension_of(node).is_ok()
        && !is_volatile_or_subquery(node)
}

/// Whether a condition has a result for all values: it compares texts and members of `jsonb`
/// with constants, or tests them for NULL.
unsafe fn cannot_fail(node: *mut pg_sys::Node) -> bool {
    use pg_sys::NodeTag::*;
    let is_known = |function: pg_sys::Oid| FUNCTIONS.contains(&function.to_u32());
    // SAFETY: a live expression; casts follow tags.
    unsafe {
        !tree::walk_expression(node, &mut |node, _| match (*node).type_ {
            T_Var | T_Const | T_RelabelType | T_List | T_NullTest | T_BooleanTest => false,
            T_Param => {
                let kind = (*node.cast::<pg_sys::Param>()).paramkind;
                kind != pg_sys::ParamKind::PARAM_EXTERN
            }
            T_OpExpr => !is_known((*node.cast::<pg_sys::OpExpr>()).opfuncid),
            T_ScalarArrayOpExpr => !is_known((*node.cast::<pg_sys::ScalarArrayOpExpr>()).opfuncid),
            _ => true,
        })
    }
}

/// Functions that return a value for all arguments.
const FUNCTIONS: [u32; 7] = [
    pg_sys::F_TEXTEQ,
    pg_sys::F_TEXTNE,
    pg_sys::F_TEXT_LT,
    pg_sys::F_TEXT_LE,
    pg_sys::F_TEXT_GT,
    pg_sys::F_TEXT_GE,
    pg_sys::F_JSONB_OBJECT_FIELD_TEXT,
];

/// Whether an expression has a column that is not a number.
fn has_other_than_numbers(expression: *mut pg_sys::Node) -> bool {
    let columns = columns::nodes_of(expression, pg_sys::NodeTag::T_Var);
    let mut types = columns.into_iter().map(columns::type_of);
    types.any(|type_of| number_type(type_of).is_none())
}
