//! Paths: the ways to obtain a relation's rows that the planner compares.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::expression::Expr;
use super::list::List;
use super::planner::{JoinPathExtraData, PathKey, PlannerInfo, RelOptInfo, Relids, RestrictInfo};
use super::query::SortGroupClause;
use super::tag::{self, Node};
use super::view::views;
use crate::pg::functions::{Place, planner};
use crate::pg::server;

views! {
    /// The columns of a path's rows.
    PathTarget of PathTarget {
        cost: pg_sys::QualCost;
        width: i32;
    } {
        exprs: List<'p, Expr<'p>>;
    } {} {
        set_exprs = exprs: List<'p, Expr<'p>>;
    }

    /// A way to obtain a relation's rows.
    Path of Path {
        pathtype: pg_sys::NodeTag;
        rows: f64;
        startup_cost: f64;
        total_cost: f64;
        parallel_aware: bool;
        parallel_safe: bool;
        parallel_workers: i32;
    } {
        parent: Option<RelOptInfo<'p>>;
        pathtarget: Option<PathTarget<'p>>;
        param_info: Option<ParamPathInfo<'p>>;
        pathkeys: List<'p, PathKey<'p>>;
    } {
        set_rows = rows: f64;
        set_startup_cost = startup_cost: f64;
        set_total_cost = total_cost: f64;
        set_parallel_aware = parallel_aware: bool;
        set_parallel_safe = parallel_safe: bool;
        set_parallel_workers = parallel_workers: i32;
    } {
        set_target = pathtarget: Option<PathTarget<'p>>;
        set_keys = pathkeys: List<'p, PathKey<'p>>;
        set_parameters = param_info: Option<ParamPathInfo<'p>>;
    }

    /// The parameters that a path takes from the other side of a nested loop.
    ParamPathInfo of ParamPathInfo {
        ppi_rows: f64;
    } {
        ppi_req_outer: Relids<'p>;
    } {}

    /// A path of this library.
    CustomPath of CustomPath {
        flags: u32;
        path: pg_sys::Path;
    } {
        methods: Option<CustomPathMethods<'p>>;
        custom_paths: List<'p, Path<'p>>;
        custom_private: List<'p, Expr<'p>>;
    } {
        set_flags = flags: u32;
        set_path = path: pg_sys::Path;
    } {
        set_children = custom_paths: List<'p, Path<'p>>;
        set_private = custom_private: List<'p, Expr<'p>>;
    }

    /// What PostgreSQL calls for such a path.
    CustomPathMethods of CustomPathMethods {} {
        CustomName: Option<&'p CStr>;
    } {}

    /// A path of a join: by a nested loop, by merging or by hashing.
    JoinPath of JoinPath {
        jointype: pg_sys::JoinType::Type;
    } {
        outerjoinpath: Option<Path<'p>>;
        innerjoinpath: Option<Path<'p>>;
        joinrestrictinfo: List<'p, RestrictInfo<'p>>;
    } {}

    /// A path that computes other columns of the rows of another.
    ProjectionPath of ProjectionPath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path of a sub-select.
    SubqueryScanPath of SubqueryScanPath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path that computes aggregates.
    AggPath of AggPath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path that returns the rows of several paths.
    AppendPath of AppendPath {} {
        subpaths: List<'p, Path<'p>>;
    } {}

    /// A path that receives the rows of several processes.
    GatherPath of GatherPath {} {} {}

    /// A path that receives the sorted rows of several processes.
    GatherMergePath of GatherMergePath {} {} {}

    /// A path that returns one row of each group of sorted rows.
    GroupPath of GroupPath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path that sorts rows which are sorted by some of the keys.
    IncrementalSortPath of IncrementalSortPath {} {
        subpath = spath.subpath: Option<Path<'p>>;
    } {}

    /// A path of LIMIT.
    LimitPath of LimitPath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path that keeps rows to return them again.
    MaterialPath of MaterialPath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path that keeps the rows of parameters' values.
    MemoizePath of MemoizePath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path of a join by hashing.
    HashPath of HashPath {} {} {}

    /// A path of a join by merging.
    MergePath of MergePath {} {} {}

    /// A path of a nested loop.
    NestPath of NestPath {} {} {}

    /// A path that sorts.
    SortPath of SortPath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path that leaves out equal rows.
    UpperUniquePath of UpperUniquePath {} {
        subpath: Option<Path<'p>>;
    } {}

    /// A path that computes a window's functions.
    WindowAggPath of WindowAggPath {} {
        subpath: Option<Path<'p>>;
    } {}
}

impl<'p> PlannerInfo<'p> {
    /// A path of a nested loop over the paths of two sides: `create_nestloop_path`.
    pub fn nested_loop(
        self,
        joined: RelOptInfo<'p>,
        kind: pg_sys::JoinType::Type,
        extra: JoinPathExtraData<'p>,
        (outer, inner): (Path<'p>, Path<'p>),
    ) -> JoinPath<'p> {
        let (mut costs, none) = (pg_sys::JoinCostWorkspace::default(), Relids::NONE);
        planner::initial_cost_nestloop(self, Place(&mut costs), kind, outer, inner, extra);
        planner::create_nestloop_path(
            self,
            joined,
            kind,
            Place(&mut costs),
            extra,
            outer,
            inner,
            extra.restrictlist(),
            outer.pathkeys(),
            none,
        )
    }

    /// A target of these expressions, with their costs and widths.
    pub fn target_of(self, exprs: impl Iterator<Item = Expr<'p>>) -> PathTarget<'p> {
        let target = planner::create_empty_pathtarget();
        for expr in exprs {
            planner::add_column_to_pathtarget(target, expr, 0);
        }
        planner::set_pathtarget_cost_width(self, target)
    }

    /// A path that computes a target over the rows of another path of a relation.
    pub fn projection(
        self,
        relation: RelOptInfo<'p>,
        below: Path<'p>,
        target: PathTarget<'p>,
    ) -> Path<'p> {
        planner::create_projection_path(self, relation, below, target)
    }

    /// A path that returns the rows of another in the order of path keys.
    pub fn sorted(self, path: Path<'p>, order: List<'p, PathKey<'p>>) -> Path<'p> {
        if order.is_empty() || planner::pathkeys_contained_in(order, path.pathkeys()) {
            return path;
        }
        let relation = path.parent().expect("a path of a relation");
        planner::create_sort_path(self, relation, path, order, -1.0)
    }

    /// A path that receives the rows of several processes, each of which executes a partial path: `create_gather_path`.
    pub fn gathered(self, relation: RelOptInfo<'p>, partial: Path<'p>) -> Path<'p> {
        let mut rows = partial.rows() * f64::from(partial.parallel_workers());
        let target = partial.pathtarget().expect("a path with a target");
        let none = Relids::NONE;
        planner::create_gather_path(self, relation, partial, target, none, Place(&mut rows))
    }

    /// A path that returns the rows of several paths one after the other: `create_append_path`.
    pub fn appended(
        self,
        relation: RelOptInfo<'p>,
        paths: &[Path<'p>],
        target: Option<PathTarget<'p>>,
    ) -> Path<'p> {
        self.append(relation, (paths, &[]), 0, target)
    }

    /// As [`Self::appended`], for one of several processes. Each of the first paths is executed by one process, each of
    /// the others by any of them.
    pub fn appended_by_workers(
        self,
        relation: RelOptInfo<'p>,
        paths: (&[Path<'p>], &[Path<'p>]),
        workers: i32,
        target: Option<PathTarget<'p>>,
    ) -> Path<'p> {
        self.append(relation, paths, workers, target)
    }

    fn append(
        self,
        relation: RelOptInfo<'p>,
        (whole, shared): (&[Path<'p>], &[Path<'p>]),
        workers: i32,
        target: Option<PathTarget<'p>>,
    ) -> Path<'p> {
        let [whole, shared] = [whole, shared].map(|paths| List::new(paths.iter().copied()));
        let (order, none, is_shared) = (List::EMPTY, Relids::NONE, workers > 0);
        let path = planner::create_append_path(
            self, relation, whole, shared, order, none, workers, is_shared, -1.0,
        );
        if target.is_some() {
            path.set_target(target);
        }
        path
    }

    /// The clauses of GROUP BY that groups depend on.
    #[cfg(feature = "pg15")]
    fn grouping_clauses(self) -> List<'p, SortGroupClause<'p>> {
        self.parse()
            .map_or(List::EMPTY, |query| query.groupClause())
    }

    /// The clauses of GROUP BY that groups depend on. From PostgreSQL 16 on, the planner leaves out columns that have
    /// one value.
    #[cfg(not(feature = "pg15"))]
    fn grouping_clauses(self) -> List<'p, SortGroupClause<'p>> {
        self.processed_groupClause()
    }

    /// A path that combines the transition states of so many calls of aggregates and returns the query's groups:
    /// `create_agg_path`.
    pub fn finalised(
        self,
        output: RelOptInfo<'p>,
        states: Path<'p>,
        calls: usize,
        groups: f64,
    ) -> Option<Path<'p>> {
        let query = self.parse()?;
        let keys = self.grouping_clauses();
        // Where each key has one value, there is one group if there are rows. Rows are sorted by no key in any order.
        let strategy = match (query.groupClause().is_empty(), keys.is_empty()) {
            (true, _) => pg_sys::AggStrategy::AGG_PLAIN,
            (false, true) => pg_sys::AggStrategy::AGG_SORTED,
            (false, false) => pg_sys::AggStrategy::AGG_HASHED,
        };
        self.finalised_as(output, states, (strategy, keys), calls, groups)
    }

    /// As [`Self::finalised`], for groups by the keys of these clauses instead of the query's: one group if there are
    /// none.
    pub fn finalised_by(
        self,
        output: RelOptInfo<'p>,
        states: Path<'p>,
        keys: List<'p, SortGroupClause<'p>>,
        calls: usize,
        groups: f64,
    ) -> Option<Path<'p>> {
        let strategy = match keys.is_empty() {
            true => pg_sys::AggStrategy::AGG_PLAIN,
            false => pg_sys::AggStrategy::AGG_HASHED,
        };
        self.finalised_as(output, states, (strategy, keys), calls, groups)
    }

    fn finalised_as(
        self,
        output: RelOptInfo<'p>,
        states: Path<'p>,
        (strategy, keys): (pg_sys::AggStrategy::Type, List<'p, SortGroupClause<'p>>),
        calls: usize,
        groups: f64,
    ) -> Option<Path<'p>> {
        let (query, target) = (self.parse()?, output.reltarget()?);
        let split = pg_sys::AggSplit::AGGSPLIT_FINAL_DESERIAL;
        let having = query.havingQual().and_then(Expr::as_nodes);
        let operator = calls as f64 * server::cpu_operator_cost();
        let mut costs = pg_sys::AggClauseCosts::default();
        costs.transCost.per_tuple = operator;
        costs.finalCost.per_tuple = operator;
        // The planner has turned HAVING into a list.
        Some(planner::create_agg_path(
            self,
            output,
            states,
            target,
            strategy,
            split,
            keys,
            having.unwrap_or(List::EMPTY),
            Place(&mut costs),
            groups,
        ))
    }

    /// The parameters that a path of a table takes from other tables, which its relation depends on:
    /// `get_baserel_parampathinfo`.
    pub fn parameters_of(self, relation: RelOptInfo<'p>) -> Option<ParamPathInfo<'p>> {
        planner::get_baserel_parampathinfo(self, relation, relation.lateral_relids())
    }
}

impl<'p> RelOptInfo<'p> {
    /// Offers a path; the planner keeps it if no other is better, and frees those that it beats.
    pub fn add_path(self, path: CustomPath<'p>) {
        self.add_any_path(path.as_path());
    }

    /// As [`Self::add_path`], for a path of PostgreSQL's.
    pub fn add_any_path(self, path: Path<'p>) {
        planner::add_path(self, path);
    }

    /// Makes a path the only one.
    pub fn keep_only(self, path: CustomPath<'p>) {
        self.set_pathlist(List::new([path.as_path()]));
        self.set_partial_pathlist(List::EMPTY);
    }

    /// Offers a path that one of several processes executes.
    pub fn add_partial_path(self, path: CustomPath<'p>) {
        planner::add_partial_path(self, path.as_path());
    }

    /// How many workers may scan so many pages: `compute_parallel_worker`.
    pub fn parallel_workers(self, pages: f64) -> i32 {
        let most = planner::max_parallel_workers_per_gather();
        planner::compute_parallel_worker(self, pages, -1.0, most)
    }

    /// The rows that the planner expects of the relation, by its first path; one if it has none.
    pub fn expected_rows(self) -> f64 {
        self.pathlist().first().map_or(1.0, Path::rows)
    }
}

impl<'p> Path<'p> {
    /// The path below any projections.
    pub fn below_projections(self) -> Path<'p> {
        let mut path = self;
        while let Some(below) = path.downcast::<ProjectionPath>().and_then(|p| p.subpath()) {
            path = below;
        }
        path
    }

    /// A copy of a path that groups or joins rows, or gathers such rows from workers; `None` for any other kind of
    /// path.
    pub fn copy_of_result(self) -> Option<Path<'p>> {
        None.or_else(|| tag::shallow_copy_as::<AggPath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<GroupPath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<UpperUniquePath<'p>, _>(self))
            // From PostgreSQL 16 on, DISTINCT ON keys that are all constant is LIMIT 1.
            .or_else(|| tag::shallow_copy_as::<LimitPath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<WindowAggPath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<HashPath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<MergePath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<NestPath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<GatherPath<'p>, _>(self))
            .or_else(|| tag::shallow_copy_as::<GatherMergePath<'p>, _>(self))
    }

    /// The paths whose rows a path reads: none for a scan of a table. `None` for a kind of path that is not known here,
    /// or that starts workers.
    pub fn inputs(self) -> Option<List<'p, Path<'p>>> {
        macro_rules! below {
            ($kind:ident) => {
                self.downcast::<$kind>().and_then($kind::subpath)
            };
        }
        if let Some(join) = self.as_join() {
            return Some(List::new([join.outerjoinpath()?, join.innerjoinpath()?]));
        }
        let below = match self.tag() {
            NodeTag::T_AggPath => below!(AggPath),
            NodeTag::T_GroupPath => below!(GroupPath),
            NodeTag::T_UpperUniquePath => below!(UpperUniquePath),
            NodeTag::T_WindowAggPath => below!(WindowAggPath),
            NodeTag::T_SortPath => below!(SortPath),
            NodeTag::T_ProjectionPath => below!(ProjectionPath),
            NodeTag::T_SubqueryScanPath => below!(SubqueryScanPath),
            NodeTag::T_LimitPath => below!(LimitPath),
            NodeTag::T_MaterialPath => below!(MaterialPath),
            NodeTag::T_MemoizePath => below!(MemoizePath),
            NodeTag::T_IncrementalSortPath => below!(IncrementalSortPath),
            NodeTag::T_Path | NodeTag::T_IndexPath | NodeTag::T_BitmapHeapPath => {
                return Some(List::EMPTY);
            }
            _ => None,
        };
        Some(List::new([below?]))
    }

    /// The path as that of a join, if it is one.
    pub fn as_join(self) -> Option<JoinPath<'p>> {
        self.downcast()
    }

    /// The path as one of this library with this name of a node, if it is one.
    pub fn as_custom(self, name: &CStr) -> Option<CustomPath<'p>> {
        let custom = self.downcast::<CustomPath>()?;
        (custom.name() == name).then_some(custom)
    }
}

impl<'p> CustomPath<'p> {
    /// The name of the node that executes the path.
    pub fn name(self) -> &'p CStr {
        self.methods()
            .and_then(CustomPathMethods::CustomName)
            .unwrap_or_default()
    }

    /// A copy of the path's own fields.
    pub fn shallow_copy(self) -> CustomPath<'p> {
        tag::shallow_copy(self)
    }

    /// Takes over rows, costs, parameters and all else that any path has, from a path of the same relation.
    pub fn take_estimates(self, other: CustomPath<'p>) {
        self.set_path(other.path());
    }
}

impl<'p> SubqueryScanPath<'p> {
    /// A copy of the path that returns other columns of the sub-select.
    pub fn returning(self, target: PathTarget<'p>) -> Path<'p> {
        let copy = tag::shallow_copy(self).as_path();
        copy.set_target(Some(target));
        copy
    }
}
