//! What indexes need from their table, as a trait.

use std::ops::Range;

use pgrx::pg_sys;

use super::scan::ScanAccess;
use crate::pg::index::{Deletion, EntryMaker, EntrySink, FoundEntries};
use crate::pg::slot::Slot;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

/// The rows of index entries, and the entries of rows.
pub trait IndexAccess: 'static {
    /// The scans of the table.
    type Scan: ScanAccess;
    /// The fetches of one index scan under an MVCC snapshot.
    type Fetch: 'static;

    /// Begins to fetch rows under an MVCC snapshot.
    fn begin_fetch(table: OpenTable<'static>) -> Self::Fetch;

    /// Stores the row of an index entry in a slot, if the MVCC snapshot sees it.
    fn fetch(
        fetch: &mut Self::Fetch,
        id: &pg_sys::ItemPointerData,
        snapshot: Snapshot<'static>,
        slot: Slot<'static>,
    ) -> Found;

    /// Stores the row of an index entry in a slot, if a snapshot that is not MVCC sees it now. `horizon` returns the
    /// oldest transaction that may be invisible to some snapshot.
    fn fetch_current<'a>(
        table: OpenTable<'a>,
        id: &pg_sys::ItemPointerData,
        snapshot: Snapshot<'a>,
        slot: Slot<'a>,
        horizon: impl FnMut() -> u32,
    ) -> Found;

    /// Chooses the index entries that may be deleted. An index passes a list of entries that it would like to delete.
    /// This function removes the entries from the list whose rows some snapshot may still see. Returns the newest
    /// transaction that wrote or deleted the row of an entry that stays in the list.
    fn delete_entries(table: OpenTable<'_>, entries: &mut Deletion) -> pg_sys::TransactionId;

    /// Refuses an index that the table cannot have.
    fn check_index(table: OpenTable<'_>, is_brin: bool);

    /// Passes the entries of rows to an index that is being built. Returns how many of the rows are alive.
    fn build(
        table: OpenTable<'static>,
        rows: IndexedRows<'_, Self::Scan>,
        build: IndexBuild<'_>,
    ) -> f64;

    /// Makes the entries that are missing for rows that the snapshot sees.
    fn complete<'a>(
        table: OpenTable<'a>,
        snapshot: Snapshot<'a>,
        maker: &mut EntryMaker<'a>,
        found: &mut FoundEntries<'_>,
    );
}

/// The result of a fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Row,
    /// The snapshot does not see the row.
    Nothing,
    /// Nobody will see the row again.
    Gone,
}

/// The rows that become entries of an index.
pub enum IndexedRows<'b, S> {
    /// The rows that one process of a parallel build scans.
    Scanned(&'b mut S),
    /// The rows with ids in some blocks: visible, deleted and aborted ones.
    Blocks(Range<u64>),
    /// The rows that a snapshot sees; `None` stands for all rows: visible, deleted and aborted ones.
    Seen(Option<Snapshot<'static>>),
}

/// An index that is being built.
pub struct IndexBuild<'b> {
    pub maker: &'b mut EntryMaker<'static>,
    pub sink: &'b EntrySink,
    /// Whether the index is a BRIN.
    pub is_brin: bool,
    /// Whether others write to the table meanwhile.
    pub is_concurrent: bool,
    /// Whether `pg_stat_progress_create_index` shows the progress.
    pub is_reported: bool,
}
