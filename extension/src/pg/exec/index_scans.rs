//! PostgreSQL's own scans of indexes on lanes tables, adjusted as they begin.
//!
//! An *index-only scan* asks the table whether a row is visible, where heap would look into its visibility map. A lanes
//! table answers that from its directory and its tombstones. So the scan's slot is marked: nobody reads values from it,
//! and none are decoded.
//!
//! A *bitmap scan* must read nothing ahead. Up to PostgreSQL 17 the executor itself asks for the blocks that a bitmap
//! names to be read ahead. The blocks of a lanes table's tuple ids are virtual ones ([`crate::table::tid`]), mostly
//! past the end of its file, and PostgreSQL raises an ERROR where a block lies past the file's last segment of 1 GB.

use std::ffi::c_void;

use pgrx::pg_sys;

use crate::pg::slot;
use crate::pg::table::OpenTable;

unsafe extern "C-unwind" {
    #[cfg_attr(feature = "pg15", link_name = "planstate_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "planstate_tree_walker_impl")]
    fn walk_states(
        state: *mut pg_sys::PlanState,
        visit: Option<unsafe extern "C-unwind" fn(*mut pg_sys::PlanState, *mut c_void) -> bool>,
        argument: *mut c_void,
    ) -> bool;
}

/// Adjusts the scans of an execution that begins. Later runs of an execution, such as FETCH makes, need no second look.
///
/// # Safety
/// `query` has begun to be executed. An ERROR jumps over this frame.
pub unsafe fn adjust(query: *const pg_sys::QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*query).already_executed && !(*query).planstate.is_null() {
            visit((*query).planstate, std::ptr::null_mut());
        }
    }
}

unsafe extern "C-unwind" fn visit(state: *mut pg_sys::PlanState, argument: *mut c_void) -> bool {
    // SAFETY: the walker passes live states, and casts follow tags. The table of a scan is open; that of a scan which
    // is only explained may not be.
    unsafe {
        let is_of_lanes = |scan: *const pg_sys::ScanState| {
            let relation = (*scan).ss_currentRelation;
            !relation.is_null() && OpenTable::new(relation).is_lanes()
        };
        match (*state).type_ {
            #[cfg(not(feature = "pg18"))]
            pg_sys::NodeTag::T_BitmapHeapScanState if is_of_lanes(state.cast()) => {
                (*state.cast::<pg_sys::BitmapHeapScanState>()).prefetch_maximum = 0;
            }
            pg_sys::NodeTag::T_IndexOnlyScanState if is_of_lanes(state.cast()) => {
                slot::leave_out_values(
                    (*state.cast::<pg_sys::IndexOnlyScanState>()).ioss_TableSlot,
                );
            }
            _ => {}
        }
        walk_states(state, Some(visit), argument)
    }
}
