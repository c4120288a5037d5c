//! Expressions as the parser makes them of others: operators by name, and conversions of types.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::expression::Expr;
use super::list::List;
use super::make;
use crate::pg::functions::{Null, nodes};

/// An operator of PostgreSQL's own on copies of two expressions. It is an ERROR if there is no such operator.
pub fn operator<'p>(name: &CStr, first: Expr<'p>, second: Expr<'p>) -> Expr<'p> {
    let name = List::new([make::name(c"pg_catalog"), make::name(name)]);
    nodes::make_op(Null, name, make::copy(first), make::copy(second), Null, -1)
}

/// The type that expressions have in common. It is an ERROR, in the name of a context, if there is none.
pub fn common_type(exprs: &[Expr<'_>], context: &CStr) -> Oid {
    nodes::select_common_type(Null, List::new(exprs.iter().copied()), context, Null)
}

/// An expression of the type that it has in common with others. It is an ERROR if it cannot be converted.
pub fn coerced_to_common<'p>(expr: Expr<'p>, common: Oid, context: &CStr) -> Expr<'p> {
    nodes::coerce_to_common_type(Null, expr, common, context)
}

/// A copy of an expression as a type to which it can be assigned; `None` if there is no such conversion.
pub fn assigned<'p>(expr: Expr<'p>, wanted: Oid) -> Option<Expr<'p>> {
    let (context, form) = (
        pg_sys::CoercionContext::COERCION_ASSIGNMENT,
        pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
    );
    let (copy, from) = (make::copy(expr), expr.type_of());
    nodes::coerce_to_target_type(Null, copy, from, wanted, -1, context, form, -1)
}
