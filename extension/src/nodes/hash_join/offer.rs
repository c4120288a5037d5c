//! Offers hash joins to the planner: for joined rows, and below aggregations.
//!
//! The costs are PostgreSQL's own for the small side, and a probe for each row that the small side's keys do not rule out.
//! If the lanes table is sorted by the key, these are about the matching rows and a few vectors around them.

use lanes_columnar::limits::VECTOR_ROWS;
use pgrx::pg_sys;

use super::state::HashJoinState;
use crate::custom_scan::callbacks;
use crate::custom_scan::stand_in;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::sides::{HashJoin, Sides, sides_of_path};
use crate::nodes::engine::plan::{Joined, engine_private};
use crate::pg::{nodes, outer_joins, ports, tree};
use crate::planner::quals::{VECTOR_SHARE, quals};
use crate::planner::reasons::{self, About};
use crate::table_options;
use crate::vectorize::{self, Vectorize};

/// The cost of looking up a row's key, in units of `cpu_operator_cost`.
const PROBE_SHARE: f64 = 0.2;
/// The cost of adding a row of the small side, in units of `cpu_operator_cost`.
const BUILD_SHARE: f64 = 2.0;

/// Offers the rows of a join of a lanes table with something smaller.
///
/// # Safety
/// The arguments are those of a `set_join_pathlist_hook`.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) {
    // SAFETY: the planner's structures are live.
    unsafe {
        if vectorize::vectorize() == Vectorize::Off || !pg_sys::enable_hashjoin {
            return;
        }
        let Some(sides) = Sides::of(root, joined, outer, inner, kind, (*extra).restrictlist) else {
            return;
        };
        // The planner finds a star in each order of its joins. Once it was offered, it has replaced the plans that could
        // stand in for it.
        let is_star = sides.dimensions.len() > 1;
        let mut paths = nodes::list::<pg_sys::Path>((*joined).pathlist);
        if is_star && paths.any(|path| sides_of_path(path).is_some()) {
            return;
        }
        // `require` accepts PostgreSQL's joins above vectorised scans, so no reason is needed. Another order of joins that
        // form no star may still be vectorised.
        let is_noted = vectorize::vectorize() != Vectorize::Require && !is_star;
        let index = (*sides.lanes).relid;
        if let Err(reason) = offer_rows(root, sides)
            && is_noted
        {
            reasons::note(
                crate::pg::tree::plan_node(root),
                index,
                About::Use,
                format!("hash join: {reason}"),
            );
        }
    }
}

unsafe fn offer_rows(root: *mut pg_sys::PlannerInfo, sides: Sides) -> Translation<()> {
    let joined = sides.joined;
    // SAFETY: the planner's structures are live.
    unsafe {
        let command = (*(*root).parse).commandType;
        // Locked rows are joined once more, one at a time, if they have changed.
        let locks = !(*root).rowMarks.is_null()
            || !matches!(
                command,
                pg_sys::CmdType::CMD_SELECT | pg_sys::CmdType::CMD_INSERT
            );
        if locks {
            return Err("rows are locked or changed".into());
        }
        let remembered_sides = sides.remember();
        let mut join = sides.join(root)?;
        let outputs = (*(*joined).reltarget).exprs;
        for output in nodes::list::<pg_sys::Node>(outputs) {
            if (*output).type_ != pg_sys::NodeTag::T_Var {
                return Err("the join gives more than columns".into());
            }
            join.want(output)?;
        }
        let translator = Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(0));
        let filters = filters(root, &join);
        for output in nodes::list::<pg_sys::Node>(outputs) {
            if !translator.is_given(crate::pg::tree::plan_node(output.cast())) {
                translator.attribute(crate::pg::tree::plan_node(output.cast()))?;
            }
        }
        let path = callbacks::path::<HashJoinState>(joined, (*joined).reltarget);
        // A query that needs more than columns computes it above the join.
        (*path).flags = 0;
        let small = small_paths(root, &join);
        let cost = Cost::of(root, &join, (*joined).rows, filters);
        let base = &mut (*path).path;
        base.parallel_safe = false;
        base.rows = (*joined).rows;
        base.startup_cost = total_cost(small) + cost.build;
        base.total_cost =
            base.startup_cost + cost.reading + base.rows * pg_sys::cpu_tuple_cost * 0.5;
        let keys = outputs;
        let none = std::ptr::null_mut();
        let by_hash = Joined::ByHash(&join.plan, none);
        // A join that may exceed its memory limit is offered only with a plan that can take over.
        let stand_in = match join.plan.is_divisible() {
            true => None,
            false => Some(stand_in::path(joined).ok_or("no other plan")?),
        };
        let has_stand_in = stand_in.is_some();
        let remembered = engine_private(
            join.plan.table,
            keys,
            none,
            filters,
            by_hash,
            has_stand_in,
            None,
        );
        (*path).custom_private = pg_sys::lappend(remembered, remembered_sides.cast());
        (*path).custom_paths = small;
        if let Some(stand_in) = stand_in {
            (*path).custom_paths = pg_sys::lappend((*path).custom_paths, stand_in.cast());
        }
        pg_sys::add_path(joined, path.cast());
        Ok(())
    }
}

/// The conditions on the lanes table as a list of expressions. The engine can evaluate all of them, as
/// [`Sides::of`] has checked.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn filters(root: *mut pg_sys::PlannerInfo, join: &HashJoin) -> *mut pg_sys::List {
    // SAFETY: the planner's structures are live.
    unsafe {
        let quals = quals(
            crate::pg::tree::plan_node(root),
            crate::pg::tree::plan_node(join.sides.lanes),
        )
        .into_iter()
        .map(crate::pg::tree::View::as_ptr);
        let clauses: Vec<_> = quals.map(|qual| (*qual).clause).collect();
        tree::list(&clauses)
    }
}

/// The costs of a join in addition to its small side's plan and its result.
pub struct Cost {
    /// The cost of keeping the small side's rows.
    pub build: f64,
    /// The cost of reading the lanes table and looking up keys.
    pub reading: f64,
}

impl Cost {
    /// # Safety
    /// The planner's structures are live, and the conditions are those of the lanes table.
    pub unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        join: &HashJoin,
        joined_rows: f64,
        filters: *mut pg_sys::List,
    ) -> Cost {
        // SAFETY: the planner's structures are live; reads settings of this session.
        unsafe {
            let lanes = join.sides.lanes;
            let entry = tree::planner_entry(root, (*lanes).relid as i32);
            let order = table_options::of((*entry).relid).keys((*entry).relid);
            let leading = order.and_then(|order| order.first().copied());
            let is_leading = |key: &*mut pg_sys::Node| {
                let key = key.cast::<pg_sys::Var>();
                tree::is_a(key, pg_sys::NodeTag::T_Var)
                    && leading == Some((*key).varattno as usize - 1)
            };
            let tuples = (*lanes).tuples.max(1.0);
            let (mut share, mut small_rows): (f64, f64) = (1.0, 0.0);
            for (side, dimension) in join.sides.dimensions.iter().zip(&join.plan.dimensions) {
                let rows = (*side.small).rows;
                small_rows += rows;
                let rules_out = dimension.left_keys.first().is_some_and(is_leading)
                    && dimension.kind.needs_match();
                if rules_out {
                    // The matching rows, and a vector of other rows around the rows of each key.
                    let around = rows * VECTOR_ROWS as f64;
                    share = share.min((joined_rows + around) / tuples);
                }
            }
            let probes = PROBE_SHARE * join.plan.dimensions.len() as f64;
            let per_row = pg_sys::cpu_operator_cost
                * (probes + VECTOR_SHARE * f64::from(ports::list_length(filters)));
            Cost {
                build: small_rows * pg_sys::cpu_operator_cost * BUILD_SHARE,
                reading: share
                    * (f64::from((*lanes).pages) * pg_sys::seq_page_cost * 0.1 + tuples * per_row),
            }
        }
    }
}

/// The paths to the rows of each small side: its keys, then its outputs.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn small_paths(root: *mut pg_sys::PlannerInfo, join: &HashJoin) -> *mut pg_sys::List {
    // SAFETY: the planner's structures are live.
    unsafe {
        let mut paths = std::ptr::null_mut();
        let sides = join.sides.dimensions.iter().zip(&join.small_keys);
        for (dimension, (side, keys)) in sides.enumerate() {
            let target = pg_sys::create_empty_pathtarget();
            for key in keys {
                let key = outer_joins::within(side.small, key.cast());
                pg_sys::add_column_to_pathtarget(target, key.cast(), 0);
            }
            let outputs = join.plan.outputs.iter();
            for output in outputs.filter(|output| output.dimension == dimension) {
                let column = outer_joins::within(side.small, output.column.cast());
                pg_sys::add_column_to_pathtarget(target, column.cast(), 0);
            }
            let target = pg_sys::set_pathtarget_cost_width(root, target);
            let below = (*side.small).cheapest_total_path;
            let path = pg_sys::create_projection_path(root, side.small, below, target);
            paths = pg_sys::lappend(paths, path.cast());
        }
        paths
    }
}

/// The total cost of these paths.
///
/// # Safety
/// The list has live paths.
pub unsafe fn total_cost(paths: *mut pg_sys::List) -> f64 {
    // SAFETY: the planner's structures are live.
    unsafe {
        nodes::list::<pg_sys::Path>(paths)
            .map(|path| (*path).total_cost)
            .sum()
    }
}

impl Sides {
    /// The sides as a list, the last element of what a `LanesHashJoin` path stores: the lanes table, then the relation, the
    /// conditions and the kind of each dimension.
    unsafe fn remember(&self) -> *mut pg_sys::List {
        // SAFETY: the planner's structures are live, and outlive its paths.
        unsafe {
            let mut all = tree::list(&[self.lanes.cast::<pg_sys::List>()]);
            for side in &self.dimensions {
                all = pg_sys::lappend(all, side.small.cast());
                all = pg_sys::lappend(all, side.conditions.cast());
                all = pg_sys::lappend(all, nodes::integers(&[side.kind.number()]).cast());
            }
            all
        }
    }
}

/// Refuses a grouping expression over the small side whose values have no hash.
///
/// # Safety
/// The planner's structures are live.
///
/// # Errors
/// The reason why the engine cannot group by the expression.
pub unsafe fn check_group(
    clause: *mut pg_sys::SortGroupClause,
    expression: *mut pg_sys::Node,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        if pg_sys::contain_volatile_functions(expression) || nodes::contains_subplan(expression) {
            return Err("GROUP BY a joined value that is volatile or a subquery".into());
        }
        let kind = &*pg_sys::lookup_type_cache(
            pg_sys::exprType(expression),
            (pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_HASH_PROC) as i32,
        );
        let hashes = kind.hash_proc != pg_sys::InvalidOid && kind.eq_opr == (*clause).eqop;
        match hashes && (*clause).hashable {
            true => Ok(()),
            false => Err("GROUP BY a joined value without a hash".into()),
        }
    }
}
