//! Offers `LanesNestedAggregate`: an aggregation of a sub-select that `LanesAggregate` or `LanesWindow` computes.

use pgrx::pg_sys;

use super::outputs::Outputs;
use super::state::NestedState;
use crate::custom_scan::private_data::numbers_of;
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::aggregate_call;
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::row_function::KeysByCode;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::aggregate;
use crate::nodes::aggregate::state::AggregateState;
use crate::nodes::aggregate::terms::ungrouped_columns;
use crate::nodes::engine::plan::{Engine, Joined};
use crate::nodes::window::partitioned;
use crate::nodes::window::state::WindowState;
use crate::pg::server;
use crate::pg::tree::{
    Aggref, CustomPath, Expr, List, Node, Path, PlannerInfo, ProjectionPath, Query, RelOptInfo,
    SubqueryScanPath, TargetEntry,
};
use crate::planner::quals::VECTOR_SHARE;

/// The operator `=` of texts.
const TEXT_EQUALITY: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::TextEqualOperator);

/// The aggregation of a sub-select, or its window functions, while it is planned.
struct Below<'p> {
    /// The path of the sub-select in the query above.
    scan: Path<'p>,
    aggregation: CustomPath<'p>,
    root: PlannerInfo<'p>,
    /// Whether it returns rows with window functions.
    is_window: bool,
}

impl<'p> Below<'p> {
    /// The cheapest path of a sub-select whose rows are the groups of a node of this extension.
    fn of(root: PlannerInfo<'p>, input: RelOptInfo<'p>) -> Option<Below<'p>> {
        let is_alone = input.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL
            && input.rtekind() == pg_sys::RTEKind::RTE_SUBQUERY;
        let sub_select = input.subroot().filter(|_| is_alone)?;
        let is_plain = input.lateral_relids().is_empty()
            && input.baserestrictinfo().is_empty()
            && !root.entry(input.relid())?.inh();
        let paths = input.pathlist().iter().filter_map(|path| {
            // The engine evaluates grouping expressions above it itself.
            let projection = path.downcast::<ProjectionPath<'p>>();
            let path = projection.map_or(Some(path), ProjectionPath::subpath)?;
            let scan = path.downcast::<SubqueryScanPath<'p>>()?;
            if path.param_info().is_some() {
                return None;
            }
            let below = scan.subpath()?;
            let window = as_window(below);
            Some(Below {
                scan: path,
                is_window: window.is_some(),
                aggregation: window.or_else(|| as_groups(below))?,
                root: sub_select,
            })
        });
        let cost = |below: &Below<'_>| below.scan.total_cost();
        paths
            .filter(|_| is_plain)
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
    }

    /// A list that the path stores.
    fn stored(&self, part: usize) -> List<'p, Expr<'p>> {
        let stored = self.aggregation.custom_private().get(part);
        stored.and_then(Expr::as_nodes).unwrap_or(List::EMPTY)
    }

    /// How many keys and aggregates there are. The texts of a window are keys, its other columns and its functions
    /// count as aggregates.
    fn counts(&self) -> (usize, usize) {
        let numbers = numbers_of(self.stored(0).get(0));
        if !self.is_window {
            return (numbers[0] as usize, numbers[1] as usize);
        }
        let entries = self.stored(2).iter();
        let entries = entries.filter_map(|entry| entry.downcast().map(TargetEntry::expr));
        let columns = entries.take(partitioned::plan::columns(&numbers));
        let keys = partitioned::plan::text_columns(columns);
        (keys, partitioned::plan::entries(&numbers) - keys)
    }

    /// The keys and aggregates, and how many of them are keys.
    fn entries(&self) -> (Vec<Expr<'p>>, usize) {
        let (keys, calls) = self.counts();
        let entries = self.stored(2).iter().take(keys + calls);
        let entries = entries.filter_map(|entry| entry.downcast().map(TargetEntry::expr));
        (entries.collect(), keys)
    }

    /// The columns of the sub-select.
    fn outputs(&self, index: u32) -> Outputs<'p> {
        let (entries, keys) = self.entries();
        let target = self.aggregation.as_path().pathtarget();
        let list = target.map_or(List::EMPTY, |target| target.exprs());
        Outputs::of_path(index, list, &entries, keys)
    }

    /// The operator that makes the values of a key distinct. The keys are in the order of their clauses.
    fn equality(&self, key: usize) -> Option<pg_sys::Oid> {
        if self.is_window {
            return Some(TEXT_EQUALITY);
        }
        let query = self.root.parse()?;
        let clauses = match query.groupClause().is_empty() {
            true => query.distinctClause(),
            false => query.groupClause(),
        };
        clauses.get(key).map(|clause| clause.eqop())
    }

    /// The conditions of HAVING, which the planner has turned into a list, or those on results of window functions.
    fn having(&self) -> List<'p, Expr<'p>> {
        if self.is_window {
            return partitioned::offer::conditions(self.root);
        }
        let having = self.root.parse().and_then(Query::havingQual);
        having.and_then(Expr::as_nodes).unwrap_or(List::EMPTY)
    }

    /// Estimates the costs of a path that has its rows already and aggregates these groups, with so
    /// many keys and calls of aggregates.
    fn estimate(&self, base: Path<'p>, terms: usize) {
        let per_row = terms.max(1) as f64 * server::cpu_operator_cost() * VECTOR_SHARE;
        let groups = self.aggregation.as_path();
        let cost = base.pathtarget().map(|target| target.cost());
        let cost = cost.unwrap_or_default();
        let startup = groups.startup_cost() + groups.rows() * per_row + cost.startup;
        let returning = server::cpu_tuple_cost() * 0.5 + cost.per_tuple;
        base.set_startup_cost(startup);
        base.set_total_cost(startup + base.rows() * returning);
    }
}

/// The path as one of a node of this extension that returns groups, if it is one.
fn as_groups(path: Path<'_>) -> Option<CustomPath<'_>> {
    let aggregation = callbacks::path_of::<AggregateState>(path);
    aggregation.or_else(|| callbacks::path_of::<NestedState>(path))
}

/// The path as one that returns rows with SQL's own window functions, if it is one.
fn as_window(path: Path<'_>) -> Option<CustomPath<'_>> {
    let window = callbacks::path_of::<WindowState>(path)?;
    let stored = window.custom_private().get(0).and_then(Expr::as_nodes);
    let numbers = numbers_of(stored.unwrap_or(List::EMPTY).get(0));
    (numbers.first() == Some(&partitioned::plan::PARTITIONED)).then_some(window)
}

/// Offers to aggregate the groups of a sub-select. Nothing happens if the relation is no such sub-select.
///
/// # Errors
/// The reason why the node cannot aggregate them.
pub fn offer<'p>(
    root: PlannerInfo<'p>,
    input: RelOptInfo<'p>,
    output: RelOptInfo<'p>,
) -> Translation<()> {
    let (Some(below), Some(query)) = (Below::of(root, input), root.parse()) else {
        return Ok(());
    };
    if !query.groupingSets().is_empty() || query.hasTargetSRFs() {
        return Err("grouping sets, or a set-returning function".into());
    }
    let index = input.relid();
    let outputs = below.outputs(index);
    let mut translator = Translator::of_other_table(Scalars::Unknown);
    having(&below, index, &mut translator)?;
    let target = root.upper_target(pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG);
    let exprs = target.map_or(List::EMPTY, |target| target.exprs());
    let keys = keys(root, query, &below, &outputs, &mut translator)?;
    let leaves = aggregate::terms::leaves(exprs, query.havingQual());
    let calls = calls(leaves, &outputs, &mut translator)?;
    outputs.check(&translator.attributes())?;
    ungrouped_columns(exprs.as_node(), keys)?;
    ungrouped_columns(query.havingQual(), keys)?;

    let path = callbacks::new_path::<NestedState>(output, target);
    let stand_in = stand_in::path(output).ok_or("no other plan")?;
    let base = path.as_path();
    // As PostgreSQL's own path: of two paths with about equal costs, the planner keeps the parallel-safe one.
    base.set_parallel_safe(
        output.consider_parallel()
            && below.scan.parallel_safe()
            && !stand_in::has_workers(stand_in),
    );
    base.set_rows(stand_in.rows());
    below.estimate(base, keys.len() + calls.len());
    path.set_children(List::new([below.scan, stand_in]));
    let stored = Engine {
        index,
        keys,
        calls,
        absent: Vec::new(),
        quals: List::EMPTY,
        join: Joined::No,
        has_stand_in: true,
        is_partial: false,
        order: None,
        limit: None,
        row_limit: None,
    };
    path.set_private(stored.stored());
    output.add_path(path);
    Ok(())
}

/// Refuses conditions of HAVING below that the engine cannot evaluate.
fn having(below: &Below<'_>, index: u32, translator: &mut Translator) -> Translation<()> {
    let (entries, keys) = below.entries();
    let conditions = Outputs::of_path(index, below.having(), &entries, keys);
    for condition in conditions.columns() {
        translator.predicate(*condition)?;
    }
    Ok(())
}

/// The calls of aggregates among these expressions.
fn calls<'p>(
    leaves: Vec<Expr<'p>>,
    outputs: &Outputs<'p>,
    translator: &mut Translator,
) -> Translation<List<'p, Expr<'p>>> {
    let mut calls = List::EMPTY;
    for leaf in leaves {
        if leaf.downcast::<Aggref<'p>>().is_some() {
            let call = outputs.over_entries(leaf)?.downcast::<Aggref<'p>>();
            let call = call.ok_or("an aggregate that is a column below")?;
            let by_code = &mut KeysByCode::default();
            aggregate_call::aggregate(translator, call, Arrival::Any, by_code)?;
            calls.push_new(leaf);
        }
    }
    Ok(calls)
}

/// The grouping expressions.
fn keys<'p>(
    root: PlannerInfo<'p>,
    query: Query<'p>,
    below: &Below<'p>,
    outputs: &Outputs<'p>,
    translator: &mut Translator,
) -> Translation<List<'p, Expr<'p>>> {
    let mut keys = List::EMPTY;
    for clause in query.groupClause() {
        let expression = clause.expr(root.processed_tlist());
        keys.push(expression);
        match outputs.key_of(expression) {
            Some(key) if below.equality(key) != Some(clause.eqop()) => {
                return Err("GROUP BY with two ideas of what is equal".into());
            }
            Some(_) => {}
            None => {
                let expression = outputs.over_entries(expression)?;
                aggregate_call::key(translator, expression)?;
            }
        }
    }
    Ok(keys)
}
