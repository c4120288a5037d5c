//! Offers `LanesTimeJoin` for the rows of a join by time.

use pgrx::pg_sys;

use super::state::JoinState;
use crate::custom_scan::callbacks;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_time::find::{self, Sides, TimeJoin};
use crate::joins::by_time::nested_loop::{self, Joining};
use crate::joins::by_time::plan::number_types;
use crate::nodes::engine::plan::{Engine, Joined};
use crate::nodes::scan::offer::scan_path;
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::server;
use crate::pg::tree::{List, Path, PlannerInfo};
use crate::planner::lanes_table::is_lanes_scan;
use crate::planner::quals::{Quals, VECTOR_SHARE, quals};
use crate::planner::reasons::{self, About};
use crate::vectorize::{self, Vectorize};

/// The cost of a row of either side, in units of `cpu_operator_cost`.
pub const JOIN_SHARE: f64 = 1.0;

/// Offers to join a lanes table with a lateral sub-select that finds rows by time. If the node cannot do that, and no
/// other node has `accelerated` the join, EXPLAIN shows the reason.
pub fn offer(join: &Joining<'_>, accelerated: bool) {
    if vectorize::vectorize() == Vectorize::Off {
        return;
    }
    let sides = Sides {
        outer: join.outer,
        inner: join.inner,
        kind: join.kind,
    };
    if let Err(reason) = offer_sides(join, sides)
        && !accelerated
    {
        note(join.root, &sides, &reason);
    }
}

/// Offers the join of two sides.
fn offer_sides<'p>(join: &Joining<'p>, sides: Sides<'p>) -> Translation<()> {
    let root = join.root;
    if !sides.are_alike(root) {
        return Err("the left side is not one lanes table alone".into());
    }
    let command = root.parse().map(|query| query.commandType());
    // Locked rows are joined once more, one at a time, if they have changed. The nested loop does that.
    if root.locks_rows() || command != Some(pg_sys::CmdType::CMD_SELECT) {
        return Err("rows are locked or changed".into());
    }
    let Some(nested) = join.nested_loop() else {
        return Err("a lateral reference".into());
    };
    let conditions = join.extra.restrictlist();
    let mut found = TimeJoin::of_sides(root, sides, nested.as_path(), conditions)?;
    // The plan that takes over if the right side exceeds its memory limit. It reads the left side in row order.
    let quals = Quals {
        pushed: List::new(quals(root, sides.outer)),
        kept: List::EMPTY,
    };
    let (left, _) = scan_path(root, sides.outer, &quals);
    if let Some(own) = join.nested_loop_over(left.as_path()) {
        found.path = own.as_path();
    }
    offer_rows(join, nested.as_path(), &found)
}

/// Records why a nested loop executes a join by time: for the left table, or for the right side's tables if the left
/// side is no lanes table.
fn note<'p>(root: PlannerInfo<'p>, sides: &Sides<'p>, reason: &str) {
    let entry = root.entry(sides.inner.relid());
    let query = entry.and_then(|entry| entry.subquery());
    if !query.is_some_and(find::seeks_by_time) {
        return;
    }
    let mut right = Vec::new();
    lanes_tables(sides.inner.subroot(), &mut right);
    if right.is_empty() {
        return;
    }
    let concerned = match sides.is_left_lanes_table(root) {
        true => vec![(root, sides.outer.relid())],
        false => right,
    };
    for (root, index) in concerned {
        let reason = format!("join by time: {reason}");
        reasons::note(root, index, About::Use, reason);
    }
}

/// Adds the lanes tables that a sub-select reads, each with its planner and its range-table index.
fn lanes_tables<'p>(root: Option<PlannerInfo<'p>>, found: &mut Vec<(PlannerInfo<'p>, u32)>) {
    let Some(root) = root else {
        return;
    };
    for index in root.indexes() {
        let Some(relation) = root.relation(index) else {
            continue;
        };
        if is_lanes_scan(relation, root.entry(index)) {
            found.push((root, index));
        }
        lanes_tables(relation.subroot(), found);
    }
}

/// Offers the rows of a join.
fn offer_rows<'p>(joining: &Joining<'p>, nested: Path<'p>, join: &TimeJoin<'p>) -> Translation<()> {
    fits_memory(join)?;
    let (left, joined) = (join.left_relation, joining.joined);
    let index = left.relid();
    let mut translator = Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(index));
    let mut filters = List::EMPTY;
    for qual in quals(joining.root, left) {
        if qual.pseudoconstant() || qual.security_level() > 0 {
            return Err("a qual without columns, or a security barrier".into());
        }
        translator.predicate(qual.clause())?;
        filters.push(qual.clause());
    }
    join.plan.check(&mut translator)?;
    for qual in &join.quals {
        translator.predicate(*qual)?;
    }
    let target = joined.reltarget();
    let outputs = target.map_or(List::EMPTY, |target| target.exprs());
    for output in outputs {
        let Some(column) = output.as_var() else {
            return Err("the join gives more than columns".into());
        };
        match translator.is_given(column) {
            true => drop(translator.value(output)?),
            false => drop(translator.attribute(column)?),
        }
    }
    let path = callbacks::new_path::<JoinState>(joined, target);
    // A query that needs more than columns computes it above the join.
    path.set_flags(0);
    path.as_path().set_parallel_safe(false);
    path.as_path().set_rows(nested.rows());
    estimate(path.as_path(), join, filters.len());
    let stored = Engine {
        index,
        keys: outputs,
        calls: List::EMPTY,
        absent: Vec::new(),
        quals: filters,
        join: Joined::ByTime(join),
        has_stand_in: false,
        is_partial: false,
        order: None,
        limit: None,
        row_limit: None,
    };
    path.set_private(stored.stored());
    path.set_children(List::new([join.path]));
    joined.add_path(path);
    Ok(())
}

/// Estimates the costs of a path that has its rows already. There are so many conditions on the
/// left side.
fn estimate(base: Path<'_>, join: &TimeJoin<'_>, filters: usize) {
    let (left, operator) = (join.left_relation, server::cpu_operator_cost());
    let filters_count = filters.max(1) as f64;
    let per_row = operator * (JOIN_SHARE + filters_count * VECTOR_SHARE);
    let startup = join.right_rows * operator * JOIN_SHARE;
    base.set_startup_cost(startup);
    base.set_total_cost(
        startup
            + f64::from(left.pages()) * server::seq_page_cost() * 0.1
            + left.tuples() * per_row
            + base.rows() * server::cpu_tuple_cost(),
    );
}

/// Bytes of a row of a series while it is sorted, without its columns.
const SERIES_ROW: f64 = 24.0;

/// Refuses a right side that is expected to exceed the memory limit of such joins.
///
/// # Errors
/// The right side is too large.
pub fn fits_memory(join: &TimeJoin<'_>) -> Translation<()> {
    let columns = number_types(&join.plan).len() as f64;
    let bytes = join.right_rows * (SERIES_ROW + 16.0 * columns.min(4.0));
    if bytes > hash_memory_limit() as f64 * nested_loop::MEMORY_FACTOR {
        return Err("the join's right side would not fit in memory (see work_mem)".into());
    }
    Ok(())
}
