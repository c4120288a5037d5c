//! Offers GROUPING SETS, ROLLUP and CUBE over a hash join: for each set a `LanesAggregate` of transition states, which
//! PostgreSQL turns into results.
//!
//! ```text
//! GROUP BY ROLLUP (a, b) ──► Append
//!                              Finalize HashAggregate by a, b      PostgreSQL's
//!                                LanesAggregate by a, b
//!                              Finalize HashAggregate by a
//!                                LanesAggregate by a; b is NULL
//!                              Finalize Aggregate
//!                                LanesAggregate of all rows; a and b are NULL
//! ```
//! Each node reads the table and joins it. The groups of a join [cannot wait](super::super::engine::waiting_rows) until
//! there is memory for them, and no plan of PostgreSQL's returns those of one set. So the nodes return states, as the
//! nodes of [workers](super::workers) do: groups that take too much memory are put aside.

use pgrx::pg_sys;

use super::cost::Aggregated;
use super::grouping_sets::{check_keys, grouping_value, groupings};
use super::offer::Input;
use super::states::Grouped;
use super::terms::{Terms, grouped, leaves};
use crate::expressions::translate::Translation;
use crate::joins::by_key::sides::HashJoin;
use crate::nodes::engine::plan::Absent;
use crate::nodes::hash_join;
use crate::pg::tree::{
    Expr, List, Path, PathTarget, PlannerInfo, Query, RelOptInfo, SortGroupClause, View,
};

/// A query with several grouping sets.
struct AllSets<'a, 'p> {
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    join: &'a HashJoin<'p>,
    output: RelOptInfo<'p>,
    /// The relation of transition states, and its columns.
    states: RelOptInfo<'p>,
    target: PathTarget<'p>,
    terms: Terms<'p>,
    clauses: Vec<SortGroupClause<'p>>,
    groupings: Vec<Expr<'p>>,
}

/// Offers to aggregate a hash join by each set of keys.
///
/// # Errors
/// The reason why the node cannot.
pub fn offer<'p>(
    input: &mut Input<'_, 'p>,
    query: Query<'p>,
    output: RelOptInfo<'p>,
    stage: pg_sys::UpperRelationKind::Type,
) -> Translation<()> {
    let (root, relation) = (input.root, input.relation);
    let terms = Terms::of(input, query, stage)?;
    let join = input.hash_join.as_deref();
    let join = join.ok_or("grouping sets of a join by time")?;
    if terms.keeps_values || !root.has_partial_aggregates() {
        return Err("grouping sets of a join, of aggregates whose states are not combined".into());
    }
    let grouped = grouped(root, query, stage);
    check_keys(&grouped)?;
    if !grouped.iter().all(|(clause, _)| clause.hashable()) {
        return Err("grouping sets of a join by values without a hash".into());
    }
    join.check_workers(root, terms.evaluated.iter().map(|key| key.as_ptr()))?;
    let target = output.reltarget().ok_or("no target")?;
    let all = AllSets {
        root,
        relation,
        join,
        output,
        states: root.partial_groups(output),
        target: root.partial_target(target, query.havingQual()),
        terms,
        clauses: grouped.into_iter().map(|(clause, _)| clause).collect(),
        groupings: groupings(&leaves(target.exprs(), query.havingQual())),
    };
    let sets = query.expanded_sets().into_iter();
    let sets = sets.map(|set| set.iter().map(|reference| reference as u32).collect());
    let paths = sets.map(|set: Vec<u32>| all.path_of(&set));
    let paths: Vec<Path<'p>> = paths.collect::<Translation<_>>()?;
    output.add_any_path(root.appended(output, &paths, Some(target)));
    Ok(())
}

impl<'p> AllSets<'_, 'p> {
    /// The path of the groups by the keys of one set, given by the numbers of their clauses.
    fn path_of(&self, set: &[u32]) -> Translation<Path<'p>> {
        let (root, join, filters) = (self.root, self.join, self.terms.filters);
        let (mut keys, mut evaluated, mut clauses) = (List::EMPTY, Vec::new(), List::EMPTY);
        let mut absent = Vec::new();
        let all = self.terms.keys.iter().zip(&self.terms.evaluated);
        for ((key, by), clause) in all.zip(&self.clauses) {
            if set.contains(&clause.tleSortGroupRef()) {
                keys.push(key);
                evaluated.push(*by);
                clauses.push(*clause);
            } else {
                absent.push(Absent::null(key));
            }
        }
        for grouping in &self.groupings {
            let value = grouping_value(*grouping, set);
            absent.push(Absent::constant(*grouping, value));
        }
        let grouped = Grouped {
            root,
            relation: self.relation,
            hash_join: Some(join),
            keys,
            evaluated,
            absent,
            filters,
        };
        let (path, calls) = grouped.path(self.states, Some(self.target))?;
        path.set_children(hash_join::offer::small_paths(root, join));
        let joined = Aggregated {
            root,
            relation: self.relation,
            join: None,
            hash_join: Some(join),
        };
        let per_row = (keys, calls, self.terms.by_row);
        joined.estimate(path, self.output, filters, per_row, None);
        let (path, output) = (path.as_path(), self.output);
        let finalised = root.finalised_by(output, path, clauses, calls, path.rows());
        finalised.ok_or_else(|| "no target".into())
    }
}
