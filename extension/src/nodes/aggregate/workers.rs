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
//! need all states of a group at the same time. Where rows cannot wait, it puts
//! [groups](super::super::engine::early_groups) aside.
//!
//! In a hash join, each process reads all rows of the small sides, and joins them with the rows of the segments that it
//! takes. So each row of the table meets each small row once, in one process. A side that is read in batches is read so
//! by each process, which goes over its own segments once for each batch.
//!
//! Not offered: aggregates without a [transition state][`TransitionState`] here (those that keep values or need the
//! order of rows, and this extension's own), joins by time, joins that return small rows without a match, and joins
//! with a small side that may prove too large for memory, as no other plan can take over from a worker.
//!
//! [`TransitionState`]: crate::expressions::transition_state::TransitionState

use pgrx::pg_sys;

use super::cost::Work;
use super::states::Grouped;
use crate::expressions::translate::Translation;
use crate::nodes::hash_join;
use crate::nodes::scan::offer::processes;
use crate::pg::server;
use crate::pg::tree::{Path, PlannerInfo, RelOptInfo, View};
use crate::planner::bucket_groups;

/// The costs of starting workers and of their rows, as a share of PostgreSQL's settings for them. Aggregating vectors
/// takes 15 to 40 µs for each unit of its estimated cost, a sequential scan of a heap about 5. Starting workers took
/// 12 ms where this was measured, for 1,000 units.
pub(super) const GATHER_SHARE: f64 = 0.5;
/// As [`GATHER_SHARE`], for a hash join. It takes 5 µs for each unit, so starting workers costs as much as 2,000 units.
const GATHER_SHARE_OF_JOIN: f64 = 2.0;
/// As [`GATHER_SHARE`], for a hash join by the leading column of the table's order. Equal keys follow each other and are
/// looked up once, so a unit takes 0.7 µs, and starting workers costs as much as 17,000 units.
const GATHER_SHARE_BY_LEADING_COLUMN: f64 = 8.0;

/// An aggregation by one process.
pub(super) struct OneProcess<'a, 'p> {
    /// What groups are made of.
    pub grouped: Grouped<'a, 'p>,
    /// The relation of groups.
    pub output: RelOptInfo<'p>,
    /// Whether the query returns only the first groups.
    pub has_limit: bool,
    /// Its costs before there are groups.
    pub work: Work,
}

/// If more groups than this are expected, one process chooses the first ones. Several processes would have to return
/// all of their groups. PostgreSQL mostly expects too few of many groups: with 4,000 expected groups and 118,000 real
/// ones, workers took three times as long as one process.
pub(super) const LIMITED_GROUPS_MAX: f64 = 1_000.0;

/// Offers to let several processes aggregate.
///
/// # Errors
/// The reason why workers cannot.
pub(super) fn offer(alone: &OneProcess<'_, '_>) -> Translation<()> {
    let OneProcess {
        grouped, output, ..
    } = alone;
    let (root, output) = (grouped.root, *output);
    if let Some(join) = grouped.hash_join {
        let keys = grouped.evaluated.iter().map(|key| key.as_ptr());
        join.check_workers(root, keys)?;
    }
    let stage = pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG;
    // PostgreSQL makes this relation if all aggregates have states that can be combined, and workers may scan the
    // table.
    let states = root.upper_relation(stage, output.relids());
    let partial = grouped.relation.partial_pathlist().first();
    let (Some(states), Some(scan)) = (states, partial) else {
        return Err("no workers".into());
    };
    if !output.consider_parallel() {
        return Err("a function that workers may not call".into());
    }
    if grouped.is_in_zone_maps(states.reltarget()) {
        return Err("zone maps, which take no time to read".into());
    }
    let (path, calls) = partial_path(alone, states, scan.parallel_workers())?;
    let groups = path.rows();
    if alone.has_limit && groups > LIMITED_GROUPS_MAX {
        return Err("the first of many groups".into());
    }
    let share = match grouped.hash_join {
        Some(join) if hash_join::offer::is_by_leading_column(root, join) => {
            GATHER_SHARE_BY_LEADING_COLUMN
        }
        Some(_) => GATHER_SHARE_OF_JOIN,
        None => GATHER_SHARE,
    };
    let gathered = gathered(root, states, path, share);
    if let Some(finalised) = root.finalised(output, gathered, calls, groups) {
        output.add_any_path(finalised);
    }
    Ok(())
}

/// The path that receives the transition states of several processes, each of which executes a path. Receiving them
/// costs this share of what PostgreSQL estimates.
pub(super) fn gathered<'p>(
    root: PlannerInfo<'p>,
    states: RelOptInfo<'p>,
    path: Path<'p>,
    share: f64,
) -> Path<'p> {
    let gathered = root.gathered(states, path);
    let startup = share * (gathered.startup_cost() - path.startup_cost());
    let total = share * (gathered.total_cost() - path.total_cost());
    gathered.set_startup_cost(path.startup_cost() + startup);
    gathered.set_total_cost(path.total_cost() + total);
    gathered
}

/// Makes a path one that several processes execute, each of which takes segments of the table.
pub(super) fn set_parallel<'p>(base: Path<'p>, workers: i32) {
    base.set_parallel_aware(true);
    base.set_parallel_safe(true);
    base.set_parallel_workers(workers);
}

/// The path of one of the processes, which returns the rows of a relation of transition states; and the number of calls
/// of aggregates.
fn partial_path<'p>(
    alone: &OneProcess<'_, 'p>,
    states: RelOptInfo<'p>,
    workers: i32,
) -> Translation<(Path<'p>, usize)> {
    let Grouped {
        root,
        relation,
        hash_join,
        keys,
        ..
    } = alone.grouped;
    let target = states.reltarget();
    let (path, calls) = alone.grouped.path(states, target)?;
    // Each process reads the small sides itself.
    let mut small_cost = alone.work.build;
    if let Some(join) = hash_join {
        let children = hash_join::offer::small_paths_of_worker(root, join)?;
        path.set_children(children);
        small_cost += hash_join::offer::total_cost(children);
    }
    let base = path.as_path();
    set_parallel(base, workers);
    let groups = states.partial_pathlist().first().map_or(1.0, Path::rows);
    let groups = bucket_groups::expected(root, relation, keys, groups);
    base.set_rows(groups);
    let cost = target.map(|target| target.cost()).unwrap_or_default();
    let startup = cost.startup + small_cost + alone.work.rows / processes(workers);
    base.set_startup_cost(startup);
    let group = server::cpu_tuple_cost() * 0.5 + cost.per_tuple;
    base.set_total_cost(startup + groups * group);
    Ok((base, calls))
}
