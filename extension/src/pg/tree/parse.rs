//! Expressions as the parser makes them of others: operators by name, and conversions of types.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::expression::Expr;
use super::list::List;
use super::make;
use super::view::{Field, View};

/// An operator of PostgreSQL's own on copies of two expressions. It is an ERROR if there is no such operator.
pub fn operator<'p>(name: &CStr, first: Expr<'p>, second: Expr<'p>) -> Expr<'p> {
    let name = List::new([make::name(c"pg_catalog"), make::name(name)]).as_ptr();
    let (first, second) = (make::copy(first).as_ptr(), make::copy(second).as_ptr());
    let (no_parse, no_functions) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: live expressions; outside of the parser there is no state of it.
    unsafe { Expr::at(pg_sys::make_op(no_parse, name, first, second, no_functions, -1).cast()) }
}

/// The type that expressions have in common. It is an ERROR, in the name of a context, if there is none.
pub fn common_type(exprs: &[Expr<'_>], context: &CStr) -> Oid {
    let exprs = List::new(exprs.iter().copied()).as_ptr();
    let (no_parse, no_which) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: live expressions; the result is all that is asked for.
    unsafe { pg_sys::select_common_type(no_parse, exprs, context.as_ptr(), no_which) }
}

/// An expression of the type that it has in common with others.
pub fn coerced_to_common<'p>(expr: Expr<'p>, common: Oid, context: &CStr) -> Expr<'p> {
    let (no_parse, context) = (std::ptr::null_mut(), context.as_ptr());
    // SAFETY: a live expression; it is an ERROR if it cannot be converted.
    unsafe {
        let expr = expr.as_ptr();
        Expr::at(pg_sys::coerce_to_common_type(
            no_parse, expr, common, context,
        ))
    }
}

/// A copy of an expression as a type to which it can be assigned.
pub fn assigned<'p>(expr: Expr<'p>, wanted: Oid) -> Option<Expr<'p>> {
    // SAFETY: a live expression; the result is null if there is no such conversion.
    unsafe {
        Field::of(pg_sys::coerce_to_target_type(
            std::ptr::null_mut(),
            make::copy(expr).as_ptr(),
            expr.type_of(),
            wanted,
            -1,
            pg_sys::CoercionContext::COERCION_ASSIGNMENT,
            pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
            -1,
        ))
    }
}
