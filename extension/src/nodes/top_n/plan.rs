//! `LanesTopN`: from sort keys to path to plan.
//!
//! The path is one of the table, with path keys: like that of an index it gives all rows in order, so stock nodes may
//! stand above it (Limit, Incremental Sort for further keys, Merge Append for partitions, Nested Loop). It is offered
//! only to queries with a LIMIT, and its cost grows with the passes that more rows take.

use pgrx::pg_sys;

use super::row_plan::RowPlan;
use super::state::TopNState;
use crate::custom_scan::node::{self, Planned};
use crate::expressions::sort_key;
use crate::expressions::translate::Translator;
use crate::pg::ports;
use crate::planner::quals;
use crate::planner::reasons::{self, About};

/// Rows that the first pass keeps where it is not known how many are asked for.
const FIRST_PASS_MIN: f64 = 64.0;
/// By how much a pass keeps more than the one before it.
pub const PASS_GROWTH: usize = 8;

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
            reasons::note(
                root,
                (*relation).relid,
                About::Reading,
                format!("order: {reason}"),
            );
            return;
        }
        let has_all_keys = keys.len() as i32 == ports::list_length((*root).query_pathkeys);
        let is_alone =
            pg_sys::bms_membership((*root).all_baserels) == pg_sys::BMS_Membership::BMS_SINGLETON;
        let first_pass = rows_of_first_pass((*root).limit_tuples, has_all_keys && is_alone);

        let path = node::path::<TopNState>(relation, (*relation).reltarget);
        (*path).path = (*scan).path;
        let base = &mut (*path).path;
        base.pathkeys =
            pg_sys::list_truncate(pg_sys::list_copy((*root).query_pathkeys), keys.len() as i32);
        // Keeping fewer rows than that costs no less.
        cost(
            base,
            relation,
            first_pass.max(FIRST_PASS_MIN as i32),
            keys.len(),
        );
        let remembered = RowPlan {
            first_pass,
            pushed,
            kept: std::ptr::null_mut(),
            groups: Vec::new(),
            keys,
            reasons: std::ptr::null_mut(),
        };
        (*path).custom_private = remembered.remembered((*relation).relid).of_path();
        pg_sys::add_path(relation, path.cast());
    }
}

/// How many rows the first pass keeps, where PostgreSQL knows that so many are wanted (0 or less: it does not). A node
/// above that drops rows, as a join may, or sorts by further keys asks for more than are wanted: the limit is not
/// `exact`.
fn rows_of_first_pass(limit: f64, exact: bool) -> i32 {
    let rows = match (limit > 0.0, exact) {
        (true, true) => limit,
        (true, false) => limit.max(FIRST_PASS_MIN),
        (false, _) => FIRST_PASS_MIN,
    };
    rows.min(f64::from(i32::MAX)) as i32
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
            + base.rows * keys as f64 * operator * quals::VECTOR_SHARE;
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

/// Makes the plan of a path.
///
/// # Safety
/// The planner's live structures, and a path made above.
pub unsafe fn plan(planned: &Planned) {
    // SAFETY: the caller's promise.
    unsafe {
        let index = planned.take_over();
        // The path has the vectorised quals as the planner holds them.
        let mut plan = RowPlan::of(planned.scan);
        (plan.pushed, plan.kept) = planned.quals(plan.pushed);
        planned.remember(&plan.remembered(index));
        planned.note_reasons(index, None);
        (*planned.scan).scan.scanrelid = index;
    }
}
