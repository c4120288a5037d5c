//! Parts of the executor that are inline functions in C and run once a row, and what goes with them. Many of them call
//! C without an error boundary, because a boundary costs as much as a simple expression. An ERROR there jumps over all
//! frames up to the nearest boundary. So neither these functions nor their callers up to it may own what needs
//! dropping.

use std::ffi::c_void;

use pgrx::{PgMemoryContexts, pg_sys};

use super::exec::child::Child;
use super::exec::expression::{Computation, RowContext, RowExpression};
use super::exec::memory::Memory;
use super::exec::node::Estate;
use super::exec::scalar::Base;
use super::exec::slot::Slot;
use super::ports;
use super::snapshot::Snapshot;
use super::table::OpenTable;
use super::tree::view::Field;
use super::tree::{Expr, View};

unsafe extern "C-unwind" {
    #[link_name = "slot_getsomeattrs_int"]
    fn get_attributes(slot: *mut pg_sys::TupleTableSlot, last: i32);
    #[link_name = "MemoryContextReset"]
    fn reset_memory(context: pg_sys::MemoryContext);
    #[cfg_attr(feature = "pg15", link_name = "planstate_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "planstate_tree_walker_impl")]
    fn walk_states(
        state: *mut pg_sys::PlanState,
        visit: Option<unsafe extern "C-unwind" fn(*mut pg_sys::PlanState, *mut c_void) -> bool>,
        argument: *mut c_void,
    ) -> bool;
    #[link_name = "ProcessInterrupts"]
    fn process_interrupts();
    #[link_name = "datumGetSize"]
    fn datum_size(value: pg_sys::Datum, by_value: bool, length: i32) -> usize;
}

/// Runs `work` with a memory context as the current one. An error restores the current context in any case.
///
/// # Safety
/// A live context.
pub unsafe fn in_context<T>(context: pg_sys::MemoryContext, work: impl FnOnce() -> T) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo(context);
        let result = work();
        pg_sys::MemoryContextSwitchTo(before);
        result
    }
}

/// A memory context for little, below the current one (`ALLOCSET_SMALL_SIZES`).
///
/// # Safety
/// There is a current memory context. The caller deletes the new one, or its parent does.
pub unsafe fn small_context(name: &'static std::ffi::CStr) -> pg_sys::MemoryContext {
    const INITIAL_BYTES: usize = 1024;
    const BLOCK_BYTES_MAX: usize = 8 * 1024;
    // SAFETY: the caller's promise.
    unsafe {
        let parent = pg_sys::CurrentMemoryContext;
        let name = name.as_ptr();
        pg_sys::AllocSetContextCreateInternal(parent, name, 0, INITIAL_BYTES, BLOCK_BYTES_MAX)
    }
}

/// Runs `work` within one boundary: an ERROR in it becomes a panic. The frames of `work` own nothing, and it does not
/// panic itself.
#[inline]
pub fn guarded<T: Copy>(work: impl FnOnce() -> T) -> T {
    // SAFETY: nothing between the boundary and the ERROR needs dropping, as the callers in `exec` promise.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(work) }
}

/// Runs `work`, and frees what PostgreSQL's functions allocate in it at once. The result is a number, so it points to
/// nothing there.
pub fn in_scratch_memory(work: impl FnOnce() -> i64) -> i64 {
    let mut memory = pgrx::PgMemoryContexts::new("lanes scratch memory");
    // SAFETY: nothing points into the memory when it is freed.
    unsafe { memory.switch_to(|_| work()) }
}

/// Runs `work` in a memory context, which is empty afterwards. What `work` returns points to nothing there.
pub fn in_memory<T: Copy>(memory: &mut PgMemoryContexts, work: impl FnOnce() -> T) -> T {
    // SAFETY: nothing points into the memory when it is freed.
    unsafe {
        let result = memory.switch_to(|_| work());
        memory.reset();
        result
    }
}

/// Runs `work` within one error boundary, because a boundary costs as much as a simple expression. `work` evaluates
/// expressions of the context's rows by [`evaluate_here`]; their values are in the context's memory, which is the
/// current one and empty at first. An ERROR jumps out of `work`, so it owns nothing that needs dropping, and it does
/// not panic.
pub fn in_batch<T: Copy>(context: RowContext, work: impl FnOnce() -> T) -> T {
    let memory = context.memory();
    // SAFETY: the memory is live. The boundary restores the current memory when an ERROR passes.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            reset_here(memory);
            let before = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = memory.as_ptr();
            let result = work();
            pg_sys::CurrentMemoryContext = before;
            result
        })
    }
}

/// Frees memory that was used, within a boundary.
#[inline]
pub fn reset_here(memory: Memory) {
    let memory = memory.as_ptr();
    // SAFETY: the memory is live, and nobody looks at what is in it any more.
    unsafe {
        if !(*memory).isReset || !(*memory).firstchild.is_null() {
            reset_memory(memory);
        }
    }
}

/// The value of an expression for the context's rows, and whether it is NULL, in the current memory and within a
/// boundary.
#[inline]
pub fn evaluate_here(state: RowExpression, context: RowContext) -> (pg_sys::Datum, bool) {
    let (state, mut is_null) = (state.as_ptr(), true);
    // SAFETY: the handles are live. The first evaluation replaces the function by a faster one.
    unsafe {
        match (*state).evalfunc {
            Some(evaluate) => {
                is_null = false;
                (evaluate(state, context.as_ptr(), &raw mut is_null), is_null)
            }
            None => (pg_sys::Datum::null(), is_null),
        }
    }
}

/// Whether a signal asks for a look at interrupts.
#[inline]
pub fn is_interrupted() -> bool {
    // SAFETY: a flag of this process, which signal handlers set.
    unsafe { std::ptr::read_volatile(&raw const pg_sys::InterruptPending) != 0 }
}

/// `CHECK_FOR_INTERRUPTS` within a boundary: an ERROR jumps.
#[inline]
pub fn check_interrupts_here() {
    if is_interrupted() {
        // SAFETY: nothing up to the boundary needs dropping, as its callers promise.
        unsafe { process_interrupts() }
    }
}

/// Bytes that a memory context itself has allocated.
#[inline]
pub fn used_bytes(memory: Memory) -> usize {
    // SAFETY: the context is live.
    unsafe { (*memory.as_ptr()).mem_allocated }
}

/// As [`in_context`], for a context that outlives its handle.
#[inline]
pub fn enter<T>(memory: Memory, work: impl FnOnce() -> T) -> T {
    // SAFETY: the context is live.
    unsafe { in_context(memory.as_ptr(), work) }
}

/// The current memory context.
pub fn current_memory() -> Memory {
    // SAFETY: a read of a variable of this process, which has one thread; there always is a current context.
    unsafe { Memory::at(pg_sys::CurrentMemoryContext) }
}

/// `MemoryContextReset`, unless nobody has used the memory since the last reset.
#[inline]
pub fn reset_memory_context(memory: Memory) {
    // SAFETY: the context is live, and nobody looks at its memory any more.
    unsafe { ports::MemoryContextReset(memory.as_ptr()) }
}

/// `ResetExprContext`
#[inline]
pub fn reset_context(context: RowContext) {
    // SAFETY: the context is live.
    unsafe { reset(context.as_ptr()) }
}

/// `ResetExprContext`
///
/// # Safety
/// A live context.
pub unsafe fn reset(context: *mut pg_sys::ExprContext) {
    // SAFETY: the caller's promise.
    unsafe {
        let memory = (*context).ecxt_per_tuple_memory;
        if !(*memory).isReset {
            reset_memory(memory);
        }
    }
}

/// `ExecEvalExprSwitchContext`; `None` is NULL.
///
/// # Safety
/// A live expression's state, and the tuples that it refers to in the context.
pub unsafe fn evaluate(
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
) -> Option<pg_sys::Datum> {
    // SAFETY: the caller's promise.
    unsafe {
        let function = (*state).evalfunc?;
        let mut is_null = false;
        let value = in_context((*context).ecxt_per_tuple_memory, || {
            function(state, context, &mut is_null)
        });
        (!is_null).then_some(value)
    }
}

/// As [`evaluate`], with handles.
#[inline]
pub fn evaluate_expression(state: RowExpression, context: RowContext) -> Option<pg_sys::Datum> {
    // SAFETY: the handles are live; the context has the rows that the expression looks at.
    unsafe { evaluate(state.as_ptr(), context.as_ptr()) }
}

/// `ExecProject`: the projection of the rows of its context.
#[inline]
pub fn project(projection: Computation<'static>) -> Slot {
    // SAFETY: the projection is live, and its context has the rows that it looks at.
    unsafe {
        let info = projection.as_ptr();
        let (state, context) = (&raw mut (*info).pi_state, (*info).pi_exprContext);
        let slot = (*state).resultslot;
        ports::ExecClearTuple(slot);
        let before = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        let mut is_null = false;
        let evaluate = (*state).evalfunc.expect("an initialised expression");
        evaluate(state, context, &raw mut is_null);
        pg_sys::MemoryContextSwitchTo(before);
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
    }
    projection.result_slot()
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

/// The state of a node as that of a node with this tag, if it is one.
pub fn as_node<'p, V: View<'p>>(node: Child, tag: pg_sys::NodeTag) -> Option<V> {
    // SAFETY: a live node, whose structure follows from its tag; the callers pair tags and views.
    (node.tag() == tag).then(|| unsafe { V::at(node.as_ptr().cast()) })
}

/// `ExecQual`
///
/// # Safety
/// As [`evaluate`]; null is true.
pub unsafe fn passes(state: *mut pg_sys::ExprState, context: *mut pg_sys::ExprContext) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        state.is_null() || evaluate(state, context).is_some_and(|value| value.value() & 0xff != 0)
    }
}

/// The structure with which each node's state of this library begins.
pub fn of_node<'a>(node: Child) -> &'a mut Base {
    // SAFETY: every node of this library begins so, and its callbacks run one after the other.
    unsafe { &mut *node.as_ptr().cast::<Base>() }
}

/// Whether a parameter of an execution, by its number, is the result of a plan that has not run yet.
pub fn awaits_plan(estate: Estate, parameter: usize) -> bool {
    // SAFETY: the array has an element for each of the execution's parameters, among which this one is.
    unsafe {
        let values = (*estate.as_ptr()).es_param_exec_vals;
        !(*values.add(parameter)).execPlan.is_null()
    }
}

/// Visits a plan under execution and all plans below it, until the visitor returns true. The visitor raises no ERROR
/// and does not panic. The walk itself raises an ERROR where plans are nested too deeply, which jumps over this frame
/// and the caller's. So neither owns anything that needs dropping.
pub fn walk_plans(root: Child, mut visitor: &mut dyn FnMut(Child) -> bool) {
    unsafe extern "C-unwind" fn step(state: *mut pg_sys::PlanState, visitor: *mut c_void) -> bool {
        // SAFETY: the walker passes live states, and the visitor that lives in the frame of `walk_plans`.
        unsafe {
            let visit = &mut *visitor.cast::<&mut dyn FnMut(Child) -> bool>();
            visit(Child::at(state)) || walk_states(state, Some(step), visitor)
        }
    }
    let visitor: *mut c_void = (&raw mut visitor).cast();
    // SAFETY: the state is live.
    unsafe { step(root.as_ptr(), visitor) };
}

/// `ExecProcNode`
#[inline]
pub fn next_row(node: Child) -> Slot {
    let node = node.as_ptr();
    // SAFETY: the node is live, and its execution has begun.
    unsafe {
        if !(*node).chgParam.is_null() {
            pg_sys::ExecReScan(node);
        }
        let next = (*node).ExecProcNode;
        next.map_or(Slot::NONE, |next| Field::of(next(node)))
    }
}

/// `table_endscan`, which core defines in a header.
///
/// # Safety
/// `scan` is a scan under way.
pub unsafe fn table_endscan(scan: pg_sys::TableScanDesc) {
    // SAFETY: the caller's promise; every access method has the callback.
    unsafe {
        if let Some(end) = (*(*(*scan).rs_rd).rd_tableam).scan_end {
            end(scan);
        }
    }
}

/// A scan of all visible rows of a table, in order. It owns nothing that needs dropping.
#[derive(Clone, Copy)]
pub struct TableScan(pg_sys::TableScanDesc);

impl TableScan {
    /// `table_beginscan`. `None`: the table cannot be scanned.
    pub fn begin(table: OpenTable<'_>, snapshot: Option<Snapshot<'_>>) -> Option<TableScan> {
        let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
            | pg_sys::ScanOptions::SO_ALLOW_STRAT
            | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE;
        let none = std::ptr::null_mut();
        let snapshot = snapshot.map_or(std::ptr::null_mut(), Snapshot::as_ptr);
        let table = table.as_ptr();
        // SAFETY: the table is open, and the snapshot live, until the scan ends.
        unsafe {
            let begin = (*(*table).rd_tableam).scan_begin?;
            let scan = begin(table, snapshot, 0, none, std::ptr::null_mut(), flags);
            Some(TableScan(scan))
        }
    }

    /// `table_scan_getnextslot`, forward, into a slot of the table. An ERROR jumps.
    #[inline]
    pub fn next(self, slot: Slot) -> bool {
        let (scan, forward) = (self.0, pg_sys::ScanDirection::ForwardScanDirection);
        // SAFETY: the scan has not ended.
        unsafe {
            (*(*(*scan).rs_rd).rd_tableam)
                .scan_getnextslot
                .is_some_and(|next| next(scan, forward, slot.raw()))
        }
    }

    /// `table_endscan`
    pub fn end(self) {
        // SAFETY: the scan has not ended.
        unsafe { table_endscan(self.0) }
    }
}

/// A column of a row, counted from 1; `None` is NULL. `last` is the last column that will be read.
///
/// # Safety
/// A row with that many columns.
pub unsafe fn attribute(
    slot: *mut pg_sys::TupleTableSlot,
    last: i16,
    column: i16,
) -> Option<pg_sys::Datum> {
    // SAFETY: the caller's promise.
    unsafe {
        if (*slot).tts_nvalid < last {
            get_attributes(slot, i32::from(last));
        }
        let index = column as usize - 1;
        (!*(*slot).tts_isnull.add(index)).then(|| *(*slot).tts_values.add(index))
    }
}

/// A number for a row's tuple id, in the order of tuple ids.
///
/// # Safety
/// A row of a table.
pub unsafe fn place(slot: *const pg_sys::TupleTableSlot) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let tid = (*slot).tts_tid;
        let block = u64::from(tid.ip_blkid.bi_hi) << 16 | u64::from(tid.ip_blkid.bi_lo);
        block << 16 | u64::from(tid.ip_posid)
    }
}

/// The bytes of a value that is passed by reference.
///
/// # Safety
/// A live value of a type of that length, out of a table: it is not one that was expanded to be worked on.
#[inline]
pub unsafe fn bytes<'a>(value: pg_sys::Datum, length: i32) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = value.cast_mut_ptr::<u8>();
        let count = match length {
            1.. => length as usize,
            _ => datum_size(value, false, length),
        };
        std::slice::from_raw_parts(bytes, count)
    }
}
