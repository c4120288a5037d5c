//! The executor's hook: an execution's start and end, for the insert buffer and for scans' spare memory.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::exec::index_scans;
use crate::table::kept;
use crate::table::pending_rows::{self, Gathers};
use crate::table::row_numbers;
use crate::table::scan::spare_memory;
use crate::table::speculation;

/// The depth of an execution that is not part of another.
const OUTERMOST: usize = 1;

static mut PREVIOUS: pg_sys::ExecutorRun_hook_type = None;

/// Installs the hook and the callbacks of transactions. Called from `_PG_init`.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS = pg_sys::ExecutorRun_hook;
        pg_sys::ExecutorRun_hook = Some(executor_run);
        pg_sys::RegisterXactCallback(Some(transaction_ended), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ended), std::ptr::null_mut());
    }
}

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary: see `executor_run`.
    #[link_name = "standard_ExecutorRun"]
    fn standard_executor_run(
        query: *mut pg_sys::QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
        #[cfg(not(feature = "pg18"))] execute_once: bool,
    );
}

/// The hook. Errors of the query jump over this frame (see [`crate::hooks::utility`]), so nothing here needs dropping.
unsafe extern "C-unwind" fn executor_run(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    #[cfg(not(feature = "pg18"))] execute_once: bool,
) {
    // SAFETY: the arguments are the ones we were called with.
    unsafe {
        index_scans::adjust(query);
        let depth = begin(query);
        let next = PREVIOUS.unwrap_or(standard_executor_run);
        #[cfg(not(feature = "pg18"))]
        next(query, direction, count, execute_once);
        #[cfg(feature = "pg18")]
        next(query, direction, count);
        end(depth);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(query: *mut pg_sys::QueryDesc) -> usize {
    // SAFETY: a live query descriptor.
    let gathers = if unsafe { gathers(query) } {
        Gathers::Rows
    } else {
        Gathers::Nothing
    };
    spare_memory::query_begins();
    pending_rows::begin(gathers)
}

#[pg_guard]
unsafe extern "C-unwind" fn end(depth: usize) {
    pending_rows::end(depth);
    if depth == OUTERMOST {
        spare_memory::queries_ended();
        kept::forget();
    }
}

/// Whether nothing in a query can use the tuple ids of rows that it inserts.
unsafe fn gathers(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: a live query descriptor.
    unsafe {
        let plan = (*query).plannedstmt;
        if plan.is_null() {
            return false;
        }
        if (*plan).commandType == pg_sys::CmdType::CMD_INSERT {
            return !(*plan).hasReturning && !(*plan).hasModifyingCTE;
        }
        // CREATE TABLE AS and REFRESH MATERIALIZED VIEW insert the rows of a SELECT.
        let destination = (*query).dest;
        !destination.is_null()
            && matches!(
                (*destination).mydest,
                pg_sys::CommandDest::DestIntoRel | pg_sys::CommandDest::DestTransientRel
            )
    }
}

/// Ends all executions of an aborted transaction. An abort may call it at any time, so it neither raises errors nor
/// allocates.
unsafe extern "C-unwind" fn transaction_ended(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    if matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_ABORT
            | pg_sys::XactEvent::XACT_EVENT_COMMIT
            | pg_sys::XactEvent::XACT_EVENT_PREPARE
            | pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT
            | pg_sys::XactEvent::XACT_EVENT_PARALLEL_COMMIT
    ) {
        kept::forget();
        row_numbers::forget();
    }
    if matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_ABORT | pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT
    ) {
        pending_rows::forget(0);
        speculation::forget(0);
        spare_memory::queries_ended();
    }
}

/// Ends all executions of an aborted subtransaction. It neither raises errors nor allocates.
unsafe extern "C-unwind" fn subtransaction_ended(
    event: pg_sys::SubXactEvent::Type,
    _subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: a plain call; the aborting subtransaction is still the current one.
        let nest_level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
        pending_rows::forget(nest_level);
        speculation::forget(nest_level);
        row_numbers::forget();
        // Its locks are released too, so pages may move.
        kept::forget();
    }
}
