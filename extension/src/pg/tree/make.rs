//! New nodes, in the current memory context.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::{IntoDatum, pg_sys::NodeTag};

use super::expression::Expr;
use super::list::List;
use super::operands::{ArrayExpr, RelabelType, TargetEntry, Var};
use super::query::{Alias, FromExpr, JoinTree, Name, RangeTblRef};
use super::raw;
use super::tag::{self, Node};
use super::view::{Field, View};

/// A deep copy: `copyObject`.
pub fn copy<'p, V: View<'p>>(node: V) -> V {
    // SAFETY: a live node; a copy is never null.
    unsafe { V::at(raw::copy(node.as_ptr())) }
}

/// A deep copy of a list.
pub fn copy_list<'p, T: View<'p>>(list: List<'p, T>) -> List<'p, T> {
    // SAFETY: null, or a live list; its copy has the same elements.
    unsafe { Field::of(raw::copy(list.as_ptr())) }
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

/// A text that is NULL.
pub fn null_text<'p>() -> Expr<'p> {
    let (text, collation) = (pg_sys::TEXTOID, pg_sys::DEFAULT_COLLATION_OID);
    // SAFETY: allocates a node.
    unsafe { Expr::at(pg_sys::makeNullConst(text, -1, collation).cast()) }
}

/// An expression converted to a type as by CAST; `None` if there is no such conversion.
pub fn cast<'p>(expr: Expr<'p>, type_of: Oid) -> Option<Expr<'p>> {
    // SAFETY: a live expression, which the caller does not use any more; no parse state is needed for messages.
    unsafe {
        Field::of(pg_sys::coerce_to_target_type(
            std::ptr::null_mut(),
            expr.as_ptr(),
            expr.type_of(),
            type_of,
            -1,
            pg_sys::CoercionContext::COERCION_EXPLICIT,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CAST,
            -1,
        ))
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
    let text = std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
    name(&text).as_node()
}

/// A reference to an entry of the range table.
pub fn reference<'p>(index: i32) -> RangeTblRef<'p> {
    let reference: RangeTblRef<'p> = tag::new();
    reference.set_index(index);
    reference
}

/// A column of a table of the query's own level.
pub fn var<'p>(table: i32, attribute: i16, type_of: Oid, collation: Oid) -> Var<'p> {
    // SAFETY: allocates a node.
    unsafe {
        Var::at(pg_sys::makeVar(
            table as _, attribute, type_of, -1, collation, 0,
        ))
    }
}

/// An entry of a target list, counted from 1.
pub fn target<'p>(
    expr: Expr<'p>,
    place: usize,
    name: Option<&'p CStr>,
    is_junk: bool,
) -> TargetEntry<'p> {
    // SAFETY: a live expression; the entry points to the name, which lives as long.
    unsafe {
        let (expr, name) = (expr.as_ptr().cast(), Field::raw(name));
        TargetEntry::at(pg_sys::makeTargetEntry(expr, place as i16, name, is_junk))
    }
}

/// A reference to a target of an entry's sub-select.
pub fn var_of_target<'p>(table: i32, target: TargetEntry<'p>) -> Var<'p> {
    // SAFETY: a live target.
    unsafe { Var::at(pg_sys::makeVarFromTargetEntry(table as _, target.as_ptr())) }
}

/// FROM with WHERE.
pub fn from<'p>(tables: &[JoinTree<'p>], quals: Option<Expr<'p>>) -> FromExpr<'p> {
    let tables = List::new(tables.iter().copied());
    // SAFETY: live nodes.
    unsafe { FromExpr::at(pg_sys::makeFromExpr(tables.as_ptr(), Field::raw(quals))) }
}

/// `true` or `false`.
pub fn boolean<'p>(value: bool) -> Expr<'p> {
    // SAFETY: allocates a node.
    unsafe { Expr::at(pg_sys::makeBoolConst(value, false)) }
}

/// A bigint.
pub fn bigint<'p>(value: i64) -> Expr<'p> {
    let (value, none) = (Datum::from(value), pg_sys::InvalidOid);
    // SAFETY: a bigint has eight bytes and is passed by value.
    unsafe { Expr::at(pg_sys::makeConst(pg_sys::INT8OID, -1, none, 8, value, false, true).cast()) }
}

/// All of these conditions; none is `true`.
pub fn all_of<'p>(conditions: &[Expr<'p>]) -> Expr<'p> {
    match conditions {
        [] => boolean(true),
        [one] => *one,
        several => {
            let several = List::new(several.iter().copied());
            // SAFETY: live expressions.
            unsafe { Expr::at(pg_sys::make_andclause(several.as_ptr()).cast()) }
        }
    }
}

/// A call of a function without collation.
pub fn call<'p>(function: Oid, result: Oid, arguments: &[Expr<'p>]) -> Expr<'p> {
    let (none, form) = (
        pg_sys::InvalidOid,
        pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
    );
    let arguments = List::new(arguments.iter().copied()).as_ptr();
    // SAFETY: live expressions.
    unsafe { Expr::at(pg_sys::makeFuncExpr(function, result, arguments, none, none, form).cast()) }
}

/// A relabelling of an expression to its own type.
pub fn relabelled(expr: Expr<'_>) -> RelabelType<'_> {
    let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    let (type_of, modifier, collation) = (expr.type_of(), expr.type_modifier(), expr.collation());
    // SAFETY: a live expression.
    unsafe {
        let expr = expr.as_ptr().cast();
        RelabelType::at(pg_sys::makeRelabelType(
            expr, type_of, modifier, collation, form,
        ))
    }
}

/// A name of an entry with the names of its columns.
pub fn alias<'p>(name: &CStr, columns: List<'p, Name<'p>>) -> Alias<'p> {
    // SAFETY: the name is copied; the names of the columns are live.
    unsafe { Alias::at(pg_sys::makeAlias(name.as_ptr(), columns.as_ptr())) }
}

/// A name in a list of names.
pub fn name<'p>(name: &CStr) -> Name<'p> {
    // SAFETY: the string is copied.
    unsafe { Name::at(pg_sys::makeString(pg_sys::pstrdup(name.as_ptr())).cast()) }
}
