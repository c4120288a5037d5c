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

use pgrx::pg_sys::{self, NodeTag};

use super::plan::HashJoinPlan;
use crate::expressions::translate::number_type;
use crate::pg::columns::is_volatile_or_subquery;
use crate::pg::tree::{Aggref, Expr, Kind, View, walk};

/// The conditions in the filters of these calls that the engine cannot evaluate, because they
/// have columns that are not numbers.
pub fn of_filters<'p>(
    plan: &HashJoinPlan,
    calls: impl Iterator<Item = Aggref<'p>>,
) -> Vec<*mut pg_sys::Node> {
    let mut conditions = Vec::new();
    for filter in calls.filter_map(Aggref::aggfilter) {
        match is_condition(plan, filter) {
            true => conditions.push(filter.as_ptr()),
            false => add_parts(plan, filter, &mut conditions),
        }
    }
    conditions
}

/// Adds the parts of a filter that are conditions and cannot fail.
fn add_parts(plan: &HashJoinPlan, node: Expr<'_>, conditions: &mut Vec<*mut pg_sys::Node>) {
    if let Kind::BoolExpr(parts) = node.kind() {
        for part in parts.args() {
            add_parts(plan, part, conditions);
        }
    } else if is_condition(plan, node) && cannot_fail(node) {
        conditions.push(node.as_ptr());
    }
}

/// Whether an expression is over a single small side, has a column that is not a number, and
/// always has the same value for a small row.
fn is_condition(plan: &HashJoinPlan, condition: Expr<'_>) -> bool {
    let node = condition.as_ptr();
    plan.is_small(node)
        && has_other_than_numbers(condition)
        && plan.dimension_of(node).is_ok()
        && !is_volatile_or_subquery(node)
}

/// Whether a condition has a result for all values: it compares texts and members of `jsonb`
/// with constants, or tests them for NULL.
fn cannot_fail(condition: Expr<'_>) -> bool {
    let is_known = |function: pg_sys::Oid| FUNCTIONS.contains(&function.to_u32());
    !walk::expression(condition, &mut |node, _| match node.kind() {
        Kind::Var(_) | Kind::Const(_) | Kind::RelabelType(_) => false,
        Kind::NullTest(_) | Kind::BooleanTest(_) | Kind::Other(NodeTag::T_List) => false,
        Kind::Param(parameter) => parameter.paramkind() != pg_sys::ParamKind::PARAM_EXTERN,
        Kind::OpExpr(operation) => !is_known(operation.opfuncid()),
        Kind::ScalarArrayOpExpr(operation) => !is_known(operation.opfuncid()),
        _ => true,
    })
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
fn has_other_than_numbers(expression: Expr<'_>) -> bool {
    walk::expression(expression, &mut |node, _| {
        node.as_var()
            .is_some_and(|column| number_type(column.vartype()).is_none())
    })
}
