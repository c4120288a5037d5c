//! C macros under their C names, declarations that the bindings lack, and all differences between
//! versions of PostgreSQL. Other folders mention a version only where it gives a callback another
//! signature.
//!
//! | module | contents |
//! |---|---|
//! | `relation` | relations: their files, names and persistence, and WAL records about them |
//! | `tuple` | tuples: descriptors, slots, locks |
//! | `operator` | operators and functions: families, and who may execute them |
//! | `statistics` | statistics of ANALYZE and of the planner; counters |
//! | `serializable` | predicate locks and conflicts |
//! | `reorder` | the reorder buffer of logical decoding |
//!
//! All are re-exported here, so callers write `ports::NAME`. Typed modules of [`crate::pg`] call
//! these functions; other rooms use the typed modules.

#![allow(non_snake_case)]

mod operator;
mod relation;
mod reorder;
mod serializable;
mod statistics;
mod tuple;

use pgrx::pg_sys;

pub use operator::*;
pub use relation::*;
pub use reorder::*;
pub use serializable::*;
pub use statistics::*;
pub use tuple::*;

/// Bytes of a page.
pub const BLCKSZ: usize = pg_sys::BLCKSZ as usize;
/// Bytes of the standard page header, before anything of ours.
pub const PAGE_HEADER_BYTES: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
/// Asks `ReadBufferExtended` for a new block at the end of the relation.
pub const P_NEW: pg_sys::BlockNumber = pg_sys::InvalidBlockNumber;
/// The largest block number; one more means "none".
pub const MAX_BLOCK: u32 = 0xFFFF_FFFE;

/// Lets a long loop be cancelled. A request to end the whole process is turned into an ERROR here: Postgres would leave
/// through `exit` without unwinding, and pins in the arena that are held on the stack would never be released. The
/// process ends all the same, at the next check outside.
pub fn CHECK_FOR_INTERRUPTS() {
    // SAFETY: flags that signal handlers of this process set.
    if unsafe { pg_sys::ProcDiePending != 0 && pg_sys::InterruptHoldoffCount == 0 } {
        crate::error::raise(
            pgrx::PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN,
            "terminating connection due to administrator command",
            "",
        );
    }
    pgrx::check_for_interrupts!();
}

/// Elements of a list; a null list is empty.
///
/// # Safety
/// `list` is null or live.
pub unsafe fn list_length(list: *const pg_sys::List) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { list.as_ref().map_or(0, |list| list.length) }
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

/// An element of a list of pointers.
///
/// # Safety
/// `list` is a live list of pointers with more than `index` elements.
pub unsafe fn list_nth<T>(list: *const pg_sys::List, index: i32) -> *mut T {
    // SAFETY: the caller's promise.
    unsafe { (*(*list).elements.add(index as usize)).ptr_value.cast() }
}

/// What `tuple_update` says about indexes.
#[cfg(feature = "pg15")]
pub type UpdateIndexes = bool;

#[cfg(not(feature = "pg15"))]
pub type UpdateIndexes = pg_sys::TU_UpdateIndexes::Type;

/// No index needs a new entry: there are none.
#[cfg(feature = "pg15")]
pub const UPDATE_NO_INDEXES: UpdateIndexes = false;

#[cfg(not(feature = "pg15"))]
pub const UPDATE_NO_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_None;

/// Each index needs an entry for the new version.
#[cfg(feature = "pg15")]
pub const UPDATE_ALL_INDEXES: UpdateIndexes = true;

#[cfg(not(feature = "pg15"))]
pub const UPDATE_ALL_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_All;

/// The number of the next block that a read stream brings.
///
/// # Safety
/// `stream` is live.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub unsafe fn next_streamed_block(stream: *mut pg_sys::ReadStream) -> Option<u32> {
    // SAFETY: the caller's promise; the pin that comes with the buffer is given back.
    unsafe {
        let buffer = pg_sys::read_stream_next_buffer(stream, std::ptr::null_mut());
        if buffer == 0 {
            return None;
        }
        let block = pg_sys::BufferGetBlockNumber(buffer);
        pg_sys::ReleaseBuffer(buffer);
        Some(block)
    }
}

/// `ConditionalXactLockTableWait`: whether the transaction is over.
pub fn ConditionalXactLockTableWait(xid: u32) -> bool {
    // SAFETY: a plain call.
    unsafe {
        pg_sys::ConditionalXactLockTableWait(
            xid.into(),
            #[cfg(feature = "pg18")]
            false,
        )
    }
}
