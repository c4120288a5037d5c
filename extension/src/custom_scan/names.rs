//! Names by which code below the nodes recognises their paths.

use std::ffi::CStr;

use pgrx::pg_sys;

/// The node of `nodes/asof`.
pub const ASOF_JOIN: &CStr = c"LanesAsofJoin";
/// The node of `nodes/hash_join` that returns joined rows.
pub const HASH_JOIN: &CStr = c"LanesHashJoin";
/// The node of `nodes/time_join`.
pub const TIME_JOIN: &CStr = c"LanesTimeJoin";

/// Whether a path is one of the node with this name.
///
/// # Safety
/// The path is live.
pub unsafe fn is_path_of(path: *const pg_sys::CustomPath, name: &CStr) -> bool {
    // SAFETY: the caller's path is live, and every path has methods with a name.
    unsafe { CStr::from_ptr((*(*path).methods).CustomName) == name }
}
