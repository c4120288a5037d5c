//! What a custom scan node does, as a trait. [`callbacks`](super::callbacks) calls it for PostgreSQL.
//!
//! ```text
//! planner:   plan: fills in the node's part of the plan
//! executor:  begin ──► start, next, next, … ──► end
//!                        ▲              │
//!                        └── rescan ────┘   unless `rewind` returns the rows of the last scan once more
//! EXPLAIN:   note (counters of what runs) ──► explain
//! ```
//! The *state* of a node lives from `begin` to the end of the query. What *runs* exists from the
//! first row on: it is made by `start`, when parameters have their values, and dropped by `end`, by
//! a rescan, or with the state after an ERROR.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;

use super::callbacks::Callbacks;
use crate::expressions::translate::Translation;
use crate::pg::exec::child::Child;
use crate::pg::exec::expression::RowQual;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::parallel::SharedState;
use crate::pg::exec::slot::{Slot, SlotWriter};
use crate::pg::explain::Explain;
use crate::pg::tree::{CustomPath, CustomScan, List, PlannerInfo, RelOptInfo, RestrictInfo};

/// A kind of node.
pub trait Node: Default + 'static {
    /// The node's name in plans and in EXPLAIN.
    const NAME: &'static CStr;
    /// The node's callbacks, in a `static`: PostgreSQL keeps pointers to them.
    const CALLBACKS: &'static Callbacks;
    /// Whether the node's rows are those of one table, which PostgreSQL may [recheck](Node::recheck).
    const IS_RECHECKED: bool = false;
    /// What exists from the first row on.
    type Running;

    /// How many of the plan's first children `begin` initialises. The other children are there for the locks and
    /// permissions of their tables, or [stand in](super::stand_in) for the node.
    fn children(_plan: CustomPlan<'_>) -> usize {
        0
    }

    /// The child whose rows the node returns instead of its own.
    fn stand_in(_running: &Self::Running) -> Option<Child> {
        None
    }

    /// Fills in a plan that has its target list and its children.
    fn plan(planned: &Planned);

    /// Makes the state ready, when PostgreSQL initialises the plan.
    fn begin(&mut self, node: ExecNode<'_>);

    /// Makes what runs, before the first row. Parameters have their values, and the current memory context lives as
    /// long as the query.
    ///
    /// # Errors
    /// The reason why the plan cannot be executed.
    fn start(&mut self, node: ExecNode<'_>) -> Translation<Self::Running>;

    /// Goes on to the next row, which is written to `row` or lies in another slot.
    ///
    /// # Errors
    /// The error that an expression of the query raises.
    fn next(
        &mut self,
        running: &mut Self::Running,
        node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow>;

    /// The conditions for a row that PostgreSQL rechecks (`EvalPlanQual`).
    fn recheck(&self) -> RowQual {
        RowQual::default()
    }

    /// Copies the counters of what runs into the state, for EXPLAIN.
    fn note(&mut self, _running: &mut Self::Running) {}

    /// Returns to the first row without starting again. False if the rows may differ, or have to be read again.
    fn rewind(_running: &mut Self::Running, _node: ExecNode<'_>) -> bool {
        false
    }

    /// Drops what runs. No slot refers to it any more.
    fn end(running: Self::Running);

    /// The children whose execution has begun: those that a rescan and the end concern.
    fn children_begun(&self, node: ExecNode<'_>) -> Vec<Child> {
        node.children()
    }

    /// Writes the node's properties for EXPLAIN.
    fn explain(&self, explain: &Explain);
}

/// Where the next row of a node is.
pub enum NextRow {
    /// There is no row left.
    End,
    /// The row was written to the node's slot.
    Written,
    /// The row lies in another slot, which has the columns of the node's slot.
    Other(Slot),
}

impl NextRow {
    /// A row that was written, or the end.
    pub fn written(is_written: bool) -> NextRow {
        match is_written {
            true => NextRow::Written,
            false => NextRow::End,
        }
    }
}

/// A kind of node that workers of a parallel query execute together.
pub trait ParallelNode: Node {
    /// What the participants share.
    type Shared: Default;

    /// Attaches this participant, before its first row.
    fn attach(&mut self, shared: SharedState<Self::Shared>);

    /// Makes what is shared ready for a rescan. No participant is scanning.
    fn restart(shared: &Self::Shared);

    /// Detaches this participant: the last moment at which it may use what is shared.
    fn detach(&mut self);
}

/// A plan that is being made from a path. The planner's structures live as long as the callback that makes it.
pub struct Planned {
    pub root: PlannerInfo<'static>,
    pub relation: RelOptInfo<'static>,
    pub path: CustomPath<'static>,
    /// The conditions that PostgreSQL expects the plan to evaluate.
    pub clauses: List<'static, RestrictInfo<'static>>,
    /// The plan.
    pub scan: CustomScan<'static>,
}
