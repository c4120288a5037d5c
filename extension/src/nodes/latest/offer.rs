//! Offers `LanesLatest`.
//!
//! The path returns the groups' rows in no order. If the query wants an order, a stock Sort above the node sorts a row for
//! each group. SQL does not define which of the tied rows of a group wins. The node chooses the last one in row order if
//! the first sort key is descending, and otherwise the first one.

use pgrx::pg_sys;

use super::state::LatestState;
use crate::custom_scan::callbacks;
use crate::custom_scan::node::Planned;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::expressions::{aggregate_call, sort_key};
use crate::nodes::top_n::row_plan::RowPlan;
use crate::pg::{nodes, ports};
use crate::planner::quals;
use crate::planner::quals::Quals;
use crate::planner::{lanes_table, reasons};

/// Approximate bytes of a group.
const GROUP_BYTES: f64 = 150.0;

/// Offers the rows of a DISTINCT ON.
///
/// # Errors
/// The reason why the node cannot return them.
///
/// # Safety
/// The planner's structures are live, and `input` is a lanes table of which the query needs distinct rows.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let query = &*(*root).parse;
        check(query)?;
        if !(*input).lateral_relids.is_null() {
            return Err("a lateral reference".into());
        }
        if lanes_table::asks_for_transaction_ids(crate::pg::tree::plan_node(input)) {
            return Err("a system column other than ctid".into());
        }
        for qual in nodes::list::<pg_sys::RestrictInfo>((*input).baserestrictinfo) {
            if (*qual).pseudoconstant {
                return Err("a qual without columns".into());
            }
        }
        let mut translator = Translator::new(Scalars::Unknown);
        let targets = (*root).processed_tlist;
        let mut groups: Vec<*mut pg_sys::Node> = Vec::new();
        for clause in nodes::list::<pg_sys::SortGroupClause>(query.distinctClause) {
            let expression = pg_sys::get_sortgroupclause_expr(clause, targets);
            aggregate_call::key(
                &mut translator,
                crate::pg::tree::plan_node(expression.cast()),
            )?;
            groups.push(expression);
        }
        let (order, distinct) = (query.sortClause, query.distinctClause);
        let keys = sort_key::of_clauses(
            &mut translator,
            crate::pg::tree::plan_field(targets),
            crate::pg::tree::plan_field(order),
            crate::pg::tree::plan_field(distinct),
        )?;
        let Quals { pushed, kept } = quals::split_quals(
            crate::pg::tree::plan_node(root),
            crate::pg::tree::plan_node(input),
            &mut translator,
        );
        let is_column = |group: &*mut pg_sys::Node| {
            (*crate::expressions::translate::strip(*group)).type_ == pg_sys::NodeTag::T_Var
        };
        let plain = groups.iter().all(is_column) && sort_key::leading_columns(&keys) == keys.len();
        if !kept.is_null() && !plain {
            return Err("an expression before a qual".into());
        }
        let target = (*root).upper_targets[pg_sys::UpperRelationKind::UPPERREL_DISTINCT as usize];
        let rows = nodes::list::<pg_sys::Path>((*output).pathlist)
            .next()
            .map_or(1.0, |path| (*path).rows);
        let bytes = rows * (GROUP_BYTES + f64::from((*target).width));
        if bytes > pg_sys::get_hash_memory_limit() as f64 {
            return Err("its groups would not fit in memory (see work_mem)".into());
        }

        let path = callbacks::path::<LatestState>(output, target);
        let base = &mut (*path).path;
        base.rows = rows;
        let operator = pg_sys::cpu_operator_cost;
        let work = f64::from(ports::list_length(pushed)) * quals::VECTOR_SHARE;
        // Each row that passes costs a look-up and a comparison.
        let each = (groups.len() + keys.len()) as f64 * quals::VECTOR_SHARE;
        base.startup_cost = (*target).cost.startup
            + f64::from((*input).pages) * pg_sys::seq_page_cost * 0.1
            + (*input).tuples * work * operator
            + (*input).rows * each * operator
            + rows * f64::from(ports::list_length(kept)) * operator;
        base.total_cost =
            base.startup_cost + rows * (pg_sys::cpu_tuple_cost * 0.5 + (*target).cost.per_tuple);
        let plan = RowPlan {
            first_pass: 0,
            pushed: pg_sys::extract_actual_clauses(pushed, false),
            kept: pg_sys::extract_actual_clauses(kept, false),
            groups,
            keys,
            reasons: std::ptr::null_mut(),
        };
        (*path).custom_private = plan.private_data((*input).relid).to_path_list();
        pg_sys::add_path(output, path.cast());
        Ok(())
    }
}

/// Refuses a query whose first rows of groups must be found by PostgreSQL itself.
///
/// # Errors
/// Why they must.
pub fn check(query: &pg_sys::Query) -> Translation<()> {
    if query.hasTargetSRFs {
        return Err("a set-returning function".into());
    }
    if !query.rowMarks.is_null() {
        return Err("rows to be locked".into());
    }
    if reasons::may_scroll() {
        return Err("a cursor without NO SCROLL".into());
    }
    Ok(())
}

/// Fills in the plan of a path that [`offer`] made.
pub fn plan(planned: &Planned) {
    // SAFETY: the planner's structures are live.
    unsafe {
        let index = planned.take_path_lists();
        planned.store_reasons(index, None);
        (*planned.scan).scan.scanrelid = index;
    }
}
