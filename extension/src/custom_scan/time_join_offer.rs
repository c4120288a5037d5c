//! Offers `LanesTimeJoin` for the rows of a join by time, and makes its plan.

use pgrx::pg_sys;

use super::join_plan::number_types;
use super::offer::{VECTOR_SHARE, quals};
use super::plan::{self, aggregate_private};
use super::settings::{self, Vectorize};
use super::time_join::{Sides, TimeJoin};
use super::translate::{Scalars, Translation, Translator};
use crate::asof_join::{offer, tree};
use crate::pg::{nodes, ports};

/// Cost of a row of either side of a join by time, in units of `cpu_operator_cost`.
pub const JOIN_SHARE: f64 = 1.0;

/// Offers to join a lanes table with a lateral sub-select, if it is one by time.
///
/// # Safety
/// As for a `set_join_pathlist_hook`.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) {
    // SAFETY: the caller's promise.
    unsafe {
        // Rows that are locked are joined once more when they have changed, one at a time: that is for the nested loop.
        let locks = !(*root).rowMarks.is_null()
            || (*(*root).parse).commandType != pg_sys::CmdType::CMD_SELECT;
        if settings::vectorize() == Vectorize::Off || locks {
            return;
        }
        let mut sides = Sides {
            outer,
            inner,
            kind,
            path: std::ptr::null_mut(),
        };
        if !sides.are_alike(root) {
            return;
        }
        let Some(nested) = offer::nested_loop(root, joined, outer, inner, kind, extra) else {
            return;
        };
        sides.path = nested.cast();
        // Why not is said where an aggregation asks.
        let _ = TimeJoin::of_sides(root, &sides, (*extra).restrictlist)
            .and_then(|join| offer_rows(root, joined, nested, &join));
    }
}

unsafe fn offer_rows(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    nested: *mut pg_sys::NestPath,
    join: &TimeJoin,
) -> Translation<()> {
    // SAFETY: the planner's live structures.
    unsafe {
        fits_memory(join)?;
        let left = join.left_relation;
        let index = (*left).relid;
        let mut translator = Translator::of_join(Scalars::Unknown, index, number_types(&join.plan));
        let mut filters = std::ptr::null_mut();
        for qual in quals(root, left) {
            if (*qual).pseudoconstant || (*qual).security_level > 0 {
                return Err("a qual without columns, or a security barrier".into());
            }
            translator.predicate((*qual).clause.cast())?;
            filters = pg_sys::lappend(filters, (*qual).clause.cast());
        }
        join.plan.check(&mut translator)?;
        for qual in &join.quals {
            translator.predicate(*qual)?;
        }
        let outputs = (*(*joined).reltarget).exprs;
        for output in nodes::list::<pg_sys::Node>(outputs) {
            if (*output).type_ != pg_sys::NodeTag::T_Var {
                return Err("the join gives more than columns".into());
            }
            match translator.is_given(output) {
                true => drop(translator.value(output)?),
                false => drop(translator.attribute(output)?),
            }
        }
        let path = nodes::make::<pg_sys::CustomPath>(pg_sys::NodeTag::T_CustomPath);
        let base = &mut (*path).path;
        base.pathtype = pg_sys::NodeTag::T_CustomScan;
        base.parent = joined;
        base.pathtarget = (*joined).reltarget;
        base.parallel_safe = false;
        base.rows = (*nested).jpath.path.rows;
        let filters_count = f64::from(ports::list_length(filters).max(1));
        let per_row = pg_sys::cpu_operator_cost * (JOIN_SHARE + filters_count * VECTOR_SHARE);
        base.startup_cost = join.right_rows * pg_sys::cpu_operator_cost * JOIN_SHARE;
        base.total_cost = base.startup_cost
            + f64::from((*left).pages) * pg_sys::seq_page_cost * 0.1
            + (*left).tuples * per_row
            + base.rows * pg_sys::cpu_tuple_cost;
        (*path).custom_private =
            aggregate_private(index, outputs, std::ptr::null_mut(), filters, Some(join));
        (*path).custom_paths = tree::list(&[join.path]);
        (*path).methods = plan::time_join_path_methods();
        pg_sys::add_path(joined, path.cast());
        Ok(())
    }
}

/// Bytes that a row of a series takes while it is put in order, but for its columns.
const SERIES_ROW: f64 = 24.0;

/// Refuses a right side that would not fit in the memory that such joins are given.
pub unsafe fn fits_memory(join: &TimeJoin) -> Translation<()> {
    let columns = number_types(&join.plan).len() as f64;
    let bytes = join.right_rows * (SERIES_ROW + 16.0 * columns.min(4.0));
    // SAFETY: settings of this session.
    let limit = unsafe { pg_sys::get_hash_memory_limit() } as f64;
    if bytes > limit * offer::MEMORY_FACTOR {
        return Err("the join's right side would not fit in memory (see work_mem)".into());
    }
    Ok(())
}
