//! Offers `LanesTopN`.
//!
//! The path is one of the table and has a sort order, as a path of an index has: it returns all rows in order. So stock
//! nodes may be above it (Limit, Incremental Sort for further keys, Merge Append for partitions, Nested Loop). It is
//! offered only to queries with a LIMIT, and its cost grows with the passes that more rows need.

use super::row_plan::RowPlan;
use super::state::TopNState;
use crate::custom_scan::callbacks;
use crate::custom_scan::node::Planned;
use crate::expressions::sort_key;
use crate::expressions::translate::Translator;
use crate::pg::exec::memory::work_memory_limit;
use crate::pg::server;
use crate::pg::tree::{CustomPath, List, Node, Path, PlannerInfo, RelOptInfo, plan_field};
use crate::planner::first_rows::needs_first_rows;
use crate::planner::quals::{self, Quals};
use crate::planner::reasons::{self, About};

/// How many rows the first pass keeps where the number of requested rows is not known.
const FIRST_PASS_MIN: f64 = 64.0;
/// By which factor a pass keeps more rows than the one before it.
pub const PASS_GROWTH: usize = 8;

/// Offers the rows of a table in the query's order. `scan` is the path of a plain scan with the same conditions.
pub fn offer<'p>(
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    translator: &mut Translator,
    scan: CustomPath<'p>,
    quals: &Quals<'p>,
) {
    let order = root.query_pathkeys();
    if order.is_empty() || !root.parse().is_some_and(needs_first_rows) {
        return;
    }
    let (mut keys, refusal) = sort_key::of_path_keys(translator, relation, order);
    if !quals.kept.is_empty() {
        keys.truncate(sort_key::leading_columns(&keys));
    }
    if keys.is_empty() {
        let reason = refusal.unwrap_or_else(|| "an expression before a qual".into());
        let reason = format!("order: {reason}");
        reasons::note(root, relation.relid(), About::Reading, reason);
        return;
    }
    let has_all_keys = keys.len() == order.len();
    let is_alone = root.all_baserels().len() == 1;
    let first_pass = rows_of_first_pass(root.limit_tuples(), has_all_keys && is_alone);

    let path = callbacks::new_path::<TopNState>(relation, relation.reltarget());
    path.take_estimates(scan);
    let base = path.as_path();
    base.set_keys(List::new(order.iter().take(keys.len())));
    // A pass that keeps fewer rows costs no less.
    let least = first_pass.max(FIRST_PASS_MIN as i32);
    cost(base, relation, least, keys.len());
    let plan = RowPlan {
        first_pass,
        pushed: List::new(quals.pushed.iter().map(Node::as_node)),
        kept: List::EMPTY,
        groups: Vec::new(),
        keys,
        reasons: std::ptr::null_mut(),
    };
    let stored = plan.private_data(relation.relid()).to_path_list();
    path.set_private(plan_field(stored));
    relation.add_path(path);
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
fn cost<'p>(base: Path<'p>, relation: RelOptInfo<'p>, first_pass: i32, keys: usize) {
    let target = relation.reltarget();
    let per_tuple = target
        .map(|target| target.cost())
        .unwrap_or_default()
        .per_tuple;
    let width = target.map_or(0, |target| target.width());
    let operator = server::cpu_operator_cost();
    let row = server::cpu_tuple_cost() * 0.5 + per_tuple;
    let (rows, startup) = (base.rows(), base.startup_cost());
    let scan = base.total_cost() - startup - rows * row
        + rows * keys as f64 * operator * quals::VECTOR_SHARE;
    let row_bytes = f64::from(width) + ROW_BYTES;
    let most = (work_memory_limit() as f64 / row_bytes).max(FIRST_PASS_MIN);
    let (mut passes, mut pass) = (1.0, f64::from(first_pass).min(most));
    let mut returned = pass;
    while returned < rows && pass < most {
        pass = (pass * PASS_GROWTH as f64).min(most);
        returned += pass;
        passes += 1.0;
    }
    passes += ((rows - returned) / most).max(0.0).ceil();
    let sorting = f64::from(first_pass).min(rows).max(2.0);
    let heap = 2.0 * operator * sorting * sorting.log2();
    base.set_total_cost(startup + passes * scan + rows * row + heap);
    base.set_startup_cost(startup + scan + heap);
}

/// Approximate bytes of a kept row in addition to its values.
const ROW_BYTES: f64 = 150.0;

/// Fills in the plan of a path that [`offer`] made.
pub fn plan(planned: &Planned) {
    let index = planned.take_path();
    // The path stores the pushed conditions as the planner's `RestrictInfo`.
    let mut plan = RowPlan::of(planned.plan());
    let pushed = List::new(plan.pushed.iter().filter_map(|qual| qual.downcast()));
    (plan.pushed, plan.kept) = planned.split_quals(pushed);
    planned.store(&plan.private_data(index));
    planned.store_reasons(index, None);
    planned.scan.set_scanned_index(index);
}
