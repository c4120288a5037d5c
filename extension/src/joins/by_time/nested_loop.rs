//! The nested loop that PostgreSQL would run for a lateral join, and the memory that a node may
//! take to replace it.

use pgrx::pg_sys;

use crate::pg::tree;

/// The factor by which the estimated size of the right side may exceed `work_mem *
/// hash_mem_multiplier`. The right side is not spilled to disk, so a limit is needed. The limit
/// is higher than that of a hash join, because without an index the alternative is to scan the
/// table for each row.
pub const MEMORY_FACTOR: f64 = 16.0;

/// PostgreSQL's nested loop for a join whose inner side takes parameters from the outer side
/// alone.
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

/// As [`nested_loop`], over a given path of the outer side that needs no parameters.
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
