//! The path of a `LanesAggregate` that returns the transition states of its groups, which PostgreSQL combines with
//! others: those of other [processes](super::workers), or of other [parts of a table](super::parts). Those of
//! [grouping sets](super::grouping_sets_of_join) of a join are turned into results.

use super::state::AggregateState;
use super::terms::{self, ungrouped_columns};
use crate::custom_scan::callbacks;
use crate::expressions::aggregate_call;
use crate::expressions::translate::Translation;
use crate::joins::by_key::sides::HashJoin;
use crate::nodes::engine::plan::{Absent, Engine, Joined};
use crate::pg::tree::{
    Aggref, CustomPath, Expr, Expression, List, Node, PathTarget, PlannerInfo, RelOptInfo, View,
};

/// What groups are made of.
pub(super) struct Grouped<'a, 'p> {
    /// The planner.
    pub root: PlannerInfo<'p>,
    /// The table.
    pub relation: RelOptInfo<'p>,
    /// The hash join.
    pub hash_join: Option<&'a HashJoin<'p>>,
    /// The grouping expressions.
    pub keys: List<'p, Expr<'p>>,
    /// The expressions that the engine groups by in their places.
    pub evaluated: Vec<Expr<'p>>,
    /// Columns with one value.
    pub absent: Vec<Absent<'p>>,
    /// The conditions on the table.
    pub filters: List<'p, Expr<'p>>,
}

impl<'p> Grouped<'_, 'p> {
    /// The path of a node that returns the columns of `target`, transition states among them, for a relation of such
    /// rows. Its costs are still missing. Also returns the number of calls of aggregates.
    ///
    /// # Errors
    /// Why the engine does not cover them.
    pub(super) fn path(
        &self,
        states: RelOptInfo<'p>,
        target: Option<PathTarget<'p>>,
    ) -> Translation<(CustomPath<'p>, usize)> {
        let exprs = target.map_or(List::EMPTY, |target| target.exprs());
        let absent = self.absent.iter().map(|absent| absent.expression());
        let settled = List::new(self.keys.iter().chain(absent));
        ungrouped_columns(exprs.as_node(), settled)?;
        let leaves: Vec<Expr<'_>> = exprs.iter().collect();
        let calls: Vec<Aggref<'_>> = leaves.iter().filter_map(|leaf| leaf.downcast()).collect();
        let join = self.hash_join;
        let is_small = |key: &&Expr<'_>| join.is_some_and(|join| join.plan.is_small(key.as_ptr()));
        let codes = self.evaluated.iter().filter(is_small).count();
        let index = self.relation.relid();
        let mut translator = terms::translator(None, join, &leaves, index, codes)?;
        for call in &calls {
            aggregate_call::partial(&mut translator, *call, &calls)?;
        }
        let path = callbacks::new_path::<AggregateState>(states, target);
        let engine = Engine {
            index,
            keys: self.keys,
            calls: List::new(calls.iter().map(|call| call.as_expr())),
            absent: self.absent.clone(),
            quals: self.filters,
            join: match join {
                Some(join) => Joined::ByHash(&join.plan, List::new(self.evaluated.iter().copied())),
                None => Joined::No,
            },
            has_stand_in: false,
            is_partial: true,
            order: None,
            limit: None,
            row_limit: None,
        };
        path.set_private(engine.stored());
        Ok((path, calls.len()))
    }

    /// Whether zone maps have all that calls of a target need.
    pub(super) fn is_in_zone_maps(&self, target: Option<PathTarget<'p>>) -> bool {
        let exprs = target.map_or(List::EMPTY, |target| target.exprs());
        let calls = exprs.iter().filter_map(|leaf| leaf.downcast());
        let has_all_rows =
            self.keys.is_empty() && self.filters.is_empty() && self.hash_join.is_none();
        has_all_rows && calls.into_iter().all(aggregate_call::is_in_zone_maps)
    }
}
