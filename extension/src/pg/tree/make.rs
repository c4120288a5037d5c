//! New nodes, in the current memory context.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::expression::{Expr, Expression};
use super::list::List;
use super::operands::{ArrayExpr, NullTest, RelabelType, RowExpr, SubLink, TargetEntry, Var};
use super::query::{Alias, FromExpr, JoinTree, Name, Query, RangeTblRef};
use super::tag::{self, Node};
use crate::pg::functions::{Null, nodes};

pub use super::tag::{copy, copy_list};

/// A text; `None` bytes are never NULL.
pub fn text<'p>(bytes: &[u8]) -> Expr<'p> {
    nodes::text_constant(bytes)
}

/// A text that is NULL.
pub fn null_text<'p>() -> Expr<'p> {
    let (text, collation) = (pg_sys::TEXTOID, pg_sys::DEFAULT_COLLATION_OID);
    nodes::makeNullConst(text, -1, collation)
}

/// NULL in place of an expression.
pub fn null_like<'p>(expr: Expr<'p>) -> Expr<'p> {
    nodes::makeNullConst(expr.type_of(), expr.type_modifier(), expr.collation())
}

/// An expression converted to a type as by CAST; `None` if there is no such conversion.
pub fn cast<'p>(expr: Expr<'p>, type_of: Oid) -> Option<Expr<'p>> {
    let (context, form) = (
        pg_sys::CoercionContext::COERCION_EXPLICIT,
        pg_sys::CoercionForm::COERCE_EXPLICIT_CAST,
    );
    let from = expr.type_of();
    nodes::coerce_to_target_type(Null, expr, from, type_of, -1, context, form, -1)
}

/// `ARRAY[…]` of texts.
pub fn text_array<'p>(elements: List<'p, Expr<'p>>) -> ArrayExpr<'p> {
    let array: ArrayExpr<'p> = tag::new();
    array.set_type(pg_sys::TEXTARRAYOID);
    array.set_element_type(pg_sys::TEXTOID);
    array.set_elements(elements);
    array.set_location(-1);
    array
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
    nodes::makeVar(table, attribute, type_of, -1, collation, 0)
}

/// An entry of a target list, counted from 1.
pub fn target<'p>(
    expr: Expr<'p>,
    place: usize,
    name: Option<&'p CStr>,
    is_junk: bool,
) -> TargetEntry<'p> {
    nodes::makeTargetEntry(expr, place as i16, name, is_junk)
}

/// A reference to a target of an entry's sub-select.
pub fn var_of_target<'p>(table: i32, target: TargetEntry<'p>) -> Var<'p> {
    nodes::makeVarFromTargetEntry(table, target)
}

/// FROM with WHERE.
pub fn from<'p>(tables: &[JoinTree<'p>], quals: Option<Expr<'p>>) -> FromExpr<'p> {
    let tables = List::new(tables.iter().copied());
    nodes::makeFromExpr(tables, quals)
}

/// `true` or `false`.
pub fn boolean<'p>(value: bool) -> Expr<'p> {
    nodes::makeBoolConst(value, false)
}

/// A bigint.
pub fn bigint<'p>(value: i64) -> Expr<'p> {
    nodes::bigint_constant(value)
}

/// All of these conditions; none is `true`.
pub fn all_of<'p>(conditions: &[Expr<'p>]) -> Expr<'p> {
    match conditions {
        [] => boolean(true),
        [one] => *one,
        several => nodes::make_andclause(List::new(several.iter().copied())),
    }
}

/// The negation of a condition.
pub fn not<'p>(condition: Expr<'p>) -> Expr<'p> {
    nodes::make_notclause(condition)
}

/// `IS NOT NULL`
pub fn is_not_null<'p>(expr: Expr<'p>) -> Expr<'p> {
    let test: NullTest<'p> = tag::new();
    test.set_kind(pg_sys::NullTestType::IS_NOT_NULL);
    test.set_argument(Some(copy(expr)));
    test.set_location(-1);
    test.as_node()
}

/// `EXISTS (…)`
pub fn exists<'p>(query: Query<'p>) -> Expr<'p> {
    let sublink: SubLink<'p> = tag::new();
    sublink.set_kind(pg_sys::SubLinkType::EXISTS_SUBLINK);
    sublink.set_query(Some(query));
    sublink.set_location(-1);
    sublink.as_node()
}

/// A call of a function without collation.
pub fn call<'p>(function: Oid, result: Oid, arguments: &[Expr<'p>]) -> Expr<'p> {
    let (none, form) = (
        pg_sys::InvalidOid,
        pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
    );
    let arguments = List::new(arguments.iter().copied());
    nodes::makeFuncExpr(function, result, arguments, none, none, form).as_expr()
}

/// A relabelling of an expression to its own type.
pub fn relabelled(expr: Expr<'_>) -> RelabelType<'_> {
    let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    let (type_of, modifier, collation) = (expr.type_of(), expr.type_modifier(), expr.collation());
    nodes::makeRelabelType(expr, type_of, modifier, collation, form)
}

/// `ROW(…)` of expressions.
pub fn row<'p>(columns: List<'p, Expr<'p>>) -> RowExpr<'p> {
    let row: RowExpr<'p> = tag::new();
    row.set_args(columns);
    row.set_type(pg_sys::RECORDOID);
    row.set_format(pg_sys::CoercionForm::COERCE_EXPLICIT_CALL);
    row.set_location(-1);
    row
}

/// A name of an entry with the names of its columns.
pub fn alias<'p>(name: &CStr, columns: List<'p, Name<'p>>) -> Alias<'p> {
    nodes::makeAlias(name, columns)
}

/// A name in a list of names.
pub fn name<'p>(name: &CStr) -> Name<'p> {
    nodes::makeString(nodes::pstrdup(name))
}
