//! PostgreSQL's expressions, ready to be evaluated.

use pgrx::pg_sys;

use super::memory::Memory;
use super::slot::Slot;
use crate::pg::tree::{Expr, View};
use crate::pg::{executor, ports};

/// The rows that expressions look at, and the memory for their values.
#[derive(Clone, Copy)]
pub struct RowContext(*mut pg_sys::ExprContext);

impl RowContext {
    /// # Safety
    /// `context` lives as long as the handle and its copies are used.
    pub unsafe fn of(context: *mut pg_sys::ExprContext) -> RowContext {
        RowContext(context)
    }

    /// The memory that is [reset](Self::reset) for each row.
    #[inline]
    pub fn memory(self) -> Memory {
        // SAFETY: `of` was promised a live context.
        unsafe { Memory::of((*self.0).ecxt_per_tuple_memory) }
    }

    /// Frees what evaluations for the last row allocated.
    #[inline]
    pub fn reset(self) {
        // SAFETY: `of` was promised a live context.
        unsafe { executor::reset(self.0) }
    }

    /// Sets the row of the scanned table.
    #[inline]
    pub fn set_scan_row(self, row: Slot) {
        // SAFETY: `of` was promised a live context.
        unsafe { (*self.0).ecxt_scantuple = row.as_raw() }
    }

    /// Sets the row of the left side of a join.
    #[inline]
    pub fn set_outer_row(self, row: Slot) {
        // SAFETY: `of` was promised a live context.
        unsafe { (*self.0).ecxt_outertuple = row.as_raw() }
    }

    /// Sets the row of the right side of a join.
    #[inline]
    pub fn set_inner_row(self, row: Slot) {
        // SAFETY: `of` was promised a live context.
        unsafe { (*self.0).ecxt_innertuple = row.as_raw() }
    }
}

/// An expression, initialised.
#[derive(Clone, Copy)]
pub struct RowExpression(*mut pg_sys::ExprState);

impl RowExpression {
    /// # Safety
    /// `state` lives as long as the handle and its copies are used.
    pub unsafe fn of(state: *mut pg_sys::ExprState) -> RowExpression {
        RowExpression(state)
    }

    /// The value for the context's rows, in the context's memory; `None` is NULL. An ERROR jumps.
    #[inline]
    pub fn evaluate(self, context: RowContext) -> Option<pg_sys::Datum> {
        // SAFETY: `of` was promised a live state; the context has the rows that the expression looks at.
        unsafe { executor::evaluate(self.0, context.0) }
    }

    /// As [`Self::evaluate`], but an ERROR becomes a panic.
    #[inline]
    pub fn evaluate_guarded(self, context: RowContext) -> Option<pg_sys::Datum> {
        // SAFETY: the frames within the boundary have nothing to drop.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| self.evaluate(context)) }
    }
}

/// A list of conditions, initialised. The default has no condition, so every row passes.
#[derive(Clone, Copy)]
pub struct RowQual(*mut pg_sys::ExprState);

impl Default for RowQual {
    fn default() -> RowQual {
        RowQual(std::ptr::null_mut())
    }
}

impl RowQual {
    /// # Safety
    /// `state` is null, or lives as long as the handle and its copies are used.
    pub unsafe fn of(state: *mut pg_sys::ExprState) -> RowQual {
        RowQual(state)
    }

    /// Whether there is no condition.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_null()
    }

    /// Whether the context's rows pass all conditions. An ERROR jumps.
    #[inline]
    pub fn passes(self, context: RowContext) -> bool {
        // SAFETY: `of` was promised a live state; the context has the rows that the conditions look at.
        unsafe { executor::passes(self.0, context.0) }
    }
}

/// The computation of a node's result row.
#[derive(Clone, Copy)]
pub struct Projection(*mut pg_sys::ProjectionInfo);

impl Projection {
    /// # Safety
    /// `projection` is null, or lives as long as the handle and its copies are used.
    pub unsafe fn of(projection: *mut pg_sys::ProjectionInfo) -> Projection {
        Projection(projection)
    }

    /// The slot of the result; `None` if the result is the input row.
    pub fn result_slot(self) -> Option<Slot> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: `of` was promised a live projection.
        unsafe { Some(Slot::of((*self.0).pi_state.resultslot)) }
    }

    /// The result for the rows of the projection's context; `input` itself if nothing has to be computed. An ERROR
    /// jumps.
    #[inline]
    pub fn project(self, input: Slot) -> Slot {
        // SAFETY: `of` was promised a live projection or null.
        unsafe { Slot::of(exec_project(self.0, input.as_raw())) }
    }
}

/// `ExecProject`: the projection of the context's tuples; the scan tuple itself if there is none to be done.
///
/// # Safety
/// `info` is null or an initialised projection; `scanned` is its scan tuple.
unsafe fn exec_project(
    info: *mut pg_sys::ProjectionInfo,
    scanned: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::TupleTableSlot {
    if info.is_null() {
        return scanned;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let state = &raw mut (*info).pi_state;
        let context = (*info).pi_exprContext;
        let slot = (*state).resultslot;
        ports::ExecClearTuple(slot);
        let before = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        let mut is_null = false;
        let evaluate = (*state).evalfunc.expect("an initialised expression");
        evaluate(state, context, &raw mut is_null);
        pg_sys::MemoryContextSwitchTo(before);
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
        slot
    }
}

/// Evaluates an expression without columns and parameters, outside of any query, and passes its value to `take`; `None`
/// is NULL. The value lives until `take` returns.
pub fn evaluated_once<T>(expression: Expr<'_>, take: impl FnOnce(Option<pg_sys::Datum>) -> T) -> T {
    // SAFETY: a live expression. The executor's state owns the value, and is freed after it was taken.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        let context = pg_sys::MakePerTupleExprContext(estate);
        let state = pg_sys::ExecPrepareExpr(expression.as_ptr().cast(), estate);
        let mut is_null = false;
        let value = (*state).evalfunc.map(|evaluate| {
            pg_sys::ffi::pg_guard_ffi_boundary(|| evaluate(state, context, &raw mut is_null))
        });
        let taken = take(value.filter(|_| !is_null));
        pg_sys::FreeExecutorState(estate);
        taken
    }
}
