//! What was computed about a relation's quals, remembered until the planner's memory is freed.
//!
//! The memo is keyed by the relation's address. A callback of the planner's memory context drops the entry before the
//! address can be used again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;

use pgrx::pg_sys;

use super::planner::{PlannerInfo, RelOptInfo, RestrictInfo};
use super::view::View;

/// The quals of a relation, and a flag about them.
type Memo = (Vec<*mut pg_sys::RestrictInfo>, bool);

thread_local! {
    static MEMOS: RefCell<HashMap<usize, Memo>> = RefCell::default();
}

/// The quals and the flag that were [`put`] for a relation.
pub fn get<'p>(relation: RelOptInfo<'p>) -> Option<(Vec<RestrictInfo<'p>>, bool)> {
    MEMOS.with_borrow(|memos| {
        let (quals, flag) = memos.get(&(relation.as_ptr() as usize))?;
        // SAFETY: the quals are the relation's own, so they live as long as it does.
        let quals = quals.iter().map(|qual| unsafe { RestrictInfo::at(*qual) });
        Some((quals.collect(), *flag))
    })
}

/// Remembers quals of a relation and a flag about them.
pub fn put<'p>(
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    quals: &[RestrictInfo<'p>],
    flag: bool,
) {
    let key = relation.as_ptr() as usize;
    // SAFETY: relations of tables are allocated in the planner's context. PostgreSQL runs the callback, which lies in
    // the same context, when it resets or deletes the context.
    unsafe {
        let context = (*root.as_ptr()).planner_cxt;
        let bytes = size_of::<pg_sys::MemoryContextCallback>();
        let callback: *mut pg_sys::MemoryContextCallback =
            pg_sys::MemoryContextAllocZero(context, bytes).cast();
        (*callback).func = Some(forget);
        (*callback).arg = relation.as_ptr().cast();
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
    }
    let quals = quals.iter().map(|qual| qual.as_ptr()).collect();
    MEMOS.with_borrow_mut(|memos| memos.insert(key, (quals, flag)));
}

/// Drops the memo of a relation. Raises nothing, because contexts are also reset during an abort.
unsafe extern "C-unwind" fn forget(relation: *mut c_void) {
    let _ = MEMOS.try_with(|memos| {
        if let Ok(mut memos) = memos.try_borrow_mut() {
            memos.remove(&(relation as usize));
        }
    });
}
