//! Offers the planner an accelerated join wherever the inner side of a nested loop is a lateral sub-select of the shape.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::plan;
use crate::nodes::{hash_join, time_join};
use crate::pg::{ports, tree};
use crate::planner::time_match::{Output, Shape};
use crate::table_am::routine;
use crate::{gucs, planner};

static mut PREVIOUS: pg_sys::set_join_pathlist_hook_type = None;

/// Installs the hook. Called from `_PG_init`.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS = pg_sys::set_join_pathlist_hook;
        pg_sys::set_join_pathlist_hook = Some(join_paths);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn join_paths(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) {
    // SAFETY: what the planner hands over is live.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, joined, outer, inner, kind, extra);
        }
        hash_join::offer::offer(root, joined, outer, inner, kind, extra);
        let lateral = (*inner).rtekind == pg_sys::RTEKind::RTE_SUBQUERY
            && (*inner).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && !(*inner).lateral_relids.is_null();
        if lateral
            && gucs::enable_asof()
            && matches!(
                kind,
                pg_sys::JoinType::JOIN_INNER | pg_sys::JoinType::JOIN_LEFT
            )
        {
            let offered = offer(root, joined, outer, inner, kind, extra);
            time_join::offer::offer(root, joined, outer, inner, kind, extra, offered);
        }
    }
}

/// How much more than `work_mem * hash_mem_multiplier` a history may be expected to take. It does not spill, so there must be a
/// limit; without an index the alternative is to read the table for each row, so it is not the same one.
pub const MEMORY_FACTOR: f64 = 16.0;

/// Costs of what the node does, in the planner's units.
struct Cost {
    build: f64,
    each: f64,
    bytes: f64,
}

/// Whether it is offered.
unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) -> bool {
    // SAFETY: live planner structures; casts follow tags.
    unsafe {
        let query = (*tree::planner_entry(root, (*inner).relid as i32)).subquery;
        let subroot = (*inner).subroot;
        if query.is_null() || subroot.is_null() {
            return false;
        }
        let Ok(shape) = planner::time_match::match_shape(root, query) else {
            return false;
        };
        if !is_single_lanes_table(shape.table)
            || !are_columns(&shape, (*inner).reltarget)
            || !plan::can_filter(inner, &shape)
        {
            return false;
        }
        let Some(nested) = nested_loop(root, joined, outer, inner, kind, extra) else {
            return false;
        };
        let outer_path = (*nested).jpath.outerjoinpath;
        let table = *(*subroot).simple_rel_array.add(shape.entry as usize);
        if table.is_null() {
            return false;
        }
        let mut cost = cost(&shape, table, (*inner).reltarget);
        let memory = pg_sys::get_hash_memory_limit() as f64;
        if cost.bytes > memory * MEMORY_FACTOR {
            return false;
        }
        // As much as writing and reading again what a hash join would put aside.
        let excess = (cost.bytes - memory).max(0.0);
        cost.build += 2.0 * pg_sys::seq_page_cost * excess / f64::from(pg_sys::BLCKSZ);
        let path: *mut pg_sys::CustomPath = tree::make(pg_sys::NodeTag::T_CustomPath);
        let general = &mut (*path).path;
        general.pathtype = pg_sys::NodeTag::T_CustomScan;
        general.parent = joined;
        general.pathtarget = (*joined).reltarget;
        general.parallel_safe = (*nested).jpath.path.parallel_safe;
        general.rows = (*nested).jpath.path.rows;
        general.pathkeys = (*nested).jpath.path.pathkeys;
        general.startup_cost = (*outer_path).startup_cost + cost.build;
        general.total_cost = (*outer_path).total_cost + cost.build + cost.each * (*outer_path).rows;
        (*path).custom_paths = tree::list(&[nested]);
        (*path).methods = plan::path_methods();
        pg_sys::add_path(joined, path.cast());
        true
    }
}

/// The join as a nested loop runs it, with values from the outer side alone.
///
/// # Safety
/// As for a `set_join_pathlist_hook`.
pub unsafe fn nested_loop(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) -> Option<*mut pg_sys::NestPath> {
    // SAFETY: the caller's promise; the cast follows the tag.
    unsafe {
        let outer_path = (*outer).cheapest_total_path;
        if outer_path.is_null() || !(*outer_path).param_info.is_null() {
            return None;
        }
        nested_loop_over(root, joined, outer_path, inner, kind, extra)
    }
}

/// The same over a path of the outer side, which needs no parameters.
///
/// # Safety
/// As for a `set_join_pathlist_hook`.
pub unsafe fn nested_loop_over(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer_path: *mut pg_sys::Path,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) -> Option<*mut pg_sys::NestPath> {
    // SAFETY: the caller's promise; the cast follows the tag.
    unsafe {
        let outer = (*outer_path).parent;
        let inner_path = tree::elements::<pg_sys::Path>((*inner).pathlist)
            .into_iter()
            .find(|&path| {
                (*path).type_ == pg_sys::NodeTag::T_SubqueryScanPath
                    && !(*path).param_info.is_null()
                    && pg_sys::bms_is_subset((*(*path).param_info).ppi_req_outer, (*outer).relids)
            })?;
        let mut workspace = pg_sys::JoinCostWorkspace::default();
        pg_sys::initial_cost_nestloop(root, &mut workspace, kind, outer_path, inner_path, extra);
        Some(pg_sys::create_nestloop_path(
            root,
            joined,
            kind,
            &mut workspace,
            extra,
            outer_path,
            inner_path,
            (*extra).restrictlist,
            (*outer_path).pathkeys,
            std::ptr::null_mut(),
        ))
    }
}

/// A scan of the table, a hash and a few stores for each of its rows; a hash and a search for each row of the outer side.
unsafe fn cost(
    shape: &Shape,
    table: *const pg_sys::RelOptInfo,
    target: *const pg_sys::PathTarget,
) -> Cost {
    // SAFETY: a live base relation; settings of this session.
    unsafe {
        let rows = (*table).tuples.max(1.0);
        let kept = f64::from(ports::list_length((*target).exprs));
        let columns = kept + shape.keys.len() as f64;
        let build = f64::from((*table).pages) * pg_sys::seq_page_cost
            + rows * (pg_sys::cpu_tuple_cost + pg_sys::cpu_operator_cost * (2.0 + columns / 2.0));
        let each = pg_sys::cpu_tuple_cost
            + pg_sys::cpu_operator_cost
                * (shape.keys.len() as f64 + shape.bounds.len() as f64 + rows.log2() / 4.0)
            + pg_sys::cpu_operator_cost * shape.residual_quals.len() as f64 * 4.0;
        let width = f64::from((*target).width);
        Cost {
            build,
            each,
            bytes: rows * (24.0 + 9.0 * kept + width),
        }
    }
}

/// Whether all that is wanted of the sub-select are columns of its table.
unsafe fn are_columns(shape: &Shape, target: *const pg_sys::PathTarget) -> bool {
    // SAFETY: a live target; the cast follows the tag.
    unsafe {
        tree::elements::<pg_sys::Node>((*target).exprs)
            .into_iter()
            .all(|wanted| {
                tree::is_a(wanted, pg_sys::NodeTag::T_Var) && {
                    let place = (*wanted.cast::<pg_sys::Var>()).varattno;
                    place > 0
                        && matches!(
                            shape.outputs.get(place as usize - 1),
                            Some(Output::Column(_))
                        )
                }
            })
    }
}

unsafe fn is_single_lanes_table(table: pg_sys::Oid) -> bool {
    // SAFETY: the planner holds a lock.
    unsafe {
        let open = pg_sys::relation_open(table, pg_sys::NoLock as i32);
        let single = (*open).rd_tableam == routine::routine() && !(*(*open).rd_rel).relhassubclass;
        pg_sys::relation_close(open, pg_sys::NoLock as i32);
        single
    }
}
