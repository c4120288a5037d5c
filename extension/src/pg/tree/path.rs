//! Paths: the ways to obtain a relation's rows that the planner compares.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::expression::Expr;
use super::list::List;
use super::planner::{JoinPathExtraData, PathKey, PlannerInfo, RelOptInfo, Relids, RestrictInfo};
use super::query::SortGroupClause;
use super::raw;
use super::tag::Node;
use super::view::{Field, View, views};
use crate::pg::server;

views! {
    /// The columns of a path's rows.
    PathTarget of PathTarget {
        cost: pg_sys::QualCost;
        width: i32;
    } {
        exprs: List<'p, Expr<'p>>;
    } {}

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
    } {
        custom_paths: List<'p, Path<'p>>;
        custom_private: List<'p, Expr<'p>>;
    } {
        set_flags = flags: u32;
    } {
        set_children = custom_paths: List<'p, Path<'p>>;
        set_private = custom_private: List<'p, Expr<'p>>;
    }

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
        let (root, extra) = (self.as_ptr(), extra.as_ptr());
        let mut costs = pg_sys::JoinCostWorkspace::default();
        // SAFETY: live structures of one join; a nested loop's path begins with that of a join.
        unsafe {
            let (outer, inner) = (outer.as_ptr(), inner.as_ptr());
            pg_sys::initial_cost_nestloop(root, &mut costs, kind, outer, inner, extra);
            let path = pg_sys::create_nestloop_path(
                root,
                joined.as_ptr(),
                kind,
                &mut costs,
                extra,
                outer,
                inner,
                (*extra).restrictlist,
                (*outer).pathkeys,
                std::ptr::null_mut(),
            );
            JoinPath::at(path.cast())
        }
    }

    /// A target of these expressions, with their costs and widths.
    pub fn target_of(self, exprs: impl Iterator<Item = Expr<'p>>) -> PathTarget<'p> {
        // SAFETY: live structures; the target is in the current memory context.
        unsafe {
            let target = pg_sys::create_empty_pathtarget();
            for expr in exprs {
                pg_sys::add_column_to_pathtarget(target, expr.as_ptr().cast(), 0);
            }
            PathTarget::at(pg_sys::set_pathtarget_cost_width(self.as_ptr(), target))
        }
    }

    /// A path that computes a target over the rows of another path of a relation.
    pub fn projection(
        self,
        relation: RelOptInfo<'p>,
        below: Path<'p>,
        target: PathTarget<'p>,
    ) -> Path<'p> {
        let (root, relation) = (self.as_ptr(), relation.as_ptr());
        // SAFETY: live structures; the path begins as every path does.
        unsafe {
            let path =
                pg_sys::create_projection_path(root, relation, below.as_ptr(), target.as_ptr());
            Path::at(path.cast())
        }
    }

    /// A path that returns the rows of another in the order of path keys.
    pub fn sorted(self, path: Path<'p>, order: List<'p, PathKey<'p>>) -> Path<'p> {
        // SAFETY: live structures; the path begins as every path does.
        unsafe {
            let (below, order) = (path.as_ptr(), order.as_ptr());
            if order.is_null() || pg_sys::pathkeys_contained_in(order, (*below).pathkeys) {
                return path;
            }
            let relation = (*below).parent;
            let sort = pg_sys::create_sort_path(self.as_ptr(), relation, below, order, -1.0);
            Path::at(sort.cast())
        }
    }

    /// A path that receives the rows of several processes, each of which executes a partial path: `create_gather_path`.
    pub fn gathered(self, relation: RelOptInfo<'p>, partial: Path<'p>) -> Path<'p> {
        let (root, relation, below) = (self.as_ptr(), relation.as_ptr(), partial.as_ptr());
        let mut rows = partial.rows() * f64::from(partial.parallel_workers());
        // SAFETY: live structures; the path begins as every path does.
        unsafe {
            let target = (*below).pathtarget;
            let none = std::ptr::null_mut();
            let path =
                pg_sys::create_gather_path(root, relation, below, target, none, &raw mut rows);
            Path::at(path.cast())
        }
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
        let (root, relation) = (self.as_ptr(), relation.as_ptr());
        let [whole, shared] =
            [whole, shared].map(|paths| List::new(paths.iter().copied()).as_ptr());
        let none = std::ptr::null_mut();
        // SAFETY: live structures; the path begins as every path does.
        unsafe {
            let path = pg_sys::create_append_path(
                root,
                relation,
                whole,
                shared,
                none,
                std::ptr::null_mut(),
                workers,
                workers > 0,
                -1.0,
            );
            if let Some(target) = target {
                (*path).path.pathtarget = target.as_ptr();
            }
            Path::at(path.cast())
        }
    }

    /// The clauses of GROUP BY that groups depend on.
    fn grouping_clauses(self) -> List<'p, SortGroupClause<'p>> {
        // SAFETY: a live planner, with a query.
        unsafe {
            #[cfg(feature = "pg15")]
            return Field::of((*(*self.as_ptr()).parse).groupClause);
            // From PostgreSQL 16 on, the planner leaves out columns that have one value.
            #[cfg(not(feature = "pg15"))]
            return Field::of((*self.as_ptr()).processed_groupClause);
        }
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
        let (query, target) = (self.parse()?, output.reltarget()?);
        let keys = self.grouping_clauses();
        let root = self.as_ptr();
        let split = pg_sys::AggSplit::AGGSPLIT_FINAL_DESERIAL;
        // Where each key has one value, there is one group if there are rows. Rows are sorted by no key in any order.
        let strategy = match (query.groupClause().is_empty(), keys.is_empty()) {
            (true, _) => pg_sys::AggStrategy::AGG_PLAIN,
            (false, true) => pg_sys::AggStrategy::AGG_SORTED,
            (false, false) => pg_sys::AggStrategy::AGG_HASHED,
        };
        let having = query.havingQual().and_then(Expr::as_nodes);
        let operator = calls as f64 * server::cpu_operator_cost();
        let mut costs = pg_sys::AggClauseCosts::default();
        costs.transCost.per_tuple = operator;
        costs.finalCost.per_tuple = operator;
        // SAFETY: live structures; the planner has turned HAVING into a list; the path begins as every path does.
        unsafe {
            let path = pg_sys::create_agg_path(
                root,
                output.as_ptr(),
                states.as_ptr(),
                target.as_ptr(),
                strategy,
                split,
                keys.as_ptr(),
                having.unwrap_or(List::<Expr<'p>>::EMPTY).as_ptr(),
                &raw const costs,
                groups,
            );
            Some(Path::at(path.cast()))
        }
    }

    /// The parameters that a path of a table takes from other tables, which its relation depends on:
    /// `get_baserel_parampathinfo`.
    pub fn parameters_of(self, relation: RelOptInfo<'p>) -> Option<ParamPathInfo<'p>> {
        let (root, relation) = (self.as_ptr(), relation.as_ptr());
        // SAFETY: live structures; null if it depends on none.
        unsafe {
            let required = (*relation).lateral_relids;
            Field::of(pg_sys::get_baserel_parampathinfo(root, relation, required))
        }
    }
}

impl<'p> RelOptInfo<'p> {
    /// Offers a path; the planner keeps it if no other is better, and frees those that it beats.
    pub fn add_path(self, path: CustomPath<'p>) {
        self.add_any_path(path.as_path());
    }

    /// As [`Self::add_path`], for a path of PostgreSQL's.
    pub fn add_any_path(self, path: Path<'p>) {
        // SAFETY: live structures.
        unsafe { pg_sys::add_path(self.as_ptr(), path.as_ptr()) }
    }

    /// Makes a path the only one.
    pub fn keep_only(self, path: CustomPath<'p>) {
        let paths = List::new([path.as_path()]);
        // SAFETY: a live relation, of which no view lends a reference.
        unsafe {
            (*self.as_ptr()).pathlist = paths.as_ptr();
            (*self.as_ptr()).partial_pathlist = std::ptr::null_mut();
        }
    }

    /// Offers a path that one of several processes executes.
    pub fn add_partial_path(self, path: CustomPath<'p>) {
        // SAFETY: live structures; the path begins as every path does.
        unsafe { pg_sys::add_partial_path(self.as_ptr(), path.as_ptr().cast()) }
    }

    /// How many workers may scan so many pages: `compute_parallel_worker`.
    pub fn parallel_workers(self, pages: f64) -> i32 {
        // SAFETY: a live relation; reads settings of this session.
        unsafe {
            let most = pg_sys::max_parallel_workers_per_gather;
            pg_sys::compute_parallel_worker(self.as_ptr(), pages, -1.0, most)
        }
    }

    /// The rows that the planner expects of the relation, by its first path; one if it has none.
    pub fn expected_rows(self) -> f64 {
        self.pathlist().first().map_or(1.0, Path::rows)
    }
}

/// A copy of a node of this structure.
///
/// # Safety
/// The path is of the structure.
unsafe fn copy_as<T>(path: *mut pg_sys::Path) -> *mut pg_sys::Path {
    // SAFETY: the caller's path is of this structure; the copy gets its tag with it.
    unsafe {
        let copy = raw::make::<T>((*path).type_);
        std::ptr::copy_nonoverlapping(path.cast::<T>(), copy, 1);
        copy.cast()
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
        let path = self.as_ptr();
        // SAFETY: a live path, whose structure follows from its tag.
        unsafe {
            let copy = match self.tag() {
                NodeTag::T_AggPath => copy_as::<pg_sys::AggPath>(path),
                NodeTag::T_GroupPath => copy_as::<pg_sys::GroupPath>(path),
                NodeTag::T_UpperUniquePath => copy_as::<pg_sys::UpperUniquePath>(path),
                // From PostgreSQL 16 on, DISTINCT ON keys that are all constant is LIMIT 1.
                NodeTag::T_LimitPath => copy_as::<pg_sys::LimitPath>(path),
                NodeTag::T_WindowAggPath => copy_as::<pg_sys::WindowAggPath>(path),
                NodeTag::T_HashPath => copy_as::<pg_sys::HashPath>(path),
                NodeTag::T_MergePath => copy_as::<pg_sys::MergePath>(path),
                NodeTag::T_NestPath => copy_as::<pg_sys::NestPath>(path),
                NodeTag::T_GatherPath => copy_as::<pg_sys::GatherPath>(path),
                NodeTag::T_GatherMergePath => copy_as::<pg_sys::GatherMergePath>(path),
                _ => return None,
            };
            Some(Path::at(copy))
        }
    }

    /// The paths whose rows a path reads: none for a scan of a table. `None` for a kind of path that is not known here,
    /// or that starts workers.
    pub fn inputs(self) -> Option<List<'p, Path<'p>>> {
        macro_rules! below {
            ($structure:ident, $($field:ident).+) => {
                // SAFETY: a live path, whose structure follows from its tag; the path below is not null.
                Path::at((*self.as_ptr().cast::<pg_sys::$structure>()).$($field).+)
            };
        }
        if let Some(join) = self.as_join() {
            return Some(List::new([join.outerjoinpath()?, join.innerjoinpath()?]));
        }
        // SAFETY: see the macro.
        let below = unsafe {
            match self.tag() {
                NodeTag::T_AggPath => below!(AggPath, subpath),
                NodeTag::T_GroupPath => below!(GroupPath, subpath),
                NodeTag::T_UpperUniquePath => below!(UpperUniquePath, subpath),
                NodeTag::T_WindowAggPath => below!(WindowAggPath, subpath),
                NodeTag::T_SortPath => below!(SortPath, subpath),
                NodeTag::T_ProjectionPath => below!(ProjectionPath, subpath),
                NodeTag::T_SubqueryScanPath => below!(SubqueryScanPath, subpath),
                NodeTag::T_LimitPath => below!(LimitPath, subpath),
                NodeTag::T_MaterialPath => below!(MaterialPath, subpath),
                NodeTag::T_MemoizePath => below!(MemoizePath, subpath),
                NodeTag::T_IncrementalSortPath => below!(IncrementalSortPath, spath.subpath),
                NodeTag::T_Path | NodeTag::T_IndexPath | NodeTag::T_BitmapHeapPath => {
                    return Some(List::EMPTY);
                }
                _ => return None,
            }
        };
        Some(List::new([below]))
    }

    /// The path as that of a join, if it is one.
    pub fn as_join(self) -> Option<JoinPath<'p>> {
        let is_join = matches!(
            self.tag(),
            NodeTag::T_NestPath | NodeTag::T_MergePath | NodeTag::T_HashPath
        );
        // SAFETY: a live path; those of joins begin with this structure.
        is_join.then(|| unsafe { JoinPath::at(self.as_ptr().cast()) })
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
        // SAFETY: every such path has methods with a name, which are static.
        unsafe { CStr::from_ptr((*(*self.as_ptr()).methods).CustomName) }
    }

    /// The path as any path.
    pub fn as_path(self) -> Path<'p> {
        // SAFETY: a live path, which begins with this structure.
        unsafe { Path::at(self.as_ptr().cast()) }
    }

    /// A copy of the path's own fields.
    pub fn shallow_copy(self) -> CustomPath<'p> {
        // SAFETY: a live path of this structure.
        unsafe { CustomPath::at(copy_as::<pg_sys::CustomPath>(self.as_ptr().cast()).cast()) }
    }

    /// Takes over rows, costs, parameters and all else that any path has, from a path of the same relation.
    pub fn take_estimates(self, other: CustomPath<'p>) {
        // SAFETY: two live paths.
        unsafe { (*self.as_ptr()).path = (*other.as_ptr()).path }
    }
}

impl<'p> SubqueryScanPath<'p> {
    /// The path as any path.
    pub fn as_path(self) -> Path<'p> {
        // SAFETY: a live path, which begins with this structure.
        unsafe { Path::at(self.as_ptr().cast()) }
    }

    /// A copy of the path that returns other columns of the sub-select.
    pub fn returning(self, target: PathTarget<'p>) -> Path<'p> {
        // SAFETY: a live path of this structure; nobody else knows the copy.
        unsafe {
            let copy = copy_as::<pg_sys::SubqueryScanPath>(self.as_ptr().cast());
            (*copy).pathtarget = target.as_ptr();
            Path::at(copy)
        }
    }
}

impl<'p> JoinPath<'p> {
    /// The path as any path.
    pub fn as_path(self) -> Path<'p> {
        // SAFETY: a live path, which begins with this structure.
        unsafe { Path::at(self.as_ptr().cast()) }
    }
}
