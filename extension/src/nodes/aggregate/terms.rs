//! The terms of an aggregation: its grouping expressions, aggregates and conditions, all of which the engine covers.

use pgrx::pg_sys;

use super::grouping_sets;
use super::offer::Input;
use crate::expressions::aggregate_call::{self, KeyShape, Shape};
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::row_function::KeysByCode;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::sides::HashJoin;
use crate::joins::by_key::{coded, equal_columns};
use crate::joins::by_time::find::TimeJoin;
use crate::nodes::engine::group_limit::{Columns, GroupLimit};
use crate::nodes::engine::group_order::GroupOrder;
use crate::nodes::hash_join;
use crate::nodes::time_join::offer::fits_memory;
use crate::pg::tree::{
    AGGREGATES_WHOLE, Aggref, Expr, Kind, List, Node, PathKey, PlannerInfo, Query, RelOptInfo,
    SortGroupClause, View, plan_node, walk,
};
use crate::planner::quals::quals;

/// The terms of an aggregation of a table or a join.
pub(super) struct Terms<'p> {
    /// The grouping expressions of the query.
    pub keys: List<'p, Expr<'p>>,
    /// The expressions that the engine groups by in their places.
    pub evaluated: Vec<Expr<'p>>,
    /// The calls of aggregates.
    pub calls: List<'p, Expr<'p>>,
    /// The conditions on the table.
    pub filters: List<'p, Expr<'p>>,
    /// The order of the groups that the query asks for, and its path key.
    pub order: Option<(GroupOrder, List<'p, PathKey<'p>>)>,
    /// The groups that the query can return, if not all.
    pub limit: Option<GroupLimit>,
    /// How many expressions PostgreSQL evaluates for each row.
    pub by_row: usize,
    /// Whether the values of keys or arguments are kept, so that even one group may be large.
    pub keeps_values: bool,
}

impl<'p> Terms<'p> {
    /// The terms of a query. A hash join is asked for the columns that they need.
    ///
    /// # Errors
    /// The reason why the engine does not cover them.
    pub fn of(
        input: &mut Input<'_, 'p>,
        query: Query<'p>,
        stage: pg_sys::UpperRelationKind::Type,
    ) -> Translation<Terms<'p>> {
        let (root, relation, join) = (input.root, input.relation, input.join);
        let target = root.upper_target(stage);
        let exprs = target.map_or(List::EMPTY, |target| target.exprs());
        let leaves = leaves(exprs, query.havingQual());
        let grouped = grouped(root, query, stage);
        let mut evaluated: Vec<_> = grouped.iter().map(|(_, expression)| *expression).collect();
        let codes = match &mut input.hash_join {
            None => 0,
            Some(join) => want_all(join, &grouped, &mut evaluated, &leaves)?,
        };
        let hash_join = input.hash_join.as_deref();
        let mut translator = translator(join, hash_join, &leaves, relation.relid(), codes)?;
        let filters = filters(root, relation, join.is_some(), &mut translator)?;
        if let Some(join) = join {
            join.plan.check(&mut translator)?;
            for qual in &join.quals {
                translator.predicate(*qual)?;
            }
        }
        let mut by_code = KeysByCode::default();
        let clauses = grouped.iter().map(|(clause, _)| *clause).zip(&evaluated);
        let shapes = shapes(&mut translator, hash_join, clauses, &mut by_code)?;
        let keys = List::new(grouped.iter().map(|(_, expression)| *expression));
        let (calls, result_shapes, keeps_values) = calls(&mut translator, &leaves, &mut by_code)?;
        let columns = Columns {
            keys,
            key_shapes: &shapes,
            calls,
            shapes: &result_shapes,
            is_set: false,
        };
        let (order, limit) = order_and_limit(root, stage, columns);
        let groupings = match query.groupingSets().is_empty() {
            true => Vec::new(),
            false => grouping_sets::groupings(&leaves),
        };
        let settled = List::new(keys.iter().chain(groupings));
        ungrouped_columns(exprs.as_node(), settled)?;
        ungrouped_columns(query.havingQual(), settled)?;
        Ok(Terms {
            keys,
            evaluated,
            calls,
            filters,
            order,
            limit,
            by_row: translator.by_row,
            keeps_values: keeps_values || by_code.keep_values(),
        })
    }
}

/// The order and the limit of the groups, at most one of both.
fn order_and_limit<'p>(
    root: PlannerInfo<'p>,
    stage: pg_sys::UpperRelationKind::Type,
    columns: Columns<'_, 'p>,
) -> (
    Option<(GroupOrder, List<'p, PathKey<'p>>)>,
    Option<GroupLimit>,
) {
    let order = GroupOrder::wanted(root, columns.keys, columns.key_shapes);
    // Groups that come in the whole order of the query need no limit: PostgreSQL's Limit stops.
    let has_order = order.is_some() && root.sort_pathkeys().len() == 1;
    let limit = match has_order {
        true => None,
        false => GroupLimit::wanted(root, stage, columns),
    };
    // Few groups are sorted faster than many groups are brought into an order.
    (order.filter(|_| limit.is_none()), limit)
}

/// A grouping expression with its clause.
pub(super) type Grouped<'p> = (SortGroupClause<'p>, Expr<'p>);

/// The grouping expressions of a query, or the ones that its distinct rows are distinct by.
pub(super) fn grouped<'p>(
    root: PlannerInfo<'p>,
    query: Query<'p>,
    stage: pg_sys::UpperRelationKind::Type,
) -> Vec<Grouped<'p>> {
    let clauses = match stage == pg_sys::UpperRelationKind::UPPERREL_DISTINCT {
        true => query.distinctClause(),
        false => query.groupClause(),
    };
    let targets = root.processed_tlist();
    let clauses = clauses.iter();
    clauses
        .map(|clause| (clause, clause.expr(targets)))
        .collect()
}

/// Adds what the groups and aggregates need to a hash join. Returns how many grouping expressions are of a small side;
/// `evaluated` are then the expressions that the engine groups by.
fn want_all<'p>(
    join: &mut HashJoin<'p>,
    grouped: &[Grouped<'p>],
    evaluated: &mut [Expr<'p>],
    leaves: &[Expr<'p>],
) -> Translation<usize> {
    let mut codes = 0;
    for ((clause, expression), evaluated) in grouped.iter().zip(evaluated) {
        if let Some(key) = equal_columns::instead(join, expression.as_ptr()) {
            *evaluated = plan_node(key);
        }
        join.want(evaluated.as_ptr())?;
        if join.plan.is_small(evaluated.as_ptr()) {
            hash_join::offer::check_group(*clause, *evaluated)?;
            join.plan.dimension_of(evaluated.as_ptr())?;
            codes += 1;
        }
    }
    // Columns outside of aggregates are in grouping expressions, which `ungrouped_columns` checks.
    let is_settled = |leaf: &&Expr<'_>| matches!(leaf.kind(), Kind::Var(_) | Kind::GroupingFunc(_));
    for leaf in leaves.iter().filter(|leaf| !is_settled(leaf)) {
        join.want(leaf.as_ptr())?;
    }
    Ok(codes)
}

/// The translator of the expressions over a table or a join.
pub(super) fn translator<'p>(
    join: Option<&TimeJoin<'p>>,
    hash_join: Option<&HashJoin<'p>>,
    leaves: &[Expr<'p>],
    index: u32,
    codes: usize,
) -> Translation<Translator> {
    let translator = match (join, hash_join) {
        (Some(join), _) => {
            fits_memory(join)?;
            Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(index))
        }
        (None, Some(join)) => {
            let calls = leaves.iter().filter_map(|leaf| leaf.downcast());
            let coded = coded::of_all(&join.plan, calls);
            Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(codes))
                .with_coded(coded)
        }
        (None, None) => Translator::new(Scalars::Unknown),
    };
    Ok(translator.with_row_functions())
}

/// The shapes of the grouping expressions; `None` for those over a small side of a hash join.
fn shapes<'a, 'p>(
    translator: &mut Translator,
    hash_join: Option<&HashJoin<'p>>,
    evaluated: impl Iterator<Item = (SortGroupClause<'p>, &'a Expr<'p>)>,
    by_code: &mut KeysByCode,
) -> Translation<Vec<Option<KeyShape>>>
where
    'p: 'a,
{
    let shape = |(clause, expression): (SortGroupClause<'p>, &Expr<'p>)| {
        let is_small = hash_join.is_some_and(|join| join.plan.is_small(expression.as_ptr()));
        match is_small {
            true => Ok(None),
            false => Ok(Some(by_code.key(translator, *expression, Some(clause))?.1)),
        }
    };
    evaluated.map(shape).collect()
}

/// The conditions on a table, all of which the engine can check.
pub(super) fn filters<'p>(
    root: PlannerInfo<'p>,
    input: RelOptInfo<'p>,
    is_joined_by_time: bool,
    translator: &mut Translator,
) -> Translation<List<'p, Expr<'p>>> {
    let mut filters = List::EMPTY;
    for qual in quals(root, input) {
        if qual.pseudoconstant() {
            return Err("a qual without columns".into());
        }
        if is_joined_by_time && qual.security_level() > 0 {
            return Err("a join behind a security barrier".into());
        }
        translator.predicate(qual.clause())?;
        filters.push(qual.clause());
    }
    Ok(filters)
}

/// The aggregates among the leaves, each once, with the shapes of their results, and whether one of them keeps its
/// values.
pub(super) fn calls<'p>(
    translator: &mut Translator,
    leaves: &[Expr<'p>],
    by_code: &mut KeysByCode,
) -> Translation<(List<'p, Expr<'p>>, Vec<Shape>, bool)> {
    let (mut calls, mut shapes, mut keeps_values) = (List::EMPTY, Vec::new(), false);
    for &leaf in leaves {
        if let Some(call) = leaf.downcast::<Aggref<'p>>() {
            let (aggregate, shape) =
                aggregate_call::aggregate(translator, call, Arrival::InOrder, by_code)?;
            keeps_values |= aggregate_call::keeps_values(call) || aggregate.takes_rows();
            calls.push_new(leaf);
            // An equal call has its shape already.
            if calls.len() > shapes.len() {
                shapes.push(shape);
            }
        }
    }
    Ok((calls, shapes, keeps_values))
}

/// The columns and aggregates of a target list and of HAVING.
pub fn leaves<'p>(target: List<'p, Expr<'p>>, having: Option<Expr<'p>>) -> Vec<Expr<'p>> {
    let parts = target.as_node().into_iter().chain(having);
    parts
        .flat_map(|part| part.leaves(AGGREGATES_WHOLE))
        .collect()
}

/// Refuses columns outside of aggregates that are no grouping expressions. Such a column depends functionally on one.
///
/// # Errors
/// There is such a column.
pub fn ungrouped_columns<'p>(node: Option<Expr<'p>>, keys: List<'p, Expr<'p>>) -> Translation<()> {
    let Some(node) = node else {
        return Ok(());
    };
    let mut is_found = false;
    // The copy is not used: a copy leaves out what is below the nodes that are replaced.
    walk::replaced(node, &mut |node| {
        let is_column = matches!(
            node.kind(),
            Kind::Var(_) | Kind::PlaceHolderVar(_) | Kind::GroupingFunc(_)
        );
        let is_settled =
            matches!(node.kind(), Kind::Aggref(_)) || keys.iter().any(|key| key.equals(node));
        is_found |= is_column && !is_settled;
        (is_column || is_settled).then_some(node)
    });
    match is_found {
        true => Err("a column that depends on a grouping column".into()),
        false => Ok(()),
    }
}
