//! PostgreSQL's expressions, ready to be evaluated.

use std::marker::PhantomData;

use pgrx::pg_sys;

use super::memory::Memory;
use super::slot::Slot;
use crate::pg::executor;
use crate::pg::tree::plan_field;
use crate::pg::tree::view::{nullable_fields, views};

pub use crate::pg::executor::evaluated_once;

views! {
    /// The rows that expressions look at, and the memory for their values.
    RowsAndMemory of ExprContext {} {
        /// The memory that is [reset](RowsAndMemory::reset) for each row.
        memory = ecxt_per_tuple_memory: Memory;
    } {} {
        // The row of the scanned table.
        set_scan_row = ecxt_scantuple: Slot;
        // The row of the left side of a join.
        set_outer_row = ecxt_outertuple: Slot;
        // The row of the right side of a join.
        set_inner_row = ecxt_innertuple: Slot;
    }

    /// An expression, initialised.
    ExpressionState of ExprState {} {
        resultslot: Slot;
    } {}

    /// The computation of a node's result row, which there is.
    Computation of ProjectionInfo {} {
        result_slot = pi_state.resultslot: Slot;
    } {}
}

/// The rows that expressions look at, and the memory for their values. It outlives this handle.
pub type RowContext = RowsAndMemory<'static>;

/// An expression, initialised, which outlives this handle.
pub type RowExpression = ExpressionState<'static>;

impl RowsAndMemory<'static> {
    /// Frees what evaluations for the last row allocated.
    #[inline]
    pub fn reset(self) {
        executor::reset_context(self);
    }
}

impl ExpressionState<'static> {
    /// The value for the context's rows, in the context's memory; `None` is NULL. An ERROR jumps.
    #[inline]
    pub fn evaluate(self, context: RowContext) -> Option<pg_sys::Datum> {
        executor::evaluate_expression(self, context)
    }

    /// As [`Self::evaluate`], but an ERROR becomes a panic.
    #[inline]
    pub fn evaluate_guarded(self, context: RowContext) -> Option<pg_sys::Datum> {
        executor::guarded(|| self.evaluate(context))
    }
}

/// A list of conditions, initialised. The default has no condition, so every row passes.
#[derive(Clone, Copy)]
pub struct ConditionState<'p> {
    raw: *mut pg_sys::ExprState,
    lifetime: PhantomData<&'p ()>,
}

/// Conditions, which outlive this handle.
pub type RowQual = ConditionState<'static>;

nullable_fields!(ConditionState: pg_sys::ExprState);

impl Default for ConditionState<'_> {
    fn default() -> Self {
        ConditionState::NONE
    }
}

impl ConditionState<'static> {
    /// Whether there is no condition.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.is_null()
    }

    /// Whether the context's rows pass all conditions. An ERROR jumps.
    #[inline]
    pub fn passes(self, context: RowContext) -> bool {
        let conditions: Option<RowExpression> = plan_field(self.raw);
        conditions.is_none_or(|conditions| {
            let value = conditions.evaluate(context);
            value.is_some_and(|value| value.value() & 0xff != 0)
        })
    }
}

/// The computation of a node's result row; null if the result is the input row.
#[derive(Clone, Copy)]
pub struct ProjectionOf<'p> {
    raw: *mut pg_sys::ProjectionInfo,
    lifetime: PhantomData<&'p ()>,
}

/// The computation of a node's result row, which outlives this handle.
pub type Projection = ProjectionOf<'static>;

nullable_fields!(ProjectionOf: pg_sys::ProjectionInfo);

impl ProjectionOf<'static> {
    fn computation(self) -> Option<Computation<'static>> {
        plan_field(self.raw)
    }

    /// The slot of the result; `None` if the result is the input row.
    pub fn result_slot(self) -> Option<Slot> {
        self.computation().map(Computation::result_slot)
    }

    /// The result for the rows of the projection's context; `input` itself if nothing has to be computed. An ERROR
    /// jumps.
    #[inline]
    pub fn project(self, input: Slot) -> Slot {
        self.computation().map_or(input, executor::project)
    }
}
