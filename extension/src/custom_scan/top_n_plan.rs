//! `LanesTopN`: from sort keys to path to plan, and what the plan remembers.
//!
//! The path is one of the table, with path keys: like that of an index it gives all rows in order, so stock nodes may
//! stand above it (Limit, Incremental Sort for further keys, Merge Append for partitions, Nested Loop). It is offered
//! only to queries with a LIMIT, and its cost grows with the passes that more rows take.
//!
//! | custom_private | custom_exprs |
//! |---|---|
//! | rows that a first pass should keep, pushed quals, kept quals, flags a key, reasons | pushed quals, kept quals, keys |

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::sort_key::{self, OrderedBy};
use super::translate::Translator;
use super::{offer, require, top_n_state};
use crate::pg::{nodes, ports};

/// The name of the node.
pub const NAME: &CStr = c"LanesTopN";

/// Rows that the first pass keeps at least.
const FIRST_PASS_MIN: f64 = 64.0;
/// By how much a pass keeps more than the one before it.
pub const PASS_GROWTH: usize = 8;

struct Methods<T>(T);
// SAFETY: the tables hold pointers to static strings and functions only.
unsafe impl<T> Sync for Methods<T> {}

static PATH: Methods<pg_sys::CustomPathMethods> = Methods(pg_sys::CustomPathMethods {
    CustomName: NAME.as_ptr(),
    PlanCustomPath: Some(plan),
    ReparameterizeCustomPathByChild: None,
});

static PLAN: Methods<pg_sys::CustomScanMethods> = Methods(pg_sys::CustomScanMethods {
    CustomName: NAME.as_ptr(),
    CreateCustomScanState: Some(top_n_state::create),
});

/// Makes the node known by name.
pub fn register() {
    // SAFETY: a static table.
    unsafe { pg_sys::RegisterCustomScanMethods(&raw const PLAN.0) };
}

/// Whether a query wants the first rows only, and gets them as the table has them.
unsafe fn wants_first_rows(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the planner's live structures.
    unsafe {
        let query = &*(*root).parse;
        let limit = query.limitCount;
        let is_limited = !limit.is_null()
            && ((*limit).type_ != pg_sys::NodeTag::T_Const
                || !(*limit.cast::<pg_sys::Const>()).constisnull)
            && query.limitOption != pg_sys::LimitOption::LIMIT_OPTION_WITH_TIES;
        is_limited
            && query.commandType == pg_sys::CmdType::CMD_SELECT
            && query.groupClause.is_null()
            && query.groupingSets.is_null()
            && query.distinctClause.is_null()
            && query.rowMarks.is_null()
            && query.setOperations.is_null()
            && !(query.hasAggs || query.hasWindowFuncs || query.hasTargetSRFs)
    }
}

/// Offers to give the rows of a table in the order that the query wants. `scan` is the path of a plain scan, `pushed`
/// the quals that are vectorised.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    translator: &mut Translator,
    scan: *mut pg_sys::CustomPath,
    pushed: *mut pg_sys::List,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*root).query_pathkeys.is_null() || !wants_first_rows(root) {
            return;
        }
        let (mut keys, refusal) =
            sort_key::of_path_keys(translator, relation, (*root).query_pathkeys);
        let kept = ports::list_length((*relation).baserestrictinfo) - ports::list_length(pushed);
        if kept > 0 {
            // An expression that may fail must not see rows that the kept quals hide.
            let columns = keys
                .iter()
                .take_while(|key| is_column(key.expression))
                .count();
            keys.truncate(columns);
        }
        if keys.is_empty() {
            let reason = refusal.unwrap_or_else(|| "an expression before a qual".into());
            require::note(root, (*relation).relid, format!("order: {reason}"));
            return;
        }
        let limit = (*root).limit_tuples;
        let first_pass = if limit > 0.0 { limit } else { FIRST_PASS_MIN };
        let first_pass = first_pass.clamp(FIRST_PASS_MIN, f64::from(i32::MAX)) as i32;

        let path = nodes::make::<pg_sys::CustomPath>(pg_sys::NodeTag::T_CustomPath);
        (*path).path = (*scan).path;
        let base = &mut (*path).path;
        base.pathkeys =
            pg_sys::list_truncate(pg_sys::list_copy((*root).query_pathkeys), keys.len() as i32);
        cost(base, relation, first_pass, keys.len());
        let (mut expressions, mut flags) = (std::ptr::null_mut(), std::ptr::null_mut());
        for key in &keys {
            expressions = pg_sys::lappend(expressions, key.expression.cast());
            let flag = pg_sys::makeInteger(sort_key::to_flags(key.order));
            flags = pg_sys::lappend(flags, flag.cast());
        }
        let mut private = std::ptr::null_mut();
        private = pg_sys::lappend(private, pg_sys::makeInteger(first_pass).cast());
        for part in [pushed, expressions, flags] {
            private = pg_sys::lappend(private, part.cast());
        }
        (*path).flags = (*scan).flags;
        (*path).custom_private = private;
        (*path).methods = &raw const PATH.0;
        pg_sys::add_path(relation, path.cast());
    }
}

unsafe fn is_column(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller has a live expression.
    unsafe { (*super::translate::strip(node)).type_ == pg_sys::NodeTag::T_Var }
}

/// From the cost of a plain scan: a pass over the table before the first row, and more of them for more rows.
unsafe fn cost(
    base: &mut pg_sys::Path,
    relation: *mut pg_sys::RelOptInfo,
    first_pass: i32,
    keys: usize,
) {
    // SAFETY: a live relation; settings of this session.
    unsafe {
        let target = (*(*relation).reltarget).cost;
        let operator = pg_sys::cpu_operator_cost;
        let row = pg_sys::cpu_tuple_cost * 0.5 + target.per_tuple;
        let scan = base.total_cost - base.startup_cost - base.rows * row
            + base.rows * keys as f64 * operator * offer::VECTOR_SHARE;
        let row_bytes = f64::from((*(*relation).reltarget).width) + ROW_BYTES;
        let most = (f64::from(pg_sys::work_mem) * 1024.0 / row_bytes).max(FIRST_PASS_MIN);
        let (mut passes, mut pass) = (1.0, f64::from(first_pass).min(most));
        let mut given = pass;
        while given < base.rows && pass < most {
            pass = (pass * PASS_GROWTH as f64).min(most);
            given += pass;
            passes += 1.0;
        }
        passes += ((base.rows - given) / most).max(0.0).ceil();
        let sorting = f64::from(first_pass).min(base.rows).max(2.0);
        let heap = 2.0 * operator * sorting * sorting.log2();
        base.total_cost = base.startup_cost + passes * scan + base.rows * row + heap;
        base.startup_cost += scan + heap;
    }
}

/// What a kept row takes beside its values, about.
const ROW_BYTES: f64 = 150.0;

#[pg_guard]
unsafe extern "C-unwind" fn plan(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    target: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _children: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner's live structures; the path's list is that of `offer`.
    unsafe {
        let private = (*path).custom_private;
        let list = |part| ports::list_nth::<pg_sys::List>(private, part);
        let (mut kept, mut pushed) = (std::ptr::null_mut(), std::ptr::null_mut());
        for clause in nodes::list::<pg_sys::RestrictInfo>(clauses) {
            if (*clause).pseudoconstant {
                continue;
            }
            let list = if pg_sys::list_member_ptr(list(1), clause.cast()) {
                &mut pushed
            } else {
                &mut kept
            };
            *list = pg_sys::lappend(*list, (*clause).clause.cast());
        }
        let integer = |value: i32| pg_sys::makeInteger(value).cast::<std::ffi::c_void>();
        let mut remembered = std::ptr::null_mut();
        remembered = pg_sys::lappend(remembered, ports::list_nth(private, 0));
        remembered = pg_sys::lappend(remembered, integer(ports::list_length(pushed)));
        remembered = pg_sys::lappend(remembered, integer(ports::list_length(kept)));
        remembered = pg_sys::lappend(remembered, list(3).cast());
        let mut reasons = std::ptr::null_mut();
        for reason in require::reasons(root, (*relation).relid) {
            reasons = pg_sys::lappend(reasons, nodes::string(&reason).cast());
        }
        remembered = pg_sys::lappend(remembered, reasons.cast());

        let scan = nodes::make::<pg_sys::CustomScan>(pg_sys::NodeTag::T_CustomScan);
        (*scan).scan.plan.targetlist = target;
        (*scan).scan.scanrelid = (*relation).relid;
        (*scan).flags = (*path).flags;
        (*scan).custom_exprs = pg_sys::list_concat(pg_sys::list_concat(pushed, kept), list(2));
        (*scan).custom_private = remembered;
        (*scan).methods = &raw const PLAN.0;
        scan.cast()
    }
}

/// The plan, taken apart.
pub struct TopNPlan {
    /// Rows that the first pass should keep.
    pub first_pass: usize,
    /// Vectorised quals.
    pub pushed: *mut pg_sys::List,
    /// Quals that are evaluated a row at a time.
    pub kept: *mut pg_sys::List,
    pub keys: Vec<OrderedBy>,
    /// Why quals are not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
}

impl TopNPlan {
    /// # Safety
    /// `scan` was made by `plan`. Lists are made in the current memory context.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> TopNPlan {
        // SAFETY: the caller's promise.
        unsafe {
            let private = (*scan).custom_private;
            let integer = |part| (*ports::list_nth::<pg_sys::Integer>(private, part)).ival;
            let flags = ports::list_nth::<pg_sys::List>(private, 3);
            let expressions = (*scan).custom_exprs;
            let (pushed, kept) = (integer(1), integer(2));
            let part = |from: i32, count: i32| {
                let copy = pg_sys::list_copy_tail(expressions, from);
                pg_sys::list_truncate(copy, count)
            };
            let expressions =
                nodes::list::<pg_sys::Node>(expressions).skip((pushed + kept) as usize);
            let flags = nodes::list::<pg_sys::Integer>(flags);
            let key = |(expression, flags): (_, *mut pg_sys::Integer)| OrderedBy {
                expression,
                order: sort_key::of_flags((*flags).ival),
            };
            TopNPlan {
                first_pass: integer(0) as usize,
                pushed: part(0, pushed),
                kept: part(pushed, kept),
                keys: expressions.zip(flags).map(key).collect(),
                reasons: ports::list_nth(private, 4),
            }
        }
    }
}
