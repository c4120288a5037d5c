//! What types, functions, operators and expressions are called in messages.

use std::ffi::CStr;

use pgrx::pg_sys;

/// A type's name, for messages.
pub fn type_name(type_of: pg_sys::Oid) -> String {
    // SAFETY: gives a palloc'd string for any OID.
    unsafe { CStr::from_ptr(pg_sys::format_type_be(type_of)) }
        .to_string_lossy()
        .into_owned()
}

/// A function's name, for messages.
pub fn function_name(function: u32) -> String {
    // SAFETY: gives a palloc'd string, or null if there is no such function.
    unsafe {
        let name = pg_sys::get_func_name(function.into());
        if name.is_null() {
            return function.to_string();
        }
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

pub fn operator_name(operator: pg_sys::Oid) -> String {
    // SAFETY: as above.
    unsafe {
        let name = pg_sys::get_opname(operator);
        if name.is_null() {
            return operator.to_u32().to_string();
        }
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// What an expression is that has no counterpart.
pub unsafe fn describe(node: *mut pg_sys::Node) -> String {
    // SAFETY: the caller has a live node.
    match unsafe { (*node).type_ } {
        pg_sys::NodeTag::T_CaseExpr => "CASE".into(),
        pg_sys::NodeTag::T_CoalesceExpr => "COALESCE".into(),
        pg_sys::NodeTag::T_MinMaxExpr => "GREATEST or LEAST".into(),
        pg_sys::NodeTag::T_SubPlan | pg_sys::NodeTag::T_AlternativeSubPlan => "a subquery".into(),
        pg_sys::NodeTag::T_DistinctExpr => "IS DISTINCT FROM".into(),
        pg_sys::NodeTag::T_CoerceViaIO => "a cast through text".into(),
        pg_sys::NodeTag::T_RowExpr => "a row".into(),
        tag => format!("an expression ({tag:?})"),
    }
}
