//! Parts of the executor that are inline functions in C. Errors jump over them, so nothing here needs dropping.

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    #[link_name = "slot_getsomeattrs_int"]
    fn get_attributes(slot: *mut pg_sys::TupleTableSlot, last: i32);
    #[link_name = "MemoryContextReset"]
    fn reset_memory(context: pg_sys::MemoryContext);
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

/// `ExecProcNode`
///
/// # Safety
/// A node that has begun.
pub unsafe fn next_row(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*node).chgParam.is_null() {
            pg_sys::ExecReScan(node);
        }
        match (*node).ExecProcNode {
            Some(next) => next(node),
            None => std::ptr::null_mut(),
        }
    }
}

/// `TupIsNull`
///
/// # Safety
/// A live slot or null.
pub unsafe fn is_empty(slot: *const pg_sys::TupleTableSlot) -> bool {
    // SAFETY: the caller's promise.
    unsafe { slot.is_null() || u32::from((*slot).tts_flags) & pg_sys::TTS_FLAG_EMPTY != 0 }
}

/// `table_beginscan`: the whole table, in order. `None`: the table cannot be scanned.
///
/// # Safety
/// An open table, a registered snapshot.
pub unsafe fn begin_scan(
    table: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
) -> Option<pg_sys::TableScanDesc> {
    let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
        | pg_sys::ScanOptions::SO_ALLOW_STRAT
        | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE;
    let none = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        let begin = (*(*table).rd_tableam).scan_begin?;
        Some(begin(table, snapshot, 0, none, std::ptr::null_mut(), flags))
    }
}

/// `table_scan_getnextslot`, forward.
///
/// # Safety
/// A live scan, a slot of its table.
pub unsafe fn next(scan: pg_sys::TableScanDesc, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        (*(*(*scan).rs_rd).rd_tableam)
            .scan_getnextslot
            .is_some_and(|next| next(scan, pg_sys::ScanDirection::ForwardScanDirection, slot))
    }
}

/// `table_endscan`
///
/// # Safety
/// A live scan.
pub unsafe fn end_scan(scan: pg_sys::TableScanDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(end) = (*(*(*scan).rs_rd).rd_tableam).scan_end {
            end(scan);
        }
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
pub unsafe fn bytes<'a>(value: pg_sys::Datum, length: i32) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = value.cast_mut_ptr::<u8>();
        std::slice::from_raw_parts(bytes, datum_size(value, false, length))
    }
}
