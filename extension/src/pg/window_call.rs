//! Calls of window functions in the plan of a node that evaluates them itself.

use pgrx::pg_sys;

use crate::pg::exec::node::ExecNode;
use crate::pg::tree;

/// The function of a call and its arguments.
///
/// # Safety
/// A live `WindowFunc`, or a call that [`without_window`] returned.
pub unsafe fn parts(call: *mut pg_sys::Node) -> (pg_sys::Oid, *mut pg_sys::List) {
    // SAFETY: the caller's promise; the casts follow the tag.
    unsafe {
        if tree::is_a(call, pg_sys::NodeTag::T_FuncExpr) {
            let call = &*call.cast::<pg_sys::FuncExpr>();
            return (call.funcid, call.args);
        }
        let call = &*call.cast::<pg_sys::WindowFunc>();
        (call.winfnoid, call.args)
    }
}

/// The call of a plain function that has the same function, type and arguments.
///
/// # Safety
/// As for [`parts`].
pub unsafe fn without_window(call: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe {
        let (function, arguments) = parts(call);
        let shown = tree::make::<pg_sys::FuncExpr>(pg_sys::NodeTag::T_FuncExpr);
        (*shown).funcid = function;
        (*shown).funcresulttype = pg_sys::exprType(call);
        (*shown).funcformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        (*shown).args = arguments;
        shown.cast()
    }
}

/// Gives a node a copy of its plan in which no call has a window. PostgreSQL 18 shows the name of a window, for which
/// EXPLAIN VERBOSE fails without a WindowAgg.
#[cfg_attr(not(feature = "pg18"), allow(unused_variables))]
pub fn show_without_window(node: ExecNode<'_>) {
    #[cfg(feature = "pg18")]
    // SAFETY: the node is live, and so are its plan and the query's memory, which is the current context; only the copy
    // is changed.
    unsafe {
        let state = node.as_raw();
        let plan = (*state).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let shown = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        shown.copy_from_nonoverlapping(plan, 1);
        let targets = (*plan).custom_scan_tlist.cast();
        let shown_targets = tree::replaced(targets, &mut |part| {
            let is_call = (*part).type_ == pg_sys::NodeTag::T_WindowFunc;
            is_call.then(|| without_window(part))
        });
        (*shown).custom_scan_tlist = shown_targets.cast();
        (*state).ss.ps.plan = shown.cast();
    }
}
