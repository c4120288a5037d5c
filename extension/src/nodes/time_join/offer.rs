//! Offers `LanesTimeJoin` for the rows of a join by time.

use pgrx::pg_sys;

use super::state::JoinState;
use crate::custom_scan::callbacks;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_time::find::{self, Sides, TimeJoin};
use crate::joins::by_time::nested_loop;
use crate::joins::by_time::plan::number_types;
use crate::nodes::engine::plan::{Joined, engine_private};
use crate::nodes::scan::offer::scan_path;
use crate::pg::{nodes, ports, tree};
use crate::planner::lanes_table::is_lanes_scan;
use crate::planner::quals::{Quals, VECTOR_SHARE, quals};
use crate::planner::reasons::{self, About};
use crate::vectorize::{self, Vectorize};

/// The cost of a row of either side, in units of `cpu_operator_cost`.
pub const JOIN_SHARE: f64 = 1.0;

/// Offers to join a lanes table with a lateral sub-select that finds rows by time. If the node cannot do that, and no
/// other node has `accelerated` the join, EXPLAIN shows the reason.
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
    accelerated: bool,
) {
    if vectorize::vectorize() == Vectorize::Off {
        return;
    }
    let mut sides = Sides {
        outer,
        inner,
        kind,
        path: std::ptr::null_mut(),
    };
    // SAFETY: the planner's structures are live.
    unsafe {
        if let Err(reason) = offer_sides(root, joined, &mut sides, extra)
            && !accelerated
        {
            note(root, &sides, &reason);
        }
    }
}

/// Offers the join of two sides.
unsafe fn offer_sides(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    sides: &mut Sides,
    extra: *mut pg_sys::JoinPathExtraData,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        if !sides.are_alike(root) {
            return Err("the left side is not one lanes table alone".into());
        }
        // Locked rows are joined once more, one at a time, if they have changed. The nested loop does that.
        let locks = !(*root).rowMarks.is_null()
            || (*(*root).parse).commandType != pg_sys::CmdType::CMD_SELECT;
        if locks {
            return Err("rows are locked or changed".into());
        }
        let Sides {
            outer, inner, kind, ..
        } = *sides;
        let Some(nested) = nested_loop::nested_loop(root, joined, outer, inner, kind, extra) else {
            return Err("a lateral reference".into());
        };
        sides.path = nested.cast();
        let mut join = TimeJoin::of_sides(root, sides, (*extra).restrictlist)?;
        // The plan that takes over if the right side exceeds its memory limit. It reads the left side in row order.
        let quals = Quals {
            pushed: tree::list(
                &quals(
                    crate::pg::tree::plan_node(root),
                    crate::pg::tree::plan_node(outer),
                )
                .into_iter()
                .map(crate::pg::tree::View::as_ptr)
                .collect::<Vec<_>>(),
            ),
            kept: std::ptr::null_mut(),
        };
        let (left, _) = scan_path(root, outer, &quals);
        let own = nested_loop::nested_loop_over(root, joined, left.cast(), inner, kind, extra);
        join.path = own.map_or(join.path, |path| path.cast());
        offer_rows(root, joined, nested, &join)
    }
}

/// Records why a nested loop executes a join by time: for the left table, or for the right side's tables if the left
/// side is no lanes table.
unsafe fn note(root: *mut pg_sys::PlannerInfo, sides: &Sides, reason: &str) {
    // SAFETY: the planner's structures are live.
    unsafe {
        let query = (*tree::planner_entry(root, (*sides.inner).relid as i32)).subquery;
        if query.is_null() || !find::seeks_by_time(query) {
            return;
        }
        let mut right = Vec::new();
        lanes_tables((*sides.inner).subroot, &mut right);
        if right.is_empty() {
            return;
        }
        let concerned = match sides.is_left_lanes_table(root) {
            true => vec![(root, (*sides.outer).relid)],
            false => right,
        };
        for (root, index) in concerned {
            reasons::note(
                crate::pg::tree::plan_node(root),
                index,
                About::Use,
                format!("join by time: {reason}"),
            );
        }
    }
}

/// Adds the lanes tables that a sub-select reads, each with its planner and its range-table index.
unsafe fn lanes_tables(
    root: *mut pg_sys::PlannerInfo,
    found: &mut Vec<(*mut pg_sys::PlannerInfo, u32)>,
) {
    // SAFETY: the planner's structures are live; the planner may be null.
    unsafe {
        if root.is_null() {
            return;
        }
        for index in 1..(*root).simple_rel_array_size {
            let relation = *(*root).simple_rel_array.add(index as usize);
            if relation.is_null() {
                continue;
            }
            if is_lanes_scan(
                crate::pg::tree::plan_node(relation),
                crate::pg::tree::plan_field(tree::planner_entry(root, index)),
            ) {
                found.push((root, index as u32));
            }
            lanes_tables((*relation).subroot, found);
        }
    }
}

/// Offers the rows of a join.
unsafe fn offer_rows(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    nested: *mut pg_sys::NestPath,
    join: &TimeJoin,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        fits_memory(join)?;
        let left = join.left_relation;
        let index = (*left).relid;
        let mut translator =
            Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(index));
        let mut filters = std::ptr::null_mut();
        for qual in quals(
            crate::pg::tree::plan_node(root),
            crate::pg::tree::plan_node(left),
        )
        .into_iter()
        .map(crate::pg::tree::View::as_ptr)
        {
            if (*qual).pseudoconstant || (*qual).security_level > 0 {
                return Err("a qual without columns, or a security barrier".into());
            }
            translator.predicate(crate::pg::tree::plan_node((*qual).clause.cast()))?;
            filters = pg_sys::lappend(filters, (*qual).clause.cast());
        }
        join.plan.check(&mut translator)?;
        for qual in &join.quals {
            translator.predicate(crate::pg::tree::plan_node((*qual).cast()))?;
        }
        let outputs = (*(*joined).reltarget).exprs;
        for output in nodes::list::<pg_sys::Node>(outputs) {
            if (*output).type_ != pg_sys::NodeTag::T_Var {
                return Err("the join gives more than columns".into());
            }
            match translator.is_given(crate::pg::tree::plan_node(output.cast())) {
                true => drop(translator.value(crate::pg::tree::plan_node(output.cast()))?),
                false => drop(translator.attribute(crate::pg::tree::plan_node(output.cast()))?),
            }
        }
        let path = callbacks::path::<JoinState>(joined, (*joined).reltarget);
        // A query that needs more than columns computes it above the join.
        (*path).flags = 0;
        let base = &mut (*path).path;
        base.parallel_safe = false;
        base.rows = (*nested).jpath.path.rows;
        let filters_count = f64::from(ports::list_length(filters).max(1));
        let per_row = pg_sys::cpu_operator_cost * (JOIN_SHARE + filters_count * VECTOR_SHARE);
        base.startup_cost = join.right_rows * pg_sys::cpu_operator_cost * JOIN_SHARE;
        base.total_cost = base.startup_cost
            + f64::from((*left).pages) * pg_sys::seq_page_cost * 0.1
            + (*left).tuples * per_row
            + base.rows * pg_sys::cpu_tuple_cost;
        (*path).custom_private = engine_private(
            index,
            outputs,
            std::ptr::null_mut(),
            filters,
            Joined::ByTime(join),
            false,
            None,
        );
        (*path).custom_paths = tree::list(&[join.path]);
        pg_sys::add_path(joined, path.cast());
        Ok(())
    }
}

/// Bytes of a row of a series while it is sorted, without its columns.
const SERIES_ROW: f64 = 24.0;

/// Refuses a right side that is expected to exceed the memory limit of such joins.
///
/// # Errors
/// The right side is too large.
pub unsafe fn fits_memory(join: &TimeJoin) -> Translation<()> {
    let columns = number_types(&join.plan).len() as f64;
    let bytes = join.right_rows * (SERIES_ROW + 16.0 * columns.min(4.0));
    // SAFETY: reads a setting of this session.
    let limit = unsafe { pg_sys::get_hash_memory_limit() } as f64;
    if bytes > limit * nested_loop::MEMORY_FACTOR {
        return Err("the join's right side would not fit in memory (see work_mem)".into());
    }
    Ok(())
}
