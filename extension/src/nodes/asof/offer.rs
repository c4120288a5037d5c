//! Offers `LanesAsofJoin` where the inner side of a nested loop is a lateral sub-select that finds a row by time.

use pgrx::pg_sys;

use super::state::AsofState;
use super::translate;
use crate::custom_scan::callbacks;
use crate::joins::by_time::nested_loop::{MEMORY_FACTOR, nested_loop};
use crate::pg::{ports, tree};
use crate::planner;
use crate::planner::time_match::{Output, Shape};
use crate::table_am::routine;

/// The costs of the node, in the planner's units.
struct Cost {
    /// Cost of reading the right side.
    build: f64,
    /// Cost of a left row.
    each: f64,
    /// Expected bytes of the history.
    bytes: f64,
}

/// Offers the node, and returns whether it did.
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
) -> bool {
    // SAFETY: the planner's structures are live; casts follow tags.
    unsafe {
        let query = (*tree::planner_entry(root, (*inner).relid as i32)).subquery;
        let subroot = (*inner).subroot;
        if query.is_null() || subroot.is_null() {
            return false;
        }
        let Ok(shape) = planner::time_match::match_shape(
            crate::pg::tree::plan_node(root),
            crate::pg::tree::plan_node(query),
        ) else {
            return false;
        };
        if !is_single_lanes_table(shape.table)
            || !are_columns(&shape, (*inner).reltarget)
            || !translate::can_filter(inner, &shape)
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
        // What a hash join would pay to write its batches and read them again.
        let excess = (cost.bytes - memory).max(0.0);
        cost.build += 2.0 * pg_sys::seq_page_cost * excess / f64::from(pg_sys::BLCKSZ);
        let path = callbacks::path::<AsofState>(joined, (*joined).reltarget);
        // A query that needs more than columns computes it above the join.
        (*path).flags = 0;
        let general = &mut (*path).path;
        general.parallel_safe = (*nested).jpath.path.parallel_safe;
        general.rows = (*nested).jpath.path.rows;
        general.pathkeys = (*nested).jpath.path.pathkeys;
        general.startup_cost = (*outer_path).startup_cost + cost.build;
        general.total_cost = (*outer_path).total_cost + cost.build + cost.each * (*outer_path).rows;
        (*path).custom_paths = tree::list(&[nested]);
        pg_sys::add_path(joined, path.cast());
        true
    }
}

/// The costs: a scan of the table with a hash and a few stores for each of its rows, then a hash and a search for each
/// left row.
unsafe fn cost(
    shape: &Shape,
    table: *const pg_sys::RelOptInfo,
    target: *const pg_sys::PathTarget,
) -> Cost {
    // SAFETY: the relation is live; reads settings of this session.
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

/// Whether the query uses only columns of the sub-select's table.
unsafe fn are_columns(shape: &Shape, target: *const pg_sys::PathTarget) -> bool {
    // SAFETY: the target is live; the cast follows the tag.
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

/// Whether a table is a lanes table without children.
unsafe fn is_single_lanes_table(table: pg_sys::Oid) -> bool {
    // SAFETY: the planner holds a lock on the table.
    unsafe {
        let open = pg_sys::relation_open(table, pg_sys::NoLock as i32);
        let single = (*open).rd_tableam == routine::routine() && !(*(*open).rd_rel).relhassubclass;
        pg_sys::relation_close(open, pg_sys::NoLock as i32);
        single
    }
}
