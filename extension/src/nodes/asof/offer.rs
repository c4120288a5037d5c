//! Offers `LanesAsofJoin` where the inner side of a nested loop is a lateral sub-select that finds a row by time.

use pgrx::pg_sys;

use super::state::AsofState;
use super::translate;
use crate::custom_scan::callbacks;
use crate::joins::by_time::nested_loop::{Joining, MEMORY_FACTOR};
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::tree::{List, PathTarget, RelOptInfo};
use crate::pg::{catalog, server};
use crate::planner;
use crate::planner::lanes_table;
use crate::planner::time_match::{Output, Shape};

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
pub fn offer(join: &Joining<'_>) -> bool {
    let entry = join.root.entry(join.inner.relid());
    let query = entry.and_then(|entry| entry.subquery());
    let (Some(query), Some(subroot)) = (query, join.inner.subroot()) else {
        return false;
    };
    let Ok(shape) = planner::time_match::match_shape(join.root, query) else {
        return false;
    };
    let (Some(wanted), Some(table)) =
        (join.inner.reltarget(), subroot.relation(shape.entry as u32))
    else {
        return false;
    };
    if !is_single_lanes_table(shape.table)
        || !are_columns(&shape, wanted)
        || !translate::can_filter(join.inner, &shape)
    {
        return false;
    }
    let Some(nested) = join.nested_loop() else {
        return false;
    };
    let Some(outer) = nested.outerjoinpath() else {
        return false;
    };
    let mut cost = cost(&shape, table, wanted);
    let memory = hash_memory_limit() as f64;
    if cost.bytes > memory * MEMORY_FACTOR {
        return false;
    }
    // A hash join would pay this to write its batches and read them again.
    let excess = (cost.bytes - memory).max(0.0);
    cost.build += 2.0 * server::seq_page_cost() * excess / f64::from(pg_sys::BLCKSZ);
    let path = callbacks::new_path::<AsofState>(join.joined, join.joined.reltarget());
    // A query that needs more than columns computes it above the join.
    path.set_flags(0);
    let (general, below) = (path.as_path(), nested.as_path());
    general.set_parallel_safe(below.parallel_safe());
    general.set_rows(below.rows());
    general.set_keys(below.pathkeys());
    general.set_startup_cost(outer.startup_cost() + cost.build);
    general.set_total_cost(outer.total_cost() + cost.build + cost.each * outer.rows());
    path.set_children(List::new([below]));
    join.joined.add_path(path);
    true
}

/// The costs: a scan of the table with a hash and a few stores for each of its rows, then a hash and a search for each
/// left row.
fn cost<'p>(shape: &Shape, table: RelOptInfo<'p>, target: PathTarget<'p>) -> Cost {
    let (operator, tuple) = (server::cpu_operator_cost(), server::cpu_tuple_cost());
    let rows = table.tuples().max(1.0);
    let kept = target.exprs().len() as f64;
    let columns = kept + shape.keys.len() as f64;
    let build = f64::from(table.pages()) * server::seq_page_cost()
        + rows * (tuple + operator * (2.0 + columns / 2.0));
    let search = shape.keys.len() as f64 + shape.bounds.len() as f64 + rows.log2() / 4.0;
    let each = tuple + operator * search + operator * shape.residual_quals.len() as f64 * 4.0;
    Cost {
        build,
        each,
        bytes: rows * (24.0 + 9.0 * kept + f64::from(target.width())),
    }
}

/// Whether the query uses only columns of the sub-select's table.
fn are_columns(shape: &Shape, target: PathTarget<'_>) -> bool {
    target.exprs().iter().all(|wanted| {
        let place = wanted.as_var().map(|column| column.varattno());
        let place = place.and_then(|place| usize::try_from(place).ok()?.checked_sub(1));
        let output = place.and_then(|place| shape.outputs.get(place));
        matches!(output, Some(Output::Column(_)))
    })
}

/// Whether a table, which the planner has locked, is a lanes table without children.
fn is_single_lanes_table(table: pg_sys::Oid) -> bool {
    lanes_table::is_lanes_table(table) && !catalog::has_children(table)
}
