//! Expressions without columns, which PostgreSQL evaluates once a scan.
//!
//! The [node](RunningNode) keeps the states of its expressions, and their values until it starts again.
//!
//! PostgreSQL evaluates an expression for the first row that needs it, so a query over no rows
//! never fails and never runs a subquery. Here, an expression that may fail, or that is the result
//! of a subquery, is evaluated only if the table has a visible row. Without one it counts as NULL,
//! which no row uses. A condition may keep rows from a division beside it that would fail for them,
//! so a division [stays with PostgreSQL](may_divide_by_zero).

use pgrx::pg_sys::{self, NodeTag};

pub use crate::pg::exec::scalar::RunningNode;
use crate::pg::tree::{Expr, Kind, walk};
use crate::pg::typed_datum::TypedDatum;
use crate::table::scan;

/// The value of an expression without columns; `None` is NULL. A value by reference lives until the node starts again.
pub fn evaluate(expr: Expr<'_>, node: RunningNode) -> Option<TypedDatum> {
    if !node.has_row() && has_side_effects(expr, node) {
        let table = node.table();
        if table.is_some_and(|(table, snapshot)| !scan::has_row(table, snapshot)) {
            return None;
        }
        node.note_row();
    }
    node.evaluate(expr)
}

/// Whether evaluating an expression may do more than return a value: raise an error, or run a subquery. Adding an
/// interval to `now()`, as dashboards do, counts as harmless.
fn has_side_effects(expr: Expr<'_>, node: RunningNode) -> bool {
    walk::expression(expr, &mut |part, _| match part.kind() {
        Kind::Const(_) | Kind::RelabelType(_) => false,
        Kind::Other(NodeTag::T_List | NodeTag::T_SQLValueFunction) => false,
        Kind::Param(parameter) => {
            parameter.paramkind() == pg_sys::ParamKind::PARAM_EXEC
                && node.awaits_subquery(parameter.paramid())
        }
        Kind::OpExpr(operation) => !is_shift_of_time(operation.opfuncid()),
        Kind::FuncExpr(call) => !is_shift_of_time(call.funcid()),
        _ => true,
    })
}

/// Whether a function returns the current time, or adds an interval to a time.
fn is_shift_of_time(function: pg_sys::Oid) -> bool {
    matches!(
        function.to_u32(),
        pg_sys::F_NOW
            | pg_sys::F_TIMESTAMPTZ_MI_INTERVAL
            | pg_sys::F_TIMESTAMPTZ_PL_INTERVAL
            | pg_sys::F_TIMESTAMP_MI_INTERVAL
            | pg_sys::F_TIMESTAMP_PL_INTERVAL
    )
}

/// Whether an expression divides, by an operator of PostgreSQL's own, by anything but a constant other than zero.
pub fn may_divide_by_zero(expr: Expr<'_>) -> bool {
    walk::expression(expr, &mut |node, _| {
        let Some(operation) = node.as_op() else {
            return false;
        };
        if !DIVISIONS.contains(&operation.opfuncid().to_u32()) {
            return false;
        }
        let Some(divisor) = operation.args().get(1) else {
            return false;
        };
        // A constant by reference may be zero.
        !divisor.as_const().is_some_and(|divisor| {
            divisor.constbyval()
                && divisor
                    .value()
                    .is_some_and(|value| value.datum().value() != 0)
        })
    })
}

/// The functions of PostgreSQL's own `/` and `%`.
const DIVISIONS: [u32; 17] = [
    pg_sys::F_INT2DIV,
    pg_sys::F_INT4DIV,
    pg_sys::F_INT8DIV,
    pg_sys::F_INT24DIV,
    pg_sys::F_INT42DIV,
    pg_sys::F_INT48DIV,
    pg_sys::F_INT84DIV,
    pg_sys::F_INT28DIV,
    pg_sys::F_INT82DIV,
    pg_sys::F_INT2MOD,
    pg_sys::F_INT4MOD,
    pg_sys::F_INT8MOD,
    pg_sys::F_FLOAT4DIV,
    pg_sys::F_FLOAT8DIV,
    pg_sys::F_NUMERIC_DIV,
    pg_sys::F_NUMERIC_MOD,
    pg_sys::F_INTERVAL_DIV,
];
