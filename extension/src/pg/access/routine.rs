//! The routine table of a table access method.

use pgrx::pg_sys;

use super::index::IndexAccess;
use super::relation::RelationAccess;
use super::rows::RowAccess;
use super::{scan_callbacks as scan, table_callbacks as table};
use crate::pg::table::register_routine;

/// The callbacks of an access method, in a `static`: its address tells which tables are of this access method.
pub struct Routine(pg_sys::TableAmRoutine);

impl Routine {
    /// The callbacks of an access method.
    pub const fn of<A: RowAccess + RelationAccess + IndexAccess>() -> Routine {
        Routine(pg_sys::TableAmRoutine {
            type_: pg_sys::NodeTag::T_TableAmRoutine,
            slot_callbacks: Some(scan::slot_callbacks),
            scan_begin: Some(scan::scan_begin::<A::Scan>),
            scan_end: Some(scan::scan_end::<A::Scan>),
            scan_rescan: Some(scan::scan_rescan::<A::Scan>),
            scan_getnextslot: Some(scan::scan_getnextslot::<A::Scan>),
            scan_set_tidrange: Some(scan::scan_set_tidrange::<A::Scan>),
            scan_getnextslot_tidrange: Some(scan::scan_getnextslot::<A::Scan>),
            parallelscan_estimate: Some(scan::parallelscan_estimate::<A::Scan>),
            parallelscan_initialize: Some(scan::parallelscan_initialize::<A::Scan>),
            parallelscan_reinitialize: Some(scan::parallelscan_reinitialize::<A::Scan>),
            index_fetch_begin: Some(scan::index_fetch_begin::<A>),
            index_fetch_reset: Some(scan::index_fetch_reset),
            index_fetch_end: Some(scan::index_fetch_end::<A>),
            index_fetch_tuple: Some(scan::index_fetch_tuple::<A>),
            tuple_fetch_row_version: Some(table::tuple_fetch_row_version::<A>),
            tuple_tid_valid: Some(scan::tuple_tid_valid::<A::Scan>),
            tuple_get_latest_tid: Some(table::tuple_get_latest_tid::<A>),
            tuple_satisfies_snapshot: Some(table::tuple_satisfies_snapshot::<A>),
            index_delete_tuples: Some(table::index_delete_tuples::<A>),
            tuple_insert: Some(table::tuple_insert::<A>),
            tuple_insert_speculative: Some(table::tuple_insert_speculative::<A>),
            tuple_complete_speculative: Some(table::tuple_complete_speculative::<A>),
            multi_insert: Some(table::multi_insert::<A>),
            tuple_delete: Some(table::tuple_delete::<A>),
            tuple_update: Some(table::tuple_update::<A>),
            tuple_lock: Some(table::tuple_lock::<A>),
            finish_bulk_insert: Some(table::finish_bulk_insert::<A>),
            #[cfg(feature = "pg15")]
            relation_set_new_filenode: Some(table::relation_set_new_file::<A>),
            #[cfg(not(feature = "pg15"))]
            relation_set_new_filelocator: Some(table::relation_set_new_file::<A>),
            relation_nontransactional_truncate: Some(
                table::relation_nontransactional_truncate::<A>,
            ),
            relation_copy_data: Some(table::relation_copy_data::<A>),
            relation_copy_for_cluster: Some(table::relation_copy_for_cluster::<A>),
            relation_vacuum: Some(table::relation_vacuum::<A>),
            scan_analyze_next_block: Some(scan::scan_analyze_next_block::<A::Scan>),
            scan_analyze_next_tuple: Some(scan::scan_analyze_next_tuple::<A::Scan>),
            index_build_range_scan: Some(table::index_build_range_scan::<A>),
            index_validate_scan: Some(table::index_validate_scan::<A>),
            relation_size: Some(table::relation_size::<A>),
            relation_needs_toast_table: Some(table::relation_needs_toast_table),
            relation_toast_am: Some(table::relation_toast_am::<A>),
            relation_fetch_toast_slice: Some(table::relation_fetch_toast_slice::<A>),
            relation_estimate_size: Some(table::relation_estimate_size::<A>),
            #[cfg(not(feature = "pg18"))]
            scan_bitmap_next_block: Some(scan::scan_bitmap_next_block::<A::Scan>),
            scan_bitmap_next_tuple: Some(scan::scan_bitmap_next_tuple::<A::Scan>),
            scan_sample_next_block: Some(scan::scan_sample_next_block::<A::Scan>),
            scan_sample_next_tuple: Some(scan::scan_sample_next_tuple::<A::Scan>),
        })
    }
}

/// Makes the access method's tables recognisable by their routine table. Called from `_PG_init`.
pub fn register(routine: &'static Routine) {
    register_routine(&raw const routine.0);
}

/// The table of callbacks that the access method's handler function returns.
pub fn handler(routine: &'static Routine) -> pg_sys::Datum {
    pg_sys::Datum::from((&raw const routine.0).cast_mut())
}
