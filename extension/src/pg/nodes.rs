//! Lists of plans, as raw pointers, for callers that have no view yet.

use pgrx::pg_sys;

use super::ports;

/// The elements of a list of pointers. A null list has none.
///
/// # Safety
/// `list` is null or live as long as the iterator is used, and holds pointers to `T`.
pub unsafe fn list<T>(list: *const pg_sys::List) -> impl Iterator<Item = *mut T> {
    // SAFETY: the caller's promise.
    let length = unsafe { ports::list_length(list) };
    // SAFETY: as above.
    (0..length).map(move |index| unsafe { ports::list_nth(list, index) })
}

/// The elements of a list of pointers that a plan under execution contains, or of a copy of such a list.
pub fn plan_list<T>(list: *const pg_sys::List) -> impl Iterator<Item = *mut T> {
    // SAFETY: a plan and its lists live until its execution has ended.
    unsafe { self::list(list) }
}
