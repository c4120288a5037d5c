//! Lists of plans, for callers that hold them as pointers.

use pgrx::pg_sys;

use super::tree::{Expr, List, View, plan_field};

/// The elements of a list of nodes that a plan under execution contains, or of a copy of such a list.
pub fn plan_list(list: *const pg_sys::List) -> impl Iterator<Item = *mut pg_sys::Node> {
    let list: List<'_, Expr<'_>> = plan_field(list.cast_mut());
    list.iter().map(View::as_ptr)
}
