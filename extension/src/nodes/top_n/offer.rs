//! Offers `LanesTopN`.
//!
//! The path is one of the table and has a sort order, as a path of an index has: it returns all rows in order. So stock
//! nodes may be above it (Limit, Incremental Sort for further keys, Merge Append for partitions, Nested Loop). It is
//! offered only to queries with a LIMIT, and its cost grows with the passes that more rows need.

use pgrx::pg_sys;

use super::row_plan::RowPlan;
use super::state::TopNState;
use crate::custom_scan::callbacks;
use crate::custom_scan::node::Planned;
use crate::expressions::sort_key;
use crate::expressions::translate::Translator;
use crate::pg::ports;
use crate::planner::quals;
use crate::planner::reasons::{self, About};

/// How many rows the first pass keeps where the number of requested rows is not known.
const FIRST_PASS_MIN: f64 = 64.0;
/// By which factor a pass keeps more rows than the one before it.
pub const PASS_GROWTH: usize = 8;

/// Whether a query needs only the first rows, unchanged from the table.
unsafe fn needs_first_rows(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the planner's structures are live.
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

/// Offers the rows of a table in the query's order. `scan` is the path of a plain scan. The engine evaluates the `pushed`
/// conditions, PostgreSQL the `kept` ones.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    translator: &mut Translator,
    scan: *mut pg_sys::CustomPath,
    pushed: *mut pg_sys::List,
    kept: *mut pg_sys::List,
) {
    // SAFETY: the planner's structures are live.
    unsafe {
        if (*root).query_pathkeys.is_null() || !needs_first_rows(root) {
            return;
        }
        let (mut keys, refusal) = sort_key::of_path_keys(
            translator,
            crate::pg::tree::plan_node(relation),
            crate::pg::tree::plan_field((*root).query_pathkeys),
        );
        if !kept.is_null() {
            keys.truncate(sort_key::leading_columns(&keys));
        }
        if keys.is_empty() {
            let reason = refusal.unwrap_or_else(|| "an expression before a qual".into());
            reasons::note(
                crate::pg::tree::plan_node(root),
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

        let path = callbacks::path::<TopNState>(relation, (*relation).reltarget);
        (*path).path = (*scan).path;
        let base = &mut (*path).path;
        base.pathkeys =
            pg_sys::list_truncate(pg_sys::list_copy((*root).query_pathkeys), keys.len() as i32);
        // A pass that keeps fewer rows costs no less.
        cost(
            base,
            relation,
            first_pass.max(FIRST_PASS_MIN as i32),
            keys.len(),
        );
        let plan = RowPlan {
            first_pass,
            pushed,
            kept: std::ptr::null_mut(),
            groups: Vec::new(),
            keys,
            reasons: std::ptr::null_mut(),
        };
        (*path).custom_private = plan.private_data((*relation).relid).to_path_list();
        pg_sys::add_path(relation, path.cast());
    }
}

/// How many rows the first pass keeps. `limit` is the number of rows that PostgreSQL expects to need; 0 or less if it
/// does not know. The limit is not `exact` below a node that drops rows, as a join may, or that sorts by further keys:
/// such a node requests more rows.
fn rows_of_first_pass(limit: f64, exact: bool) -> i32 {
    let rows = match (limit > 0.0, exact) {
        (true, true) => limit,
        (true, false) => limit.max(FIRST_PASS_MIN),
        (false, _) => FIRST_PASS_MIN,
    };
    rows.min(f64::from(i32::MAX)) as i32
}

/// Adds to the cost of a plain scan: a pass over the table before the first row, and further passes for more rows.
unsafe fn cost(
    base: &mut pg_sys::Path,
    relation: *mut pg_sys::RelOptInfo,
    first_pass: i32,
    keys: usize,
) {
    // SAFETY: the relation is live; reads settings of this session.
    unsafe {
        let target = (*(*relation).reltarget).cost;
        let operator = pg_sys::cpu_operator_cost;
        let row = pg_sys::cpu_tuple_cost * 0.5 + target.per_tuple;
        let scan = base.total_cost - base.startup_cost - base.rows * row
            + base.rows * keys as f64 * operator * quals::VECTOR_SHARE;
        let row_bytes = f64::from((*(*relation).reltarget).width) + ROW_BYTES;
        let most = (f64::from(pg_sys::work_mem) * 1024.0 / row_bytes).max(FIRST_PASS_MIN);
        let (mut passes, mut pass) = (1.0, f64::from(first_pass).min(most));
        let mut returned = pass;
        while returned < base.rows && pass < most {
            pass = (pass * PASS_GROWTH as f64).min(most);
            returned += pass;
            passes += 1.0;
        }
        passes += ((base.rows - returned) / most).max(0.0).ceil();
        let sorting = f64::from(first_pass).min(base.rows).max(2.0);
        let heap = 2.0 * operator * sorting * sorting.log2();
        base.total_cost = base.startup_cost + passes * scan + base.rows * row + heap;
        base.startup_cost += scan + heap;
    }
}

/// Approximate bytes of a kept row in addition to its values.
const ROW_BYTES: f64 = 150.0;

/// Fills in the plan of a path that [`offer`] made.
pub fn plan(planned: &Planned) {
    // SAFETY: the planner's structures are live, and the path stores its lists.
    unsafe {
        let index = planned.take_path_lists();
        // The path stores the pushed conditions as the planner's `RestrictInfo`.
        let mut plan = RowPlan::of(planned.plan());
        (plan.pushed, plan.kept) = planned.split_quals(plan.pushed);
        planned.store(&plan.private_data(index));
        planned.store_reasons(index, None);
        (*planned.scan).scan.scanrelid = index;
    }
}
