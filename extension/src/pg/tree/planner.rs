//! The planner's state, relations, conditions and path keys.

use std::marker::PhantomData;

use pgrx::pg_sys::{self, Oid};

use super::expression::Expr;
use super::list::List;
use super::operands::{OpExpr, TargetEntry};
use super::path::{Path, PathTarget};
use super::query::{Query, SortGroupClause};
use super::tag::Node;
use super::view::{nullable_fields, views};
use crate::pg::exec::memory::Memory;
use crate::pg::functions::{Null, Place, planner};

views! {
    /// The planner's state of one query level.
    PlannerInfo of PlannerInfo {
        query_level: u32;
        tuple_fraction: f64;
        hasNonPartialAggs: bool;
        hasNonSerialAggs: bool;
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
        planner_cxt: Memory;
        #[cfg(not(feature = "pg15"))]
        processed_groupClause: List<'p, SortGroupClause<'p>>;
        #[cfg(not(feature = "pg15"))]
        outer_join_rels: Relids<'p>;
    } {}

    /// The question how many rows a call returns. The planner reads the answer from the request itself.
    RowsRequest of SupportRequestRows {} {
        call = node: Option<Expr<'p>>;
    } {
        set_rows = rows: f64;
    }

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
    } {
        set_consider_parallel = consider_parallel: bool;
    } {
        set_pathlist = pathlist: List<'p, Path<'p>>;
        set_partial_pathlist = partial_pathlist: List<'p, Path<'p>>;
    }

    /// A condition of WHERE or ON.
    RestrictInfo of RestrictInfo {
        is_pushed_down: bool;
        pseudoconstant: bool;
        leakproof: bool;
        can_join: bool;
        security_level: u32;
        hashjoinoperator: Oid;
    } {
        /// The condition.
        clause: Expr<'p>;
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
        /// The expression.
        expr = em_expr: Expr<'p>;
        em_relids: Relids<'p>;
    } {}

    /// A sort key of a path.
    PathKey of PathKey {
        pk_opfamily: Oid;
        pk_nulls_first: bool;
        #[cfg(not(feature = "pg18"))]
        pk_strategy: i32;
        #[cfg(feature = "pg18")]
        pk_cmptype: pg_sys::CompareType::Type;
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
        planner::bms_equal(self, other)
    }

    /// Whether all members are in another set.
    pub fn is_subset_of(self, other: Relids<'_>) -> bool {
        planner::bms_is_subset(self, other)
    }

    /// Whether a number is in the set.
    pub fn contains(self, member: i32) -> bool {
        member >= 0 && planner::bms_is_member(member, self)
    }

    /// The number of members.
    pub fn len(self) -> usize {
        self.iter().count()
    }

    /// The members in ascending order.
    pub fn iter(self) -> impl Iterator<Item = i32> + use<'p> {
        let mut last = -1;
        std::iter::from_fn(move || {
            last = planner::bms_next_member(self, last);
            (last >= 0).then_some(last)
        })
    }
}

impl<'p> PlannerInfo<'p> {
    /// The relation of a step above joins that has paths for the rows of these relations, once the planner has looked
    /// for such paths.
    pub fn upper_relation(
        self,
        stage: pg_sys::UpperRelationKind::Type,
        relids: Relids<'p>,
    ) -> Option<RelOptInfo<'p>> {
        let relations = self.upper_relations(stage);
        relations
            .iter()
            .find(|relation| relation.relids().equals(relids))
    }

    /// Whether rows are locked or changed: then rows that have changed meanwhile are joined once more, one at a time.
    pub fn locks_rows(self) -> bool {
        !self.rowMarks().is_empty()
    }

    /// The selectivity of conditions on one relation: `clauselist_selectivity`.
    pub fn selectivity<T: Node<'p>>(self, clauses: List<'p, T>, relation: RelOptInfo<'p>) -> f64 {
        let clauses = List::new(clauses.iter().map(Node::as_node));
        let (table, kind) = (relation.relid() as i32, pg_sys::JoinType::JOIN_INNER);
        planner::clauselist_selectivity(self, clauses, table, kind, Null)
    }

    /// How many groups these expressions make of so many rows: `estimate_num_groups`.
    pub fn groups_of(self, keys: List<'p, Expr<'p>>, rows: f64) -> f64 {
        planner::estimate_num_groups(self, keys, rows, Null, Null)
    }

    /// The order that clauses of the query's target list ask for: `make_pathkeys_for_sortclauses`.
    pub fn order_of(self, clauses: List<'p, SortGroupClause<'p>>) -> List<'p, PathKey<'p>> {
        planner::make_pathkeys_for_sortclauses(self, clauses, self.processed_tlist())
    }

    /// The cost of a condition for one row, beside that of its first evaluation: `cost_qual_eval_node`.
    pub fn qual_cost(self, qual: RestrictInfo<'p>) -> pg_sys::QualCost {
        let mut cost = pg_sys::QualCost::default();
        planner::cost_qual_eval_node(Place(&mut cost), qual.as_node(), self);
        cost
    }
}

impl<'p> RelOptInfo<'p> {
    /// Whether the relation is one table or subquery, not a join.
    pub fn is_base(self) -> bool {
        self.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL && self.relid() > 0
    }
}

impl<'p> RestrictInfo<'p> {
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
        let children = self.members_of_child(relation);
        let members = self.ec_members().iter();
        members.chain(children.into_iter().flat_map(|list| list.iter()))
    }
}

impl PathKey<'_> {
    /// Whether the order is descending.
    #[cfg(not(feature = "pg18"))]
    pub fn is_descending(self) -> bool {
        self.pk_strategy() == pg_sys::BTGreaterStrategyNumber as i32
    }

    /// Whether the order is descending.
    #[cfg(feature = "pg18")]
    pub fn is_descending(self) -> bool {
        self.pk_cmptype() == pg_sys::CompareType::COMPARE_GT
    }
}
