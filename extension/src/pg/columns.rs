//! The columns of expressions.
//!
//! The expressions are those of a live query or plan, as code outside of this folder only passes on what PostgreSQL made.

use pgrx::pg_sys;

use super::nodes;
use super::tree::{self, Expr, plan_node};

/// A column of a table or of another plan's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// The range-table index, or one of `INNER_VAR`, `OUTER_VAR` and `INDEX_VAR`.
    pub table: i32,
    /// The column's number, counted from 1.
    pub number: i16,
    /// How many queries lie between the expression and the table.
    pub levels_up: u32,
}

/// The column that an expression is; `None` for any other expression.
pub fn column(expression: *mut pg_sys::Node) -> Option<Column> {
    // SAFETY: the expression is live; the cast follows the tag.
    unsafe {
        let is_column = tree::is_a(expression, pg_sys::NodeTag::T_Var);
        is_column.then(|| of_var(&*expression.cast::<pg_sys::Var>()))
    }
}

fn of_var(variable: &pg_sys::Var) -> Column {
    Column {
        table: variable.varno,
        number: variable.varattno,
        levels_up: variable.varlevelsup,
    }
}

/// The columns that an expression contains.
pub fn columns(expression: *mut pg_sys::Node) -> Vec<Column> {
    let found = nodes_of(expression, pg_sys::NodeTag::T_Var);
    found.into_iter().filter_map(column).collect()
}

/// Whether an expression contains a value that is computed below a join.
pub fn has_place_holder(expression: *mut pg_sys::Node) -> bool {
    !nodes_of(expression, pg_sys::NodeTag::T_PlaceHolderVar).is_empty()
}

/// Whether two expressions are equal.
pub fn are_equal(a: *mut pg_sys::Node, b: *mut pg_sys::Node) -> bool {
    // SAFETY: the expressions are live.
    unsafe { pg_sys::equal(a.cast(), b.cast()) }
}

/// The type, the type modifier and the collation of an expression.
pub fn type_and_collation(expression: *mut pg_sys::Node) -> (pg_sys::Oid, i32, pg_sys::Oid) {
    // SAFETY: the expression is live.
    let modifier = unsafe { pg_sys::exprTypmod(expression) };
    (type_of(expression), modifier, collation_of(expression))
}

/// The parts of an expression that have this tag.
pub fn nodes_of(expression: *mut pg_sys::Node, tag: pg_sys::NodeTag) -> Vec<*mut pg_sys::Node> {
    let mut found = Vec::new();
    // SAFETY: the expression is live or null.
    unsafe {
        tree::walk_expression(expression, &mut |node, _| {
            if (*node).type_ == tag {
                found.push(node);
            }
            false
        });
    }
    found
}

/// A copy of an expression in which columns are replaced by other expressions. `by` must not raise an ERROR or panic.
pub fn replaced(
    expression: *mut pg_sys::Node,
    by: impl Fn(Column) -> Option<*mut pg_sys::Node>,
) -> *mut pg_sys::Node {
    // SAFETY: the expression is live.
    unsafe { tree::replaced(expression, &mut |node| by(column(node)?)) }
}

/// A copy of an expression, ready for execution, whose columns have other numbers. `number` returns the table and the
/// number of each column.
pub fn renumbered(
    expression: *mut pg_sys::Node,
    number: impl Fn(Column) -> (i32, i16),
) -> *mut pg_sys::Node {
    // SAFETY: the expression is live; the copy is changed before anybody else knows it; the cast follows the tag.
    unsafe {
        let copy = tree::copy(expression);
        for node in nodes_of(copy, pg_sys::NodeTag::T_Var) {
            let variable = &mut *node.cast::<pg_sys::Var>();
            (variable.varno, variable.varattno) = number(of_var(variable));
        }
        pg_sys::fix_opfuncids(copy);
        copy
    }
}

/// The expressions of a target list.
pub fn target_expressions(targets: *mut pg_sys::List) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the list is live or null, and has target entries.
    unsafe {
        let entries = nodes::list::<pg_sys::TargetEntry>(targets);
        entries.map(|entry| (*entry).expr.cast()).collect()
    }
}

/// The type of an expression.
pub fn type_of(expression: *mut pg_sys::Node) -> pg_sys::Oid {
    // SAFETY: the expression is live.
    unsafe { pg_sys::exprType(expression) }
}

/// The base type of an expression's type, which may be a domain.
pub fn base_type_of(expression: *mut pg_sys::Node) -> pg_sys::Oid {
    base_type(type_of(expression))
}

/// The base type of a type that may be a domain.
pub fn base_type(type_of: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: looks the type up in the catalogue.
    unsafe { pg_sys::getBaseType(type_of) }
}

/// The collation of an expression.
pub fn collation_of(expression: *mut pg_sys::Node) -> pg_sys::Oid {
    // SAFETY: the expression is live.
    unsafe { pg_sys::exprCollation(expression) }
}

/// Whether an expression may have several values for equal columns, or contains a subquery.
pub fn is_volatile_or_subquery(expression: *mut pg_sys::Node) -> bool {
    let expression: Expr<'_> = plan_node(expression);
    expression.is_volatile() || expression.has_subplan()
}
