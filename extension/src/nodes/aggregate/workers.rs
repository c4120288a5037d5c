//! Offers aggregation by several processes: partial groups, which PostgreSQL combines.
//!
//! ```text
//! Finalize HashAggregate        PostgreSQL's: combines the states of each group, evaluates HAVING
//!   Gather                      PostgreSQL's: starts workers and receives their rows
//!     Parallel LanesAggregate   in each process: the groups of the segments that it takes, a transition state each
//! ```
//! Every process takes the next segment that no other has taken, so the last one does not wait long. A group that
//! several processes meet reaches `Finalize` once from each of them.
//!
//! A node in a worker may write rows to temporary files as one process does, since PostgreSQL's combination does not
//! need all states of a group at the same time.
//!
//! Not offered: aggregates without a [transition state][`TransitionState`] here (those that keep values or need the
//! order of rows, and this extension's own), and joins.
//!
//! [`TransitionState`]: crate::expressions::transition_state::TransitionState

use pgrx::pg_sys;

use super::state::AggregateState;
use crate::custom_scan::callbacks;
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::aggregate::terms::ungrouped_columns;
use crate::nodes::engine::plan::{Engine, Joined};
use crate::nodes::scan::offer::processes;
use crate::pg::server;
use crate::pg::tree::{Aggref, Expr, Expression, List, Node, Path, PlannerInfo, RelOptInfo};
use crate::planner::bucket_groups;

/// The costs of starting workers and of their rows, as a share of PostgreSQL's settings for them. Aggregating vectors
/// takes 15 to 40 µs for each unit of its estimated cost, a sequential scan of a heap about 5. Starting workers took
/// 12 ms where this was measured, for 1,000 units.
const GATHER_SHARE: f64 = 0.5;

/// An aggregation of one table by one process.
pub struct Alone<'p> {
    /// The planner.
    pub root: PlannerInfo<'p>,
    /// The table.
    pub relation: RelOptInfo<'p>,
    /// The relation of groups.
    pub output: RelOptInfo<'p>,
    /// The grouping expressions.
    pub keys: List<'p, Expr<'p>>,
    /// The conditions on the table.
    pub filters: List<'p, Expr<'p>>,
    /// Whether values of keys have codes, which take memory without limit in a worker.
    pub has_codes: bool,
    /// Whether the query returns only the first groups.
    pub has_limit: bool,
    /// The cost of reading the table and of adding its rows to groups.
    pub cost: f64,
}

/// If more groups than this are expected, one process chooses the first ones. Several processes would have to return
/// all of their groups. PostgreSQL mostly expects too few of many groups: with 4,000 expected groups and 118,000 real
/// ones, workers took three times as long as one process.
const LIMITED_GROUPS_MAX: f64 = 1_000.0;

/// Offers to let several processes aggregate.
///
/// # Errors
/// The reason why workers cannot.
pub fn offer(alone: &Alone<'_>) -> Translation<()> {
    let Alone { root, output, .. } = *alone;
    if alone.has_codes {
        return Err("GROUP BY values that PostgreSQL computes".into());
    }
    let stage = pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG;
    // PostgreSQL makes this relation if all aggregates have states that can be combined, and workers may scan the
    // table.
    let states = root.upper_relation(stage, output.relids());
    let partial = alone.relation.partial_pathlist().first();
    let (Some(states), Some(scan)) = (states, partial) else {
        return Err("no workers".into());
    };
    if !output.consider_parallel() {
        return Err("a function that workers may not call".into());
    }
    let (path, calls) = partial_path(alone, states, scan.parallel_workers())?;
    let groups = path.rows();
    if alone.has_limit && groups > LIMITED_GROUPS_MAX {
        return Err("the first of many groups".into());
    }
    let gathered = root.gathered(states, path);
    let startup = GATHER_SHARE * (gathered.startup_cost() - path.startup_cost());
    let total = GATHER_SHARE * (gathered.total_cost() - path.total_cost());
    gathered.set_startup_cost(path.startup_cost() + startup);
    gathered.set_total_cost(path.total_cost() + total);
    if let Some(finalised) = root.finalised(output, gathered, calls, groups) {
        output.add_any_path(finalised);
    }
    Ok(())
}

/// The path of one of the processes, which returns the rows of a relation of transition states; and the number of calls
/// of aggregates.
fn partial_path<'p>(
    alone: &Alone<'p>,
    states: RelOptInfo<'p>,
    workers: i32,
) -> Translation<(Path<'p>, usize)> {
    let target = states.reltarget();
    let exprs = target.map_or(List::EMPTY, |target| target.exprs());
    ungrouped_columns(exprs.as_node(), alone.keys)?;
    let calls: Vec<Aggref<'_>> = exprs.iter().filter_map(Expr::downcast).collect();
    let mut translator = Translator::new(Scalars::Unknown).with_row_functions();
    for call in &calls {
        aggregate_call::partial(&mut translator, *call, &calls)?;
    }
    let has_all_rows = alone.keys.is_empty() && alone.filters.is_empty();
    if has_all_rows && calls.iter().copied().all(aggregate_call::is_in_zone_maps) {
        return Err("zone maps, which take no time to read".into());
    }
    let path = callbacks::new_path::<AggregateState>(states, target);
    let engine = Engine {
        index: alone.relation.relid(),
        keys: alone.keys,
        calls: List::new(calls.iter().map(|call| call.as_expr())),
        absent: Vec::new(),
        quals: alone.filters,
        join: Joined::No,
        has_stand_in: false,
        order: None,
        limit: None,
    };
    path.set_private(engine.stored());
    let base = path.as_path();
    base.set_parallel_aware(true);
    base.set_parallel_safe(true);
    base.set_parallel_workers(workers);
    let groups = states.partial_pathlist().first().map_or(1.0, Path::rows);
    let groups = bucket_groups::expected(alone.root, alone.relation, alone.keys, groups);
    base.set_rows(groups);
    let cost = target.map(|target| target.cost()).unwrap_or_default();
    let startup = cost.startup + alone.cost / processes(workers);
    base.set_startup_cost(startup);
    let group = server::cpu_tuple_cost() * 0.5 + cost.per_tuple;
    base.set_total_cost(startup + groups * group);
    Ok((base, calls.len()))
}
