//! Tables that a query reads.

use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;

use super::memory::ValueLayout;
use super::slot::Slot;
use crate::pg::datum::{self, Outlet};
use crate::pg::descriptor::Descriptor;
use crate::pg::executor::TableScan;
use crate::pg::functions::{Null, executor as functions};
use crate::pg::snapshot::Snapshot;
use crate::pg::table::{OpenTable, OpenedTable};

/// A table that is open until the node ends, and the query's snapshot.
#[derive(Clone, Copy)]
pub struct QueryTable {
    table: OpenTable<'static>,
    snapshot: Option<Snapshot<'static>>,
}

impl QueryTable {
    /// A table that is open and locked, and a snapshot that is registered, as long as the handle and its copies are
    /// used.
    pub fn new(table: OpenTable<'static>, snapshot: Option<Snapshot<'static>>) -> QueryTable {
        QueryTable { table, snapshot }
    }

    /// The open table, and the query's snapshot, if it has one. Both are used as long as the handle at most.
    pub fn open<'a>(self) -> (OpenTable<'a>, Option<Snapshot<'a>>) {
        (self.table, self.snapshot)
    }

    /// The kinds of the table's columns.
    pub fn kinds(self) -> Vec<LaneKind> {
        datum::kinds(self.descriptor())
    }

    /// How the values of the table's columns become datums.
    pub fn outlets(self) -> Vec<Outlet> {
        let descriptor = self.descriptor();
        datum::outlets(descriptor, &datum::kinds(descriptor))
    }

    /// The table's object id.
    pub fn oid(self) -> pg_sys::Oid {
        self.table.oid()
    }

    /// The table's columns.
    pub fn descriptor(self) -> Descriptor<'static> {
        self.table.descriptor()
    }

    /// How many attributes the table has, dropped ones included.
    pub fn width(self) -> usize {
        self.descriptor().len()
    }

    /// A virtual slot for rows of the table, in the current memory context. Its descriptor is a copy, which needs no
    /// resource owner.
    pub fn new_slot(self) -> Slot {
        functions::virtual_slot(functions::CreateTupleDescCopy(self.descriptor()))
    }

    /// A virtual slot for rows of these columns of the table, counted from 1, in the current memory context.
    pub fn new_slot_of(self, columns: &[i16]) -> Slot {
        let descriptor = functions::CreateTemplateTupleDesc(columns.len() as i32);
        for (place, &column) in (1..).zip(columns) {
            functions::TupleDescCopyEntry(descriptor, place, self.descriptor(), column);
        }
        functions::virtual_slot(descriptor)
    }

    /// How values of an attribute, counted from 0, are passed.
    pub fn layout(self, attribute: usize) -> ValueLayout {
        let attribute = self.descriptor().attribute(attribute);
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
    pub fn open(table: pg_sys::Oid, snapshot: Option<Snapshot<'static>>) -> OwnTable {
        let table = OpenedTable::open_until_close(table, pg_sys::AccessShareLock);
        OwnTable(QueryTable { table, snapshot })
    }

    /// The table, until it is [closed](Self::close).
    pub fn table(&self) -> QueryTable {
        self.0
    }

    /// Closes the table. After an ERROR the resource owner does it.
    pub fn close(self) {
        self.0.table.close();
    }
}

/// A scan of all visible rows of a table, slot by slot. It owns nothing that needs dropping, so an ERROR may jump
/// over it.
#[derive(Clone, Copy)]
pub struct SlotScan {
    table: OwnTable,
    scan: TableScan,
    slot: Slot,
}

impl SlotScan {
    /// Begins a scan. `None`: the table has no storage to scan.
    pub fn begin(table: OwnTable) -> Option<SlotScan> {
        let (opened, snapshot) = table.table().open();
        let slot = functions::table_slot_create(opened, Null);
        let Some(scan) = TableScan::begin(opened, snapshot) else {
            slot.free();
            table.close();
            return None;
        };
        Some(SlotScan { table, scan, slot })
    }

    /// The next row, which is valid until the one after it; `None` at the end. An ERROR jumps.
    #[inline]
    pub fn next_row(self) -> Option<Slot> {
        self.scan.next(self.slot).then_some(self.slot)
    }

    /// Ends the scan.
    pub fn end(self) {
        self.scan.end();
        self.slot.free();
        self.table.close();
    }
}
