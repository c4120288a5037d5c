//! The outer joins that can make a column NULL. From PostgreSQL 16 on they have range-table indexes, and a column knows
//! those that are below it (`varnullingrels`). PostgreSQL 15 knows nothing of the kind.

use pgrx::pg_sys;

use crate::pg::tree::view::Field;
use crate::pg::tree::{Expr, PlannerInfo, RelOptInfo, Relids, Var, View};
#[cfg(not(feature = "pg15"))]
use crate::pg::{columns::nodes_of, nodes, tree};

/// The tables of an expression, without outer joins.
pub fn tables_of<'p>(root: PlannerInfo<'p>, expression: Expr<'p>) -> Relids<'p> {
    // SAFETY: live structures; the set is in the current memory context.
    tables_in(root, unsafe {
        Field::of(pg_sys::pull_varnos(root.as_ptr(), expression.as_ptr()))
    })
}

/// The tables of a set of the planner, without outer joins.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub fn tables_in<'p>(root: PlannerInfo<'p>, relations: Relids<'p>) -> Relids<'p> {
    #[cfg(feature = "pg15")]
    return relations;
    #[cfg(not(feature = "pg15"))]
    // SAFETY: live structures; the set is in the current memory context.
    unsafe {
        let joins = (*root.as_ptr()).outer_join_rels;
        Field::of(pg_sys::bms_difference(relations.raw(), joins))
    }
}

/// Replaces the outer joins below a column by those that `renumbered` returns, without those that have no new index.
/// The column's set of joins is its own.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub fn renumber(variable: Var<'_>, renumbered: impl Fn(i32) -> Option<i32>) {
    #[cfg(not(feature = "pg15"))]
    // SAFETY: a live column; -1 is before the first member, and a negative member after the last one.
    unsafe {
        let variable = variable.as_ptr();
        let (mut joins, mut member) = (std::ptr::null_mut(), -1);
        loop {
            member = pg_sys::bms_next_member((*variable).varnullingrels, member);
            if member < 0 {
                break;
            }
            if let Some(index) = renumbered(member) {
                joins = pg_sys::bms_add_member(joins, index);
            }
        }
        (*variable).varnullingrels = joins;
    }
}

/// Makes the columns in the expressions of a finished plan equal to those in its target list. The node computes the
/// target list above its own joins, and its other expressions below some of them. PostgreSQL compares columns with
/// the outer joins below them when it looks for the node's target list in `custom_scan_tlist`.
///
/// # Safety
/// A live plan; its lists of expressions are changed by nobody else.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub unsafe fn agree(scan: *mut pg_sys::CustomScan) {
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the caller's promise; only copies are changed, and casts follow tags.
    unsafe {
        let mut known = Vec::new();
        for entry in nodes::list::<pg_sys::TargetEntry>((*scan).scan.plan.targetlist) {
            for variable in variables((*entry).expr.cast()) {
                let variable = &*variable;
                if !variable.varnullingrels.is_null() {
                    let joins = variable.varnullingrels;
                    known.push(((variable.varno, variable.varattno), joins));
                }
            }
        }
        for list in [
            &raw mut (*scan).custom_scan_tlist,
            &raw mut (*scan).custom_exprs,
            &raw mut (*scan).scan.plan.qual,
        ] {
            *list = tree::copy(*list);
            // PostgreSQL never evaluates the arguments of GROUPING, nor marks them.
            let unmarked = nodes_of((*list).cast(), pg_sys::NodeTag::T_GroupingFunc);
            let unmarked: Vec<_> = unmarked
                .into_iter()
                .flat_map(|call| variables(call))
                .collect();
            let all = variables((*list).cast()).into_iter();
            for variable in all.filter(|variable| !unmarked.contains(variable)) {
                let variable = &mut *variable;
                let column = (variable.varno, variable.varattno);
                let found = known.iter().find(|(known, _)| *known == column);
                variable.varnullingrels =
                    found.map_or(std::ptr::null_mut(), |(_, joins)| pg_sys::bms_copy(*joins));
            }
        }
    }
}

/// The columns in an expression or a list of them.
#[cfg(not(feature = "pg15"))]
unsafe fn variables(expression: *mut pg_sys::Node) -> Vec<*mut pg_sys::Var> {
    let found = nodes_of(expression, pg_sys::NodeTag::T_Var);
    found.into_iter().map(<*mut pg_sys::Node>::cast).collect()
}

/// An expression as a relation computes it: its columns know no outer joins above the relation.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub fn within<'p>(relation: RelOptInfo<'p>, expression: Expr<'p>) -> Expr<'p> {
    #[cfg(feature = "pg15")]
    return expression;
    #[cfg(not(feature = "pg15"))]
    // SAFETY: live structures; only a copy is changed.
    unsafe {
        let copy = tree::copy(expression.as_ptr());
        for variable in variables(copy) {
            let joins = (*variable).varnullingrels;
            (*variable).varnullingrels = pg_sys::bms_intersect(joins, relation.relids().raw());
        }
        Expr::at(copy)
    }
}
