//! The plan of a `LanesScan`.
//!
//! | `custom_exprs` |
//! |---|
//! | the pushed conditions |

use std::collections::HashSet;

use pgrx::pg_sys;

use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::PrivateData;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::tree::{Expr, List, Node, plan_field};
use crate::table::pending_rows;

/// Fills in the plan. The path stores the pushed conditions as the planner's `RestrictInfo`.
pub fn plan(planned: &Planned) {
    let index = planned.relation.relid();
    let pushed = planned.path.custom_private();
    let pushed = List::new(pushed.iter().filter_map(|qual| qual.downcast()));
    let (expressions, kept) = planned.split_quals(pushed);
    planned.store(&PrivateData {
        index,
        numbers: Vec::new(),
        nodes: std::ptr::null_mut(),
        expressions: expressions.as_ptr(),
        targets: std::ptr::null_mut(),
    });
    planned.store_reasons(index, None);
    planned.scan.set_quals(kept);
    planned.scan.set_scanned_index(index);
}

/// Begins the scan of a table, and returns the attributes that the plan and further conditions read, ascending.
pub fn begin_table(node: ExecNode<'_>, quals: *mut pg_sys::List) -> Vec<usize> {
    let table = node.scanned_table();
    // Workers do not see the rows that this process still buffers.
    pending_rows::flush_table(table.oid());
    attributes(node.plan(), quals, table.width())
}

/// The attributes that a plan's own expressions and some conditions read.
fn attributes(plan: CustomPlan<'_>, quals: *mut pg_sys::List, width: usize) -> Vec<usize> {
    let table = plan.scanned_index();
    let lists = [plan.target_list(), plan.quals(), quals].into_iter();
    let lists = lists.filter_map(|list| plan_field::<List<'_, Expr<'_>>>(list).as_node());
    let read: HashSet<i16> = lists.flat_map(|list| list.attributes(table)).collect();
    // Rows that PostgreSQL rechecks come from elsewhere, with all attributes.
    let is_whole_row = read.contains(&0);
    let is_read = |attribute: &usize| is_whole_row || read.contains(&(*attribute as i16 + 1));
    (0..width).filter(is_read).collect()
}
