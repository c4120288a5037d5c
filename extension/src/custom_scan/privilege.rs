//! EXECUTE privileges on functions that the engine computes in place of PostgreSQL.
//!
//! PostgreSQL checks the privilege when it initialises an expression or aggregate. What the engine computes is never
//! initialised, so a node checks the privilege itself, at the same moment: plans are cached, and privileges change.

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::permission;
use crate::pg::tree::{Expr, Kind, Node, plan_field, walk};

/// Raises PostgreSQL's error if the user may not execute a function, operator or aggregate of these expressions, which
/// are those of a plan or null.
pub fn check_execute(expressions: impl Iterator<Item = *mut pg_sys::Node>) {
    let mut functions = Vec::new();
    for expression in expressions.filter_map(plan_field::<Option<Expr<'_>>>) {
        walk::expression(expression, &mut |node, _| {
            let function = match node.kind() {
                Kind::FuncExpr(call) => call.funcid(),
                Kind::OpExpr(operation) | Kind::DistinctExpr(operation) => operation.opfuncid(),
                Kind::NullIfExpr(operation) => operation.opfuncid(),
                Kind::ScalarArrayOpExpr(operation) => operation.opfuncid(),
                Kind::Aggref(call) => call.aggfnoid(),
                Kind::WindowFunc(call) => call.winfnoid(),
                _ => return false,
            };
            functions.push((function, node.tag() == NodeTag::T_Aggref));
            false
        });
    }
    functions.sort_unstable_by_key(|(function, _)| function.to_u32());
    functions.dedup();
    for (function, is_aggregate) in functions {
        permission::check_execute(function, is_aggregate);
    }
}
