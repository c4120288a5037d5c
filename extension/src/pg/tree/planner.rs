//! The planner's state, relations, conditions and path keys.

use std::marker::PhantomData;

use pgrx::pg_sys::{self, Oid};

use super::expression::Expr;
use super::list::List;
use super::operands::{OpExpr, TargetEntry};
use super::path::{Path, PathTarget};
use super::query::{Query, RangeTblEntry};
use super::view::{Field, View, nullable_fields, views};

views! {
    /// The planner's state of one query level.
    PlannerInfo of PlannerInfo {
        query_level: u32;
        tuple_fraction: f64;
        limit_tuples: f64;
    } {
        parse: Option<Query<'p>>;
        parent_root: Option<PlannerInfo<'p>>;
        rowMarks: List<'p, Expr<'p>>;
        all_baserels: Relids<'p>;
        processed_tlist: List<'p, TargetEntry<'p>>;
        query_pathkeys: List<'p, PathKey<'p>>;
        group_pathkeys: List<'p, PathKey<'p>>;
        window_pathkeys: List<'p, PathKey<'p>>;
        distinct_pathkeys: List<'p, PathKey<'p>>;
        sort_pathkeys: List<'p, PathKey<'p>>;
    } {}

    /// A relation that the planner looks for a path to: a table, a join, or what a later step makes of them.
    RelOptInfo of RelOptInfo {
        reloptkind: pg_sys::RelOptKind::Type;
        rtekind: pg_sys::RTEKind::Type;
        has_eclass_joins: bool;
        rows: f64;
        consider_parallel: bool;
        relid: u32;
        min_attr: i16;
        max_attr: i16;
        pages: u32;
        tuples: f64;
        baserestrict_min_security: u32;
    } {
        relids: Relids<'p>;
        lateral_relids: Relids<'p>;
        reltarget: Option<PathTarget<'p>>;
        pathlist: List<'p, Path<'p>>;
        partial_pathlist: List<'p, Path<'p>>;
        cheapest_total_path: Option<Path<'p>>;
        baserestrictinfo: List<'p, RestrictInfo<'p>>;
        joininfo: List<'p, RestrictInfo<'p>>;
        subroot: Option<PlannerInfo<'p>>;
    } {}

    /// A condition of WHERE or ON.
    RestrictInfo of RestrictInfo {
        is_pushed_down: bool;
        pseudoconstant: bool;
        leakproof: bool;
        can_join: bool;
        security_level: u32;
        hashjoinoperator: Oid;
    } {
        clause_relids: Relids<'p>;
        required_relids: Relids<'p>;
        left_relids: Relids<'p>;
        right_relids: Relids<'p>;
        parent_ec: Option<EquivalenceClass<'p>>;
    } {}

    /// Expressions that are equal.
    EquivalenceClass of EquivalenceClass {
        ec_collation: Oid;
        ec_has_const: bool;
        ec_has_volatile: bool;
        ec_min_security: u32;
    } {
        ec_members: List<'p, EquivalenceMember<'p>>;
        ec_relids: Relids<'p>;
    } {}

    /// A member of an equivalence class.
    EquivalenceMember of EquivalenceMember {
        em_is_const: bool;
        em_is_child: bool;
        em_datatype: Oid;
    } {
        em_relids: Relids<'p>;
    } {}

    /// A sort key of a path.
    PathKey of PathKey {
        pk_opfamily: Oid;
        pk_nulls_first: bool;
    } {
        pk_eclass: Option<EquivalenceClass<'p>>;
    } {}

    /// The planner's knowledge of a join while it looks for paths.
    JoinPathExtraData of JoinPathExtraData {} {
        restrictlist: List<'p, RestrictInfo<'p>>;
    } {}
}

/// A set of range-table indexes or other small numbers. A null set is empty.
#[derive(Clone, Copy, Debug)]
pub struct Relids<'p> {
    raw: *mut pg_sys::Bitmapset,
    lifetime: PhantomData<&'p ()>,
}

nullable_fields!(Relids: pg_sys::Bitmapset);

impl<'p> Relids<'p> {
    /// Whether the set has no members.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// Whether two sets have the same members.
    pub fn equals(self, other: Relids<'_>) -> bool {
        // SAFETY: null, or live sets.
        unsafe { pg_sys::bms_equal(self.raw, other.raw) }
    }

    /// Whether all members are in another set.
    pub fn is_subset_of(self, other: Relids<'_>) -> bool {
        // SAFETY: null, or live sets.
        unsafe { pg_sys::bms_is_subset(self.raw, other.raw) }
    }

    /// Whether a number is in the set.
    pub fn contains(self, member: i32) -> bool {
        // SAFETY: null, or a live set; no negative number is in a set.
        member >= 0 && unsafe { pg_sys::bms_is_member(member, self.raw) }
    }

    /// The number of members.
    pub fn len(self) -> usize {
        self.iter().count()
    }

    /// The members in ascending order.
    pub fn iter(self) -> impl Iterator<Item = i32> + use<'p> {
        let mut last = -1;
        std::iter::from_fn(move || {
            // SAFETY: null, or a live set.
            last = unsafe { pg_sys::bms_next_member(self.raw, last) };
            (last >= 0).then_some(last)
        })
    }
}

impl<'p> PlannerInfo<'p> {
    /// An entry of the range table, counted from 1.
    pub fn entry(self, index: u32) -> Option<RangeTblEntry<'p>> {
        // SAFETY: the array has as many elements as `simple_rel_array_size` says; elements may be null.
        unsafe {
            let root = self.as_ptr();
            let array = (*root).simple_rte_array;
            if array.is_null() || index >= (*root).simple_rel_array_size as u32 {
                return None;
            }
            Field::of(*array.add(index as usize))
        }
    }

    /// A relation of the range table, counted from 1; `None` for an entry that is none, and before it is planned.
    pub fn relation(self, index: u32) -> Option<RelOptInfo<'p>> {
        // SAFETY: the array has as many elements as its size says; elements may be null.
        unsafe {
            let root = self.as_ptr();
            let array = (*root).simple_rel_array;
            if array.is_null() || index >= (*root).simple_rel_array_size as u32 {
                return None;
            }
            Field::of(*array.add(index as usize))
        }
    }

    /// The indexes of the range table.
    pub fn indexes(self) -> impl Iterator<Item = u32> {
        // SAFETY: a live planner.
        let size = unsafe { (*self.as_ptr()).simple_rel_array_size };
        1..size as u32
    }

    /// The columns of the rows that a step above joins returns.
    pub fn upper_target(self, stage: pg_sys::UpperRelationKind::Type) -> Option<PathTarget<'p>> {
        // SAFETY: a live planner; elements may be null.
        unsafe { Field::of((*self.as_ptr()).upper_targets[stage as usize]) }
    }

    /// The relation of a step above joins that has paths for the rows of these relations, once the planner has looked
    /// for such paths.
    pub fn upper_relation(
        self,
        stage: pg_sys::UpperRelationKind::Type,
        relids: Relids<'p>,
    ) -> Option<RelOptInfo<'p>> {
        // SAFETY: a live planner; the lists hold relations.
        let relations: List<'p, RelOptInfo<'p>> =
            unsafe { Field::of((*self.as_ptr()).upper_rels[stage as usize]) };
        relations
            .iter()
            .find(|relation| relation.relids().equals(relids))
    }

    /// Whether rows are locked or changed: then rows that have changed meanwhile are joined once more, one at a time.
    pub fn locks_rows(self) -> bool {
        !self.rowMarks().is_empty()
    }

    /// The selectivity of conditions on one relation: `clauselist_selectivity`.
    pub fn selectivity<T: View<'p>>(self, clauses: List<'p, T>, relation: RelOptInfo<'p>) -> f64 {
        // SAFETY: live structures; the list holds conditions or their clauses.
        unsafe {
            pg_sys::clauselist_selectivity(
                self.as_ptr(),
                clauses.as_ptr(),
                relation.relid() as i32,
                pg_sys::JoinType::JOIN_INNER,
                std::ptr::null_mut(),
            )
        }
    }

    /// How many groups these expressions make of so many rows: `estimate_num_groups`.
    pub fn groups_of(self, keys: List<'p, Expr<'p>>, rows: f64) -> f64 {
        let none = std::ptr::null_mut();
        // SAFETY: live structures; neither grouping sets nor a report are asked for.
        unsafe {
            let (root, keys) = (self.as_ptr(), keys.as_ptr());
            pg_sys::estimate_num_groups(root, keys, rows, none, std::ptr::null_mut())
        }
    }

    /// The cost of a condition for one row, beside that of its first evaluation: `cost_qual_eval_node`.
    pub fn qual_cost(self, qual: RestrictInfo<'p>) -> pg_sys::QualCost {
        let mut cost = pg_sys::QualCost::default();
        // SAFETY: live structures.
        unsafe {
            pg_sys::cost_qual_eval_node(&raw mut cost, qual.as_ptr().cast(), self.as_ptr());
        }
        cost
    }
}

impl<'p> RelOptInfo<'p> {
    /// Whether the relation is one table or subquery, not a join.
    pub fn is_base(self) -> bool {
        self.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL && self.relid() > 0
    }

    /// The relations that need an attribute above the relation's scan. System columns have negative numbers.
    pub fn attr_needed(self, attribute: i16) -> Relids<'p> {
        assert!((self.min_attr()..=self.max_attr()).contains(&attribute));
        let index = (attribute - self.min_attr()) as usize;
        // SAFETY: the array has an element for each attribute from `min_attr` to `max_attr`.
        unsafe { Field::of(*(*self.as_ptr()).attr_needed.add(index)) }
    }
}

impl<'p> RestrictInfo<'p> {
    /// The condition.
    #[inline]
    pub fn clause(self) -> Expr<'p> {
        // SAFETY: a condition's clause is never null and lives as long as it.
        unsafe { Expr::at((*self.as_ptr()).clause.cast()) }
    }

    /// The operator and its operands, if the condition is an operator with two of them.
    pub fn comparison(self) -> Option<(OpExpr<'p>, [Expr<'p>; 2])> {
        let operation = self.clause().as_op()?;
        let (operands, is_binary) = (operation.args(), operation.args().len() == 2);
        let operands = [operands.get(0)?, operands.get(1)?];
        is_binary.then_some((operation, operands))
    }
}

impl<'p> EquivalenceClass<'p> {
    /// The members that may be expressions of a relation alone. Of a relation that is a child of another one,
    /// PostgreSQL keeps them in a list of its own from version 18 on.
    pub fn members_for(
        self,
        relation: RelOptInfo<'p>,
    ) -> impl Iterator<Item = EquivalenceMember<'p>> {
        #[cfg(feature = "pg18")]
        // SAFETY: the array of lists, if there is one, has as many elements as its size says.
        let children = unsafe {
            let class = &*self.as_ptr();
            let place = relation.relid();
            let has_list =
                !class.ec_childmembers.is_null() && place < class.ec_childmembers_size as u32;
            has_list.then(|| Field::of(*class.ec_childmembers.add(place as usize)))
        };
        #[cfg(not(feature = "pg18"))]
        let children = {
            let _ = relation;
            None
        };
        let children: Option<List<'p, EquivalenceMember<'p>>> = children;
        let members = self.ec_members().iter();
        members.chain(children.into_iter().flat_map(|list| list.iter()))
    }
}

impl<'p> EquivalenceMember<'p> {
    /// The expression.
    pub fn expr(self) -> Expr<'p> {
        // SAFETY: a member's expression is never null and lives as long as it.
        unsafe { Expr::at((*self.as_ptr()).em_expr.cast()) }
    }
}

impl<'p> PathKey<'p> {
    /// Whether the order is descending.
    pub fn is_descending(self) -> bool {
        // SAFETY: a live path key.
        unsafe { crate::pg::ports::is_descending(self.as_ptr()) }
    }
}
