//! Offers `LanesLatest`.
//!
//! The path returns the groups' rows in no order. If the query wants an order, a stock Sort above
//! the node sorts a row for each group. SQL does not define which of the tied rows of a group wins.
//! The node chooses the last one in row order if the first sort key is descending, and otherwise
//! the first one.

use pgrx::pg_sys;

use super::state::LatestState;
use crate::custom_scan::callbacks;
use crate::custom_scan::node::Planned;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::expressions::{aggregate_call, sort_key};
use crate::nodes::top_n::row_plan::RowPlan;
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::server;
use crate::pg::tree::{Expr, Path, PlannerInfo, Query, RelOptInfo, View, plan_field};
use crate::planner::quals;
use crate::planner::quals::Quals;
use crate::planner::{lanes_table, reasons};

/// Approximate bytes of a group.
const GROUP_BYTES: f64 = 150.0;

/// Offers the rows of a DISTINCT ON over a lanes table.
///
/// # Errors
/// The reason why the node cannot return them.
pub fn offer<'p>(
    root: PlannerInfo<'p>,
    query: Query<'p>,
    input: RelOptInfo<'p>,
    output: RelOptInfo<'p>,
) -> Translation<()> {
    check(query)?;
    check_input(input)?;
    let mut translator = Translator::new(Scalars::Unknown);
    let targets = root.processed_tlist();
    let mut groups = Vec::new();
    for clause in query.distinctClause() {
        let expression = clause.expr(targets);
        aggregate_call::key(&mut translator, expression)?;
        groups.push(expression);
    }
    let (order, distinct) = (query.sortClause(), query.distinctClause());
    let keys = sort_key::of_clauses(&mut translator, targets, order, distinct)?;
    let Quals { pushed, kept } = quals::split_quals(root, input, &mut translator);
    let is_column = |group: &Expr<'_>| group.stripped().as_var().is_some();
    let plain = groups.iter().all(is_column) && sort_key::leading_columns(&keys) == keys.len();
    if !kept.is_empty() && !plain {
        return Err("an expression before a qual".into());
    }
    let target = root.upper_target(pg_sys::UpperRelationKind::UPPERREL_DISTINCT);
    let rows = output.expected_rows();
    let width = target.map_or(0, |target| target.width());
    let bytes = rows * (GROUP_BYTES + f64::from(width));
    if bytes > hash_memory_limit() as f64 {
        return Err("its groups would not fit in memory (see work_mem)".into());
    }

    let path = callbacks::new_path::<LatestState>(output, target);
    path.as_path().set_rows(rows);
    let terms = groups.len() + keys.len();
    estimate(path.as_path(), input, [pushed.len(), kept.len()], terms);
    let plan = RowPlan {
        first_pass: 0,
        pushed: quals::clauses(pushed),
        kept: quals::clauses(kept),
        groups: groups.into_iter().map(View::as_ptr).collect(),
        keys,
        reasons: std::ptr::null_mut(),
    };
    let stored = plan.private_data(input.relid()).to_path_list();
    path.set_private(plan_field(stored));
    output.add_path(path);
    Ok(())
}

/// Refuses a table whose rows the node cannot return.
fn check_input(input: RelOptInfo<'_>) -> Translation<()> {
    if !input.lateral_relids().is_empty() {
        return Err("a lateral reference".into());
    }
    if lanes_table::asks_for_transaction_ids(input) {
        return Err("a system column other than ctid".into());
    }
    if input
        .baserestrictinfo()
        .iter()
        .any(|qual| qual.pseudoconstant())
    {
        return Err("a qual without columns".into());
    }
    Ok(())
}

/// Estimates the costs of a path that has its rows already. There are so many conditions of either
/// sort, and so many grouping expressions and sort keys.
fn estimate(base: Path<'_>, input: RelOptInfo<'_>, [pushed, kept]: [usize; 2], terms: usize) {
    let (rows, operator) = (base.rows(), server::cpu_operator_cost());
    let work = pushed as f64 * quals::VECTOR_SHARE;
    // Each row that passes costs a look-up and a comparison.
    let each = terms as f64 * quals::VECTOR_SHARE;
    let target = base.pathtarget();
    let cost = target.map(|target| target.cost()).unwrap_or_default();
    let startup = cost.startup
        + f64::from(input.pages()) * server::seq_page_cost() * 0.1
        + input.tuples() * work * operator
        + input.rows() * each * operator
        + rows * kept as f64 * operator;
    base.set_startup_cost(startup);
    base.set_total_cost(startup + rows * (server::cpu_tuple_cost() * 0.5 + cost.per_tuple));
}

/// Refuses a query whose first rows of groups must be found by PostgreSQL itself.
///
/// # Errors
/// Why they must.
pub fn check(query: Query<'_>) -> Translation<()> {
    if query.hasTargetSRFs() {
        return Err("a set-returning function".into());
    }
    if !query.rowMarks().is_empty() {
        return Err("rows to be locked".into());
    }
    if reasons::may_scroll() {
        return Err("a cursor without NO SCROLL".into());
    }
    Ok(())
}

/// Fills in the plan of a path that [`offer`] made.
pub fn plan(planned: &Planned) {
    let index = planned.take_path();
    planned.store_reasons(index, None);
    planned.scan.set_scanned_index(index);
}
