//! Serializable isolation: what was read, and conflicts with those who write it.

use pgrx::pg_sys::{self, ItemPointerData};

use crate::pg::functions::{Place, process, unbound_functions};
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

unbound_functions! {
    /// This transaction is about to write a row, or a relation, whose row is none.
    fn CheckForSerializableConflictIn(
        table: OpenTable<'_> as pg_sys::Relation,
        row: Option<Place<'_, ItemPointerData>> as pg_sys::ItemPointer,
        block: u32 as pg_sys::BlockNumber,
    );

    /// This transaction read around a row that a transaction wrote.
    fn CheckForSerializableConflictOut(
        table: OpenTable<'_> as pg_sys::Relation,
        xid: u32 as u32,
        snapshot: Snapshot<'_> as pg_sys::Snapshot,
    );

    /// Whether scans under a snapshot must report the writers that they do not see.
    fn CheckForSerializableConflictOutNeeded(
        table: OpenTable<'_> as pg_sys::Relation,
        snapshot: Snapshot<'_> as pg_sys::Snapshot,
    ) -> bool as bool;

    /// This scan reads the whole relation.
    fn PredicateLockRelation(
        table: OpenTable<'_> as pg_sys::Relation,
        snapshot: Snapshot<'_> as pg_sys::Snapshot,
    );

    /// This transaction reads a row, which a transaction wrote.
    fn PredicateLockTID(
        table: OpenTable<'_> as pg_sys::Relation,
        row: Place<'_, ItemPointerData> as pg_sys::ItemPointer,
        snapshot: Snapshot<'_> as pg_sys::Snapshot,
        inserter: u32 as u32,
    );
}

/// This transaction is about to write the relation, or a row of it.
#[inline]
pub fn check_conflict_in(table: OpenTable<'_>, mut row: Option<ItemPointerData>) {
    if process::XactIsoLevel() != pg_sys::XACT_SERIALIZABLE as i32 {
        // Other transactions keep no record of what they read, and the check would return at once.
        return;
    }
    let block = row.map_or(pg_sys::InvalidBlockNumber, |id| {
        u32::from(id.ip_blkid.bi_hi) << 16 | u32::from(id.ip_blkid.bi_lo)
    });
    CheckForSerializableConflictIn(table, row.as_mut().map(Place), block);
}
