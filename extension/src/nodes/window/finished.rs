//! Plans of the node that the planner has finished.
//!
//! From version 18 on PostgreSQL prints a call of a window function only in a plan with a node of its own for the
//! window, and EXPLAIN fails in all others. So the calls of a finished plan are set aside, and in their places in
//! `custom_scan_tlist` are calls [without a window](windows::without_window), for EXPLAIN alone. The planner matches
//! the query's expressions with that list, so this is not done before. All versions print the same.
//!
//! A plan returns the keys of partitions and orders also where the query does not select them. Only nodes of the same
//! query level may read them, such as a sort. Below any other node NULLs take their places, so that the rows need not
//! keep them.

use pgrx::pg_sys;

use super::partitioned::plan::{PartitionedPlan, is_partitioned};
use super::plan::WindowPlan;
use super::state::WindowState;
use crate::custom_scan::node::Node;
use crate::custom_scan::private_data;
use crate::pg::tree::{CustomScan, Expression, List, Node as _, Plan, PlannedStmt, make};
use crate::pg::windows;

/// Sets the calls aside in all plans of the node that a statement contains.
pub fn finish(planned: PlannedStmt<'_>) {
    let subplans = planned.subplans().present();
    if let Some(plan) = planned.planTree() {
        finish_plan(plan, true);
    }
    subplans.for_each(|plan| finish_plan(plan, false));
}

/// Finishes a plan and those below it. `is_last`: whether the node above, or PostgreSQL itself, reads no junk columns.
fn finish_plan(plan: Plan<'_>, is_last: bool) {
    if let Some(scan) = plan.downcast::<CustomScan<'_>>() {
        if scan.name() == WindowState::NAME {
            set_calls_aside(scan);
            if is_last && is_partitioned(scan) {
                drop_junk(plan);
            }
        }
        let children = scan.custom_plans().iter();
        children.for_each(|child| finish_plan(child, false));
    }
    // In a query level with window functions, an aggregation above these can only be that of DISTINCT, which lists all
    // columns that are ordered by.
    let ends_level = matches!(
        plan.tag(),
        pg_sys::NodeTag::T_SubqueryScan | pg_sys::NodeTag::T_Agg
    );
    let inputs = plan.inputs().into_iter();
    inputs.for_each(|input| finish_plan(input, ends_level));
}

/// Puts NULLs in the places of columns that the query does not select.
fn drop_junk(plan: Plan<'_>) {
    let targets = plan.targetlist().iter();
    for target in targets.filter(|target| target.resjunk()) {
        target.set_expr(make::null_like(target.expr()));
    }
}

fn set_calls_aside(scan: CustomScan<'_>) {
    let plan = scan;
    let (columns, calls) = match is_partitioned(plan) {
        true => {
            let plan = PartitionedPlan::of(plan);
            (plan.columns.len(), plan.calls)
        }
        false => {
            let plan = WindowPlan::of(plan);
            (plan.columns.len(), plan.calls)
        }
    };
    let entries = scan.custom_scan_tlist().iter().skip(columns);
    for (entry, call) in entries.zip(&calls) {
        entry.set_expr(windows::without_window(*call));
    }
    let calls = List::new(calls.into_iter().map(Expression::as_expr));
    private_data::set_nodes(scan, calls);
}
