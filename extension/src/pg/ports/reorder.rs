//! The reorder buffer of logical decoding: its changes and their tuples.

use pgrx::pg_sys;

use super::Locator;

/// A tuple of the reorder buffer.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub type DecodedTuple = *mut pg_sys::ReorderBufferTupleBuf;
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub type DecodedTuple = pg_sys::HeapTuple;

/// Allocates a tuple with so many bytes after the fixed part of its header.
///
/// # Safety
/// `reorder` is live, and owns the tuple.
pub unsafe fn new_tuple(
    reorder: *mut pg_sys::ReorderBuffer,
    bytes: usize,
) -> (DecodedTuple, pg_sys::HeapTuple) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        {
            let decoded = pg_sys::ReorderBufferGetTupleBuf(reorder, bytes);
            (decoded, &raw mut (*decoded).tuple)
        }
        #[cfg(feature = "pg17")]
        {
            let tuple = pg_sys::ReorderBufferGetTupleBuf(reorder, bytes);
            (tuple, tuple)
        }
        #[cfg(feature = "pg18")]
        {
            let tuple = pg_sys::ReorderBufferAllocTupleBuf(reorder, bytes);
            (tuple, tuple)
        }
    }
}

/// Allocates a change.
///
/// # Safety
/// `reorder` is live, and owns the change.
pub unsafe fn new_change(reorder: *mut pg_sys::ReorderBuffer) -> *mut pg_sys::ReorderBufferChange {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::ReorderBufferGetChange(reorder);
        #[cfg(feature = "pg18")]
        return pg_sys::ReorderBufferAllocChange(reorder);
    }
}

/// Makes a change one of a row of the table in `file`. Its tuples need no toasted values.
///
/// # Safety
/// `change` is live, and the tuples are of its reorder buffer.
pub unsafe fn set_tuples(
    change: *mut pg_sys::ReorderBufferChange,
    file: Locator,
    old: Option<DecodedTuple>,
    new: Option<DecodedTuple>,
) {
    let (space, database, number) = file;
    // SAFETY: the caller's promise; this part of the union is the one of rows.
    unsafe {
        let row = &mut (*change).data.tp;
        #[cfg(feature = "pg15")]
        {
            row.relnode = pg_sys::RelFileNode {
                spcNode: space.into(),
                dbNode: database.into(),
                relNode: number.into(),
            };
        }
        #[cfg(not(feature = "pg15"))]
        {
            row.rlocator = pg_sys::RelFileLocator {
                spcOid: space.into(),
                dbOid: database.into(),
                relNumber: number.into(),
            };
        }
        row.clear_toast_afterwards = true;
        row.oldtuple = old.unwrap_or(std::ptr::null_mut());
        row.newtuple = new.unwrap_or(std::ptr::null_mut());
    }
}
