//! An expression over the rows of a small side, which PostgreSQL evaluates.

use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use super::small_side::SmallSide;
use crate::expressions::scalar;
use crate::pg::{executor, tree};

/// An expression that is ready to be evaluated.
pub struct SmallExpression {
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
}

impl SmallExpression {
    /// Prepares an expression.
    ///
    /// # Safety
    /// The node is being executed. The expression belongs to its plan and is over one small
    /// side, whose plan returns `keys` keys.
    pub unsafe fn of(
        expression: *mut pg_sys::Node,
        plan: &HashJoinPlan,
        keys: usize,
        node: *mut pg_sys::PlanState,
    ) -> SmallExpression {
        // SAFETY: the caller's promise; the copy is ours to change.
        unsafe {
            let of_slot = tree::copy(expression);
            tree::walk_expression(of_slot, &mut |node, _| {
                if (*node).type_ == pg_sys::NodeTag::T_Var {
                    let column = node.cast::<pg_sys::Var>();
                    let place = plan.place_of(column).unwrap_or_default();
                    (*column).varno = pg_sys::OUTER_VAR;
                    (*column).varattno = (keys + plan.place_in_dimension(place)) as i16 + 1;
                }
                false
            });
            pg_sys::fix_opfuncids(of_slot);
            let memory = scalar::memory(node);
            // JIT compilation would take milliseconds and save microseconds.
            let jit = (*(*node).state).es_jit_flags;
            (*(*node).state).es_jit_flags = jit & !(pg_sys::PGJIT_EXPR as i32);
            let state = executor::in_context(memory, || pg_sys::ExecInitExpr(of_slot.cast(), node));
            (*(*node).state).es_jit_flags = jit;
            SmallExpression {
                state,
                context: (*node).ps_ExprContext,
            }
        }
    }

    /// The value for a row of the batch, valid until [`Self::reset`]. All columns are NULL past
    /// the last row.
    ///
    /// # Safety
    /// The node is being executed.
    pub unsafe fn value(&self, row: u32, small: &SmallSide) -> Option<pg_sys::Datum> {
        // SAFETY: the caller's promise; an ERROR becomes a panic, as callers own memory.
        unsafe {
            (*self.context).ecxt_outertuple = small.slot(row);
            pg_sys::ffi::pg_guard_ffi_boundary(|| executor::evaluate(self.state, self.context))
        }
    }

    /// Frees the memory of the evaluations so far.
    ///
    /// # Safety
    /// The node is being executed.
    pub unsafe fn reset(&self) {
        // SAFETY: the caller's promise.
        unsafe { executor::reset(self.context) }
    }
}
