//! Offers `LanesAggregate`: the groups of a table, or of a join.

use pgrx::pg_sys;

use super::cost::Aggregated;
use super::grouping_sets;
use super::state::AggregateState;
use super::states::Grouped;
use super::terms::Terms;
use super::workers;
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::translate::Translation;
use crate::joins::by_key::sides::HashJoin;
use crate::joins::by_time::find::TimeJoin;
use crate::nodes::engine::plan::{Engine, Joined};
use crate::nodes::hash_join;
use crate::pg::tree::{CustomPath, List, Path, PlannerInfo, Query, RelOptInfo};

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
    mut input: Input<'_, 'p>,
    output: RelOptInfo<'p>,
    stage: pg_sys::UpperRelationKind::Type,
) -> Translation<()> {
    let Some(query) = input.root.parse() else {
        return Err("no query".into());
    };
    check(query, input.relation)?;
    if !query.groupingSets().is_empty() {
        return grouping_sets::offer(&mut input, query, output, stage);
    }
    let terms = Terms::of(&mut input, query, stage)?;
    let input = Aggregated {
        root: input.root,
        relation: input.relation,
        join: input.join,
        hash_join: input.hash_join.as_deref(),
    };
    let path = callbacks::new_path::<AggregateState>(output, input.root.upper_target(stage));
    let children = match (input.join, input.hash_join) {
        (_, Some(join)) => hash_join::offer::small_paths(input.root, join),
        (Some(join), None) => List::new([join.path]),
        (None, None) => List::EMPTY,
    };
    path.set_children(children);
    let per_row = (terms.keys, terms.calls.len(), terms.by_row);
    let work = input.estimate(path, output, terms.filters, per_row, terms.limit.as_ref());
    let own_plan = own_plan(&input, &terms, output)?;
    if let Some(own_plan) = own_plan {
        add_own_plan(path, children, own_plan);
    }
    let order = terms.order.map(|(_, keys)| keys);
    path.as_path().set_keys(order.unwrap_or(List::EMPTY));
    let has_limit = terms.limit.is_some();
    let (keys, filters) = (terms.keys, terms.filters);
    let evaluated = terms.evaluated.clone();
    path.set_private(engine(&input, terms, own_plan.is_some()).stored());
    output.add_path(path);
    if input.join.is_none() && stage == pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG {
        let alone = workers::OneProcess {
            grouped: Grouped {
                root: input.root,
                relation: input.relation,
                hash_join: input.hash_join,
                keys,
                evaluated,
                absent: Vec::new(),
                filters,
            },
            output,
            has_limit,
            work,
        };
        // One process does what workers cannot.
        if let Err(reason) = workers::offer(&alone) {
            pgrx::debug1!("aggregation by workers: {reason}");
        }
    }
    Ok(())
}

/// PostgreSQL's own plan, in the order of the groups, which takes over if the groups are too large. `None`: the node
/// needs none.
///
/// # Errors
/// It needs one, and there is none.
fn own_plan<'p>(
    input: &Aggregated<'_, 'p>,
    terms: &Terms<'p>,
    output: RelOptInfo<'p>,
) -> Translation<Option<Path<'p>>> {
    // Without keys there is one group, which is small unless an aggregate keeps its values.
    let is_small = terms.keys.is_empty() && !terms.keeps_values;
    let own_plan = match is_small && input.is_divisible() {
        true => None,
        false => stand_in::path(output),
    };
    if own_plan.is_none() && (!input.is_divisible() || terms.keeps_values) {
        return Err("no other plan".into());
    }
    Ok(match terms.order {
        Some((_, order)) => own_plan.map(|path| input.root.sorted(path, order)),
        None => own_plan,
    })
}

/// Makes PostgreSQL's own plan the last child of a path.
fn add_own_plan<'p>(path: CustomPath<'p>, mut children: List<'p, Path<'p>>, own_plan: Path<'p>) {
    let is_safe = path.as_path().parallel_safe() && !stand_in::has_workers(own_plan);
    path.as_path().set_parallel_safe(is_safe);
    children.push(own_plan);
    path.set_children(children);
}

/// The part of a plan that describes the aggregation.
fn engine<'a, 'p>(
    input: &Aggregated<'a, 'p>,
    terms: Terms<'p>,
    has_stand_in: bool,
) -> Engine<'a, 'p> {
    Engine {
        index: input.relation.relid(),
        keys: terms.keys,
        calls: terms.calls,
        absent: Vec::new(),
        quals: terms.filters,
        join: match (input.join, input.hash_join) {
            (_, Some(join)) => Joined::ByHash(&join.plan, List::new(terms.evaluated)),
            (Some(join), None) => Joined::ByTime(join),
            (None, None) => Joined::No,
        },
        has_stand_in,
        is_partial: false,
        order: terms.order.map(|(order, _)| order),
        limit: terms.limit,
        row_limit: None,
    }
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
