//! Indexes whose entries are compared with the rows of their table.

use std::ffi::c_void;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::index::{Entry, EntryMaker};
use super::table::OpenTable;

/// The valid indexes of a table that have an entry for each row, open.
pub struct CheckedIndexes<'a> {
    table: OpenTable<'a>,
    indexes: Vec<pg_sys::Relation>,
}

/// One of them.
pub struct CheckedIndex<'a> {
    table: OpenTable<'a>,
    index: pg_sys::Relation,
}

impl<'a> CheckedIndexes<'a> {
    /// Opens the indexes that queries may use, but for those that summarise ranges of rows. The caller holds the
    /// lock on the table that VACUUM takes.
    pub fn open(table: OpenTable<'a>) -> CheckedIndexes<'a> {
        let mut indexes = Vec::new();
        // SAFETY: the table is open; each index is closed when the value is dropped, or with the transaction.
        unsafe {
            let list = pg_sys::RelationGetIndexList(table.as_ptr());
            let count = list.as_ref().map_or(0, |list| list.length as usize);
            for place in 0..count {
                let id = (*(*list).elements.add(place)).oid_value;
                let index = pg_sys::index_open(id, pg_sys::RowExclusiveLock as i32);
                let has_entries = (*(*index).rd_rel).relam != pg_sys::BRIN_AM_OID;
                match (*(*index).rd_index).indisvalid && has_entries {
                    true => indexes.push(index),
                    false => pg_sys::index_close(index, pg_sys::NoLock as i32),
                }
            }
        }
        CheckedIndexes { table, indexes }
    }

    /// The indexes, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = CheckedIndex<'_>> {
        self.indexes.iter().map(|&index| CheckedIndex {
            table: self.table,
            index,
        })
    }
}

impl Drop for CheckedIndexes<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for &index in &self.indexes {
                // SAFETY: opened by `open`.
                unsafe { pg_sys::index_close(index, pg_sys::NoLock as i32) }
            }
        }
    }
}

/// A function that takes the tuple id of each entry.
type Visit<'f> = &'f mut dyn FnMut(&pg_sys::ItemPointerData);

impl<'a> CheckedIndex<'a> {
    /// The name of the index.
    pub fn name(&self) -> String {
        OpenTable::new(self.index).name()
    }

    /// Whether the index has an entry. Only access methods that a scan need not give a key of the first column have to
    /// keep NULLs of that column.
    pub fn has(&self, entry: &Entry) -> bool {
        // SAFETY: the index is open.
        let keeps_nulls = unsafe { (*(*self.index).rd_indam).amoptionalkey };
        keeps_nulls || !entry.begins_with_null()
    }

    /// Calls `visit` with the tuple id of each entry, in the index's own order. Index access methods of every kind
    /// read all entries for VACUUM alone, so this asks as VACUUM does, and removes nothing.
    pub fn visit_entries(&self, mut visit: impl FnMut(&pg_sys::ItemPointerData)) {
        let mut visit: Visit<'_> = &mut visit;
        // SAFETY: an open index; the callback's state lives during the call.
        unsafe {
            let mut info = pg_sys::IndexVacuumInfo {
                index: self.index,
                message_level: pg_sys::DEBUG2 as i32,
                num_heap_tuples: f64::from((*(*self.table.as_ptr()).rd_rel).reltuples),
                estimated_count: true,
                strategy: std::ptr::null_mut(),
                #[cfg(not(feature = "pg15"))]
                heaprel: self.table.as_ptr(),
                ..Default::default()
            };
            let (none, state) = (std::ptr::null_mut(), (&raw mut visit).cast::<c_void>());
            let stats = pg_sys::index_bulk_delete(&raw mut info, none, Some(keep_entry), state);
            if !stats.is_null() {
                pg_sys::pfree(stats.cast());
            }
        }
    }

    /// Computes entries from rows.
    pub fn maker(&self) -> EntryMaker<'a> {
        // SAFETY: the index is open for as long as the value lives.
        unsafe { EntryMaker::begin(self.table, self.index, pg_sys::BuildIndexInfo(self.index)) }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn keep_entry(id: pg_sys::ItemPointer, state: *mut c_void) -> bool {
    // SAFETY: `visit_entries` passes the state, which lives; the id is the index's.
    unsafe {
        let visit: &mut Visit<'_> = &mut *state.cast::<Visit<'_>>();
        visit(&*id);
    }
    false
}

/// Runs `work` as the owner of a table, who wrote the expressions of its indexes, and without a way back to the
/// caller's rights. An ERROR restores them too, with the transaction or subtransaction that it ends.
pub fn as_owner<T>(table: OpenTable<'_>, work: impl FnOnce() -> T) -> T {
    // SAFETY: plain state of the backend; the table is open.
    unsafe {
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        pg_sys::SetUserIdAndSecContext((*(*table.as_ptr()).rd_rel).relowner, restricted);
        let level = pg_sys::NewGUCNestLevel();
        let result = work();
        pg_sys::AtEOXact_GUC(false, level);
        pg_sys::SetUserIdAndSecContext(user, context);
        result
    }
}
