//! What a scan of a table does, as a trait.
//!
//! ```text
//! begin ──► next, next, …                                        ──► end
//!           start_bitmap_block, next_of_bitmap, …                     ▲
//!           start_analyzed_block, next_analyzed, …                    │
//!           next_sampled_block, next_sampled, …  ──► restart, … ──────┘
//! ```
//! A scan that has ended is dropped with the memory context that it was begun in, and so is the scan of a query that
//! fails.

use pgrx::pg_sys;

use crate::pg::slot::Slot;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

/// A scan under way, of one process. An implementation keeps nothing that it gets for longer than the scan lives.
pub trait ScanAccess: Sized + 'static {
    /// The state that all processes of a parallel scan share.
    type Shared: Default + Sync;

    /// Begins a scan.
    fn begin(start: ScanStart<Self::Shared>) -> Self;

    /// Releases what the scan holds. The table is open.
    fn end(&mut self, table: OpenTable<'_>);

    /// Starts over, with the present rows of the table.
    fn restart(&mut self);

    /// Makes what is shared ready for a rescan. No participant is scanning.
    fn restart_shared(shared: &Self::Shared);

    /// Restricts the scan to the rows between two tuple ids, both included.
    fn set_bounds(&mut self, from: &pg_sys::ItemPointerData, to: &pg_sys::ItemPointerData);

    /// Stores the next row in the direction in the slot; false at the end.
    fn next(&mut self, forward: bool, slot: Slot<'static>) -> bool;

    /// Whether a tuple id may be that of a row of the table.
    fn has_id(&mut self, id: &pg_sys::ItemPointerData) -> bool;

    /// Begins with a block of a bitmap: the next rows are those that have these offsets in the block. `None` stands for
    /// all offsets of the block.
    fn start_bitmap_block(&mut self, block: u32, offsets: Option<&[u16]>);

    /// Stores the next row of the bitmap's block in the slot; false at the end of the block.
    fn next_of_bitmap(&mut self, slot: Slot<'static>) -> bool;

    /// Moves to a block that ANALYZE samples.
    fn start_analyzed_block(&mut self, block: u32);

    /// Stores the next live row of ANALYZE's block in the slot; false at its end. The block's live and dead rows are
    /// added to the counts.
    fn next_analyzed(&mut self, live: &mut f64, dead: &mut f64, slot: Slot<'static>) -> bool;

    /// Moves to the next block that the method of TABLESAMPLE picks by the number of blocks; false: there is none. The
    /// method may leave the choice of blocks to the scan.
    fn next_sampled_block(&mut self, pick: Option<impl Fn(u32) -> u32>) -> bool;

    /// Stores the block's next row that the method of TABLESAMPLE picks, by block and number of rows; false at the
    /// block's end.
    fn next_sampled(&mut self, pick: impl Fn(u32, u16) -> u16, slot: Slot<'static>) -> bool;
}

/// How a scan begins.
pub struct ScanStart<S: 'static> {
    pub table: OpenTable<'static>,
    /// The snapshot whose rows the scan returns; `None` stands for all rows.
    pub snapshot: Option<Snapshot<'static>>,
    /// The state that all processes of a parallel scan share; `None` stands for a scan by one process.
    pub shared: Option<&'static S>,
    pub purpose: ScanPurpose,
}

/// The kind of statement that a scan serves, as `ScanOptions` of PostgreSQL.
#[derive(Clone, Copy)]
pub struct ScanPurpose(u32);

impl ScanPurpose {
    /// The purpose in PostgreSQL's terms.
    pub fn new(flags: u32) -> ScanPurpose {
        ScanPurpose(flags)
    }

    fn is_any(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    /// Whether the scan reads the whole table, as far as predicate locks are concerned.
    pub fn reads_all(self) -> bool {
        self.is_any(
            pg_sys::ScanOptions::SO_TYPE_SEQSCAN
                | pg_sys::ScanOptions::SO_TYPE_SAMPLESCAN
                | pg_sys::ScanOptions::SO_TYPE_TIDRANGESCAN,
        )
    }

    /// Whether this is a sequential scan.
    pub fn is_sequential(self) -> bool {
        self.is_any(pg_sys::ScanOptions::SO_TYPE_SEQSCAN)
    }

    /// Whether the query names rows by their ids.
    pub fn names_rows(self) -> bool {
        self.is_any(pg_sys::ScanOptions::SO_TYPE_TIDSCAN)
    }
}
