//! The plan of a `LanesScan`.
//!
//! | `custom_exprs` |
//! |---|
//! | the pushed conditions |

use pgrx::pg_sys;

use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::PrivateData;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::table::pending_rows;

/// Fills in the plan. The path stores the pushed conditions as the planner's `RestrictInfo`.
pub fn plan(planned: &Planned) {
    // SAFETY: the planner's structures are live, and the path stores such a list.
    unsafe {
        let index = (*planned.relation).relid;
        let (expressions, kept) = planned.split_quals((*planned.path).custom_private);
        planned.store(&PrivateData {
            index,
            numbers: Vec::new(),
            nodes: std::ptr::null_mut(),
            expressions,
            targets: std::ptr::null_mut(),
        });
        planned.store_reasons(index, None);
        (*planned.scan).scan.plan.qual = kept;
        (*planned.scan).scan.scanrelid = index;
    }
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
    let mut found = std::ptr::null_mut();
    for expressions in [plan.target_list(), plan.quals(), quals] {
        // SAFETY: the plan's expressions are live.
        unsafe {
            pg_sys::pull_varattnos(expressions.cast(), plan.scanned_index(), &raw mut found);
        }
    }
    // Rows that PostgreSQL rechecks come from elsewhere, with all attributes.
    let is_read = |attribute: usize| {
        let offset = attribute as i32 - pg_sys::FirstLowInvalidHeapAttributeNumber;
        // SAFETY: the set is live or null.
        unsafe { pg_sys::bms_is_member(offset, found) }
    };
    let is_whole_row = is_read(0);
    let attributes = (0..width).filter(|attribute| is_whole_row || is_read(attribute + 1));
    attributes.collect()
}
