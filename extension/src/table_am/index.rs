//! What indexes need from lanes tables: rows for index scans, building, and the deletion of entries.

use pgrx::pg_sys;

use super::routine::LanesTable;
use super::scan::LanesScan;
use crate::pg::access::{Found, IndexAccess, IndexBuild, IndexedRows};
use crate::pg::index::{Deletion, EntryMaker, FoundEntries};
use crate::pg::slot::Slot;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::transaction;
use crate::table::fate;
use crate::table::index_build::{self, EntryOrder};
use crate::table::index_fetch::{self, IndexFetch};
use crate::table::scan::Scan;
use crate::table::tid::BLOCK_ROWS;
use crate::table_options;

impl IndexAccess for LanesTable {
    type Scan = LanesScan;
    type Fetch = IndexFetch<'static>;

    fn begin_fetch(table: OpenTable<'static>) -> IndexFetch<'static> {
        IndexFetch::begin(table)
    }

    fn fetch(
        fetch: &mut IndexFetch<'static>,
        id: &pg_sys::ItemPointerData,
        snapshot: Snapshot<'static>,
        slot: Slot<'static>,
    ) -> Found {
        fetch.fetch(id, snapshot, slot)
    }

    fn fetch_current<'a>(
        table: OpenTable<'a>,
        id: &pg_sys::ItemPointerData,
        snapshot: Snapshot<'a>,
        slot: Slot<'a>,
        horizon: impl FnMut() -> u32,
    ) -> Found {
        index_fetch::fetch_current(table, id, snapshot, slot, horizon)
    }

    fn delete_entries(table: OpenTable<'_>, entries: &mut Deletion) -> pg_sys::TransactionId {
        let horizon = table.oldest_non_removable_xid();
        match entries.retain(fate::gone_entries(table, horizon)) {
            0 => pg_sys::InvalidTransactionId,
            // All that deleted or wrote these rows is older.
            _ => transaction::before(horizon).into(),
        }
    }

    fn check_index(table: OpenTable<'_>, is_brin: bool) {
        check(table.oid(), is_brin);
    }

    fn build(
        table: OpenTable<'static>,
        rows: IndexedRows<'_, LanesScan>,
        build: IndexBuild<'_>,
    ) -> f64 {
        let IndexBuild { maker, sink, .. } = build;
        let order = match build.is_brin {
            true => EntryOrder::Numbers,
            false => EntryOrder::Any,
        };
        let of_scan = |maker, scan: &mut Scan<'static>| {
            let sees_all = !build.is_concurrent;
            index_build::build(scan, sees_all, order, maker, sink, build.is_reported)
        };
        match rows {
            IndexedRows::Scanned(scan) => of_scan(maker, scan.scan()),
            IndexedRows::Blocks(blocks) => {
                let numbers = blocks.start * BLOCK_ROWS..blocks.end * BLOCK_ROWS;
                index_build::build_range(&mut Scan::begin(table, None), numbers, maker, sink)
            }
            IndexedRows::Seen(snapshot) => of_scan(maker, &mut Scan::begin(table, snapshot)),
        }
    }

    fn complete<'a>(
        table: OpenTable<'a>,
        snapshot: Snapshot<'a>,
        maker: &mut EntryMaker<'a>,
        found: &mut FoundEntries<'_>,
    ) {
        index_build::complete(table, snapshot, maker, found);
    }
}

/// Refuses an index that a lanes table cannot have.
pub fn check(table: pg_sys::Oid, is_brin: bool) {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    if is_brin {
        super::refuse::brin();
    }
    #[cfg(not(any(feature = "pg17", feature = "pg18")))]
    let _ = is_brin;
    if table_options::of(table).dedup {
        table_options::refuse_index_with_dedup();
    }
}
