//! Window functions whose treatment differs between versions of PostgreSQL: the conditions on their results that the
//! planner leaves to the node that computes them, and how EXPLAIN prints their calls.

use pgrx::pg_sys;

use super::{nodes, tree};

/// The kind of an aggregate without `WITHIN GROUP`.
const AGGKIND_NORMAL: std::ffi::c_char = b'n' as std::ffi::c_char;

/// The conditions on the results of a window's functions. PostgreSQL 15 and 16 keep them with the window. From 17 on
/// each function of the target list has its own.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn run_conditions(
    window: *mut pg_sys::WindowClause,
    targets: *mut pg_sys::List,
) -> Vec<*mut pg_sys::Node> {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: the caller's window is live.
    unsafe {
        let _ = targets;
        nodes::list((*window).runCondition).collect()
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    // SAFETY: the caller's window and target list are live.
    unsafe {
        let mut conditions = Vec::new();
        for call in calls(targets, (*window).winref) {
            for condition in nodes::list((*call).runCondition) {
                conditions.push(comparison(call, condition));
            }
        }
        conditions
    }
}

/// The calls of a window in a target list, each once.
///
/// # Safety
/// The planner's expressions are live.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
unsafe fn calls(targets: *mut pg_sys::List, reference: u32) -> Vec<*mut pg_sys::WindowFunc> {
    let (mut met, mut calls) = (Vec::new(), Vec::<*mut pg_sys::WindowFunc>::new());
    // SAFETY: the caller's target list is live, and a call is what its tag says.
    unsafe {
        tree::walk_expression(targets.cast(), &mut |node, _| {
            if (*node).type_ == pg_sys::NodeTag::T_WindowFunc {
                met.push(node.cast::<pg_sys::WindowFunc>());
            }
            false
        });
        for call in met {
            let is_call =
                |known: &*mut pg_sys::WindowFunc| pg_sys::equal(known.cast(), call.cast());
            if (*call).winref == reference && !calls.iter().any(is_call) {
                calls.push(call);
            }
        }
    }
    calls
}

/// A condition as an operator, between the call and the condition's own operand.
///
/// # Safety
/// The planner's expressions are live.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
unsafe fn comparison(
    call: *mut pg_sys::WindowFunc,
    condition: *mut pg_sys::WindowFuncRunCondition,
) -> *mut pg_sys::Node {
    // SAFETY: the caller's expressions are live.
    unsafe {
        let condition = &*condition;
        let call = tree::copy(call).cast::<pg_sys::Expr>();
        let other = tree::copy(condition.arg);
        let (left, right) = match condition.wfunc_left {
            true => (call, other),
            false => (other, call),
        };
        let (type_of, collation) = (pg_sys::BOOLOID, condition.inputcollid);
        let none = pg_sys::InvalidOid;
        pg_sys::make_opclause(condition.opno, type_of, false, left, right, none, collation).cast()
    }
}

/// A call as EXPLAIN shows it: without its window, which is the node's own.
pub fn without_window(call: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: plans and the planner's structures are live, and this library stores calls of window functions here.
    unsafe {
        let call = &*call.cast::<pg_sys::WindowFunc>();
        match call.winagg {
            true => aggregate(call),
            false => function(call),
        }
    }
}

/// # Safety
/// The call is live.
unsafe fn function(call: &pg_sys::WindowFunc) -> *mut pg_sys::Node {
    // SAFETY: the tag is that of the structure.
    unsafe {
        let shown = tree::make::<pg_sys::FuncExpr>(pg_sys::NodeTag::T_FuncExpr);
        (*shown).funcid = call.winfnoid;
        (*shown).funcresulttype = call.wintype;
        (*shown).funcformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        (*shown).funccollid = call.wincollid;
        (*shown).inputcollid = call.inputcollid;
        (*shown).args = call.args;
        (*shown).location = -1;
        shown.cast()
    }
}

/// # Safety
/// The call is live.
unsafe fn aggregate(call: &pg_sys::WindowFunc) -> *mut pg_sys::Node {
    // SAFETY: the tag is that of the structure, and the call's arguments are live.
    unsafe {
        let shown = tree::make::<pg_sys::Aggref>(pg_sys::NodeTag::T_Aggref);
        (*shown).aggfnoid = call.winfnoid;
        (*shown).aggtype = call.wintype;
        (*shown).aggcollid = call.wincollid;
        (*shown).inputcollid = call.inputcollid;
        (*shown).aggstar = call.winstar;
        (*shown).aggfilter = call.aggfilter;
        (*shown).aggkind = AGGKIND_NORMAL;
        (*shown).location = -1;
        for (place, argument) in nodes::list::<pg_sys::Node>(call.args).enumerate() {
            let (number, none) = (place as i16 + 1, std::ptr::null_mut());
            let entry = pg_sys::makeTargetEntry(argument.cast(), number, none, false);
            (*shown).args = pg_sys::lappend((*shown).args, entry.cast());
            let type_of = pg_sys::exprType(argument);
            (*shown).aggargtypes = pg_sys::lappend_oid((*shown).aggargtypes, type_of);
        }
        shown.cast()
    }
}
