//! What the planner needs to aggregate parts of a relation: columns of transition states, and expressions of children.

use pgrx::pg_sys;

use super::expression::{AGGREGATES_WHOLE, Expr, Expression};
use super::list::List;
use super::operands::Aggref;
use super::path::{AppendPath, Path, PathTarget};
use super::planner::{PlannerInfo, RelOptInfo};
use super::tag::{self, Node};
use super::view::View;
use crate::pg::functions::{nodes, planner};

impl<'p> PlannerInfo<'p> {
    /// Whether each call of an aggregate has a transition state that can be combined with others, in any process.
    pub fn has_partial_aggregates(self) -> bool {
        !self.hasNonPartialAggs() && !self.hasNonSerialAggs()
    }

    /// The relation of transition states of the groups of `output`. It is made if the planner has none.
    pub fn partial_groups(self, output: RelOptInfo<'p>) -> RelOptInfo<'p> {
        let stage = pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG;
        let relation = planner::fetch_upper_rel(self, stage, output.relids());
        relation.set_consider_parallel(output.consider_parallel());
        relation
    }

    /// The columns of transition states: the grouping expressions of a target, and a partial call of each aggregate in
    /// it and in HAVING. PostgreSQL does the same in `make_partial_grouping_target`, which it does not export.
    pub fn partial_target(
        self,
        target: PathTarget<'p>,
        having: Option<Expr<'p>>,
    ) -> PathTarget<'p> {
        let partial = planner::create_empty_pathtarget();
        let clauses = self
            .parse()
            .map_or(List::EMPTY, |query| query.groupClause());
        let mut others = List::EMPTY;
        for (place, expression) in target.exprs().iter().enumerate() {
            let number = target.clause_number(place);
            let is_key =
                number != 0 && nodes::get_sortgroupref_clause_noerr(number, clauses).is_some();
            match is_key {
                true => planner::add_column_to_pathtarget(partial, expression, number),
                false => others.push(expression),
            }
        }
        others.extend(having);
        let leaves = others
            .as_node()
            .map(|others| others.leaves(AGGREGATES_WHOLE));
        planner::add_new_columns_to_pathtarget(partial, leaves.unwrap_or(List::EMPTY));
        let calls = partial.exprs().iter();
        let calls = calls.map(|leaf| match leaf.downcast::<Aggref<'p>>() {
            None => leaf,
            Some(call) => {
                let copy = tag::copy(call);
                planner::mark_partial_aggref(copy, pg_sys::AggSplit::AGGSPLIT_INITIAL_SERIAL);
                copy.as_expr()
            }
        });
        partial.set_exprs(List::new(calls));
        planner::set_pathtarget_cost_width(self, partial)
    }

    /// Expressions over a relation as expressions over one of its children.
    pub fn of_child<T: View<'p>>(
        self,
        expressions: List<'p, T>,
        child: RelOptInfo<'p>,
        parent: RelOptInfo<'p>,
    ) -> List<'p, T> {
        planner::adjust_appendrel_attrs_multilevel(self, expressions, child, parent)
    }
}

impl<'p> PathTarget<'p> {
    /// A copy of the target whose columns are these expressions.
    pub fn with_exprs(self, exprs: List<'p, Expr<'p>>) -> PathTarget<'p> {
        let copy = planner::copy_pathtarget(self);
        copy.set_exprs(exprs);
        copy
    }
}

impl<'p> Path<'p> {
    /// The paths whose rows a path returns one after the other, or in any order by workers; `None` for another kind of
    /// path.
    pub fn appended_paths(self) -> Option<List<'p, Path<'p>>> {
        self.downcast::<AppendPath<'p>>().map(AppendPath::subpaths)
    }
}
