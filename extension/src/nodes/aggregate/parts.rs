//! Offers the groups of rows that lie in several tables: the partitions of a table, tables that inherit from it, or the
//! tables of a UNION ALL that the planner has taken apart.
//!
//! ```text
//! Finalize HashAggregate        PostgreSQL's: combines the states of each group, evaluates HAVING
//!   [Gather]                    PostgreSQL's, if several processes take segments of each table
//!     Append                    PostgreSQL's
//!       LanesAggregate          for each table: a transition state for each of its groups
//! ```
//! All tables must be lanes tables, with conditions that the engine evaluates. PostgreSQL has left out partitions that
//! the query's constants rule out; zone maps rule out segments of the others.
//!
//! Not offered: aggregates without a transition state here, grouping sets, DISTINCT, and joins.

use super::cost::Aggregated;
use super::states::Grouped;
use super::{terms, workers};
use crate::expressions::row_function::KeysByCode;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::scan::offer::processes;
use crate::pg::server;
use crate::pg::tree::{
    CustomPath, Expr, List, Path, PathTarget, PlannerInfo, Query, RelOptInfo, SortGroupClause,
};
use crate::planner::lanes_table::is_lanes_scan;
use crate::planner::quals::has_vector_quals;

/// PostgreSQL leaves out partitions by parameters and by `now()` when a plan is executed, if its own nodes append them.
/// The nodes here open each table, which takes tens of microseconds, before zone maps rule it out.
const READ_TABLES_MAX: usize = 8;

/// A query whose rows lie in several tables.
struct Parts<'p> {
    root: PlannerInfo<'p>,
    /// The relation of all rows.
    whole: RelOptInfo<'p>,
    /// The relation of groups.
    output: RelOptInfo<'p>,
    /// The relation of transition states, and its columns.
    states: RelOptInfo<'p>,
    target: PathTarget<'p>,
    /// The grouping expressions, with their clauses.
    keys: List<'p, Expr<'p>>,
    clauses: Vec<SortGroupClause<'p>>,
}

/// The paths of one table.
struct PartPaths<'p> {
    /// For one process.
    alone: Path<'p>,
    /// For one of several processes; `None` if workers may not or need not read the table.
    shared: Option<Path<'p>>,
    /// The number of calls of aggregates.
    calls: usize,
}

/// Offers the groups of a relation whose rows lie in several tables. Another relation has nothing to offer here.
///
/// # Errors
/// The reason why the engine cannot group each of them.
pub fn offer<'p>(
    root: PlannerInfo<'p>,
    whole: RelOptInfo<'p>,
    output: RelOptInfo<'p>,
) -> Translation<()> {
    let tables = tables(root, whole)?;
    if tables.is_empty() {
        return Ok(());
    }
    let mut quals = whole.baserestrictinfo().iter();
    if tables.len() > READ_TABLES_MAX && quals.any(|qual| !qual.clause().is_fixed()) {
        return Err("many partitions, most of which PostgreSQL may leave out at execution".into());
    }
    let query = root.parse().ok_or("no query")?;
    let parts = Parts::of(root, whole, output, query)?;
    let paths = tables.iter().map(|table| parts.paths(*table));
    let paths: Vec<PartPaths<'p>> = paths.collect::<Translation<_>>()?;
    let groups = output.expected_rows();
    let calls = paths.first().map_or(0, |paths| paths.calls);
    let alone: Vec<_> = paths.iter().map(|paths| paths.alone).collect();
    let appended = root.appended(parts.states, &alone, Some(parts.target));
    let offer = |states| {
        if let Some(finalised) = root.finalised(output, states, calls, groups) {
            output.add_any_path(finalised);
        }
    };
    offer(appended);
    let has_limit = query.limitCount().is_some();
    if has_limit && groups > workers::LIMITED_GROUPS_MAX {
        return Ok(());
    }
    if let Some(appended) = parts.by_workers(&paths) {
        let share = workers::GATHER_SHARE;
        offer(workers::gathered(root, parts.states, appended, share));
    }
    Ok(())
}

/// The tables in which the rows of a relation lie, if they lie in several.
fn tables<'p>(root: PlannerInfo<'p>, whole: RelOptInfo<'p>) -> Translation<Vec<RelOptInfo<'p>>> {
    // Where paths of workers have beaten all others, only they show the tables.
    let mut paths = whole.pathlist().iter().chain(whole.partial_pathlist());
    let is_append = |path: &Path<'p>| path.below_projections().appended_paths().is_some();
    let Some(path) = paths.find(is_append) else {
        return Ok(Vec::new());
    };
    let (mut tables, mut paths) = (Vec::new(), vec![path]);
    while let Some(path) = paths.pop() {
        let path = path.below_projections();
        if let Some(appended) = path.appended_paths() {
            paths.extend(appended);
            continue;
        }
        let table = path.parent().ok_or("a path without a relation")?;
        if !is_lanes_scan(table, root.entry(table.relid())) {
            return Err("a part that is no scan of a lanes table".into());
        }
        if !has_vector_quals(root, table) || !table.lateral_relids().is_empty() {
            return Err("a condition of a part that is not vectorised".into());
        }
        tables.push(table);
    }
    // The last path was taken first.
    tables.reverse();
    Ok(tables)
}

impl<'p> Parts<'p> {
    fn of(
        root: PlannerInfo<'p>,
        whole: RelOptInfo<'p>,
        output: RelOptInfo<'p>,
        query: Query<'p>,
    ) -> Translation<Parts<'p>> {
        if !query.groupingSets().is_empty() || query.hasTargetSRFs() {
            return Err("grouping sets or a set-returning function".into());
        }
        if !root.has_partial_aggregates() {
            return Err("an aggregate without a state that can be combined".into());
        }
        let target = output.reltarget().ok_or("no target")?;
        let stage = pgrx::pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG;
        let grouped = terms::grouped(root, query, stage);
        Ok(Parts {
            root,
            whole,
            output,
            states: root.partial_groups(output),
            target: root.partial_target(target, query.havingQual()),
            keys: List::new(grouped.iter().map(|(_, key)| *key)),
            clauses: grouped.into_iter().map(|(clause, _)| clause).collect(),
        })
    }

    /// The path of one of several processes; `None` if they may not or need not read the tables.
    fn by_workers(&self, paths: &[PartPaths<'p>]) -> Option<Path<'p>> {
        let of_one = paths.iter().filter(|paths| paths.shared.is_none());
        let whole: Vec<_> = of_one.map(|paths| paths.alone).collect();
        let shared: Vec<_> = paths.iter().filter_map(|paths| paths.shared).collect();
        let workers = shared.iter().map(|path| path.parallel_workers()).max()?;
        let are_safe = whole.iter().all(|path| path.parallel_safe());
        let target = Some(self.target);
        (are_safe && server::enable_parallel_append()).then(|| {
            let paths = (&whole[..], &shared[..]);
            self.root
                .appended_by_workers(self.states, paths, workers, target)
        })
    }

    /// The paths of one of the tables.
    ///
    /// # Errors
    /// The reason why the engine cannot group it.
    fn paths(&self, table: RelOptInfo<'p>) -> Translation<PartPaths<'p>> {
        let (root, whole) = (self.root, self.whole);
        let keys = root.of_child(self.keys, table, whole);
        let exprs = root.of_child(self.target.exprs(), table, whole);
        let target = Some(self.target.with_exprs(exprs));
        let mut translator = Translator::new(Scalars::Unknown).with_row_functions();
        let filters = terms::filters(root, table, false, &mut translator)?;
        let mut by_code = KeysByCode::default();
        for (key, clause) in keys.iter().zip(&self.clauses) {
            by_code.key(&mut translator, key, Some(*clause))?;
        }
        let grouped = Grouped {
            root,
            relation: table,
            hash_join: None,
            keys,
            evaluated: keys.iter().collect(),
            absent: Vec::new(),
            filters,
        };
        let (path, calls) = grouped.path(self.states, target)?;
        let aggregated = Aggregated {
            root,
            relation: table,
            join: None,
            hash_join: None,
        };
        let per_row = (keys, calls, translator.by_row);
        let work = aggregated.estimate(path, self.output, filters, per_row, None);
        let rows = path.as_path().rows().min(table.rows());
        path.as_path().set_rows(rows);
        let shared = match grouped.is_in_zone_maps(target) {
            true => None,
            false => self.shared_path(table, path, work.rows),
        };
        Ok(PartPaths {
            alone: path.as_path(),
            shared,
            calls,
        })
    }

    /// The path of one of several processes; `alone` is that of one process, whose rows cost so much.
    fn shared_path(
        &self,
        table: RelOptInfo<'p>,
        alone: CustomPath<'p>,
        rows: f64,
    ) -> Option<Path<'p>> {
        if !self.output.consider_parallel() || !table.consider_parallel() {
            return None;
        }
        let workers = table.partial_pathlist().first()?.parallel_workers();
        let path = alone.shallow_copy().as_path();
        workers::set_parallel(path, workers);
        let saved = rows - rows / processes(workers);
        path.set_startup_cost(path.startup_cost() - saved);
        path.set_total_cost(path.total_cost() - saved);
        Some(path)
    }
}
