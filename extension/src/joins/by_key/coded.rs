//! Conditions and counted values over one small side in the calls of aggregates, such as `FILTER (WHERE mode = 'idle')`
//! and `count(DISTINCT labels->>'instance')`, and in the [conditions](super::match_condition) of a join.
//!
//! PostgreSQL evaluates such an expression once for each small row that finds a left row, as it evaluates [grouping
//! expressions](super::group_codes). Each row of a vector then has a code.
//!
//! A filter over a single small side is one condition, because PostgreSQL would evaluate it for the same small rows. Any
//! other filter is split at AND, OR and NOT, which the engine evaluates. PostgreSQL might not evaluate a part of such a
//! filter for each small row, since another part may already have decided the result. So a part becomes a condition only
//! if it cannot fail. PostgreSQL evaluates what is counted only for rows that pass the filter, so with a filter it must
//! not fail either.

use pgrx::pg_sys::{self, NodeTag};

use super::plan::HashJoinPlan;
use crate::expressions::joined_columns::CodedExpressions;
use crate::expressions::translate::number_type;
use crate::pg::catalog;
use crate::pg::columns::is_volatile_or_subquery;
use crate::pg::tree::{Aggref, Expr, Kind, TargetEntry, View, plan_node, walk};

/// The conditions and counted values of these calls that the engine cannot evaluate, because they have columns that are
/// not numbers.
fn of_calls<'p>(plan: &HashJoinPlan, calls: impl Iterator<Item = Aggref<'p>>) -> CodedExpressions {
    let mut coded = CodedExpressions::default();
    for call in calls {
        if let Some(filter) = call.aggfilter() {
            add(plan, filter, &mut coded.conditions);
        }
        coded.values.extend(counted(plan, call).map(View::as_ptr));
    }
    coded
}

/// The conditions of the join, or parts of them, that are over one small side alone.
pub fn of_conditions(plan: &HashJoinPlan) -> CodedExpressions {
    let mut coded = CodedExpressions::default();
    for condition in plan.conditions() {
        add(plan, plan_node(condition), &mut coded.conditions);
    }
    coded
}

/// The expressions of these calls and of the conditions of the join.
pub fn of_all<'p>(
    plan: &HashJoinPlan,
    calls: impl Iterator<Item = Aggref<'p>>,
) -> CodedExpressions {
    let mut coded = of_calls(plan, calls);
    coded.conditions.extend(of_conditions(plan).conditions);
    coded
}

/// Adds a condition, or its parts, if its values can be coded.
fn add(plan: &HashJoinPlan, condition: Expr<'_>, conditions: &mut Vec<*mut pg_sys::Node>) {
    match is_coded(plan, condition) {
        true => conditions.push(condition.as_ptr()),
        false => add_parts(plan, condition, conditions),
    }
}

/// The argument of `count(x)` or `count(DISTINCT x)`, if its values can be coded.
fn counted<'p>(plan: &HashJoinPlan, call: Aggref<'p>) -> Option<Expr<'p>> {
    if call.aggfnoid().to_u32() != pg_sys::F_COUNT_ANY {
        return None;
    }
    let value = call.args().first().map(TargetEntry::expr)?;
    let has_hash = match call.aggdistinct().first() {
        Some(clause) => clause.hashable() && catalog::hashes_for(value.type_of(), clause.eqop()),
        None => catalog::base_type(value.type_of()) == pg_sys::TEXTOID,
    };
    let is_safe = call.aggfilter().is_none() || cannot_fail(value);
    (has_hash && is_safe && is_coded(plan, value)).then_some(value)
}

/// Adds the parts of a filter that are conditions and cannot fail.
fn add_parts(plan: &HashJoinPlan, node: Expr<'_>, conditions: &mut Vec<*mut pg_sys::Node>) {
    if let Kind::BoolExpr(parts) = node.kind() {
        for part in parts.args() {
            add_parts(plan, part, conditions);
        }
    } else if is_coded(plan, node) && cannot_fail(node) {
        conditions.push(node.as_ptr());
    }
}

/// Whether an expression is over a single small side, has a column that is not a number, and
/// always has the same value for a small row.
fn is_coded(plan: &HashJoinPlan, expression: Expr<'_>) -> bool {
    let node = expression.as_ptr();
    plan.is_small(node)
        && has_other_than_numbers(expression)
        && plan.dimension_of(node).is_ok()
        && !is_volatile_or_subquery(node)
}

/// Whether an expression has a result for all values: it compares texts and members of `jsonb`
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
