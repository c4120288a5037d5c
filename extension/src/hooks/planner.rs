//! The planner's hook that rewrites ASOF joins: before planning, when no condition is moved and no outer join reduced yet.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::asof_rewrite::{marker, rewrite};

static mut PREVIOUS: pg_sys::planner_hook_type = None;

/// Installs the hook. Called from `_PG_init`.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(planner);
    }
}

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary: see `planner`.
    #[link_name = "standard_planner"]
    fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const std::ffi::c_char,
        options: i32,
        parameters: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;
}

/// The hook. Errors of planning jump over this frame (see [`crate::hooks::utility`]), so nothing here needs dropping.
unsafe extern "C-unwind" fn planner(
    query: *mut pg_sys::Query,
    text: *const std::ffi::c_char,
    options: i32,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the arguments are the ones we were called with, but for the query, which is it or a copy of it.
    unsafe {
        let query = without_markers(query);
        match PREVIOUS {
            Some(next) => next(query, text, options, parameters),
            None => standard_planner(query, text, options, parameters),
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn without_markers(query: *mut pg_sys::Query) -> *mut pg_sys::Query {
    // SAFETY: a live query.
    unsafe {
        match marker::functions() {
            Some(functions) if rewrite::has_marker(&functions, query) => {
                rewrite::rewritten(&functions, query)
            }
            _ => query,
        }
    }
}
