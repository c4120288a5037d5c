//! The names of the nodes, by which paths are known without their code.

use std::ffi::CStr;

use pgrx::pg_sys;

/// The node of nodes/asof.
pub const ASOF_JOIN: &CStr = c"LanesAsofJoin";
/// The node of nodes/hash_join that returns joined rows.
pub const HASH_JOIN: &CStr = c"LanesHashJoin";
/// The node of nodes/time_join.
pub const TIME_JOIN: &CStr = c"LanesTimeJoin";

/// Whether a path becomes the node of this name.
///
/// # Safety
/// A live path.
pub unsafe fn is_path_of(path: *const pg_sys::CustomPath, name: &CStr) -> bool {
    // SAFETY: the caller's live path; every path has methods with a name.
    unsafe { CStr::from_ptr((*(*path).methods).CustomName) == name }
}
