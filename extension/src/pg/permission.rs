//! Permissions: on functions, and those that a query's tables require, which move with the tables.

use pgrx::pg_sys::{self, Oid};

use super::functions::catalog;
use super::tree::Query;
#[cfg(not(feature = "pg15"))]
use super::tree::{List, make};

/// Raises PostgreSQL's error if the current user may not execute a function.
pub fn check_execute(function: Oid, is_aggregate: bool) {
    let kind = match is_aggregate {
        true => pg_sys::ObjectType::OBJECT_AGGREGATE,
        false => pg_sys::ObjectType::OBJECT_FUNCTION,
    };
    check(function, catalog::GetUserId(), kind);
}

/// Whether the current user may read all columns of a table.
pub fn may_read(table: Oid) -> bool {
    let select = pg_sys::ACL_SELECT as pg_sys::AclMode;
    let granted = catalog::pg_class_aclcheck(table, catalog::GetUserId(), select);
    granted == pg_sys::AclResult::ACLCHECK_OK
}

/// Raises PostgreSQL's error if a role may not execute a function.
pub fn check_execute_by(function: Oid, role: Oid) {
    check(function, role, pg_sys::ObjectType::OBJECT_FUNCTION);
}

fn check(function: Oid, role: Oid, kind: pg_sys::ObjectType::Type) {
    let granted = catalog::function_aclcheck(function, role);
    if granted != pg_sys::AclResult::ACLCHECK_OK {
        catalog::aclcheck_error(granted, kind, catalog::get_func_name(function));
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
    for entry in query.rtable() {
        // An index counts from 1, and 0 is none.
        let place = (entry.perminfoindex() as usize).checked_sub(1);
        if let Some(permission) = place.and_then(|place| parent.rteperminfos().get(place)) {
            let mut permissions = query.rteperminfos();
            permissions.push(make::copy(permission));
            query.set_permissions(permissions);
            entry.set_permission_index(permissions.len() as u32);
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
    query.set_permissions(List::EMPTY);
}
