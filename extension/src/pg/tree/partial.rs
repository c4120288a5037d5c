//! What the planner needs to aggregate parts of a relation: columns of transition states, and expressions of children.

use pgrx::pg_sys;

use super::expression::{AGGREGATES_WHOLE, Expr, Expression};
use super::list::List;
use super::operands::Aggref;
use super::path::{Path, PathTarget};
use super::planner::{PlannerInfo, RelOptInfo};
use super::tag::Node;
use super::view::{Field, View};

impl<'p> PlannerInfo<'p> {
    /// Whether each call of an aggregate has a transition state that can be combined with others, in any process.
    pub fn has_partial_aggregates(self) -> bool {
        // SAFETY: a live planner, which has looked at all calls of aggregates before it groups.
        unsafe { !(*self.as_ptr()).hasNonPartialAggs && !(*self.as_ptr()).hasNonSerialAggs }
    }

    /// The relation of transition states of the groups of `output`. It is made if the planner has none.
    pub fn partial_groups(self, output: RelOptInfo<'p>) -> RelOptInfo<'p> {
        let stage = pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG;
        // SAFETY: live structures.
        unsafe {
            let output = output.as_ptr();
            let relation = pg_sys::fetch_upper_rel(self.as_ptr(), stage, (*output).relids);
            (*relation).consider_parallel = (*output).consider_parallel;
            RelOptInfo::at(relation)
        }
    }

    /// The columns of transition states: the grouping expressions of a target, and a partial call of each aggregate in
    /// it and in HAVING. PostgreSQL does the same in `make_partial_grouping_target`, which it does not export.
    pub fn partial_target(
        self,
        target: PathTarget<'p>,
        having: Option<Expr<'p>>,
    ) -> PathTarget<'p> {
        // SAFETY: live structures; the new target and its expressions are in the current memory context. A target has
        // no array of numbers, or one with an element for each of its columns.
        unsafe {
            let partial = pg_sys::create_empty_pathtarget();
            let clauses = (*(*self.as_ptr()).parse).groupClause;
            let mut others = List::EMPTY;
            for (place, expression) in target.exprs().iter().enumerate() {
                let numbers = (*target.as_ptr()).sortgrouprefs;
                let number = if numbers.is_null() {
                    0
                } else {
                    *numbers.add(place)
                };
                let is_key = number != 0
                    && !pg_sys::get_sortgroupref_clause_noerr(number, clauses).is_null();
                match is_key {
                    true => {
                        let expression = expression.as_ptr().cast();
                        pg_sys::add_column_to_pathtarget(partial, expression, number);
                    }
                    false => others.push(expression),
                }
            }
            others.extend(having);
            let leaves = others
                .as_node()
                .map(|others| others.leaves(AGGREGATES_WHOLE));
            let leaves = leaves.unwrap_or(List::EMPTY);
            pg_sys::add_new_columns_to_pathtarget(partial, leaves.as_ptr());
            let calls: List<'p, Expr<'p>> = Field::of((*partial).exprs);
            let calls = calls
                .iter()
                .map(|leaf| match leaf.downcast::<Aggref<'p>>() {
                    None => leaf,
                    Some(call) => {
                        let copy = pg_sys::copyObjectImpl(call.as_ptr().cast()).cast();
                        let split = pg_sys::AggSplit::AGGSPLIT_INITIAL_SERIAL;
                        pg_sys::mark_partial_aggref(copy, split);
                        Aggref::at(copy).as_expr()
                    }
                });
            (*partial).exprs = List::new(calls).as_ptr();
            PathTarget::at(pg_sys::set_pathtarget_cost_width(self.as_ptr(), partial))
        }
    }

    /// Expressions over a relation as expressions over one of its children.
    pub fn of_child<T: View<'p>>(
        self,
        expressions: List<'p, T>,
        child: RelOptInfo<'p>,
        parent: RelOptInfo<'p>,
    ) -> List<'p, T> {
        let (root, expressions) = (self.as_ptr(), expressions.as_ptr().cast());
        // SAFETY: live structures; the planner knows the child as one of the parent. A copy of a list of nodes is a
        // list of such nodes, or of those that a child has in their place.
        unsafe {
            #[cfg(feature = "pg15")]
            let adjusted = {
                let (of_child, of_parent) = (child.as_ptr(), parent.as_ptr());
                let relids = ((*of_child).relids, (*of_parent).relids);
                pg_sys::adjust_appendrel_attrs_multilevel(root, expressions, relids.0, relids.1)
            };
            #[cfg(not(feature = "pg15"))]
            let adjusted = pg_sys::adjust_appendrel_attrs_multilevel(
                root,
                expressions,
                child.as_ptr(),
                parent.as_ptr(),
            );
            Field::of(adjusted.cast())
        }
    }
}

impl<'p> PathTarget<'p> {
    /// A copy of the target whose columns are these expressions.
    pub fn with_exprs(self, exprs: List<'p, Expr<'p>>) -> PathTarget<'p> {
        // SAFETY: a live target; nobody else knows the copy.
        unsafe {
            let copy = pg_sys::copy_pathtarget(self.as_ptr());
            (*copy).exprs = exprs.as_ptr();
            PathTarget::at(copy)
        }
    }
}

impl<'p> Path<'p> {
    /// The paths whose rows a path returns one after the other, or in any order by workers; `None` for another kind of
    /// path.
    pub fn appended_paths(self) -> Option<List<'p, Path<'p>>> {
        let is_append = self.tag() == pg_sys::NodeTag::T_AppendPath;
        // SAFETY: a live path of this structure, by its tag.
        is_append
            .then(|| unsafe { Field::of((*self.as_ptr().cast::<pg_sys::AppendPath>()).subpaths) })
    }
}
