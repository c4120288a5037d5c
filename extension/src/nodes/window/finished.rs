//! Plans of the node that the planner has finished.
//!
//! From version 18 on PostgreSQL prints a call of a window function only in a plan with a node of its own for the
//! window, and EXPLAIN fails in all others. So the calls of a finished plan are set aside, and in their places in
//! `custom_scan_tlist` are calls [without a window](windows::without_window), for EXPLAIN alone. The planner matches
//! the query's expressions with that list, so this is not done before. All versions print the same.

use super::partitioned::plan::{PartitionedPlan, is_partitioned};
use super::plan::WindowPlan;
use super::state::WindowState;
use crate::custom_scan::node::Node;
use crate::custom_scan::private_data;
use crate::pg::tree::{CustomScan, Expression, List, Node as _, Plan, PlannedStmt};
use crate::pg::windows;

/// Sets the calls aside in all plans of the node that a statement contains.
pub fn finish(planned: PlannedStmt<'_>) {
    let subplans = planned.subplans().present();
    for plan in planned.planTree().into_iter().chain(subplans) {
        finish_plan(plan);
    }
}

fn finish_plan(plan: Plan<'_>) {
    if let Some(scan) = plan.downcast::<CustomScan<'_>>() {
        if scan.name() == WindowState::NAME {
            set_calls_aside(scan);
        }
        scan.custom_plans().iter().for_each(finish_plan);
    }
    plan.inputs().into_iter().for_each(finish_plan);
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
