//! The outer joins that can make a column NULL. From PostgreSQL 16 on they have range-table indexes, and a column knows
//! those that are below it (`varnullingrels`). PostgreSQL 15 knows nothing of the kind.

use super::functions::planner;
use super::tree::{CustomScan, Expr, PlannerInfo, RelOptInfo, Relids, Var};
#[cfg(not(feature = "pg15"))]
use super::tree::{Kind, List, Node, make, walk};

/// The tables of an expression, without outer joins.
pub fn tables_of<'p>(root: PlannerInfo<'p>, expression: Expr<'p>) -> Relids<'p> {
    tables_in(root, planner::pull_varnos(root, expression))
}

/// The tables of a set of the planner, without outer joins.
#[cfg(feature = "pg15")]
pub fn tables_in<'p>(_root: PlannerInfo<'p>, relations: Relids<'p>) -> Relids<'p> {
    relations
}

/// The tables of a set of the planner, without outer joins.
#[cfg(not(feature = "pg15"))]
pub fn tables_in<'p>(root: PlannerInfo<'p>, relations: Relids<'p>) -> Relids<'p> {
    planner::bms_difference(relations, root.outer_join_rels())
}

/// Replaces the outer joins below a column by those that `renumbered` returns, without those that have no new index.
/// The column's set of joins is its own.
#[cfg(feature = "pg15")]
pub fn renumber(_variable: Var<'_>, _renumbered: impl Fn(i32) -> Option<i32>) {}

/// Replaces the outer joins below a column by those that `renumbered` returns, without those that have no new index.
/// The column's set of joins is its own.
#[cfg(not(feature = "pg15"))]
pub fn renumber(variable: Var<'_>, renumbered: impl Fn(i32) -> Option<i32>) {
    let indexes = variable.varnullingrels().iter().filter_map(renumbered);
    variable.set_nulling_joins(indexes.fold(Relids::NONE, planner::bms_add_member));
}

/// Notes that an outer join can make a column NULL, which no other one can.
#[cfg(feature = "pg15")]
pub fn add(_variable: Var<'_>, _join: i32) {}

/// Notes that an outer join can make a column NULL, which no other one can.
#[cfg(not(feature = "pg15"))]
pub fn add(variable: Var<'_>, join: i32) {
    variable.set_nulling_joins(planner::bms_add_member(Relids::NONE, join));
}

/// Makes the columns in the expressions of a finished plan equal to those in its target list. The node computes the
/// target list above its own joins, and its other expressions below some of them. PostgreSQL compares columns with
/// the outer joins below them when it looks for the node's target list in `custom_scan_tlist`.
#[cfg(feature = "pg15")]
pub fn agree(_scan: CustomScan<'_>) {}

/// Makes the columns in the expressions of a finished plan equal to those in its target list. The node computes the
/// target list above its own joins, and its other expressions below some of them. PostgreSQL compares columns with
/// the outer joins below them when it looks for the node's target list in `custom_scan_tlist`.
#[cfg(not(feature = "pg15"))]
pub fn agree(scan: CustomScan<'_>) {
    let mut known = Vec::new();
    for entry in scan.as_plan().targetlist() {
        for variable in variables(entry.expr()) {
            let joins = variable.varnullingrels();
            if !joins.is_empty() {
                known.push(((variable.varno(), variable.varattno()), joins));
            }
        }
    }
    scan.set_entries(agreed(scan.custom_scan_tlist(), &known));
    scan.set_expressions(agreed(scan.custom_exprs(), &known));
    scan.set_quals(agreed(scan.as_plan().qual(), &known));
}

/// A copy of a list whose columns have the outer joins that are known of them, or else none.
#[cfg(not(feature = "pg15"))]
fn agreed<'p, T: Node<'p>>(list: List<'p, T>, known: &[((i32, i16), Relids<'p>)]) -> List<'p, T> {
    let list = make::copy_list(list);
    let Some(node) = list.as_node() else {
        return list;
    };
    // PostgreSQL never evaluates the arguments of GROUPING, nor marks them.
    let mut unmarked = Vec::new();
    walk::expression(node, &mut |node, _| {
        if let Kind::GroupingFunc(_) = node.kind() {
            unmarked.extend(variables(node));
        }
        false
    });
    for variable in variables(node) {
        if !unmarked.contains(&variable) {
            let column = (variable.varno(), variable.varattno());
            let found = known.iter().find(|(known, _)| *known == column);
            let joins = found.map_or(Relids::NONE, |(_, joins)| planner::bms_copy(*joins));
            variable.set_nulling_joins(joins);
        }
    }
    list
}

/// The columns in an expression or a list of them.
#[cfg(not(feature = "pg15"))]
fn variables(expression: Expr<'_>) -> Vec<Var<'_>> {
    let mut found = Vec::new();
    walk::expression(expression, &mut |node, _| {
        found.extend(node.as_var());
        false
    });
    found
}

/// An expression as a relation computes it: its columns know no outer joins above the relation.
#[cfg(feature = "pg15")]
pub fn within<'p>(_relation: RelOptInfo<'p>, expression: Expr<'p>) -> Expr<'p> {
    expression
}

/// An expression as a relation computes it: its columns know no outer joins above the relation.
#[cfg(not(feature = "pg15"))]
pub fn within<'p>(relation: RelOptInfo<'p>, expression: Expr<'p>) -> Expr<'p> {
    let copy = make::copy(expression);
    for variable in variables(copy) {
        let joins = planner::bms_intersect(variable.varnullingrels(), relation.relids());
        variable.set_nulling_joins(joins);
    }
    copy
}
