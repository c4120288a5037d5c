//! PostgreSQL's own plan for what a node computes. It takes over when the node would use too much memory.
//!
//! A node that keeps a state for each group cannot know the number of groups before it has read its input, and the
//! planner's estimate may be wrong. So the plan has one more child, the best plan without the node. The node initialises
//! that child only when it exceeds its memory limit. It then drops what it has computed, and the rows come from the
//! child, which can spill to disk.
//!
//! | node | reaches the limit | the child returns |
//! |---|---|---|
//! | aggregation | while it reads its input | all groups |
//! | window | while it reads its input | all rows |
//! | join by time | while it reads the right side | all rows, or the rows from the current vector on |
//! | hash join | while it reads a small side, before the first row | all rows |
//!
//! A child that starts workers is chosen only where no other child exists. The node is then not parallel-safe, because
//! workers cannot start workers.

use pgrx::pg_sys;

use crate::pg::exec::child::Child;
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::Slot;
use crate::pg::{nodes, tree};

/// EXPLAIN's text for an aggregation that has handed over.
pub const GROUPS_TOO_LARGE: &str =
    "to PostgreSQL's own plan, as groups or a join took too much memory";

/// EXPLAIN's text for a window that has handed over.
pub const ROWS_TOO_LARGE: &str = "to PostgreSQL's own plan, as rows took too much memory";

/// EXPLAIN's text for a join by time that has handed over.
pub const RIGHT_SIDE_TOO_LARGE: &str =
    "to PostgreSQL's own plan, as the right side took too much memory";

/// EXPLAIN's text for a hash join that has handed over.
pub const SMALL_SIDE_TOO_LARGE: &str =
    "to PostgreSQL's own plan, as the small side took too much memory";

/// Groups, or the right side of a join by time, may use this many times `work_mem` × `hash_mem_multiplier` before
/// PostgreSQL's own plan takes over: reading the table once more costs far more than memory.
const MEMORY_FACTOR: usize = 16;

/// Bytes that groups, or the right side of a join by time, may use.
pub fn memory_limit() -> usize {
    hash_memory_limit().saturating_mul(MEMORY_FACTOR)
}

/// A copy of the cheapest path of a relation that can stand in. Paths without workers are preferred. The result is a
/// copy because PostgreSQL frees a path when a better one is added to the relation.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn path(output: *mut pg_sys::RelOptInfo) -> Option<*mut pg_sys::Path> {
    // SAFETY: the caller's relation is live.
    unsafe {
        let copies = nodes::list::<pg_sys::Path>((*output).pathlist).filter_map(|path| copy(path));
        copies.min_by(|a, b| {
            let workers = has_workers(*a).cmp(&has_workers(*b));
            workers.then((**a).total_cost.total_cmp(&(**b).total_cost))
        })
    }
}

/// A copy of a path that groups or joins rows or computes window functions, or gathers such rows from workers; `None` for any other kind of path.
unsafe fn copy(path: *mut pg_sys::Path) -> Option<*mut pg_sys::Path> {
    unsafe fn of<T>(path: *mut pg_sys::Path) -> *mut pg_sys::Path {
        // SAFETY: the path is live and of this type; the copy gets its tag.
        unsafe {
            let copy = tree::make::<T>((*path).type_);
            std::ptr::copy_nonoverlapping(path.cast::<T>(), copy, 1);
            copy.cast()
        }
    }
    // SAFETY: the path is live, and the types follow the tags.
    unsafe {
        match (*path).type_ {
            pg_sys::NodeTag::T_AggPath => Some(of::<pg_sys::AggPath>(path)),
            pg_sys::NodeTag::T_GroupPath => Some(of::<pg_sys::GroupPath>(path)),
            pg_sys::NodeTag::T_UpperUniquePath => Some(of::<pg_sys::UpperUniquePath>(path)),
            pg_sys::NodeTag::T_WindowAggPath => Some(of::<pg_sys::WindowAggPath>(path)),
            pg_sys::NodeTag::T_HashPath => Some(of::<pg_sys::HashPath>(path)),
            pg_sys::NodeTag::T_MergePath => Some(of::<pg_sys::MergePath>(path)),
            pg_sys::NodeTag::T_NestPath => Some(of::<pg_sys::NestPath>(path)),
            pg_sys::NodeTag::T_GatherPath => Some(of::<pg_sys::GatherPath>(path)),
            pg_sys::NodeTag::T_GatherMergePath => Some(of::<pg_sys::GatherMergePath>(path)),
            _ => None,
        }
    }
}

/// Whether a path starts workers. True for kinds of paths that this function does not know.
///
/// # Safety
/// The path is live.
pub unsafe fn has_workers(path: *mut pg_sys::Path) -> bool {
    // SAFETY: the path is live, and the types follow the tags.
    unsafe {
        let below = match (*path).type_ {
            pg_sys::NodeTag::T_AggPath => (*path.cast::<pg_sys::AggPath>()).subpath,
            pg_sys::NodeTag::T_GroupPath => (*path.cast::<pg_sys::GroupPath>()).subpath,
            pg_sys::NodeTag::T_UpperUniquePath => (*path.cast::<pg_sys::UpperUniquePath>()).subpath,
            pg_sys::NodeTag::T_WindowAggPath => (*path.cast::<pg_sys::WindowAggPath>()).subpath,
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
            // Scans of one table, and the nodes of this extension, start no workers.
            pg_sys::NodeTag::T_Path | pg_sys::NodeTag::T_CustomPath => return false,
            pg_sys::NodeTag::T_IndexPath | pg_sys::NodeTag::T_BitmapHeapPath => return false,
            _ => return true,
        };
        has_workers(below)
    }
}

/// Initialises the child that stands in, unless it has begun. It is the plan's last child, and the node has begun the
/// `others` before it.
pub fn begin(node: ExecNode<'_>, others: usize) -> Child {
    let children = node.children();
    if let Some(child) = children.get(others) {
        return *child;
    }
    let plan = node.plan().children().last();
    let plan = plan.expect("a plan with a stand-in has children");
    node.begin_child(plan, node.flags())
}

/// The next row of the child that stands in, in the slot in which the node itself would return it.
pub fn next(node: ExecNode<'_>, child: Child) -> Option<Slot> {
    let result = node.projection().result_slot();
    let mut row = result.unwrap_or_else(|| node.scan_slot()).writer();
    let from = child.next_row_guarded();
    if from.is_empty() {
        return None;
    }
    row.copy_slot(from);
    Some(row.store())
}
