//! Moves the permissions that a query's tables require with the tables.

use pgrx::pg_sys;

/// Copies to `query`, whose entries came from `parent`, the records by which their permissions are checked.
///
/// # Safety
/// Live queries.
#[cfg(feature = "pg15")]
pub unsafe fn adopt(_parent: *const pg_sys::Query, _query: *mut pg_sys::Query) {
    // The records are part of the entries.
}

/// Copies to `query`, whose entries came from `parent`, the records by which their permissions are checked.
///
/// # Safety
/// Live queries.
#[cfg(not(feature = "pg15"))]
pub unsafe fn adopt(parent: *const pg_sys::Query, query: *mut pg_sys::Query) {
    // SAFETY: the caller's promise; an index counts from 1, and 0 is none.
    unsafe {
        for entry in crate::pg::tree::elements::<pg_sys::RangeTblEntry>((*query).rtable) {
            if (*entry).perminfoindex > 0 {
                let permission: *mut pg_sys::RTEPermissionInfo = crate::pg::ports::list_nth(
                    (*parent).rteperminfos,
                    (*entry).perminfoindex as i32 - 1,
                );
                (*query).rteperminfos = pg_sys::lappend(
                    (*query).rteperminfos,
                    crate::pg::tree::copy(permission).cast(),
                );
                (*entry).perminfoindex =
                    crate::pg::ports::list_length((*query).rteperminfos) as u32;
            }
        }
    }
}
