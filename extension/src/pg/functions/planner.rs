//! Paths, costs and estimates of the planner.

use pgrx::pg_sys;

use super::{Null, Place, functions, variables};
use crate::pg::tree::{
    Aggref, Expr, JoinPath, JoinPathExtraData, List, ParamPathInfo, Path, PathKey, PathTarget,
    PlannerInfo, RelOptInfo, Relids, RestrictInfo, SortGroupClause, TargetEntry,
};

pub use super::special::{adjust_appendrel_attrs_multilevel, pull_varattnos};

functions! {
    /// Adds a column with the number by which clauses refer to it; 0 is none.
    fn add_column_to_pathtarget(target: PathTarget<'p>, expr: Expr<'p>, number: u32);

    /// Adds the expressions that a target lacks.
    fn add_new_columns_to_pathtarget(target: PathTarget<'p>, exprs: List<'p, Expr<'p>>);

    /// Offers a path that one of several processes executes.
    fn add_partial_path(relation: RelOptInfo<'p>, path: Path<'p>);

    /// Offers a path.
    fn add_path(relation: RelOptInfo<'p>, path: Path<'p>);

    /// A set with one more member. The old one is not used any more.
    #[cfg(not(feature = "pg15"))]
    fn bms_add_member(set: Relids<'p>, member: i32) -> Relids<'p>;

    /// A copy of a set.
    #[cfg(not(feature = "pg15"))]
    fn bms_copy(set: Relids<'_>) -> Relids<'p>;

    /// The members of a set that are not in another.
    #[cfg(not(feature = "pg15"))]
    fn bms_difference(a: Relids<'_>, b: Relids<'_>) -> Relids<'p>;

    /// Whether two sets have the same members.
    fn bms_equal(a: Relids<'_>, b: Relids<'_>) -> bool;

    /// Frees a set.
    fn bms_free(set: Relids<'_>);

    /// The members of both sets.
    #[cfg(not(feature = "pg15"))]
    fn bms_intersect(a: Relids<'_>, b: Relids<'_>) -> Relids<'p>;

    /// Whether a number, which is not negative, is in a set.
    fn bms_is_member(member: i32, set: Relids<'_>) -> bool;

    /// Whether all members of a set are in another.
    fn bms_is_subset(a: Relids<'_>, b: Relids<'_>) -> bool;

    /// The member after another; -1 is before the first one, and a negative result after the last one.
    fn bms_next_member(set: Relids<'_>, member: i32) -> i32;

    /// The selectivity of conditions.
    fn clauselist_selectivity(
        root: PlannerInfo<'_>,
        clauses: List<'_, Expr<'_>>,
        relation: i32,
        kind: pg_sys::JoinType::Type,
        join: Null,
    ) -> f64;

    /// How many workers may scan so many pages.
    fn compute_parallel_worker(relation: RelOptInfo<'_>, pages: f64, index_pages: f64, most: i32) -> i32;

    /// A copy of a target, which shares its expressions.
    fn copy_pathtarget(target: PathTarget<'p>) -> PathTarget<'p>;

    /// The cost of a condition or an expression.
    fn cost_qual_eval_node(cost: Place<'_, pg_sys::QualCost>, qual: Expr<'_>, root: PlannerInfo<'_>);

    /// A path that computes aggregates and groups.
    fn create_agg_path(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        below: Path<'p>,
        target: PathTarget<'p>,
        strategy: pg_sys::AggStrategy::Type,
        split: pg_sys::AggSplit::Type,
        keys: List<'p, SortGroupClause<'p>>,
        having: List<'p, Expr<'p>>,
        costs: Place<'_, pg_sys::AggClauseCosts>,
        groups: f64,
    ) -> Path<'p>;

    /// A path that returns the rows of several paths.
    fn create_append_path(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        whole: List<'p, Path<'p>>,
        shared: List<'p, Path<'p>>,
        order: List<'p, PathKey<'p>>,
        required: Relids<'p>,
        workers: i32,
        is_parallel_aware: bool,
        rows: f64,
    ) -> Path<'p>;

    /// A target without columns.
    fn create_empty_pathtarget() -> PathTarget<'p>;

    /// A path that receives the rows of several processes.
    fn create_gather_path(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        below: Path<'p>,
        target: PathTarget<'p>,
        required: Relids<'p>,
        rows: Place<'_, f64>,
    ) -> Path<'p>;

    /// A path of a nested loop.
    fn create_nestloop_path(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        kind: pg_sys::JoinType::Type,
        costs: Place<'_, pg_sys::JoinCostWorkspace>,
        extra: JoinPathExtraData<'p>,
        outer: Path<'p>,
        inner: Path<'p>,
        conditions: List<'p, RestrictInfo<'p>>,
        order: List<'p, PathKey<'p>>,
        required: Relids<'p>,
    ) -> JoinPath<'p>;

    /// A path that computes a target.
    fn create_projection_path(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        below: Path<'p>,
        target: PathTarget<'p>,
    ) -> Path<'p>;

    /// A path that sorts; so many rows are wanted at most, or all if the number is negative.
    fn create_sort_path(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        below: Path<'p>,
        order: List<'p, PathKey<'p>>,
        wanted: f64,
    ) -> Path<'p>;

    /// How many groups expressions make of so many rows.
    fn estimate_num_groups(
        root: PlannerInfo<'_>,
        keys: List<'_, Expr<'_>>,
        rows: f64,
        sets: Null,
        report: Null,
    ) -> f64;

    /// The relation of a step above the joins. It is made if the planner has none.
    fn fetch_upper_rel(
        root: PlannerInfo<'p>,
        stage: pg_sys::UpperRelationKind::Type,
        relids: Relids<'p>,
    ) -> RelOptInfo<'p>;

    /// The parameters that a path of a table takes from other tables; `None` if it takes none.
    fn get_baserel_parampathinfo(
        root: PlannerInfo<'p>,
        relation: RelOptInfo<'p>,
        required: Relids<'p>,
    ) -> Option<ParamPathInfo<'p>>;

    /// The first costs of a nested loop.
    fn initial_cost_nestloop(
        root: PlannerInfo<'_>,
        costs: Place<'_, pg_sys::JoinCostWorkspace>,
        kind: pg_sys::JoinType::Type,
        outer: Path<'_>,
        inner: Path<'_>,
        extra: JoinPathExtraData<'_>,
    );

    /// The order of rows that clauses ask for. It is an ERROR if one of them refers to no target.
    fn make_pathkeys_for_sortclauses(
        root: PlannerInfo<'p>,
        clauses: List<'p, SortGroupClause<'p>>,
        targets: List<'p, TargetEntry<'p>>,
    ) -> List<'p, PathKey<'p>>;

    /// Makes a call of an aggregate one that returns a transition state.
    fn mark_partial_aggref(call: Aggref<'_>, split: pg_sys::AggSplit::Type);

    /// Whether rows in one order are in another too.
    fn pathkeys_contained_in(wanted: List<'_, PathKey<'_>>, given: List<'_, PathKey<'_>>) -> bool;

    /// The relations that an expression uses.
    fn pull_varnos(root: PlannerInfo<'_>, expr: Expr<'_>) -> Relids<'p>;

    /// Computes the costs and the width of a target.
    fn set_pathtarget_cost_width(root: PlannerInfo<'p>, target: PathTarget<'p>) -> PathTarget<'p>;
}

variables! {
    /// The setting of the same name.
    max_parallel_workers_per_gather: i32;
}
