//! The paths of `LanesScan`.

use pgrx::pg_sys;

use super::state::ScanState;
use crate::custom_scan::callbacks;
use crate::pg::server;
use crate::pg::tree::{CustomPath, List, Node, PlannerInfo, RelOptInfo, RestrictInfo};
use crate::planner::quals::{Quals, VECTOR_SHARE};
use crate::planner::selectivity;

/// The path of a scan of a lanes table by one process with conditions of the table, and the pages that it is expected
/// to read.
pub fn scan_path<'p>(
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    quals: &Quals<'p>,
) -> (CustomPath<'p>, f64) {
    let pushed = quals.pushed;
    let path = callbacks::new_path::<ScanState>(relation, relation.reltarget());
    let base = path.as_path();
    let parameters = root.parameters_of(relation);
    base.set_parameters(parameters);
    let rows = parameters.map_or(relation.rows(), |parameters| parameters.ppi_rows());
    base.set_rows(rows);
    let share = selectivity::of(root, relation, pushed);
    let tuples = relation.tuples() * share;
    let pages = f64::from(relation.pages()) * share;
    let target = relation
        .reltarget()
        .map(|target| target.cost())
        .unwrap_or_default();
    let operator = server::cpu_operator_cost();
    let kept = RowQuals::of(root, relation, quals, rows);
    let startup = target.startup + kept.startup;
    base.set_startup_cost(startup);
    base.set_total_cost(
        startup
            + pages * server::seq_page_cost() * 0.1
            + tuples * pushed.len() as f64 * (operator * VECTOR_SHARE)
            + costly_calls(root, relation, pushed)
            + kept.total
            + rows * (server::cpu_tuple_cost() * 0.5 + target.per_tuple),
    );
    path.set_private(List::new(pushed.iter().map(Node::as_node)));
    (path, pages)
}

/// What quals among the vectorised ones cost whose functions say that they cost far more than an operator, such as
/// those of PostGIS. PostgreSQL evaluates them for each distinct value that passes the quals before them. An index that
/// spares most calls is then cheaper.
fn costly_calls<'p>(
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    pushed: List<'p, RestrictInfo<'p>>,
) -> f64 {
    /// Several operators that the engine has are not costly together.
    const COSTLY_OPERATORS: f64 = 50.0;
    let least = COSTLY_OPERATORS * server::cpu_operator_cost();
    let mut sum = 0.0;
    for (place, qual) in pushed.iter().enumerate() {
        let per_call = root.qual_cost(qual).per_tuple;
        if per_call < least {
            continue;
        }
        let before = List::new(pushed.iter().take(place));
        let rows = relation.tuples() * root.selectivity(before, relation);
        let columns = qual.clause().leaves(pg_sys::PVC_INCLUDE_PLACEHOLDERS);
        sum += per_call * root.groups_of(columns, rows.max(1.0));
    }
    sum
}

/// The costs of the quals that PostgreSQL evaluates row by row. They may have subqueries that cost far more than the
/// scan.
struct RowQuals {
    startup: f64,
    /// The costs for all rows that pass the vectorised quals.
    total: f64,
}

impl RowQuals {
    /// The costs where a scan returns this many rows.
    fn of<'p>(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        quals: &Quals<'p>,
        returned: f64,
    ) -> RowQuals {
        let Quals { pushed, kept } = *quals;
        if kept.is_empty() {
            return RowQuals {
                startup: 0.0,
                total: 0.0,
            };
        }
        let pushed = List::new(pushed.iter().map(Node::as_node));
        let passed = relation.tuples() * root.selectivity(pushed, relation);
        let costs = kept.iter().map(|qual| root.qual_cost(qual));
        let (startup, per_row) = costs.fold((0.0, 0.0), |(startup, per_row), cost| {
            (startup + cost.startup, per_row + cost.per_tuple)
        });
        RowQuals {
            startup,
            total: passed.max(returned) * per_row,
        }
    }
}

/// How many processes do the work of a plan with so many workers, the leader's share included.
pub fn processes(workers: i32) -> f64 {
    // PostgreSQL's own estimate: the leader has less time the more workers it receives rows from.
    let leader = 1.0 - 0.3 * f64::from(workers);
    let takes_part = server::parallel_leader_participation() && leader > 0.0;
    f64::from(workers) + if takes_part { leader } else { 0.0 }
}

/// Offers a scan by several processes, each of which takes segments. `scan` is the path for one process, which reads
/// this many pages.
pub fn offer_parallel_scan<'p>(relation: RelOptInfo<'p>, scan: CustomPath<'p>, pages: f64) {
    if !relation.consider_parallel() || scan.as_path().param_info().is_some() {
        return;
    }
    let workers = relation.parallel_workers(pages);
    if workers <= 0 {
        return;
    }
    let path = scan.shallow_copy();
    let processes = processes(workers);
    let reading = pages * server::seq_page_cost() * 0.1;
    let base = path.as_path();
    let computing = base.total_cost() - base.startup_cost() - reading;
    base.set_parallel_aware(true);
    base.set_parallel_workers(workers);
    base.set_rows(server::clamp_row_est(base.rows() / processes));
    base.set_total_cost(base.startup_cost() + reading + computing / processes);
    relation.add_partial_path(path);
}
