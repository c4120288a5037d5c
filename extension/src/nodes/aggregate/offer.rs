//! Offers `LanesAggregate`: the groups of a table, or of a join.

use pgrx::pg_sys;

use super::grouping_sets;
use super::state::AggregateState;
use super::workers;
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::aggregate_call::{self, KeyShape, Shape};
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::row_function::KeysByCode;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::sides::{HashJoin, Sides, sides_of_path};
use crate::joins::by_key::{conditions, equal_columns};
use crate::joins::by_time::find::TimeJoin;
use crate::nodes::engine::group_limit::{Columns, GroupLimit};
use crate::nodes::engine::group_order::GroupOrder;
use crate::nodes::engine::plan::{Engine, Joined};
use crate::nodes::hash_join;
use crate::nodes::time_join::offer::{JOIN_SHARE, fits_memory};
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::server;
use crate::pg::tree::{
    Aggref, CustomPath, Expr, Kind, List, Node, PathTarget, PlannerInfo, Query, RelOptInfo,
    SortGroupClause, View, plan_node, walk,
};
use crate::planner;
use crate::planner::bucket_groups;
use crate::planner::quals::{VECTOR_SHARE, quals};

/// Grouping joined rows by vectors costs at most this share of returning them. Where few rows are expected, the costs are
/// too close to distinguish plans, and usually many more rows come.
const LESS_THAN_ROWS: f64 = 0.95;

/// The cost of an expression that PostgreSQL evaluates for a row of a vector, as a share of an operator's: nothing
/// is paid for forming the row. Measured with lengths of texts, sums of numerics and fields of times.
const ROW_SHARE: f64 = 0.5;

/// Bytes of a group besides its keys and results, roughly.
const GROUP_BYTES: f64 = 32.0;

/// The cost of rows in temporary files, which are written and read once, if so many bytes of groups do not fit into
/// memory.
fn waiting_cost(groups: f64, rows: f64) -> f64 {
    let share = (1.0 - hash_memory_limit() as f64 / groups.max(1.0)).max(0.0);
    2.0 * share * rows / f64::from(pg_sys::BLCKSZ) * server::seq_page_cost()
}

/// The cost of the rows of a hash join, if `LanesHashJoin` is the cheapest way to return them.
fn rows_cost(sides: &Sides<'_>) -> Option<f64> {
    let path = sides.joined.cheapest_total_path()?;
    sides_of_path(path.below_projections()).map(|_| path.total_cost())
}

/// The input of an aggregation: a table, or its join by time, or its hash join.
pub struct Input<'a, 'p> {
    /// The planner.
    pub root: PlannerInfo<'p>,
    /// The table.
    pub relation: RelOptInfo<'p>,
    /// The join by time.
    pub join: Option<&'a TimeJoin<'p>>,
    /// The hash join. It is asked for the columns that the groups and aggregates need.
    pub hash_join: Option<&'a mut HashJoin<'p>>,
}

/// Offers to aggregate a table, or its join by time, or its hash join: for the relation of groups or of distinct rows.
///
/// # Errors
/// The reason why the node cannot aggregate them.
pub fn offer<'p>(
    input: Input<'_, 'p>,
    output: RelOptInfo<'p>,
    stage: pg_sys::UpperRelationKind::Type,
) -> Translation<()> {
    let Some(query) = input.root.parse() else {
        return Err("no query".into());
    };
    check(query, input.relation)?;
    if !query.groupingSets().is_empty() {
        return grouping_sets::offer(&input, query, output, stage);
    }
    let Input {
        root,
        relation,
        join,
        hash_join,
    } = input;
    let index = relation.relid();
    let target = root.upper_target(stage);
    let exprs = target.map_or(List::EMPTY, |target| target.exprs());
    let leaves = leaves(exprs, query.havingQual());
    let grouped = grouped(root, query, stage);
    // The expressions that the engine groups by.
    let mut evaluated: Vec<_> = grouped.iter().map(|(_, expression)| *expression).collect();
    let mut codes = 0;
    let hash_join = match hash_join {
        None => None,
        Some(join) => {
            codes = want_all(join, &grouped, &mut evaluated, &leaves)?;
            Some(&*join)
        }
    };
    let mut translator = translator(join, hash_join, &leaves, index, codes)?;
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
    let order = GroupOrder::wanted(root, keys, &shapes);
    let (calls, result_shapes, keeps_values) = calls(&mut translator, &leaves)?;
    let columns = Columns {
        keys,
        key_shapes: &shapes,
        calls,
        shapes: &result_shapes,
        is_set: false,
    };
    // Groups that come in the whole order of the query need no limit: PostgreSQL's Limit stops.
    let has_order = order.is_some() && root.sort_pathkeys().len() == 1;
    let limit = match has_order {
        true => None,
        false => GroupLimit::wanted(root, stage, columns),
    };
    // Few groups are sorted faster than many groups are brought into an order.
    let order = order.filter(|_| limit.is_none());
    let keeps_values = keeps_values || !by_code.is_empty();
    ungrouped_columns(exprs.as_node(), keys)?;
    ungrouped_columns(query.havingQual(), keys)?;

    let path = callbacks::new_path::<AggregateState>(output, target);
    let mut children = match (join, hash_join) {
        (_, Some(join)) => hash_join::offer::small_paths(root, join),
        (Some(join), None) => List::new([join.path]),
        (None, None) => List::EMPTY,
    };
    path.set_children(children);
    let input = Aggregated {
        root,
        relation,
        join,
        hash_join,
    };
    let by_row = translator.by_row;
    let work = (keys, calls.len(), by_row);
    let cost = input.estimate(path, output, filters, work, limit.as_ref());
    // Without keys there is one group, which is small unless an aggregate keeps its values.
    let is_small = keys.is_empty() && !keeps_values;
    let stand_in = match is_small && input.is_divisible() {
        true => None,
        false => stand_in::path(output),
    };
    if stand_in.is_none() && (!input.is_divisible() || keeps_values) {
        return Err("no other plan".into());
    }
    let stand_in = match order {
        Some((_, order)) => stand_in.map(|path| root.sorted(path, order)),
        None => stand_in,
    };
    if let Some(stand_in) = stand_in {
        let is_safe = path.as_path().parallel_safe() && !stand_in::has_workers(stand_in);
        path.as_path().set_parallel_safe(is_safe);
        children.push(stand_in);
        path.set_children(children);
    }
    path.as_path()
        .set_keys(order.map_or(List::EMPTY, |(_, keys)| keys));
    let has_limit = limit.is_some();
    let stored = Engine {
        index,
        keys,
        calls,
        absent: Vec::new(),
        quals: filters,
        join: match (join, hash_join) {
            (_, Some(join)) => Joined::ByHash(&join.plan, List::new(evaluated)),
            (Some(join), None) => Joined::ByTime(join),
            (None, None) => Joined::No,
        },
        has_stand_in: stand_in.is_some(),
        order: order.map(|(order, _)| order),
        limit,
    };
    path.set_private(stored.stored());
    output.add_path(path);
    let is_alone = join.is_none() && hash_join.is_none();
    if is_alone && stage == pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG {
        let alone = workers::Alone {
            root,
            relation,
            output,
            keys,
            filters,
            has_codes: !by_code.is_empty(),
            has_limit,
            cost,
        };
        // One process does what workers cannot.
        if let Err(reason) = workers::offer(&alone) {
            pgrx::debug1!("aggregation by workers: {reason}");
        }
    }
    Ok(())
}

/// Refuses queries that no groups of the engine answer.
fn check(query: Query<'_>, input: RelOptInfo<'_>) -> Translation<()> {
    if query.hasTargetSRFs() {
        return Err("a set-returning function".into());
    }
    if !input.lateral_relids().is_empty() {
        return Err("a lateral reference".into());
    }
    Ok(())
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
    for leaf in leaves.iter().filter(|leaf| leaf.as_var().is_none()) {
        join.want(leaf.as_ptr())?;
    }
    Ok(codes)
}

/// The translator of the expressions over a table or a join.
fn translator<'p>(
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
            let conditions = conditions::of_filters(&join.plan, calls);
            Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(codes))
                .with_conditions(&conditions)
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
) -> Translation<(List<'p, Expr<'p>>, Vec<Shape>, bool)> {
    let (mut calls, mut shapes, mut keeps_values) = (List::EMPTY, Vec::new(), false);
    for &leaf in leaves {
        if let Some(call) = leaf.downcast::<Aggref<'p>>() {
            let (aggregate, shape) = aggregate_call::aggregate(translator, call, Arrival::InOrder)?;
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

/// The input of an aggregation, with the expressions of its groups and aggregates.
pub(super) struct Aggregated<'a, 'p> {
    pub root: PlannerInfo<'p>,
    pub relation: RelOptInfo<'p>,
    pub join: Option<&'a TimeJoin<'p>>,
    pub hash_join: Option<&'a HashJoin<'p>>,
}

impl<'p> Aggregated<'_, 'p> {
    /// Whether it can be divided if its groups are too large for the memory limit. A join by time cannot.
    fn is_divisible(&self) -> bool {
        self.join.is_none() && self.hash_join.is_none_or(|join| join.plan.is_divisible())
    }

    /// Estimates the rows and the cost of a path, and returns the cost of its rows before there are groups. The
    /// path's children are the small sides of a hash join, if there is one. Each row costs the evaluation of the
    /// keys, of so many calls of aggregates, and of so many expressions by PostgreSQL.
    pub fn estimate(
        &self,
        path: CustomPath<'p>,
        output: RelOptInfo<'p>,
        filters: List<'p, Expr<'p>>,
        (keys, calls, by_row): (List<'p, Expr<'p>>, usize, usize),
        limit: Option<&GroupLimit>,
    ) -> f64 {
        let terms = keys.len() + calls;
        let (root, input) = (self.root, self.relation);
        let operator = server::cpu_operator_cost();
        let base = path.as_path();
        base.set_parallel_safe(
            self.join.is_none() && self.hash_join.is_none() && output.consider_parallel(),
        );
        let rows = bucket_groups::expected(root, input, keys, output.expected_rows());
        let returned = limit.map_or(rows, |limit| rows.min(limit.limit() as f64));
        base.set_rows(returned);
        let target = base.pathtarget();
        let width = |target: Option<PathTarget<'_>>| target.map_or(0, |target| target.width());
        let per_row = |work: usize| work.max(1) as f64 * operator * VECTOR_SHARE;
        let of_row = by_row as f64 * operator * ROW_SHARE;
        let grouping = |rows: f64| rows * (per_row(terms) + of_row);
        let read = match self.hash_join {
            Some(join) => {
                let rows = join.sides.joined.rows();
                let cost = hash_join::offer::Cost::of(root, join, rows, filters.len());
                hash_join::offer::total_cost(path.custom_paths())
                    + cost.build
                    + cost.reading
                    + grouping(rows)
            }
            None => {
                // Keys and aggregates see only rows that pass the conditions.
                let share = planner::selectivity::of(root, input, filters);
                let filtering = input.tuples() * share * per_row(filters.len());
                let pages = f64::from(input.pages()) * share;
                let reading = pages * server::seq_page_cost() * 0.1 + filtering;
                let by_time = self.join.map_or(0.0, |join| {
                    (join.right_rows + input.tuples()) * operator * JOIN_SHARE
                });
                let group = f64::from(width(target)) + GROUP_BYTES;
                let row = f64::from(width(input.reltarget()));
                let waiting = waiting_cost(rows * group, input.rows() * row);
                reading + by_time + grouping(input.rows()) + waiting
            }
        };
        let cost = target.map(|target| target.cost()).unwrap_or_default();
        let mut startup = read + cost.startup;
        let comparing = limit.map_or(0.0, |_| rows * operator * VECTOR_SHARE);
        startup += comparing;
        let returning = server::cpu_tuple_cost() * 0.5 + cost.per_tuple;
        let mut total = startup + returned * returning;
        if let Some(join) = self.hash_join
            && let Some(handed_over) = rows_cost(&join.sides)
        {
            let less = handed_over * LESS_THAN_ROWS;
            (startup, total) = (startup.min(less), total.min(less));
        }
        base.set_startup_cost(startup);
        base.set_total_cost(total);
        read
    }
}

/// The columns and aggregates of a target list and of HAVING.
pub fn leaves<'p>(target: List<'p, Expr<'p>>, having: Option<Expr<'p>>) -> Vec<Expr<'p>> {
    let parts = target.as_node().into_iter().chain(having);
    parts.flat_map(|part| part.leaves(LEAVES)).collect()
}

/// `pull_var_clause` returns aggregates as a whole.
const LEAVES: u32 = pg_sys::PVC_INCLUDE_AGGREGATES
    | pg_sys::PVC_RECURSE_WINDOWFUNCS
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS;

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
