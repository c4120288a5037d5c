//! The quals of a lanes table: in which order they are evaluated, and which of them are vectorised.

use pgrx::pg_sys;

use super::reasons::{self, About};
use crate::expressions::translate::{Scalars, Translator};
use crate::pg::{executor, nodes, ports, tree};

/// Cost of a qual or an aggregate for one row, in units of `cpu_operator_cost`: a vector takes about a thirtieth of
/// what the row-by-row executor takes.
pub const VECTOR_SHARE: f64 = 1.0 / 30.0;

/// Quals in the order in which they are to be evaluated, which is that of the planner's `order_qual_clauses`: by
/// security level, then by cost, then as written; but of one level the engine's own go first, as they cost far less
/// than those that PostgreSQL evaluates, by rows or [by values](crate::expressions::value_quals).
pub unsafe fn quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> Vec<*mut pg_sys::RestrictInfo> {
    // SAFETY: the planner's live structures.
    unsafe {
        let known: *mut pg_sys::List = ports::list_nth(known_of(root, relation), 0);
        nodes::list(known).collect()
    }
}

/// Whether all quals of a lanes table are the engine's.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn has_vector_quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let known: *mut pg_sys::List = ports::list_nth(known_of(root, relation), 1);
        nodes::integers_of(known)[0] != 0
    }
}

/// What is known of the quals of a lanes table: their list in order, and whether all are the
/// engine's. Each join with the table asks for it, so it is found out once a plan. It is kept where a
/// foreign table would keep something of its own: no lanes table is one.
unsafe fn known_of(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> *mut pg_sys::List {
    // SAFETY: the caller has the planner's live structures, which live as long as the relation.
    unsafe {
        if (*relation).fdw_private.is_null() {
            let quals = ordered_quals(root, relation);
            let mut translator = Translator::new(Scalars::Unknown);
            let are_vectorised = quals.iter().all(|qual| {
                !(**qual).pseudoconstant && translator.predicate((**qual).clause.cast()).is_ok()
            });
            // The current context may be one that a search for an order of joins empties.
            let known = executor::in_context((*root).planner_cxt, || {
                let flag = nodes::integers(&[i32::from(are_vectorised)]);
                tree::list(&[tree::list(&quals), flag])
            });
            (*relation).fdw_private = known.cast();
        }
        (*relation).fdw_private.cast()
    }
}

unsafe fn ordered_quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> Vec<*mut pg_sys::RestrictInfo> {
    // SAFETY: the planner's live structures.
    unsafe {
        let mut translator = Translator::new(Scalars::Unknown);
        let mut quals: Vec<_> = nodes::list::<pg_sys::RestrictInfo>((*relation).baserestrictinfo)
            .map(|qual| {
                let mut cost = pg_sys::QualCost::default();
                pg_sys::cost_qual_eval_node(&raw mut cost, qual.cast(), root);
                // A cheap leakproof qual may go before those of lower levels.
                let promoted =
                    (*qual).leakproof && cost.per_tuple < 10.0 * pg_sys::cpu_operator_cost;
                let level = if promoted { 0 } else { (*qual).security_level };
                let before = translator.by_value;
                let is_translated = translator.predicate((*qual).clause.cast()).is_ok();
                let is_slow = !is_translated || translator.by_value > before;
                ((level, is_slow), cost.per_tuple, qual)
            })
            .collect();
        quals.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        quals.into_iter().map(|(_, _, qual)| qual).collect()
    }
}

/// The quals of a table in the order in which they are to be evaluated, those without columns left out.
pub struct Quals {
    /// Those that are vectorised.
    pub pushed: *mut pg_sys::List,
    /// Those that are evaluated a row at a time, after them.
    pub kept: *mut pg_sys::List,
}

/// Tells quals that can be vectorised from those that cannot.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn split_quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    translator: &mut Translator,
) -> Quals {
    // SAFETY: the caller's promise.
    unsafe {
        let index = (*relation).relid;
        let mut pushed: *mut pg_sys::List = std::ptr::null_mut();
        let mut kept: *mut pg_sys::List = std::ptr::null_mut();
        let mut kept_level = u32::MAX;
        for qual in quals(root, relation) {
            if (*qual).pseudoconstant {
                continue;
            }
            let level = (*qual).security_level;
            let asked = translator.by_value;
            match translator.predicate((*qual).clause.cast()) {
                // What PostgreSQL evaluates fails for no row that it would not be evaluated for.
                Ok(_) if translator.by_value > asked && !kept.is_null() && !(*qual).leakproof => {
                    let reason = "qual: evaluated by values, after one that is not vectorised";
                    reasons::note(root, index, About::Reading, reason.into());
                    kept_level = kept_level.min(level);
                }
                // A row that a kept qual of a lower level would hide must not be seen by a leaky one.
                Ok(_) if level <= kept_level || (*qual).leakproof => {
                    pushed = pg_sys::lappend(pushed, qual.cast());
                    continue;
                }
                Ok(_) => {
                    reasons::note(
                        root,
                        index,
                        About::Reading,
                        "qual: not leakproof, behind a barrier".into(),
                    );
                }
                Err(reason) => {
                    reasons::note(root, index, About::Reading, format!("qual: {reason}"));
                    kept_level = kept_level.min(level);
                }
            }
            kept = pg_sys::lappend(kept, qual.cast());
        }
        Quals { pushed, kept }
    }
}
