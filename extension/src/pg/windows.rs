//! Conditions on the results of window functions that the planner leaves to the node that computes them. PostgreSQL 15
//! and 16 keep them with the window. From 17 on they are with the function, and the node is not offered.

use pgrx::pg_sys;

/// The conditions of a window, over its functions.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn run_conditions(window: *mut pg_sys::WindowClause) -> Vec<*mut pg_sys::Node> {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: the caller's window is live.
    unsafe {
        super::nodes::list((*window).runCondition).collect()
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        let _ = window;
        Vec::new()
    }
}

/// Whether a function has conditions of its own.
pub fn has_run_condition(call: &pg_sys::WindowFunc) -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        let _ = call;
        false
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        !call.runCondition.is_null()
    }
}
