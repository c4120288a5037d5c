//! New nodes, in the current memory context.

use pgrx::pg_sys::{self, Datum};
use pgrx::{IntoDatum, pg_sys::NodeTag};

use super::expression::Expr;
use super::list::List;
use super::operands::ArrayExpr;
use super::raw;
use super::view::View;

/// A deep copy: `copyObject`.
pub fn copy<'p, V: View<'p>>(node: V) -> V {
    // SAFETY: a live node; a copy is never null.
    unsafe { V::at(raw::copy(node.as_ptr())) }
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

/// A string, for a plan's private data.
pub fn string<'p>(text: &str) -> Expr<'p> {
    // SAFETY: allocates a node.
    unsafe { Expr::at(crate::pg::nodes::string(text)) }
}
