//! Names of tables, columns, types, functions, operators and expressions, for messages.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::functions::catalog;
use super::tree::{Expr, Node};

/// A name of PostgreSQL's as a string.
fn owned(name: &CStr) -> String {
    name.to_string_lossy().into_owned()
}

/// A table's name; its OID if there is no such table.
pub fn table_name(table: pg_sys::Oid) -> String {
    let name = catalog::get_rel_name(table).map(owned);
    name.unwrap_or_else(|| table.to_u32().to_string())
}

/// The name of a table's column, counted from 1; its number if there is none.
pub fn column_name(table: pg_sys::Oid, column: i16) -> String {
    catalog::get_attname(table, column, true).unwrap_or_else(|| column.to_string())
}

/// A type's name.
pub fn type_name(type_of: pg_sys::Oid) -> String {
    catalog::format_type_be(type_of).unwrap_or_default()
}

/// A function's name; its OID if there is no such function.
pub fn function_name(function: u32) -> String {
    let name = catalog::get_func_name(function.into()).map(owned);
    name.unwrap_or_else(|| function.to_string())
}

/// An operator's name; its OID if there is no such operator.
pub fn operator_name(operator: pg_sys::Oid) -> String {
    catalog::get_opname(operator).unwrap_or_else(|| operator.to_u32().to_string())
}

/// A description of an expression that has no counterpart in the engine.
pub fn describe(expr: Expr<'_>) -> String {
    match expr.tag() {
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
