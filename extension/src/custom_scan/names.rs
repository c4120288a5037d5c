//! Names by which code below the nodes recognises their paths.

use std::ffi::CStr;

/// The node of `nodes/asof`.
pub const ASOF_JOIN: &CStr = c"LanesAsofJoin";
/// The node of `nodes/hash_join` that returns joined rows.
pub const HASH_JOIN: &CStr = c"LanesHashJoin";
/// The node of `nodes/time_join`.
pub const TIME_JOIN: &CStr = c"LanesTimeJoin";
