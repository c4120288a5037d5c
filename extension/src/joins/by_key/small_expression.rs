//! An expression over the rows of a small side, which PostgreSQL evaluates.

use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use super::small_side::SmallSide;
use crate::pg::exec::expression::{RowContext, RowExpression};
use crate::pg::exec::node::ExecNode;

/// An expression that is ready to be evaluated.
#[derive(Clone, Copy)]
pub struct SmallExpression {
    expression: RowExpression,
    context: RowContext,
}

impl SmallExpression {
    /// Prepares an expression of the node's plan, which is over one small side.
    pub fn of(
        expression: *mut pg_sys::Node,
        plan: &HashJoinPlan,
        node: ExecNode<'_>,
    ) -> SmallExpression {
        let of_slot = plan.over_slots(expression);
        let memory = node.lasting_memory();
        SmallExpression {
            expression: memory.enter(|| node.initialise_uncompiled(of_slot)),
            context: node.context(),
        }
    }

    /// The value for a row of the batch, valid until [`Self::reset`]. All columns are NULL past
    /// the last row. An ERROR becomes a panic, because callers own memory.
    pub fn value(&self, row: u32, small: &SmallSide) -> Option<pg_sys::Datum> {
        self.context.set_outer_row(small.slot(row));
        self.expression.evaluate_guarded(self.context)
    }

    /// Frees the memory of the evaluations so far.
    pub fn reset(&self) {
        self.context.reset();
    }
}
