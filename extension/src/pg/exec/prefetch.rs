//! Prefetching of bitmap scans, which lanes tables must do without.
//!
//! Up to PostgreSQL 17 the executor itself asks for the blocks that a bitmap names to be read ahead. The blocks of a
//! lanes table's tuple ids are virtual ones ([`crate::table::tid`]), mostly past the end of its file, and PostgreSQL
//! raises an ERROR where a block lies past the file's last segment of 1 GB.

#![cfg(not(feature = "pg18"))]

use std::ffi::c_void;

use pgrx::pg_sys;

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

/// Makes the bitmap scans of lanes tables in an execution read nothing ahead. Later runs of an execution, such as FETCH
/// makes, need no second look.
///
/// # Safety
/// `query` has begun to be executed. An ERROR jumps over this frame.
pub unsafe fn stop_for_lanes_tables(query: *const pg_sys::QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*query).already_executed && !(*query).planstate.is_null() {
            visit((*query).planstate, std::ptr::null_mut());
        }
    }
}

unsafe extern "C-unwind" fn visit(state: *mut pg_sys::PlanState, argument: *mut c_void) -> bool {
    // SAFETY: the walker passes live states; a bitmap scan has opened its table.
    unsafe {
        if (*state).type_ == pg_sys::NodeTag::T_BitmapHeapScanState {
            let scan: *mut pg_sys::BitmapHeapScanState = state.cast();
            let relation = (*scan).ss.ss_currentRelation;
            if !relation.is_null() && OpenTable::new(relation).is_lanes() {
                (*scan).prefetch_maximum = 0;
            }
        }
        walk_states(state, Some(visit), argument)
    }
}
