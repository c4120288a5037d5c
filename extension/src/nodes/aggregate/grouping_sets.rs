//! Offers GROUPING SETS, ROLLUP and CUBE: a `LanesAggregate` for each set of keys, one after the other.
//!
//! ```text
//! GROUP BY ROLLUP (a, b) ──► Append ──► LanesAggregate by a, b
//!                                  ──► LanesAggregate by a; b is NULL
//!                                  ──► LanesAggregate of all rows; a and b are NULL
//! ```
//! A node returns NULL for keys that are not in its set, and a constant for `GROUPING(…)`. Each node reads the
//! table, so the cost grows with the number of sets, and the planner compares it with that of PostgreSQL's own
//! plan. The memory of each is bounded as that of any grouping.
//!
//! PostgreSQL finds the columns of a node by their expressions. So two keys that are equal, of which one may be
//! NULL where the other is not, are left to its own node, which tells keys apart by their numbers. It never looks
//! for a constant.

use pgrx::pg_sys;

use super::cost::Aggregated;
use super::grouping_sets_of_join;
use super::offer::Input;
use super::state::AggregateState;
use super::terms::{Grouped, calls, filters, grouped, leaves, ungrouped_columns};
use crate::custom_scan::callbacks;
use crate::expressions::aggregate_call::{KeyShape, Shape};
use crate::expressions::row_function::KeysByCode;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::engine::group_limit::{Columns, GroupLimit};
use crate::nodes::engine::plan::{Absent, Engine, Joined};
use crate::pg::tree::{CustomPath, Expr, Kind, List, Path, Query, RelOptInfo, SortGroupClause};

/// Offers to aggregate a table, or a [hash join](grouping_sets_of_join), by each set of keys.
///
/// # Errors
/// The reason why the node cannot.
pub fn offer<'p>(
    input: &mut Input<'_, 'p>,
    query: Query<'p>,
    output: RelOptInfo<'p>,
    stage: pg_sys::UpperRelationKind::Type,
) -> Translation<()> {
    if input.join.is_some() {
        return Err("grouping sets of a join by time".into());
    }
    if input.hash_join.is_some() {
        return grouping_sets_of_join::offer(input, query, output, stage);
    }
    let (root, relation) = (input.root, input.relation);
    let target = root.upper_target(stage);
    let exprs = target.map_or(List::EMPTY, |target| target.exprs());
    let leaves = leaves(exprs, query.havingQual());
    let grouped = grouped(root, query, stage);
    check_keys(&grouped)?;
    let mut translator = Translator::new(Scalars::Unknown).with_row_functions();
    let filters = filters(root, relation, false, &mut translator)?;
    let mut by_code = KeysByCode::default();
    let mut key_shapes = Vec::new();
    for (clause, expression) in &grouped {
        let (_, shape) = by_code.key(&mut translator, *expression, Some(*clause))?;
        key_shapes.push(Some(shape));
    }
    let (calls, result_shapes, keeps_values) = calls(&mut translator, &leaves, &mut by_code)?;
    if keeps_values || by_code.keep_values() {
        // The plan that stands in for groups that are too large would return the groups of all sets.
        return Err("grouping sets with keys or aggregates that may take much memory".into());
    }
    let groupings = groupings(&leaves);
    let settled = grouped.iter().map(|(_, expression)| *expression);
    let settled = List::new(settled.chain(groupings.iter().copied()));
    ungrouped_columns(exprs.as_node(), settled)?;
    ungrouped_columns(query.havingQual(), settled)?;

    let of_all = AllSets {
        grouped,
        key_shapes,
        groupings,
        calls,
        result_shapes,
        filters,
        by_row: translator.by_row,
    };
    let sets = query.expanded_sets().into_iter();
    let sets = sets.map(|set| set.iter().map(|reference| reference as u32).collect());
    let paths: Vec<Path<'p>> = sets
        .map(|set: Vec<u32>| of_all.path_of(&set, input, output, stage))
        .collect();
    output.add_any_path(root.appended(output, &paths, target));
    Ok(())
}

/// The expressions of all sets.
struct AllSets<'p> {
    grouped: Vec<Grouped<'p>>,
    key_shapes: Vec<Option<KeyShape>>,
    groupings: Vec<Expr<'p>>,
    calls: List<'p, Expr<'p>>,
    result_shapes: Vec<Shape>,
    filters: List<'p, Expr<'p>>,
    /// How many expressions PostgreSQL evaluates for each row.
    by_row: usize,
}

impl<'p> AllSets<'p> {
    /// The path of a node that groups by the keys of one set, given by the numbers of their clauses.
    fn path_of(
        &self,
        set: &[u32],
        input: &Input<'_, 'p>,
        output: RelOptInfo<'p>,
        stage: pg_sys::UpperRelationKind::Type,
    ) -> Path<'p> {
        let (root, relation) = (input.root, input.relation);
        let is_key = |clause: SortGroupClause<'p>| set.contains(&clause.tleSortGroupRef());
        let (mut keys, mut absent) = (List::EMPTY, Vec::new());
        let mut shapes = Vec::new();
        for ((clause, expression), shape) in self.grouped.iter().zip(&self.key_shapes) {
            match is_key(*clause) {
                true => {
                    keys.push(*expression);
                    shapes.push(*shape);
                }
                false => absent.push(Absent::null(*expression)),
            }
        }
        for grouping in &self.groupings {
            let value = grouping_value(*grouping, set);
            absent.push(Absent::constant(*grouping, value));
        }
        let target = root.upper_target(stage);
        let path: CustomPath<'p> = callbacks::new_path::<AggregateState>(output, target);
        let of_table = Aggregated {
            root,
            relation,
            join: None,
            hash_join: None,
        };
        let columns = Columns {
            keys,
            key_shapes: &shapes,
            calls: self.calls,
            shapes: &self.result_shapes,
            is_set: true,
        };
        // The first groups of all sets are among the first groups of each set.
        let limit = GroupLimit::wanted(root, stage, columns);
        let work = (keys, self.calls.len(), self.by_row);
        of_table.estimate(path, output, self.filters, work, limit.as_ref());
        let stored = Engine {
            index: relation.relid(),
            keys,
            calls: self.calls,
            absent,
            quals: self.filters,
            join: Joined::No,
            has_stand_in: false,
            is_partial: false,
            order: None,
            limit,
            row_limit: None,
        };
        path.set_private(stored.stored());
        path.as_path()
    }
}

/// Refuses keys that are equal, and keys without columns.
pub(super) fn check_keys(grouped: &[Grouped<'_>]) -> Translation<()> {
    for (place, (_, key)) in grouped.iter().enumerate() {
        if !key.has_vars() {
            return Err("grouping sets of a constant".into());
        }
        let mut others = grouped[..place].iter();
        if others.any(|(_, other)| other.equals(*key)) {
            return Err("grouping sets of equal keys".into());
        }
    }
    Ok(())
}

/// The calls of `GROUPING` among the leaves, each once.
pub(super) fn groupings<'p>(leaves: &[Expr<'p>]) -> Vec<Expr<'p>> {
    let mut found: Vec<Expr<'p>> = Vec::new();
    for leaf in leaves {
        let is_grouping = matches!(leaf.kind(), Kind::GroupingFunc(_));
        if is_grouping && !found.iter().any(|known| known.equals(*leaf)) {
            found.push(*leaf);
        }
    }
    found
}

/// The result of `GROUPING` for a set: a bit for each argument, set if the argument is not in the set.
pub(super) fn grouping_value(grouping: Expr<'_>, set: &[u32]) -> i32 {
    let Kind::GroupingFunc(grouping) = grouping.kind() else {
        return 0;
    };
    let references = grouping.refs().iter();
    references.fold(0, |bits, reference| {
        bits << 1 | i32::from(!set.contains(&(reference as u32)))
    })
}
