//! Recognises an equality join of a lanes table with something smaller.

use lanes_columnar::aggregate::Key;
use pgrx::pg_sys;

use super::key_types;
use super::match_condition;
use super::plan::{Dimension, HashJoinPlan, JoinKind};
use super::small_side::ROW_BYTES;
use crate::custom_scan::names;
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::labels::metric_estimate;
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::outer_joins;
use crate::pg::tree::{
    Expr, Integers, List, Node, OpExpr, Path, PlannerInfo, RelOptInfo, Relids, RestrictInfo, View,
};
use crate::planner::lanes_table::is_lanes_scan;
use crate::planner::quals::has_vector_quals;

/// A relation that a lanes table is joined with.
#[derive(Clone, Copy)]
pub struct Side<'p> {
    /// The relation.
    pub small: RelOptInfo<'p>,
    /// The kind of join, in which the lanes table is the left side.
    pub kind: JoinKind,
    /// The join's conditions.
    pub conditions: List<'p, RestrictInfo<'p>>,
}

/// A lanes table and the relations that it is joined with, each by its own keys.
#[derive(Clone)]
pub struct Sides<'p> {
    /// The lanes table.
    pub lanes: RelOptInfo<'p>,
    /// The relations in the order in which they are joined.
    pub dimensions: Vec<Side<'p>>,
    /// The relation of all of them joined.
    pub joined: RelOptInfo<'p>,
}

/// The most relations that a lanes table is joined with in one node.
const DIMENSIONS_MAX: usize = 8;

/// A join as the planner finds it.
pub struct HashJoin<'p> {
    /// Its sides.
    pub sides: Sides<'p>,
    /// The plan; its outputs are still missing.
    pub plan: HashJoinPlan,
    /// The keys over the small sides, for each dimension.
    pub small_keys: Vec<Vec<*mut pg_sys::Node>>,
}

impl HashJoin<'_> {
    /// Adds the columns of small sides that an expression has to what the join gives.
    ///
    /// # Errors
    /// If it has more than columns to take from the join.
    pub fn want(&mut self, expression: *mut pg_sys::Node) -> Translation<()> {
        let dimensions = self.sides.dimensions.iter();
        let relations: Vec<_> = dimensions.map(|side| side.small.relids()).collect();
        self.plan.want(expression, &relations)
    }
}

impl<'p> HashJoin<'p> {
    /// Checks that several processes can join, each other rows of the lanes table. Each process reads the small sides
    /// itself, and no other plan can take over from it.
    ///
    /// # Errors
    /// Why they cannot, if these are the grouping expressions.
    pub fn check_workers(
        &self,
        root: PlannerInfo<'p>,
        keys: impl Iterator<Item = *mut pg_sys::Node>,
    ) -> Translation<()> {
        let mut sides = self.sides.dimensions.iter();
        if sides.any(|side| side.kind.keeps_small_rows()) {
            return Err("a join that returns small rows without a match".into());
        }
        let mut sides = self.sides.dimensions.iter();
        if !sides.all(|side| side.is_repeatable(root)) {
            return Err("a small side that may have other rows when it is read again".into());
        }
        // The values that are grouped by are kept through all batches.
        let small = keys.filter(|key| self.plan.is_small(*key));
        let grouped: Vec<usize> = small
            .map(|key| self.plan.dimension_of(key))
            .collect::<Translation<_>>()?;
        let sides = self.sides.dimensions.iter().enumerate();
        let is_whole = |index| self.plan.divided != Some(index) || grouped.contains(&index);
        let mut whole = sides.filter(|(index, _)| is_whole(*index));
        match whole.all(|(_, side)| side.is_small_table(root)) {
            true => Ok(()),
            false => Err("a small side that may not fit in memory".into()),
        }
    }
}

impl<'p> Sides<'p> {
    /// The sides of a join of two relations, if the first is one lanes table, all of whose own quals are the engine's,
    /// or such a table that is joined already, and the second does not depend on it. (What keeps a qual from the
    /// engine is noted where its scan is offered.)
    pub fn of(
        root: PlannerInfo<'p>,
        joined: RelOptInfo<'p>,
        left: RelOptInfo<'p>,
        small: RelOptInfo<'p>,
        kind: JoinKind,
        conditions: List<'p, RestrictInfo<'p>>,
    ) -> Option<Sides<'p>> {
        let path = small.cheapest_total_path();
        let is_free = !conditions.is_empty()
            && left.lateral_relids().is_empty()
            && small.lateral_relids().is_empty()
            && path.is_some_and(|path| path.param_info().is_none());
        if !is_free {
            return None;
        }
        let side = Side {
            small,
            kind,
            conditions,
        };
        match left.reloptkind() {
            pg_sys::RelOptKind::RELOPT_BASEREL => {
                let is_ours =
                    is_lanes_scan(left, root.entry(left.relid())) && has_vector_quals(root, left);
                is_ours.then(|| Sides {
                    lanes: left,
                    dimensions: vec![side],
                    joined,
                })
            }
            pg_sys::RelOptKind::RELOPT_JOINREL if !kind.keeps_small_rows() => {
                let sides = Sides::of_joined(root, left).into_iter();
                // A small row that is returned alone would become a left row of the next join.
                let mut chains = sides.filter(|sides| {
                    !sides.dimensions[0].kind.keeps_small_rows()
                        && sides.dimensions.len() < DIMENSIONS_MAX
                });
                let mut sides = chains.next()?;
                sides.dimensions.push(side);
                sides.joined = joined;
                Some(sides.ordered(root))
            }
            _ => None,
        }
    }

    /// The sides of a join relation, if one of its paths shows them. There are several where either relation may be the
    /// lanes table. Where a join by workers has beaten all others, only the paths of workers show them.
    pub fn of_joined(root: PlannerInfo<'p>, joined: RelOptInfo<'p>) -> Vec<Sides<'p>> {
        let of_workers = joined.partial_pathlist();
        let paths = joined.pathlist().iter().chain(of_workers);
        let mut found = paths.map(|path| Sides::of_path(root, joined, path.below_projections()));
        found.find(|sides| !sides.is_empty()).unwrap_or_default()
    }

    /// The sides of a join that a path to its rows shows.
    fn of_path(root: PlannerInfo<'p>, joined: RelOptInfo<'p>, path: Path<'p>) -> Vec<Sides<'p>> {
        if let Some(sides) = sides_of_path(path) {
            let exchanged = sides.exchanged(root);
            return std::iter::once(sides).chain(exchanged).collect();
        }
        let Some(join) = path.as_join() else {
            return Vec::new();
        };
        let (Some(outer_path), Some(inner_path)) = (join.outerjoinpath(), join.innerjoinpath())
        else {
            return Vec::new();
        };
        // An inner side that takes parameters has absorbed some of the conditions.
        let is_unique = |path: Path<'_>| path.tag() == pg_sys::NodeTag::T_UniquePath;
        if inner_path.param_info().is_some() || is_unique(outer_path) || is_unique(inner_path) {
            return Vec::new();
        }
        let (Some(outer), Some(inner)) = (outer_path.parent(), inner_path.parent()) else {
            return Vec::new();
        };
        let Some(kind) = JoinKind::of(join.jointype()) else {
            return Vec::new();
        };
        let conditions = join.joinrestrictinfo();
        let mut all = Vec::new();
        all.extend(Sides::of(root, joined, outer, inner, kind, conditions));
        if all.is_empty() || kind.wants_keys_alone() {
            let kind = kind.exchanged();
            all.extend(Sides::of(root, joined, inner, outer, kind, conditions));
        }
        all
    }

    /// The sides of the same join of two relations with the other one as the lanes table, where rows of only one of
    /// them are returned.
    fn exchanged(&self, root: PlannerInfo<'p>) -> Option<Sides<'p>> {
        let [side] = &self.dimensions[..] else {
            return None;
        };
        let has_one = side.kind.wants_keys_alone() || side.kind.wants_small_rows_alone();
        let kind = side.kind.exchanged();
        let exchanged = || {
            Sides::of(
                root,
                self.joined,
                side.small,
                self.lanes,
                kind,
                side.conditions,
            )
        };
        has_one.then(exchanged)?
    }

    /// How many times the lanes table is expected to be read, where it is read once for each part of a side that was
    /// not expected to be small.
    pub fn expected_passes(&self) -> f64 {
        match &self.dimensions[..] {
            [side] if side.kind.wants_small_rows_alone() => {
                let parts = Sides::bytes(side) / side.kind.memory_limit() as f64;
                parts.ceil().max(1.0)
            }
            _ => 1.0,
        }
    }

    /// The estimated number of bytes that the rows of a small side take.
    fn bytes(side: &Side<'_>) -> f64 {
        side.small.rows() * side.row_bytes()
    }

    /// The small side that may be read in batches: the largest one whose join allows left rows
    /// to meet some small rows in one batch and others in the next.
    fn divided(&self) -> Option<usize> {
        let sides = self.dimensions.iter().enumerate();
        // A small row is known to have no match only after all batches of the other sides.
        let is_alone = self.dimensions.len() == 1;
        let divisible = sides.filter(|(_, side)| match is_alone {
            true => side.kind.is_divisible(),
            false => side.kind == JoinKind::Inner,
        });
        let bytes = |(_, side): &(usize, &Side<'_>)| Sides::bytes(side);
        let largest = divisible.max_by(|a, b| bytes(a).total_cmp(&bytes(b)));
        largest.map(|(index, _)| index)
    }

    /// Whether each small side that is read completely is expected to fit in its memory.
    fn fit_memory(&self, divided: Option<usize>) -> bool {
        let sides = self.dimensions.iter().enumerate();
        let mut whole = sides.filter(|(index, _)| divided != Some(*index));
        whole.all(|(_, side)| Sides::bytes(side) <= side.kind.memory_limit() as f64)
    }

    /// Builds the join of these sides.
    ///
    /// # Errors
    /// Why the join cannot be vectorised.
    pub fn join(self, root: PlannerInfo<'p>) -> Translation<HashJoin<'p>> {
        let mut translator = Translator::new(Scalars::Unknown);
        let (mut dimensions, mut small_keys) = (Vec::new(), Vec::new());
        let mut filters = Vec::new();
        for (index, side) in self.dimensions.iter().enumerate() {
            let before = &self.dimensions[..index];
            let compared = side.compared(root, self.lanes, before, &mut translator)?;
            dimensions.push(Dimension {
                kind: side.kind,
                left_keys: compared.left_keys,
                conditions: compared.conditions,
            });
            small_keys.push(compared.small_keys);
            filters.extend(compared.filters);
        }
        let plan = HashJoinPlan {
            table: self.lanes.relid(),
            dimensions,
            filters,
            outputs: Vec::new(),
            divided: self.divided(),
        };
        let keeps_left_rows = self
            .dimensions
            .iter()
            .any(|side| side.kind.keeps_left_rows());
        let has_several = self.dimensions.len() > 1;
        if (keeps_left_rows || has_several) && !self.fit_memory(plan.divided) {
            return Err("the small side would not fit in memory (see work_mem)".into());
        }
        let mut join = HashJoin {
            sides: self,
            plan,
            small_keys,
        };
        for expression in join.plan.expressions() {
            join.want(expression)?;
        }
        match_condition::check(&join.plan)?;
        Ok(join)
    }

    /// The sides as a list, the last element of what a path of the node stores: the lanes table, then the relation,
    /// the conditions and the kind of each dimension. [`sides_of_path`] reads it.
    pub fn remember(&self) -> List<'p, Expr<'p>> {
        let mut all = List::new([self.lanes.as_node()]);
        for side in &self.dimensions {
            let kind = Integers::new([side.kind.number()]);
            all.push(side.small.as_node());
            all.extend(side.conditions.as_node());
            all.extend(kind.as_node());
        }
        all
    }
}

/// The conditions of a join with a small side.
#[derive(Default)]
struct Compared {
    /// The keys over the lanes table or an earlier side.
    left_keys: Vec<*mut pg_sys::Node>,
    /// The keys over the small side.
    small_keys: Vec<*mut pg_sys::Node>,
    /// Further conditions on a match.
    conditions: Vec<*mut pg_sys::Node>,
    /// Conditions on the rows that an outer join returns.
    filters: Vec<*mut pg_sys::Node>,
}

impl<'p> Side<'p> {
    /// Whether it is a table, or the series of a metric, all of whose rows fit in memory, with and without conditions on
    /// them.
    fn is_small_table(&self, root: PlannerInfo<'p>) -> bool {
        let Side { small, .. } = self;
        // Of a table with children the planner knows only the rows that pass the conditions. It knows the rows of no
        // function but that of the series.
        let entry = root.entry(small.relid());
        let is_table = small.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL
            && entry.is_some_and(|entry| {
                entry.is_relation() && !entry.inh() || metric_estimate::reads_series(entry)
            });
        // The planner may not know how many rows a foreign table has.
        let rows = small.tuples().max(small.rows());
        is_table && rows * self.row_bytes() <= hash_memory_limit() as f64
    }

    /// Whether it has the same rows each time that it is read: it is no sample, and no condition on it is volatile.
    fn is_repeatable(&self, root: PlannerInfo<'p>) -> bool {
        let entry = root.entry(self.small.relid());
        let is_sample = entry.is_some_and(|entry| entry.tablesample().is_some());
        let mut quals = self.small.baserestrictinfo().iter();
        !is_sample && !quals.any(|qual| qual.clause().is_volatile())
    }

    /// The expected bytes of one of its rows in memory.
    fn row_bytes(&self) -> f64 {
        let width = self.small.reltarget().map_or(0, |target| target.width());
        f64::from(width) + ROW_BYTES as f64
    }

    /// The conditions of the join with this side, which follows the sides `before`, in PostgreSQL's order.
    ///
    /// # Errors
    /// Why the join cannot be vectorised.
    fn compared(
        &self,
        root: PlannerInfo<'p>,
        lanes: RelOptInfo<'p>,
        before: &[Side<'p>],
        translator: &mut Translator,
    ) -> Translation<Compared> {
        let mut compared = Compared::default();
        let mut no_key = None;
        let mut conditions: Vec<_> = self.conditions.iter().collect();
        let cost = |condition: &RestrictInfo<'p>| root.qual_cost(*condition).per_tuple;
        conditions.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        for condition in conditions {
            if condition.security_level() > 0 {
                return Err("a join behind a security barrier".into());
            }
            if condition.pseudoconstant() {
                return Err("a condition of the join without columns".into());
            }
            let clause = condition.clause();
            let is_outer = !matches!(
                self.kind,
                JoinKind::Inner | JoinKind::Semi | JoinKind::RightSemi
            );
            if is_outer && condition.is_pushed_down() {
                compared.filters.push(clause.as_ptr());
                continue;
            }
            match self.key(root, lanes, before, translator, condition) {
                Ok([left, small]) => {
                    compared.left_keys.push(left.as_ptr());
                    compared.small_keys.push(small.as_ptr());
                }
                Err(reason) => {
                    compared.conditions.push(clause.as_ptr());
                    no_key.get_or_insert(reason);
                }
            }
        }
        match compared.left_keys.is_empty() {
            true => Err(no_key.unwrap_or_else(|| "a join without an equality".into())),
            false => Ok(compared),
        }
    }

    /// The two sides of a key: over the lanes table or one of the sides `before`, and over this side.
    ///
    /// # Errors
    /// Why a condition is no key.
    fn key(
        &self,
        root: PlannerInfo<'p>,
        lanes: RelOptInfo<'p>,
        before: &[Side<'p>],
        translator: &mut Translator,
        condition: RestrictInfo<'p>,
    ) -> Translation<[Expr<'p>; 2]> {
        let Some((clause, operands)) = condition.comparison() else {
            return Err("a condition of the join that is no equality".into());
        };
        let relations = operands.map(|operand| outer_joins::tables_of(root, operand));
        let is_of = |tables: Relids<'_>, side: &Side<'_>| {
            !tables.is_empty() && tables.is_subset_of(side.small.relids())
        };
        let is_lane = |tables: Relids<'_>| tables.equals(lanes.relids());
        let is_before = |tables| before.iter().any(|side| is_of(tables, side));
        let is_left = |tables| is_lane(tables) || is_before(tables);
        let (left, small) = match relations.map(|tables| is_of(tables, self)) {
            [false, true] if is_left(relations[0]) => (0, 1),
            [true, false] if is_left(relations[1]) => (1, 0),
            _ => return Err("a condition of the join that mixes its sides".into()),
        };
        let is_lane = is_lane(relations[left]);
        let (left, small) = (operands[left], operands[small]);
        match is_lane {
            true => key(translator, clause, left, small)?,
            false => key_types::check_given(clause, left, small)?,
        }
        Ok([left, small])
    }
}

/// Checks that an equality compares numbers, times of one type, texts, or uuids.
fn key<'p>(
    translator: &mut Translator,
    clause: OpExpr<'p>,
    left: Expr<'p>,
    small: Expr<'p>,
) -> Translation<()> {
    if small.is_volatile() || small.has_subplan() {
        return Err("a key of the join that is volatile or a subquery".into());
    }
    let (found, _) = aggregate_call::key(translator, left)?;
    match found {
        Key::Text(_) => key_types::check_text(clause, small),
        Key::Number(value) if !value.number().is_float() => key_types::check_integer(clause, small),
        Key::Number(_) => key_types::check_float(clause, small),
        Key::Bytes16(_) => key_types::check_uuid(clause, small),
        _ => Err("a key of the join that is neither a number, a time, a text nor a uuid".into()),
    }
}

/// The sides of the join whose rows a `LanesHashJoin` path returns; `None` for any other path.
pub fn sides_of_path(path: Path<'_>) -> Option<Sides<'_>> {
    let path = path.as_custom(names::HASH_JOIN)?;
    let remembered = path.custom_private().get(4)?.as_nodes()?;
    let side = |first| {
        let kind = remembered.get(first + 2)?.as_integers()?.iter().next()?;
        Some(Side {
            small: remembered.get(first)?.downcast()?,
            conditions: remembered.get(first + 1)?.as_list()?,
            kind: JoinKind::from_number(kind)?,
        })
    };
    let dimensions = (1..remembered.len()).step_by(3).map(side);
    Some(Sides {
        joined: path.as_path().parent()?,
        lanes: remembered.get(0)?.downcast()?,
        dimensions: dimensions.collect::<Option<_>>()?,
    })
}
