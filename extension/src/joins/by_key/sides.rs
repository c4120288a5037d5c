//! Recognises an equality join of a lanes table with something smaller.

use lanes_columnar::aggregate::Key;
use pgrx::pg_sys;

use super::key_types;
use super::plan::{Dimension, HashJoinPlan, JoinKind};
use super::small_side::ROW_BYTES;
use crate::custom_scan::names;
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::pg::columns::RelationSet;
use crate::pg::{nodes, outer_joins, ports, tree};
use crate::planner::lanes_table::is_lanes_scan;
use crate::planner::quals::has_vector_quals;

/// A relation that a lanes table is joined with.
#[derive(Clone, Copy)]
pub struct Side {
    /// The relation.
    pub small: *mut pg_sys::RelOptInfo,
    /// The kind of join, in which the lanes table is the left side.
    pub kind: JoinKind,
    /// The join's conditions.
    pub conditions: *mut pg_sys::List,
}

/// A lanes table and the relations that it is joined with, each by its own keys.
#[derive(Clone)]
pub struct Sides {
    /// The lanes table.
    pub lanes: *mut pg_sys::RelOptInfo,
    /// The relations in the order in which they are joined.
    pub dimensions: Vec<Side>,
    /// The relation of all of them joined.
    pub joined: *mut pg_sys::RelOptInfo,
}

/// The most relations that a lanes table is joined with in one node.
const DIMENSIONS_MAX: usize = 8;

/// A join as the planner finds it.
pub struct HashJoin {
    /// Its sides.
    pub sides: Sides,
    /// The plan; its outputs are still missing.
    pub plan: HashJoinPlan,
    /// The keys over the small sides, for each dimension.
    pub small_keys: Vec<Vec<*mut pg_sys::Node>>,
}

impl HashJoin {
    /// Adds the columns of small sides that an expression has to what the join gives.
    ///
    /// # Errors
    /// If it has more than columns to take from the join.
    ///
    /// # Safety
    /// A live expression of the planner's.
    pub unsafe fn want(&mut self, expression: *mut pg_sys::Node) -> Translation<()> {
        // SAFETY: the caller's promise; the planner's live relations.
        unsafe {
            let dimensions = self.sides.dimensions.iter();
            let relations: Vec<_> = dimensions.map(|side| RelationSet::of(side.small)).collect();
            self.plan.want(expression, &relations)
        }
    }
}

impl Sides {
    /// The sides of a join of two relations, if the first is one lanes table, all of whose own quals are the engine's,
    /// or such a table that is joined already, and the second does not depend on it. (What keeps a qual from the
    /// engine is noted where its scan is offered.)
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        joined: *mut pg_sys::RelOptInfo,
        left: *mut pg_sys::RelOptInfo,
        small: *mut pg_sys::RelOptInfo,
        kind: pg_sys::JoinType::Type,
        conditions: *mut pg_sys::List,
    ) -> Option<Sides> {
        // SAFETY: the caller's promise.
        unsafe {
            let kind = JoinKind::of(kind)?;
            let path = (*small).cheapest_total_path;
            let is_free = ports::list_length(conditions) > 0
                && (*left).lateral_relids.is_null()
                && (*small).lateral_relids.is_null()
                && !path.is_null()
                && (*path).param_info.is_null();
            if !is_free {
                return None;
            }
            let side = Side {
                small,
                kind,
                conditions,
            };
            match (*left).reloptkind {
                pg_sys::RelOptKind::RELOPT_BASEREL => {
                    let entry = tree::planner_entry(root, (*left).relid as i32);
                    let is_ours = is_lanes_scan(
                        crate::pg::tree::plan_node(left),
                        crate::pg::tree::plan_field(entry),
                    ) && has_vector_quals(
                        crate::pg::tree::plan_node(root),
                        crate::pg::tree::plan_node(left),
                    );
                    is_ours.then(|| Sides {
                        lanes: left,
                        dimensions: vec![side],
                        joined,
                    })
                }
                pg_sys::RelOptKind::RELOPT_JOINREL => {
                    let mut sides = Sides::of_joined(root, left)?;
                    // A small row without a match would become a left row of the next join.
                    let is_chain = !kind.keeps_small_rows()
                        && !sides.dimensions[0].kind.keeps_small_rows()
                        && sides.dimensions.len() < DIMENSIONS_MAX;
                    sides.dimensions.push(side);
                    sides.joined = joined;
                    is_chain.then(|| sides.ordered(root))
                }
                _ => None,
            }
        }
    }

    /// The sides of a join relation, if one of its paths shows them.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn of_joined(
        root: *mut pg_sys::PlannerInfo,
        joined: *mut pg_sys::RelOptInfo,
    ) -> Option<Sides> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            for mut path in nodes::list::<pg_sys::Path>((*joined).pathlist) {
                while (*path).type_ == pg_sys::NodeTag::T_ProjectionPath {
                    path = (*path.cast::<pg_sys::ProjectionPath>()).subpath;
                }
                if let Some(sides) = sides_of_path(path) {
                    return Some(sides);
                }
                let is_join = matches!(
                    (*path).type_,
                    pg_sys::NodeTag::T_HashPath
                        | pg_sys::NodeTag::T_MergePath
                        | pg_sys::NodeTag::T_NestPath
                );
                if !is_join {
                    continue;
                }
                let join = &*path.cast::<pg_sys::JoinPath>();
                // An inner side that takes parameters has absorbed some of the conditions.
                if !(*join.innerjoinpath).param_info.is_null() {
                    continue;
                }
                let (outer, inner) = ((*join.outerjoinpath).parent, (*join.innerjoinpath).parent);
                let (kind, conditions) = (join.jointype, join.joinrestrictinfo);
                let unique =
                    |path: *mut pg_sys::Path| (*path).type_ == pg_sys::NodeTag::T_UniquePath;
                if unique(join.outerjoinpath) || unique(join.innerjoinpath) {
                    continue;
                }
                let sides = Sides::of(root, joined, outer, inner, kind, conditions);
                let swapped = || {
                    let kind = JoinKind::exchanged(kind)?;
                    Sides::of(root, joined, inner, outer, kind, conditions)
                };
                if let Some(sides) = sides.or_else(swapped) {
                    return Some(sides);
                }
            }
            None
        }
    }

    /// The estimated number of bytes that the rows of a small side take.
    unsafe fn bytes(side: &Side) -> f64 {
        // SAFETY: the planner's live structures.
        unsafe {
            let width = f64::from((*(*side.small).reltarget).width) + ROW_BYTES as f64;
            (*side.small).rows * width
        }
    }

    /// The small side that may be read in batches: the largest one whose join allows left rows
    /// to meet some small rows in one batch and others in the next.
    unsafe fn divided(&self) -> Option<usize> {
        let sides = self.dimensions.iter().enumerate();
        // A small row is known to have no match only after all batches of the other sides.
        let is_alone = self.dimensions.len() == 1;
        let divisible = sides.filter(|(_, side)| match is_alone {
            true => side.kind.is_divisible(),
            false => side.kind == JoinKind::Inner,
        });
        // SAFETY: the planner's live structures.
        let bytes = |(_, side): &(usize, &Side)| unsafe { Sides::bytes(side) };
        let largest = divisible.max_by(|a, b| bytes(a).total_cmp(&bytes(b)));
        largest.map(|(index, _)| index)
    }

    /// Whether each small side that is read completely is expected to fit in its memory.
    unsafe fn fit_memory(&self, divided: Option<usize>) -> bool {
        let sides = self.dimensions.iter().enumerate();
        let mut whole = sides.filter(|(index, _)| divided != Some(*index));
        // SAFETY: the planner's live structures; settings of this session.
        whole.all(|(_, side)| unsafe {
            Sides::bytes(side) <= pg_sys::get_hash_memory_limit() as f64
        })
    }

    /// Builds the join of these sides.
    ///
    /// # Errors
    /// Why the join cannot be vectorised.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn join(self, root: *mut pg_sys::PlannerInfo) -> Translation<HashJoin> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            let mut translator = Translator::new(Scalars::Unknown);
            let (mut dimensions, mut small_keys) = (Vec::new(), Vec::new());
            for (index, side) in self.dimensions.iter().enumerate() {
                let before = &self.dimensions[..index];
                let (left, small) = side.keys(root, self.lanes, before, &mut translator)?;
                dimensions.push(Dimension {
                    kind: side.kind,
                    left_keys: left,
                });
                small_keys.push(small);
            }
            let plan = HashJoinPlan {
                table: (*self.lanes).relid,
                dimensions,
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
            for key in join.plan.left_keys() {
                join.want(key)?;
            }
            Ok(join)
        }
    }
}

/// The keys of a join: those over the lanes table or an earlier side, and those over the small
/// side.
type Keys = (Vec<*mut pg_sys::Node>, Vec<*mut pg_sys::Node>);

impl Side {
    /// The keys of the join with this side, which follows the sides `before`.
    ///
    /// # Errors
    /// Why the join cannot be vectorised.
    ///
    /// # Safety
    /// The planner's live structures.
    unsafe fn keys(
        &self,
        root: *mut pg_sys::PlannerInfo,
        lanes: *mut pg_sys::RelOptInfo,
        before: &[Side],
        translator: &mut Translator,
    ) -> Translation<Keys> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            let (mut left_keys, mut small_keys) = (Vec::new(), Vec::new());
            for condition in nodes::list::<pg_sys::RestrictInfo>(self.conditions) {
                let is_outer = !matches!(self.kind, JoinKind::Inner | JoinKind::Semi);
                if is_outer && (*condition).is_pushed_down {
                    return Err("a condition on the result of an outer join".into());
                }
                if (*condition).security_level > 0 {
                    return Err("a join behind a security barrier".into());
                }
                let clause = (*condition).clause.cast::<pg_sys::Node>();
                if (*condition).pseudoconstant
                    || !tree::is_a(clause, pg_sys::NodeTag::T_OpExpr)
                    || ports::list_length((*clause.cast::<pg_sys::OpExpr>()).args) != 2
                {
                    return Err("a condition of the join that is no equality".into());
                }
                let clause = clause.cast::<pg_sys::OpExpr>();
                let arguments: [*mut pg_sys::Node; 2] = [
                    ports::list_nth((*clause).args, 0),
                    ports::list_nth((*clause).args, 1),
                ];
                let relations = arguments.map(|argument| outer_joins::tables_of(root, argument));
                let is_of = |varnos: *mut pg_sys::Bitmapset, side: &Side| {
                    !varnos.is_null() && pg_sys::bms_is_subset(varnos, (*side.small).relids)
                };
                let is_lane =
                    |varnos: *mut pg_sys::Bitmapset| pg_sys::bms_equal(varnos, (*lanes).relids);
                let is_before =
                    |varnos: *mut pg_sys::Bitmapset| before.iter().any(|side| is_of(varnos, side));
                let is_left = |varnos: *mut pg_sys::Bitmapset| is_lane(varnos) || is_before(varnos);
                let (left, small) = match relations.map(|varnos| is_of(varnos, self)) {
                    [false, true] if is_left(relations[0]) => (0, 1),
                    [true, false] if is_left(relations[1]) => (1, 0),
                    _ => return Err("a condition of the join that mixes its sides".into()),
                };
                let is_lane = is_lane(relations[left]);
                let (left, small) = (arguments[left], arguments[small]);
                match is_lane {
                    true => key(translator, clause, left, small)?,
                    false => key_types::check_given(clause, left, small)?,
                }
                left_keys.push(left);
                small_keys.push(small);
            }
            match left_keys.is_empty() {
                true => Err("a join without an equality".into()),
                false => Ok((left_keys, small_keys)),
            }
        }
    }
}

/// Checks that an equality compares numbers, times of one type, texts, or uuids.
unsafe fn key(
    translator: &mut Translator,
    clause: *mut pg_sys::OpExpr,
    left: *mut pg_sys::Node,
    small: *mut pg_sys::Node,
) -> Translation<()> {
    // SAFETY: the planner's live expressions.
    unsafe {
        if pg_sys::contain_volatile_functions(small) || nodes::contains_subplan(small) {
            return Err("a key of the join that is volatile or a subquery".into());
        }
        let (found, _) = aggregate_call::key(translator, crate::pg::tree::plan_node(left.cast()))?;
        match found {
            Key::Text(_) => key_types::check_text(clause, small),
            Key::Number(value) if !value.number().is_float() => {
                key_types::check_integer(clause, small)
            }
            Key::Number(_) => key_types::check_float(clause, small),
            Key::Bytes16(_) => key_types::check_uuid(clause, small),
            _ => {
                Err("a key of the join that is neither a number, a time, a text nor a uuid".into())
            }
        }
    }
}

/// The sides of the join whose rows a `LanesHashJoin` path returns; `None` for any other path.
///
/// # Safety
/// A live path.
pub unsafe fn sides_of_path(path: *mut pg_sys::Path) -> Option<Sides> {
    // SAFETY: the caller's promise; casts follow tags.
    unsafe {
        if (*path).type_ != pg_sys::NodeTag::T_CustomPath {
            return None;
        }
        let path = path.cast::<pg_sys::CustomPath>();
        if !names::is_path_of(path, names::HASH_JOIN) {
            return None;
        }
        let remembered: *mut pg_sys::List = ports::list_nth((*path).custom_private, 4);
        let side = |first: i32| {
            let kind = nodes::integers_of(ports::list_nth(remembered, first + 2))[0];
            Some(Side {
                small: ports::list_nth(remembered, first),
                conditions: ports::list_nth(remembered, first + 1),
                kind: JoinKind::from_number(kind)?,
            })
        };
        let dimensions = (1..ports::list_length(remembered)).step_by(3).map(side);
        Some(Sides {
            joined: (*path).path.parent,
            lanes: ports::list_nth(remembered, 0),
            dimensions: dimensions.collect::<Option<_>>()?,
        })
    }
}
