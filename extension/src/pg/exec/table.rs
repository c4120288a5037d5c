//! Tables that a query reads.

use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;

use super::memory::ValueLayout;
use super::slot::Slot;
use crate::pg::datum::Outlet;
use crate::pg::descriptor::Descriptor;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::{datum, executor, ports};

/// A table that is open until the node ends, and the query's snapshot.
#[derive(Clone, Copy)]
pub struct QueryTable {
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
}

impl QueryTable {
    /// # Safety
    /// The relation is open and locked, and the snapshot registered, as long as the handle and its copies are used.
    pub unsafe fn of(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> QueryTable {
        QueryTable { relation, snapshot }
    }

    /// The relation as PostgreSQL's functions take it.
    pub fn relation(self) -> pg_sys::Relation {
        self.relation
    }

    /// The open table, and the query's snapshot, if it has one. Both are used as long as the handle at most.
    pub fn open<'a>(self) -> (OpenTable<'a>, Option<Snapshot<'a>>) {
        // SAFETY: `of` was promised an open relation and a registered snapshot.
        unsafe { (OpenTable::new(self.relation), Snapshot::new(self.snapshot)) }
    }

    /// The kinds of the table's columns.
    pub fn kinds(self) -> Vec<LaneKind> {
        // SAFETY: an open relation has a descriptor.
        datum::kinds(unsafe { Descriptor::new(self.descriptor()) })
    }

    /// How the values of the table's columns become datums.
    pub fn outlets(self) -> Vec<Outlet> {
        // SAFETY: an open relation has a descriptor.
        let descriptor = unsafe { Descriptor::new(self.descriptor()) };
        datum::outlets(descriptor, &datum::kinds(descriptor))
    }

    /// The table's object id.
    pub fn oid(self) -> pg_sys::Oid {
        // SAFETY: `of` was promised an open relation.
        unsafe { (*self.relation).rd_id }
    }

    /// The table's columns.
    pub fn descriptor(self) -> pg_sys::TupleDesc {
        // SAFETY: `of` was promised an open relation.
        unsafe { (*self.relation).rd_att }
    }

    /// How many attributes the table has, dropped ones included.
    pub fn width(self) -> usize {
        // SAFETY: an open relation has a descriptor.
        unsafe { (*self.descriptor()).natts as usize }
    }

    /// A virtual slot for rows of the table, in the current memory context. Its descriptor is a copy, which needs no
    /// resource owner.
    pub fn new_slot(self) -> Slot {
        // SAFETY: the copy lives in the same memory context as the slot.
        unsafe { Slot::of_virtual(pg_sys::CreateTupleDescCopy(self.descriptor())) }
    }

    /// A virtual slot for rows of these columns of the table, counted from 1, in the current memory context.
    pub fn new_slot_of(self, columns: &[i16]) -> Slot {
        // SAFETY: the columns are the table's, and the new descriptor, which lives as long as the slot, has an entry
        // for each.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(columns.len() as i32);
            for (place, &column) in columns.iter().enumerate() {
                let target = place as i16 + 1;
                pg_sys::TupleDescCopyEntry(descriptor, target, self.descriptor(), column);
            }
            Slot::of_virtual(descriptor)
        }
    }

    /// How values of an attribute, counted from 0, are passed.
    pub fn layout(self, attribute: usize) -> ValueLayout {
        assert!(attribute < self.width(), "no such attribute");
        // SAFETY: an open relation's descriptor has the attribute.
        let attribute = unsafe { ports::TupleDescAttr(self.descriptor(), attribute) };
        ValueLayout {
            by_value: attribute.attbyval,
            length: attribute.attlen,
        }
    }
}

/// A table that a node opens itself, because the plan's own scan of it is never executed.
#[derive(Clone, Copy)]
pub struct OwnTable(QueryTable);

impl OwnTable {
    /// Opens a table with the lock that reading it takes. The transaction keeps the lock.
    pub fn open(table: pg_sys::Oid, snapshot: pg_sys::Snapshot) -> OwnTable {
        // SAFETY: the query keeps its snapshot until it ends.
        unsafe {
            let relation = pg_sys::relation_open(table, pg_sys::AccessShareLock as i32);
            OwnTable(QueryTable { relation, snapshot })
        }
    }

    /// The table, until it is [closed](Self::close).
    pub fn table(&self) -> QueryTable {
        self.0
    }

    /// Closes the table. After an ERROR the resource owner does it.
    pub fn close(self) {
        // SAFETY: `open` opened the relation.
        unsafe { pg_sys::relation_close(self.0.relation, pg_sys::NoLock as i32) }
    }
}

/// A scan of all visible rows of a table, slot by slot. It owns nothing that needs dropping, so an ERROR may jump
/// over it.
#[derive(Clone, Copy)]
pub struct SlotScan {
    table: OwnTable,
    scan: pg_sys::TableScanDesc,
    slot: Slot,
}

impl SlotScan {
    /// Begins a scan. `None`: the table has no storage to scan.
    pub fn begin(table: OwnTable) -> Option<SlotScan> {
        let QueryTable { relation, snapshot } = table.table();
        // SAFETY: the relation stays open until `end`, and the snapshot is the query's.
        unsafe {
            let slot = Slot::of(pg_sys::table_slot_create(relation, std::ptr::null_mut()));
            let Some(scan) = executor::begin_scan(relation, snapshot) else {
                slot.free();
                table.close();
                return None;
            };
            Some(SlotScan { table, scan, slot })
        }
    }

    /// The next row, which is valid until the one after it; `None` at the end. An ERROR jumps.
    #[inline]
    pub fn next_row(self) -> Option<Slot> {
        // SAFETY: the scan has not ended, and the slot is of its table.
        unsafe { executor::next(self.scan, self.slot.as_raw()).then_some(self.slot) }
    }

    /// Ends the scan.
    pub fn end(self) {
        // SAFETY: the scan has not ended.
        unsafe { executor::end_scan(self.scan) };
        self.slot.free();
        self.table.close();
    }
}
