//! PostgreSQL's own plan for what a node computes, which takes over when the node's memory is not enough.
//!
//! A node that keeps a state a group cannot know beforehand how many groups there are, and the planner's estimate may be
//! wrong either way. So the plan has a second child, the best plan without the node. It is initialised only when the node
//! has passed its bound: then what was read is forgotten, and the rows come from that plan, which can spill.
//!
//! So has a join by time, whose right side is counted while it is read. Its aggregation begins anew; where its rows are
//! returned, the other plan goes on where it stood.
//!
//! A hash join that cannot be divided into batches has such a child too. Its small side is read before any row is
//! returned, so it can hand over when that side turns out to be too large.
//!
//! A plan that starts workers stands in only where there is no other. Then the node itself may not be executed by a
//! worker, as workers start none.

use pgrx::pg_sys;

use super::node;
use crate::pg::{executor, nodes, ports, tree};

/// What EXPLAIN says of an aggregation that has handed over.
pub const GROUPS_TOO_LARGE: &str =
    "to PostgreSQL's own plan, as groups or a join took too much memory";

/// What EXPLAIN says of a join by time that has handed over.
pub const RIGHT_SIDE_TOO_LARGE: &str =
    "to PostgreSQL's own plan, as the right side took too much memory";

/// What EXPLAIN says of a hash join that has handed over.
pub const SMALL_SIDE_TOO_LARGE: &str =
    "to PostgreSQL's own plan, as the small side took too much memory";

/// Groups, or the right side of a join by time, may take this many times `work_mem` × `hash_mem_multiplier` before
/// PostgreSQL's own plan takes over: to read the table once more costs far more than memory.
const MEMORY_FACTOR: usize = 16;

/// Bytes that groups, or the right side of a join by time, may take.
pub fn memory_limit() -> usize {
    // SAFETY: settings of this session.
    unsafe { pg_sys::get_hash_memory_limit() }.saturating_mul(MEMORY_FACTOR)
}

/// A copy of the cheapest path of a relation that can stand in, of those without workers if there is one. It is a copy
/// because PostgreSQL frees a path when a better one is added to the relation.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn path(output: *mut pg_sys::RelOptInfo) -> Option<*mut pg_sys::Path> {
    // SAFETY: the caller's promise.
    unsafe {
        let copies = nodes::list::<pg_sys::Path>((*output).pathlist).filter_map(|path| copy(path));
        copies.min_by(|a, b| {
            let workers = has_workers(*a).cmp(&has_workers(*b));
            workers.then((**a).total_cost.total_cmp(&(**b).total_cost))
        })
    }
}

/// A copy of a path that groups or joins rows, or gathers such rows from workers; none for any other kind of path.
unsafe fn copy(path: *mut pg_sys::Path) -> Option<*mut pg_sys::Path> {
    unsafe fn of<T>(path: *mut pg_sys::Path) -> *mut pg_sys::Path {
        // SAFETY: a live path of that type; the copy has its tag.
        unsafe {
            let copy = tree::make::<T>((*path).type_);
            std::ptr::copy_nonoverlapping(path.cast::<T>(), copy, 1);
            copy.cast()
        }
    }
    // SAFETY: the types follow the tags.
    unsafe {
        match (*path).type_ {
            pg_sys::NodeTag::T_AggPath => Some(of::<pg_sys::AggPath>(path)),
            pg_sys::NodeTag::T_GroupPath => Some(of::<pg_sys::GroupPath>(path)),
            pg_sys::NodeTag::T_UpperUniquePath => Some(of::<pg_sys::UpperUniquePath>(path)),
            pg_sys::NodeTag::T_HashPath => Some(of::<pg_sys::HashPath>(path)),
            pg_sys::NodeTag::T_MergePath => Some(of::<pg_sys::MergePath>(path)),
            pg_sys::NodeTag::T_NestPath => Some(of::<pg_sys::NestPath>(path)),
            pg_sys::NodeTag::T_GatherPath => Some(of::<pg_sys::GatherPath>(path)),
            pg_sys::NodeTag::T_GatherMergePath => Some(of::<pg_sys::GatherMergePath>(path)),
            _ => None,
        }
    }
}

/// Whether a path starts workers, or may.
///
/// # Safety
/// A live path.
pub unsafe fn has_workers(path: *mut pg_sys::Path) -> bool {
    // SAFETY: a live path; the types follow the tags.
    unsafe {
        let below = match (*path).type_ {
            pg_sys::NodeTag::T_AggPath => (*path.cast::<pg_sys::AggPath>()).subpath,
            pg_sys::NodeTag::T_GroupPath => (*path.cast::<pg_sys::GroupPath>()).subpath,
            pg_sys::NodeTag::T_UpperUniquePath => (*path.cast::<pg_sys::UpperUniquePath>()).subpath,
            pg_sys::NodeTag::T_SortPath => (*path.cast::<pg_sys::SortPath>()).subpath,
            pg_sys::NodeTag::T_ProjectionPath => (*path.cast::<pg_sys::ProjectionPath>()).subpath,
            pg_sys::NodeTag::T_SubqueryScanPath => {
                (*path.cast::<pg_sys::SubqueryScanPath>()).subpath
            }
            pg_sys::NodeTag::T_LimitPath => (*path.cast::<pg_sys::LimitPath>()).subpath,
            pg_sys::NodeTag::T_MaterialPath => (*path.cast::<pg_sys::MaterialPath>()).subpath,
            pg_sys::NodeTag::T_MemoizePath => (*path.cast::<pg_sys::MemoizePath>()).subpath,
            pg_sys::NodeTag::T_IncrementalSortPath => {
                (*path.cast::<pg_sys::IncrementalSortPath>()).spath.subpath
            }
            pg_sys::NodeTag::T_HashPath
            | pg_sys::NodeTag::T_MergePath
            | pg_sys::NodeTag::T_NestPath => {
                let join = &*path.cast::<pg_sys::JoinPath>();
                return has_workers(join.outerjoinpath) || has_workers(join.innerjoinpath);
            }
            // What scans one table without workers, and our own nodes.
            pg_sys::NodeTag::T_Path | pg_sys::NodeTag::T_CustomPath => return false,
            pg_sys::NodeTag::T_IndexPath | pg_sys::NodeTag::T_BitmapHeapPath => return false,
            _ => return true,
        };
        has_workers(below)
    }
}

/// The plan that stands in, ready for execution. It is the node's last child; the node executes the `others` before it
/// from the beginning.
///
/// # Safety
/// A node in execution, whose plan has such a child.
pub unsafe fn begin(node: *mut pg_sys::CustomScanState, others: usize) -> *mut pg_sys::PlanState {
    // SAFETY: the caller's promise; memory of the current context lives as long as the query.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let plans = (*scan).custom_plans;
        if node::running_children(node) as usize == others {
            let estate = (*node).ss.ps.state;
            let last = ports::list_length(plans) - 1;
            let plan: *mut pg_sys::Plan = ports::list_nth(plans, last);
            let child = pg_sys::ExecInitNode(plan, estate, (*estate).es_top_eflags);
            (*node).custom_ps = pg_sys::lappend((*node).custom_ps, child.cast());
        }
        let running = node::running_children(node);
        ports::list_nth((*node).custom_ps, running - 1)
    }
}

/// The next row of the plan that stands in, in the slot in which the node would return it; null at the end.
///
/// # Safety
/// A node in execution, and its child that stands in.
pub unsafe fn next(
    node: *mut pg_sys::CustomScanState,
    child: *mut pg_sys::PlanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise; both slots are of the node's target list.
    unsafe {
        let projection = (*node).ss.ps.ps_ProjInfo;
        let into = match projection.is_null() {
            true => (*node).ss.ss_ScanTupleSlot,
            false => (*projection).pi_state.resultslot,
        };
        ports::ExecClearTuple(into);
        let from = pg_sys::ffi::pg_guard_ffi_boundary(|| executor::next_row(child));
        if from.is_null() || executor::is_empty(from) {
            return std::ptr::null_mut();
        }
        ports::slot_getallattrs(from);
        let count = (*(*into).tts_tupleDescriptor).natts as usize;
        std::ptr::copy_nonoverlapping((*from).tts_values, (*into).tts_values, count);
        std::ptr::copy_nonoverlapping((*from).tts_isnull, (*into).tts_isnull, count);
        ports::ExecStoreVirtualTuple(into)
    }
}
