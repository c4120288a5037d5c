//! What was computed about a relation's quals, remembered until the planner's memory is freed.
//!
//! The memo is keyed by the relation's address. A callback of the planner's memory context drops the entry before the
//! address can be used again.

use std::cell::RefCell;
use std::collections::HashMap;

use pgrx::pg_sys;

use super::planner::{PlannerInfo, RelOptInfo, RestrictInfo};
use super::view::{View, plan_node};
use crate::pg::hooks;

/// The quals of a relation, and a flag about them.
type Memo = (Vec<*mut pg_sys::RestrictInfo>, bool);

thread_local! {
    static MEMOS: RefCell<HashMap<usize, Memo>> = RefCell::default();
}

/// The quals and the flag that were [`put`] for a relation.
pub fn get<'p>(relation: RelOptInfo<'p>) -> Option<(Vec<RestrictInfo<'p>>, bool)> {
    MEMOS.with_borrow(|memos| {
        let (quals, flag) = memos.get(&(relation.as_ptr() as usize))?;
        // The quals are the relation's own, so they live as long as it does.
        let quals = quals.iter().map(|qual| plan_node(*qual));
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
    // Relations of tables are allocated in the planner's context.
    hooks::on_reset(root.planner_cxt(), forget, key);
    let quals = quals.iter().map(|qual| qual.as_ptr()).collect();
    MEMOS.with_borrow_mut(|memos| memos.insert(key, (quals, flag)));
}

/// Drops the memo of a relation. Raises nothing, because contexts are also reset during an abort.
fn forget(relation: usize) {
    let _ = MEMOS.try_with(|memos| {
        if let Ok(mut memos) = memos.try_borrow_mut() {
            memos.remove(&relation);
        }
    });
}
