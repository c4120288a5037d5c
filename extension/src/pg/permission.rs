//! Permissions: on functions, and those that a query's tables require, which move with the tables.

use pgrx::pg_sys::{self, Oid};

use super::ports;
use super::tree::Query;

/// Raises PostgreSQL's error if the current user may not execute a function.
pub fn check_execute(function: Oid, is_aggregate: bool) {
    // SAFETY: look-ups inside a transaction; the name is null if there is no such function, as the error allows.
    unsafe {
        let granted = ports::function_aclcheck(function, pg_sys::GetUserId());
        if granted != pg_sys::AclResult::ACLCHECK_OK {
            let kind = match is_aggregate {
                true => pg_sys::ObjectType::OBJECT_AGGREGATE,
                false => pg_sys::ObjectType::OBJECT_FUNCTION,
            };
            pg_sys::aclcheck_error(granted, kind, pg_sys::get_func_name(function));
        }
    }
}

/// Raises PostgreSQL's error if a role may not execute a function.
pub fn check_execute_by(function: Oid, role: Oid) {
    // SAFETY: look-ups inside a transaction; the name is null if there is no such function, as the error allows.
    unsafe {
        let granted = ports::function_aclcheck(function, role);
        if granted != pg_sys::AclResult::ACLCHECK_OK {
            let kind = pg_sys::ObjectType::OBJECT_FUNCTION;
            pg_sys::aclcheck_error(granted, kind, pg_sys::get_func_name(function));
        }
    }
}

/// Copies to `query`, whose entries came from `parent`, the records by which their permissions are checked.
#[cfg(feature = "pg15")]
pub fn adopt(_parent: Query<'_>, _query: Query<'_>) {
    // The records are part of the entries.
}

/// Copies to `query`, whose entries came from `parent`, the records by which their permissions are checked.
#[cfg(not(feature = "pg15"))]
pub fn adopt(parent: Query<'_>, query: Query<'_>) {
    use super::tree::{self, View};
    for entry in query.rtable() {
        // SAFETY: live queries; an index counts from 1, and 0 is none.
        unsafe {
            let (parent, query, entry) = (parent.as_ptr(), query.as_ptr(), entry.as_ptr());
            if (*entry).perminfoindex > 0 {
                let place = (*entry).perminfoindex as i32 - 1;
                let permission: *mut pg_sys::RTEPermissionInfo =
                    ports::list_nth((*parent).rteperminfos, place);
                let copy = tree::copy(permission).cast();
                (*query).rteperminfos = pg_sys::lappend((*query).rteperminfos, copy);
                (*entry).perminfoindex = ports::list_length((*query).rteperminfos) as u32;
            }
        }
    }
}

/// Takes the records of permissions from a query whose entries have moved with a copy of them.
#[cfg(feature = "pg15")]
pub fn forget(_query: Query<'_>) {
    // The records are part of the entries.
}

/// Takes the records of permissions from a query whose entries have moved with a copy of them.
#[cfg(not(feature = "pg15"))]
pub fn forget(query: Query<'_>) {
    use super::tree::View;
    // SAFETY: a live query, of which no view lends a reference.
    unsafe { (*query.as_ptr()).rteperminfos = std::ptr::null_mut() }
}
