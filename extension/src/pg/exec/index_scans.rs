//! PostgreSQL's own scans of indexes on lanes tables, adjusted as they begin.
//!
//! An *index-only scan* asks the table whether a row is visible, where heap would look into its visibility map. A lanes
//! table answers that from its directory and its tombstones. So the scan's slot is marked: nobody reads values from it,
//! and none are decoded.
//!
//! A *bitmap scan* must read nothing ahead. Up to PostgreSQL 17 the executor itself asks for the blocks that a bitmap
//! names to be read ahead. The blocks of a lanes table's tuple ids are virtual ones ([`crate::table::tid`]), mostly
//! past the end of its file, and PostgreSQL raises an ERROR where a block lies past the file's last segment of 1 GB.

use pgrx::pg_sys;

use super::child::Child;
use super::slot::Slot;
use crate::pg::executor;
use crate::pg::slot;
use crate::pg::table::OpenTable;
use crate::pg::tree::QueryDesc;
use crate::pg::tree::view::views;

views! {
    /// The state of a scan of a table by a bitmap.
    BitmapScan of BitmapHeapScanState {} {} {
        #[cfg(not(feature = "pg18"))]
        set_blocks_ahead = prefetch_maximum: i32;
    }

    /// The state of an index-only scan.
    IndexOnlyScan of IndexOnlyScanState {} {
        table_slot = ioss_TableSlot: Slot;
    } {}

    /// The state of a scan of a table.
    Scan of ScanState {} {
        /// The table is open, but for a scan that is only explained.
        ss_currentRelation: Option<OpenTable<'p>>;
    } {}
}

/// Adjusts the scans of an execution that has begun. Later runs of an execution, such as FETCH makes, need no second
/// look. An ERROR jumps over this frame.
pub fn adjust(query: QueryDesc<'_>) {
    if let Some(root) = query.planstate().filter(|_| !query.already_executed()) {
        executor::walk_plans(root, &mut |plan| {
            adjust_scan(plan);
            false
        });
    }
}

fn adjust_scan(plan: Child) {
    let is_of_lanes = |tag| {
        let table = executor::as_node(plan, tag).and_then(Scan::ss_currentRelation);
        table.is_some_and(OpenTable::is_lanes)
    };
    match plan.tag() {
        #[cfg(not(feature = "pg18"))]
        tag @ pg_sys::NodeTag::T_BitmapHeapScanState if is_of_lanes(tag) => {
            let scan: Option<BitmapScan<'_>> = executor::as_node(plan, tag);
            scan.into_iter().for_each(|scan| scan.set_blocks_ahead(0));
        }
        tag @ pg_sys::NodeTag::T_IndexOnlyScanState if is_of_lanes(tag) => {
            let scan: Option<IndexOnlyScan<'_>> = executor::as_node(plan, tag);
            scan.into_iter()
                .for_each(|scan| slot::leave_out_values(scan.table_slot()));
        }
        _ => {}
    }
}
