//! The columns of expressions.
//!
//! The expressions are those of a live query or plan, as code outside of this folder only passes on
//! what PostgreSQL made.

use pgrx::pg_sys;

use super::catalog;
use super::tree::{Expr, List, Node, TargetEntry, Var, View, make, plan_field, plan_node, walk};

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
    let expression: Option<Expr<'_>> = plan_field(expression);
    expression?.as_var().map(of_var)
}

fn of_var(variable: Var<'_>) -> Column {
    Column {
        table: variable.varno(),
        number: variable.varattno(),
        levels_up: variable.varlevelsup(),
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
    plan_node::<Expr<'_>>(a).equals(plan_node(b))
}

/// The type, the type modifier and the collation of an expression.
pub fn type_and_collation(expression: *mut pg_sys::Node) -> (pg_sys::Oid, i32, pg_sys::Oid) {
    let expression: Expr<'_> = plan_node(expression);
    (
        expression.type_of(),
        expression.type_modifier(),
        expression.collation(),
    )
}

/// The parts of an expression, or of a list of expressions, that have this tag. A null one has none.
pub fn nodes_of(expression: *mut pg_sys::Node, tag: pg_sys::NodeTag) -> Vec<*mut pg_sys::Node> {
    let mut found = Vec::new();
    if let Some(expression) = plan_field::<Option<Expr<'_>>>(expression) {
        walk::expression(expression, &mut |node, _| {
            if node.tag() == tag {
                found.push(node.as_ptr());
            }
            false
        });
    }
    found
}

/// A copy of an expression in which columns are replaced by other expressions.
pub fn replaced(
    expression: *mut pg_sys::Node,
    by: impl Fn(Column) -> Option<*mut pg_sys::Node>,
) -> *mut pg_sys::Node {
    let replaced = walk::replaced(plan_node(expression), &mut |node| {
        by(of_var(node.as_var()?)).map(plan_node)
    });
    replaced.as_ptr()
}

/// A copy of an expression, ready for execution, whose columns have other numbers. `number` returns the table and the
/// number of each column.
pub fn renumbered(
    expression: *mut pg_sys::Node,
    number: impl Fn(Column) -> (i32, i16),
) -> *mut pg_sys::Node {
    let copy: Expr<'_> = make::copy(plan_node(expression));
    walk::expression(copy, &mut |node, _| {
        if let Some(variable) = node.as_var() {
            let (table, attribute) = number(of_var(variable));
            variable.set_table(table);
            variable.set_attribute(attribute);
        }
        false
    });
    copy.fix_operators();
    copy.as_ptr()
}

/// The expressions of a target list.
pub fn target_expressions(targets: *mut pg_sys::List) -> Vec<*mut pg_sys::Node> {
    let targets: List<'_, TargetEntry<'_>> = plan_field(targets);
    targets
        .iter()
        .map(|target| target.expr().as_ptr())
        .collect()
}

/// The type of an expression.
pub fn type_of(expression: *mut pg_sys::Node) -> pg_sys::Oid {
    plan_node::<Expr<'_>>(expression).type_of()
}

/// The base type of an expression's type, which may be a domain.
pub fn base_type_of(expression: *mut pg_sys::Node) -> pg_sys::Oid {
    catalog::base_type(type_of(expression))
}

/// The collation of an expression.
pub fn collation_of(expression: *mut pg_sys::Node) -> pg_sys::Oid {
    plan_node::<Expr<'_>>(expression).collation()
}

/// Whether an expression may have several values for equal columns, or contains a subquery.
pub fn is_volatile_or_subquery(expression: *mut pg_sys::Node) -> bool {
    let expression: Expr<'_> = plan_node(expression);
    expression.is_volatile() || expression.has_subplan()
}
