//! `LanesTopN`: from sort keys to path to plan.
//!
//! The path is one of the table, with path keys: like that of an index it gives all rows in order, so stock nodes may
//! stand above it (Limit, Incremental Sort for further keys, Merge Append for partitions, Nested Loop). It is offered
//! only to queries with a LIMIT, and its cost grows with the passes that more rows take.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::require::About;
use super::row_plan::RowPlan;
use super::sort_key::{self, OrderedBy};
use super::state::Static;
use super::translate::Translator;
use super::{offer, require, top_n_state};
use crate::pg::{nodes, ports};

/// The name of the node.
pub const NAME: &CStr = c"LanesTopN";

/// Rows that the first pass keeps at least.
const FIRST_PASS_MIN: f64 = 64.0;
/// By how much a pass keeps more than the one before it.
pub const PASS_GROWTH: usize = 8;

static PATH: Static<pg_sys::CustomPathMethods> = Static(pg_sys::CustomPathMethods {
    CustomName: NAME.as_ptr(),
    PlanCustomPath: Some(plan),
    ReparameterizeCustomPathByChild: None,
});

static PLAN: Static<pg_sys::CustomScanMethods> = Static(pg_sys::CustomScanMethods {
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
/// the quals that are vectorised, `kept` those that are not.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    translator: &mut Translator,
    scan: *mut pg_sys::CustomPath,
    pushed: *mut pg_sys::List,
    kept: *mut pg_sys::List,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*root).query_pathkeys.is_null() || !wants_first_rows(root) {
            return;
        }
        let (mut keys, refusal) =
            sort_key::of_path_keys(translator, relation, (*root).query_pathkeys);
        if !kept.is_null() {
            keys.truncate(sort_key::leading_columns(&keys));
        }
        if keys.is_empty() {
            let reason = refusal.unwrap_or_else(|| "an expression before a qual".into());
            require::note(
                root,
                (*relation).relid,
                About::Reading,
                format!("order: {reason}"),
            );
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
        let flags = nodes::list::<pg_sys::Integer>(list(3));
        let keys = nodes::list::<pg_sys::Node>(list(2)).zip(flags);
        let key = |(expression, flags): (_, *mut pg_sys::Integer)| OrderedBy {
            expression,
            order: sort_key::of_flags((*flags).ival),
        };
        let scan = nodes::make::<pg_sys::CustomScan>(pg_sys::NodeTag::T_CustomScan);
        (*scan).scan.plan.targetlist = target;
        (*scan).scan.scanrelid = (*relation).relid;
        (*scan).flags = (*path).flags;
        let remembered = RowPlan {
            first_pass: (*ports::list_nth::<pg_sys::Integer>(private, 0)).ival,
            pushed,
            kept,
            groups: Vec::new(),
            keys: keys.map(key).collect(),
            reasons: require::reason_list(root, (*relation).relid, None),
        };
        remembered.write(scan);
        (*scan).methods = &raw const PLAN.0;
        scan.cast()
    }
}
