//! The paths of `LanesScan`.

use pgrx::pg_sys;

use super::state::ScanState;
use crate::custom_scan::callbacks;
use crate::pg::{ports, tree};
use crate::planner::quals::{Quals, VECTOR_SHARE};
use crate::planner::selectivity;

/// The path of a scan by one process, and the pages that it is expected to read.
///
/// # Safety
/// The relation is a live one of a lanes table, and the conditions are its own.
pub unsafe fn scan_path(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    quals: &Quals,
) -> (*mut pg_sys::CustomPath, f64) {
    // SAFETY: the planner's structures are live.
    unsafe {
        let Quals { pushed, kept } = *quals;
        let path = callbacks::path::<ScanState>(relation, (*relation).reltarget);
        let base = &mut (*path).path;
        base.param_info =
            pg_sys::get_baserel_parampathinfo(root, relation, (*relation).lateral_relids);
        base.rows = match base.param_info.is_null() {
            true => (*relation).rows,
            false => (*base.param_info).ppi_rows,
        };
        let share = selectivity::of(
            crate::pg::tree::plan_node(root),
            crate::pg::tree::plan_node(relation),
            crate::pg::tree::plan_field(pushed),
        );
        let tuples = (*relation).tuples * share;
        let pages = f64::from((*relation).pages) * share;
        let target = (*(*relation).reltarget).cost;
        base.startup_cost = target.startup;
        base.total_cost = target.startup
            + pages * pg_sys::seq_page_cost * 0.1
            + tuples
                * f64::from(ports::list_length(pushed))
                * (pg_sys::cpu_operator_cost * VECTOR_SHARE)
            + base.rows
                * (pg_sys::cpu_tuple_cost * 0.5
                    + f64::from(ports::list_length(kept)) * pg_sys::cpu_operator_cost
                    + target.per_tuple);
        (*path).custom_private = pushed;
        (path, pages)
    }
}

/// Offers a scan by several processes, each of which takes segments. `scan` is the path for one process, which reads
/// this many pages.
///
/// # Safety
/// The relation and the path are live.
pub unsafe fn offer_parallel_scan(
    relation: *mut pg_sys::RelOptInfo,
    scan: *mut pg_sys::CustomPath,
    pages: f64,
) {
    // SAFETY: the planner's structures are live.
    unsafe {
        if !(*relation).consider_parallel || !(*scan).path.param_info.is_null() {
            return;
        }
        let most = pg_sys::max_parallel_workers_per_gather;
        let workers = pg_sys::compute_parallel_worker(relation, pages, -1.0, most);
        if workers <= 0 {
            return;
        }
        let path = tree::make::<pg_sys::CustomPath>(pg_sys::NodeTag::T_CustomPath);
        *path = *scan;
        // PostgreSQL's own estimate: the leader has less time the more workers it receives rows from.
        let leader = 1.0 - 0.3 * f64::from(workers);
        let takes_part = pg_sys::parallel_leader_participation && leader > 0.0;
        let processes = f64::from(workers) + if takes_part { leader } else { 0.0 };
        let reading = pages * pg_sys::seq_page_cost * 0.1;
        let base = &mut (*path).path;
        let computing = base.total_cost - base.startup_cost - reading;
        base.parallel_aware = true;
        base.parallel_workers = workers;
        base.rows = pg_sys::clamp_row_est(base.rows / processes);
        base.total_cost = base.startup_cost + reading + computing / processes;
        pg_sys::add_partial_path(relation, path.cast());
    }
}
