//! PostgreSQL's own plan for what a node computes. It takes over when the node would use too much memory.
//!
//! A node that keeps a state for each group cannot know the number of groups before it has read its
//! input, and the planner's estimate may be wrong. So the plan has one more child, the best plan
//! without the node. The node initialises that child only when it exceeds its memory limit. It then
//! drops what it has computed, and the rows come from the child, which can spill to disk.
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
use crate::pg::tree::{Node, Path, RelOptInfo};

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
pub fn path(output: RelOptInfo<'_>) -> Option<Path<'_>> {
    let copies = output.pathlist().iter().filter_map(Path::copy_of_result);
    copies.min_by(|a, b| {
        let workers = has_workers(*a).cmp(&has_workers(*b));
        workers.then(a.total_cost().total_cmp(&b.total_cost()))
    })
}

/// Whether a path starts workers. True for kinds of paths that are not known.
pub fn has_workers(path: Path<'_>) -> bool {
    if path.tag() == pg_sys::NodeTag::T_CustomPath {
        // The nodes of this extension start none.
        return false;
    }
    match path.inputs() {
        None => true,
        Some(inputs) => inputs.iter().any(has_workers),
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
