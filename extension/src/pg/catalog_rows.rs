//! Rows of system catalogs: single ones, in PostgreSQL's caches of them, all rows of a catalog, and the one update that
//! this library makes in one.

use std::ffi::{CStr, CString};

use pgrx::pg_sys::{self, Datum, Oid};

use super::definitions::Definitions;
use super::functions::catalog;
use super::{ports, transaction};

/// A row of a catalog, while its tuple is held.
pub struct CachedRow {
    cache: pg_sys::SysCacheIdentifier::Type,
    tuple: pg_sys::HeapTuple,
}

/// Reads the row of a cache with this key. `None` if there is none.
pub fn cached<T, const KEYS: usize>(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: [Datum; KEYS],
    read: impl FnOnce(&CachedRow) -> T,
) -> Option<T> {
    let part = |place: usize| key.get(place).copied().unwrap_or(Datum::null());
    // SAFETY: a look-up; the tuple is released after `read` has copied what it wants.
    unsafe {
        let tuple = pg_sys::SearchSysCache(cache as i32, part(0), part(1), part(2), part(3));
        if tuple.is_null() {
            return None;
        }
        let found = read(&CachedRow { cache, tuple });
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

impl CachedRow {
    /// The value of a column that the catalog has, by number; `None` is NULL.
    pub fn value(&self, column: i16) -> Option<Datum> {
        let (cache, mut is_null) = (self.cache as i32, false);
        // SAFETY: the tuple is held.
        let value = unsafe { pg_sys::SysCacheGetAttr(cache, self.tuple, column, &raw mut is_null) };
        (!is_null).then_some(value)
    }

    /// The value of a column of type oid.
    pub fn oid(&self, column: i16) -> Option<Oid> {
        let value = self.value(column)?;
        Some(Oid::from(value.value() as u32))
    }

    /// The value of a column of type text.
    pub fn text(&self, column: i16) -> Option<CString> {
        let value = self.value(column)?;
        // SAFETY: the column is a text; the copy is a string that ends with a NUL.
        unsafe {
            let text = pg_sys::text_to_cstring(value.cast_mut_ptr());
            Some(CStr::from_ptr(text).to_owned())
        }
    }

    /// The parameters in a column that is an array of texts. They are copies in the current memory context.
    pub fn parameters<'p>(&self, column: i16) -> Option<Definitions<'p>> {
        let options = self.value(column)?;
        // SAFETY: the column is such an array.
        Some(unsafe { catalog::untransformRelOptions(options) })
    }

    /// Whether the current transaction has written the row.
    pub fn is_of_this_transaction(&self) -> bool {
        // SAFETY: the tuple is held, and its header is that of a row of a table.
        let writer = unsafe { (*(*self.tuple).t_data).t_choice.t_heap.t_xmin };
        transaction::is_current(writer.into_inner())
    }

    /// `stadistinct` of a row of `pg_statistic`.
    pub fn distinct_values(&self) -> Option<f64> {
        let value = self.value(pg_sys::Anum_pg_statistic_stadistinct as i16)?;
        Some(f64::from(f32::from_bits(value.value() as u32)))
    }

    /// The ends of the histogram in a row of `pg_statistic` of a column of dates or times, as numbers.
    pub fn histogram_ends(&self) -> Option<(f64, f64)> {
        let kind = pg_sys::STATISTIC_KIND_HISTOGRAM as i32;
        let (any, wanted) = (pg_sys::InvalidOid, pg_sys::ATTSTATSSLOT_VALUES as i32);
        let mut slot = pg_sys::AttStatsSlot::default();
        // SAFETY: the tuple is held. The slot is a copy that is freed after its ends are read, and has as many values
        // as it says.
        unsafe {
            if !pg_sys::get_attstatsslot(&raw mut slot, self.tuple, kind, any, wanted) {
                return None;
            }
            let end = |index: i32| {
                let datum = *slot.values.add(index as usize);
                match slot.valuetype {
                    pg_sys::DATEOID => Some(f64::from(datum.value() as i32)),
                    pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => {
                        Some(datum.value() as i64 as f64)
                    }
                    _ => None,
                }
            };
            let ends = match slot.nvalues {
                0 => None,
                count => end(0).zip(end(count - 1)),
            };
            pg_sys::free_attstatsslot(&raw mut slot);
            ends
        }
    }
}

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

/// A row of `lanes.object_scopes`, as it lies in a page.
#[repr(C)]
pub struct ObjectScope {
    pub database: pg_sys::Oid,
    pub system_identifier: i64,
}

/// Calls `visit` with each row of `lanes.object_scopes`.
pub fn object_scopes(table: pg_sys::Oid, visit: impl FnMut(&ObjectScope)) {
    // SAFETY: the table is a heap, and its two columns are never NULL and have these types.
    unsafe { scan_catalog(table, visit) }
}

/// Adds a row to `lanes.object_scopes`, and makes it visible. Whoever calls it decides whether it may be added: no
/// privilege is needed.
pub fn add_object_scope(table: pg_sys::Oid, scope: &ObjectScope) {
    let mut values = [scope.database.into(), scope.system_identifier.into()];
    let mut nulls = [false; 2];
    // SAFETY: the table is a heap with these two columns; the tuple is a copy of the values.
    unsafe {
        let mode = pg_sys::RowExclusiveLock as i32;
        let opened = pg_sys::table_open(table, mode);
        let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
        let tuple = pg_sys::heap_form_tuple((*opened).rd_att, values, nulls);
        pg_sys::CatalogTupleInsert(opened, tuple);
        pg_sys::table_close(opened, mode);
    }
    catalog::CommandCounterIncrement();
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
