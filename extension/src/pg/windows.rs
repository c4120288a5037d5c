//! Window functions whose treatment differs between versions of PostgreSQL: the conditions on their results that the
//! planner leaves to the node that computes them, and how EXPLAIN prints their calls.

use pgrx::pg_sys;

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
use super::functions::nodes;
use super::tree::{
    Aggref, Expr, Expression, FuncExpr, List, Oids, TargetEntry, WindowClause, WindowFunc, make,
    tag,
};
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
use super::tree::{Node, RunCondition, walk};

/// The kind of an aggregate without `WITHIN GROUP`.
const AGGKIND_NORMAL: std::ffi::c_char = b'n' as std::ffi::c_char;

/// The conditions on the results of a window's functions. PostgreSQL 15 and 16 keep them with the window. From 17 on
/// each function of the target list has its own.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub fn run_conditions<'p>(
    window: WindowClause<'p>,
    _targets: List<'p, TargetEntry<'p>>,
) -> Vec<Expr<'p>> {
    window.runCondition().iter().collect()
}

/// The conditions on the results of a window's functions. PostgreSQL 15 and 16 keep them with the window. From 17 on
/// each function of the target list has its own.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub fn run_conditions<'p>(
    window: WindowClause<'p>,
    targets: List<'p, TargetEntry<'p>>,
) -> Vec<Expr<'p>> {
    let mut conditions = Vec::new();
    for call in calls(targets) {
        if call.winref() == window.winref() {
            let of_call = call.runCondition().iter();
            conditions.extend(of_call.map(|condition| comparison(call, condition)));
        }
    }
    conditions
}

/// The calls in a target list, each once.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn calls<'p>(targets: List<'p, TargetEntry<'p>>) -> Vec<WindowFunc<'p>> {
    let mut met = Vec::new();
    if let Some(targets) = targets.as_node() {
        walk::expression(targets, &mut |node, _| {
            met.extend(node.downcast::<WindowFunc<'p>>());
            false
        });
    }
    distinct(met)
}

/// Each of the calls once.
pub fn distinct(met: Vec<WindowFunc<'_>>) -> Vec<WindowFunc<'_>> {
    let mut calls: Vec<WindowFunc<'_>> = Vec::new();
    for call in met {
        let is_call = |known: &WindowFunc<'_>| known.as_expr().equals(call.as_expr());
        if !calls.iter().any(is_call) {
            calls.push(call);
        }
    }
    calls
}

/// A condition as an operator, between the call and the condition's own operand.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn comparison<'p>(call: WindowFunc<'p>, condition: RunCondition<'p>) -> Expr<'p> {
    let call = make::copy(call.as_expr());
    let other = make::copy(condition.arg());
    let (left, right) = match condition.wfunc_left() {
        true => (call, other),
        false => (other, call),
    };
    let (operator, collation) = (condition.opno(), condition.inputcollid());
    let (result, none) = (pg_sys::BOOLOID, pg_sys::InvalidOid);
    nodes::make_opclause(operator, result, false, left, right, none, collation)
}

/// A call as EXPLAIN shows it: without its window, which is the node's own.
pub fn without_window(call: WindowFunc<'_>) -> Expr<'_> {
    match call.winagg() {
        true => aggregate(call).as_expr(),
        false => function(call).as_expr(),
    }
}

fn function(call: WindowFunc<'_>) -> FuncExpr<'_> {
    let shown: FuncExpr<'_> = tag::new();
    shown.set_function(call.winfnoid());
    shown.set_result(call.wintype());
    shown.set_format(pg_sys::CoercionForm::COERCE_EXPLICIT_CALL);
    shown.set_collation(call.wincollid());
    shown.set_input_collation(call.inputcollid());
    shown.set_arguments(call.args());
    shown.set_location(-1);
    shown
}

fn aggregate(call: WindowFunc<'_>) -> Aggref<'_> {
    let shown: Aggref<'_> = tag::new();
    shown.set_function(call.winfnoid());
    shown.set_result(call.wintype());
    shown.set_collation(call.wincollid());
    shown.set_input_collation(call.inputcollid());
    shown.set_star(call.winstar());
    shown.set_filter(call.aggfilter());
    shown.set_kind(AGGKIND_NORMAL);
    shown.set_location(-1);
    let arguments = call.args().iter().enumerate();
    let entries = arguments.map(|(place, argument)| make::target(argument, place + 1, None, false));
    shown.set_arguments(List::new(entries));
    shown.set_argument_types(Oids::new(call.args().iter().map(Expr::type_of)));
    shown
}
