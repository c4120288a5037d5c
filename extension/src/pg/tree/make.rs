//! New nodes, in the current memory context.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::{IntoDatum, pg_sys::NodeTag};

use super::expression::Expr;
use super::list::List;
use super::operands::{ArrayExpr, FuncExpr};
use super::raw;
use super::view::View;

/// A deep copy: `copyObject`.
pub fn copy<'p, V: View<'p>>(node: V) -> V {
    // SAFETY: a live node; a copy is never null.
    unsafe { V::at(raw::copy(node.as_ptr())) }
}

/// A copy of an expression in which some parts are replaced. `replace` returns what takes the place of a node; with
/// `None` the node is copied and its parts are visited.
pub fn replaced<'p>(
    expr: Expr<'p>,
    replace: &mut dyn FnMut(Expr<'p>) -> Option<Expr<'p>>,
) -> Expr<'p> {
    let mut panic: Option<Box<dyn std::any::Any + Send>> = None;
    // SAFETY: the tree lives for 'p; no panic of the closure crosses the C frames between.
    let copy = unsafe {
        raw::replaced(expr.as_ptr(), &mut |node| {
            let guarded = std::panic::AssertUnwindSafe(|| replace(Expr::at(node)));
            match std::panic::catch_unwind(guarded) {
                Ok(other) => other.map(View::as_ptr),
                Err(payload) => {
                    panic = Some(payload);
                    Some(node)
                }
            }
        })
    };
    if let Some(payload) = panic {
        std::panic::resume_unwind(payload);
    }
    // SAFETY: a copy of a live node.
    unsafe { Expr::at(copy) }
}

/// `true` or `false`.
pub fn truth<'p>(value: bool) -> Expr<'p> {
    // SAFETY: allocates a node.
    unsafe { Expr::at(pg_sys::makeBoolConst(value, false)) }
}

/// A text; `None` bytes are never NULL.
pub fn text<'p>(bytes: &[u8]) -> Expr<'p> {
    let value = bytes.into_datum();
    // SAFETY: bytes as a datum are a varlena, as a text is one.
    unsafe {
        Expr::at(
            pg_sys::makeConst(
                pg_sys::TEXTOID,
                -1,
                pg_sys::DEFAULT_COLLATION_OID,
                -1,
                value.unwrap_or(Datum::null()),
                value.is_none(),
                false,
            )
            .cast(),
        )
    }
}

/// `ARRAY[…]` of texts.
pub fn text_array<'p>(elements: List<'p, Expr<'p>>) -> ArrayExpr<'p> {
    // SAFETY: the tag is that of the structure, and the fields are set as the parser sets them.
    unsafe {
        let array = raw::make::<pg_sys::ArrayExpr>(NodeTag::T_ArrayExpr);
        (*array).array_typeid = pg_sys::TEXTARRAYOID;
        (*array).element_typeid = pg_sys::TEXTOID;
        (*array).elements = elements.as_ptr();
        (*array).location = -1;
        ArrayExpr::at(array)
    }
}

/// A call of a function that returns a type.
pub fn call<'p>(function: Oid, result: Oid, arguments: List<'p, Expr<'p>>) -> FuncExpr<'p> {
    // SAFETY: allocates a node; the arguments are live expressions.
    unsafe {
        FuncExpr::at(pg_sys::makeFuncExpr(
            function,
            result,
            arguments.as_ptr(),
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        ))
    }
}

/// An operator of schema `pg_catalog` on copies of two expressions, resolved as the parser resolves it.
pub fn operator<'p>(name: &CStr, left: Expr<'p>, right: Expr<'p>) -> Expr<'p> {
    // SAFETY: live expressions; without a parser's state, errors have no position.
    unsafe {
        Expr::at(
            pg_sys::make_op(
                std::ptr::null_mut(),
                raw::system_name(name),
                raw::copy(left.as_ptr()),
                raw::copy(right.as_ptr()),
                std::ptr::null_mut(),
                -1,
            )
            .cast(),
        )
    }
}

/// The conjunction of conditions; `true` if there are none.
pub fn conjunction<'p>(conditions: &[Expr<'p>]) -> Expr<'p> {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|condition| condition.as_ptr())
        .collect();
    // SAFETY: live conditions.
    unsafe { Expr::at(raw::conjunction(&conditions)) }
}

/// A string, for a plan's private data.
pub fn string<'p>(text: &str) -> Expr<'p> {
    // SAFETY: allocates a node.
    unsafe { Expr::at(crate::pg::nodes::string(text)) }
}
