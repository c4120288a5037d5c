//! How much of a table a scan is going to read, as planning reckons.
//!
//! Sealed rows are sorted by the table's `order_by`, so rows of a few values of its leading column lie in a few segments of each
//! part, and zones rule out the others. Open rows are in no order, but they are few.

use lanes_columnar::limits::SEGMENT_ROWS;
use pgrx::pg_sys;

use crate::pg::{nodes, ports, tree};
use crate::table_options;

/// Parts that a table has about, besides its large ones: some of each size that is not merged yet.
const PARTS: f64 = 8.0;
/// Rows of a large part.
const PART_ROWS: f64 = 4_000_000.0;

/// The share of a table's rows that lie in segments which these quals do not rule out.
///
/// # Safety
/// The planner's live structures; `pushed` is a list of quals of that table, or of their clauses.
pub unsafe fn of(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    pushed: *mut pg_sys::List,
) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        let segments = (*relation).tuples / f64::from(SEGMENT_ROWS);
        if segments <= PARTS || ports::list_length(pushed) == 0 {
            return 1.0;
        }
        let entry = tree::planner_entry(root, (*relation).relid as i32);
        let keys = table_options::of((*entry).relid).keys((*entry).relid);
        let Some(leading) = keys.and_then(|keys| keys.first().copied()) else {
            return 1.0;
        };
        let mut bounds = std::ptr::null_mut();
        for qual in nodes::list::<pg_sys::Node>(pushed) {
            let clause = match (*qual).type_ {
                pg_sys::NodeTag::T_RestrictInfo => {
                    (*qual.cast::<pg_sys::RestrictInfo>()).clause.cast()
                }
                _ => qual,
            };
            if compares_column(clause, leading) {
                bounds = pg_sys::lappend(bounds, qual.cast());
            }
        }
        if ports::list_length(bounds) == 0 {
            return 1.0;
        }
        let selectivity = pg_sys::clauselist_selectivity(
            root,
            bounds,
            (*relation).relid as i32,
            pg_sys::JoinType::JOIN_INNER,
            std::ptr::null_mut(),
        );
        // One segment more of each part than its rows would fill.
        let parts = PARTS + (*relation).tuples / PART_ROWS;
        (selectivity + parts / segments).min(1.0)
    }
}

/// Whether a clause compares this column itself with something.
unsafe fn compares_column(clause: *mut pg_sys::Node, attribute: usize) -> bool {
    // SAFETY: a live clause.
    unsafe {
        let arguments = match (*clause).type_ {
            pg_sys::NodeTag::T_OpExpr => (*clause.cast::<pg_sys::OpExpr>()).args,
            pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                (*clause.cast::<pg_sys::ScalarArrayOpExpr>()).args
            }
            _ => return false,
        };
        nodes::list::<pg_sys::Node>(arguments).any(|argument| {
            let argument = crate::expressions::translate::strip(argument);
            (*argument).type_ == pg_sys::NodeTag::T_Var
                && (*argument.cast::<pg_sys::Var>()).varattno as usize == attribute + 1
        })
    }
}
