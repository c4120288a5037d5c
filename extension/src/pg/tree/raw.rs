//! Functions on raw pointers, for `nodes/window`, which has no views yet.

use pgrx::pg_sys;

use super::walk;

/// Walks an expression, at depth 0, itself included. Whether the visitor ended the walk.
///
/// # Safety
/// A live tree or null.
pub unsafe fn walk_expression(node: *mut pg_sys::Node, visitor: &mut walk::RawVisitor<'_>) -> bool {
    // SAFETY: this function's contract.
    unsafe { walk::walk_expression(node, visitor) }
}

/// A list of nodes.
///
/// # Safety
/// Live nodes.
pub unsafe fn list<T>(elements: &[*mut T]) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    for element in elements {
        // SAFETY: a list of pointers, or none yet.
        list = unsafe { pg_sys::lappend(list, element.cast()) };
    }
    list
}

/// A new node, all zero but for its tag.
///
/// # Safety
/// `T` is the node type of `tag`.
pub unsafe fn make<T>(tag: pg_sys::NodeTag) -> *mut T {
    // SAFETY: this function's contract.
    unsafe { super::tag::zeroed(tag) }
}
