//! Indexes whose entries are compared with the rows of their table.

use pgrx::pg_sys;

use super::functions::{Place, process, relation};
use super::index::{self, Entry, EntryMaker};
use super::table::OpenTable;

/// The valid indexes of a table that have an entry for each row, open.
pub struct CheckedIndexes<'a> {
    table: OpenTable<'a>,
    indexes: Vec<OpenTable<'a>>,
}

/// One of them.
pub struct CheckedIndex<'a> {
    table: OpenTable<'a>,
    index: OpenTable<'a>,
}

impl<'a> CheckedIndexes<'a> {
    /// Opens the indexes that queries may use, but for those that summarise ranges of rows. The caller holds the
    /// lock on the table that VACUUM takes.
    pub fn open(table: OpenTable<'a>) -> CheckedIndexes<'a> {
        let mut indexes = Vec::new();
        for id in relation::RelationGetIndexList(table).iter() {
            let index = relation::index_open(id, pg_sys::RowExclusiveLock as i32);
            let has_entries = index.access_method() != pg_sys::BRIN_AM_OID;
            match index.is_valid_index() && has_entries {
                true => indexes.push(index),
                false => relation::index_close(index, pg_sys::NoLock as i32),
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
                relation::index_close(index, pg_sys::NoLock as i32);
            }
        }
    }
}

impl<'a> CheckedIndex<'a> {
    /// The name of the index.
    pub fn name(&self) -> String {
        self.index.name()
    }

    /// Whether the index has an entry. Only access methods that a scan need not give a key of the first column have to
    /// keep NULLs of that column.
    pub fn has(&self, entry: &Entry) -> bool {
        self.index.keeps_nulls_of_first_column() || !entry.begins_with_null()
    }

    /// Calls `visit` with the tuple id of each entry, in the index's own order. Index access methods of every kind
    /// read all entries for VACUUM alone, so this asks as VACUUM does, and removes nothing.
    pub fn visit_entries(&self, mut visit: impl FnMut(&pg_sys::ItemPointerData)) {
        index::visit_entries(self.table, self.index, &mut |id| {
            visit(id);
            false
        });
    }

    /// Computes entries from rows.
    pub fn maker(&self) -> EntryMaker<'a> {
        EntryMaker::begin(self.table, self.index, relation::BuildIndexInfo(self.index))
    }
}

/// Runs `work` as the owner of a table, who wrote the expressions of its indexes, and without a way back to the
/// caller's rights. An ERROR restores them too, with the transaction or subtransaction that it ends.
pub fn as_owner<T>(table: OpenTable<'_>, work: impl FnOnce() -> T) -> T {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    process::GetUserIdAndSecContext(Place(&mut user), Place(&mut context));
    let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
    process::SetUserIdAndSecContext(table.owner(), restricted);
    let level = process::NewGUCNestLevel();
    let result = work();
    process::AtEOXact_GUC(false, level);
    process::SetUserIdAndSecContext(user, context);
    result
}
