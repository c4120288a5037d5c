//! All rows of a system catalog, and the one update that this library makes in one.

use pgrx::pg_sys;

use super::definitions::Definitions;
use super::functions::catalog;
use super::ports;

const RELOID: i32 = pg_sys::SysCacheIdentifier::RELOID as i32;

/// Calls `visit` with each row of a catalog, as a value of the type that its rows have.
///
/// # Safety
/// `T` is the row type of the catalog; runs inside a transaction.
unsafe fn scan_catalog<T>(catalog: pg_sys::Oid, mut visit: impl FnMut(&T)) {
    // SAFETY: the caller names the row type; a row lives until the next is fetched.
    unsafe {
        let lock = pg_sys::AccessShareLock as i32;
        let relation = pg_sys::table_open(catalog, lock);
        let scan = pg_sys::table_beginscan_catalog(relation, 0, std::ptr::null_mut());
        loop {
            let tuple = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tuple.is_null() {
                break;
            }
            visit(&*pg_sys::GETSTRUCT(tuple).cast::<T>());
        }
        ports::table_endscan(scan);
        pg_sys::table_close(relation, lock);
    }
}

/// Calls `visit` with each database.
pub fn databases(visit: impl FnMut(&pg_sys::FormData_pg_database)) {
    // SAFETY: the rows of pg_database are of this type.
    unsafe { scan_catalog(pg_sys::DatabaseRelationId, visit) }
}

/// Calls `visit` with each relation of this database.
pub fn relations(visit: impl FnMut(&pg_sys::FormData_pg_class)) {
    // SAFETY: the rows of pg_class are of this type.
    unsafe { scan_catalog(pg_sys::RelationRelationId, visit) }
}

/// Sets (or, with `reset`, removes) definitions in `pg_class.reloptions`, and makes the change visible. The caller owns
/// the table and has locked it.
pub fn store_definitions(relation: pg_sys::Oid, definitions: Definitions<'_>, reset: bool) {
    // SAFETY: the tuple is a copy of our own; the arrays have an element for each attribute of the catalog.
    unsafe {
        let mode = pg_sys::RowExclusiveLock as i32;
        let catalog = pg_sys::table_open(pg_sys::RelationRelationId, mode);
        let zero = pg_sys::Datum::null();
        let tuple = pg_sys::SearchSysCacheCopy(RELOID, relation.into(), zero, zero, zero);
        if tuple.is_null() {
            pgrx::error!("could not find relation {}", relation.to_u32());
        }
        let mut is_null = true;
        let attribute = pg_sys::Anum_pg_class_reloptions as usize;
        let old = pg_sys::SysCacheGetAttr(RELOID, tuple, attribute as i16, &mut is_null);
        let new = pg_sys::transformRelOptions(
            if is_null { zero } else { old },
            definitions.as_ptr(),
            std::ptr::null(),
            std::ptr::null_mut(),
            false,
            reset,
        );
        let natts = pg_sys::Natts_pg_class as usize;
        let (mut values, mut nulls, mut replaced) =
            (vec![zero; natts], vec![false; natts], vec![false; natts]);
        values[attribute - 1] = new;
        nulls[attribute - 1] = new.is_null();
        replaced[attribute - 1] = true;
        let changed = pg_sys::heap_modify_tuple(
            tuple,
            (*catalog).rd_att,
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            replaced.as_mut_ptr(),
        );
        pg_sys::CatalogTupleUpdate(catalog, &raw mut (*changed).t_self, changed);
        pg_sys::table_close(catalog, mode);
    }
    catalog::CommandCounterIncrement();
}
