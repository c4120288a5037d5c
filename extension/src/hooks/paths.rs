//! The planner's hooks: where vectorised paths are offered.
//!
//! Both hooks do nothing in a moment for relations that are not lanes tables, and always call the hook before them. The
//! first one also gives the function of a metric's view the conditions on labels ([`narrow`]).

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::expressions::translate::{Scalars, Translator};
use crate::gucs;
use crate::joins::by_key::sides::Sides;
use crate::joins::by_time::find::TimeJoin;
use crate::labels::narrow;
use crate::nodes::{
    aggregate, asof, hash_join, latest, nested_aggregate, scan, time_join, top_n, window,
};
use crate::planner::lanes_table;
use crate::planner::quals::{Quals, split_quals};
use crate::planner::reasons::{self, About};
use crate::vectorize::{self, Vectorize};

static mut PREVIOUS_RELATION: pg_sys::set_rel_pathlist_hook_type = None;
static mut PREVIOUS_JOIN: pg_sys::set_join_pathlist_hook_type = None;
static mut PREVIOUS_UPPER: pg_sys::create_upper_paths_hook_type = None;

/// Installs the hooks.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS_RELATION = pg_sys::set_rel_pathlist_hook;
        pg_sys::set_rel_pathlist_hook = Some(relation_hook);
        PREVIOUS_JOIN = pg_sys::set_join_pathlist_hook;
        pg_sys::set_join_pathlist_hook = Some(join_hook);
        PREVIOUS_UPPER = pg_sys::create_upper_paths_hook;
        pg_sys::create_upper_paths_hook = Some(upper_hook);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_hook(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        if let Some(previous) = PREVIOUS_RELATION {
            previous(root, relation, index, entry);
        }
        narrow::narrow(
            crate::pg::tree::plan_node(relation),
            crate::pg::tree::plan_node(entry),
        );
        if vectorize::vectorize() != Vectorize::Off
            && lanes_table::is_lanes_scan(
                crate::pg::tree::plan_node(relation),
                crate::pg::tree::plan_field(entry),
            )
        {
            offer_scan(root, relation);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn upper_hook(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    extra: *mut std::ffi::c_void,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        if let Some(previous) = PREVIOUS_UPPER {
            previous(root, stage, input, output, extra);
        }
        if vectorize::vectorize() == Vectorize::Off {
            return;
        }
        if stage == pg_sys::UpperRelationKind::UPPERREL_DISTINCT {
            offer_distinct(root, input, output);
            return;
        }
        if stage == pg_sys::UpperRelationKind::UPPERREL_WINDOW {
            offer_window(root, input, output);
            return;
        }
        if stage != pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG {
            return;
        }
        if let Some(index) = lanes_table::only_relation(crate::pg::tree::plan_node(input)) {
            let entry = *(*root).simple_rte_array.add(index as usize);
            if !lanes_table::is_lanes_scan(
                crate::pg::tree::plan_node(input),
                crate::pg::tree::plan_field(entry),
            ) {
                // The sub-select is vectorised all the same; its rows are handed over.
                if let Err(reason) = nested_aggregate::offer::offer(root, input, output) {
                    pgrx::debug1!("nested aggregation: {reason}");
                }
                return;
            }
            if let Err(reason) = aggregate::offer::offer(root, input, None, None, output, stage) {
                reasons::note(
                    crate::pg::tree::plan_node(root),
                    index,
                    About::Use,
                    format!("aggregation: {reason}"),
                );
            }
        } else if let Some(join) = TimeJoin::of(root, input) {
            let offered = join.and_then(|join| {
                let left = join.left_relation;
                aggregate::offer::offer(root, left, Some(&join), None, output, stage)
            });
            if let Err(reason) = offered {
                for table in lanes_table::joined_tables(
                    crate::pg::tree::plan_node(root),
                    crate::pg::tree::plan_node(input),
                ) {
                    reasons::note(
                        crate::pg::tree::plan_node(root),
                        table,
                        About::Use,
                        format!("join by time: {reason}"),
                    );
                }
            }
        } else if pg_sys::enable_hashjoin
            && let Some(sides) = Sides::of_joined(root, input)
        {
            let lanes = sides.lanes;
            let offered = sides.join(root).and_then(|mut join| {
                aggregate::offer::offer(root, lanes, None, Some(&mut join), output, stage)
            });
            if let Err(reason) = offered {
                let index = (*lanes).relid;
                reasons::note(
                    crate::pg::tree::plan_node(root),
                    index,
                    About::Use,
                    format!("hash join: {reason}"),
                );
            }
        }
    }
}

/// Offers what gives the distinct rows of a table, or of one joined with something smaller: its groups, or for DISTINCT
/// ON the first row of each.
unsafe fn offer_distinct(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        let query = &*(*root).parse;
        if query.hasAggs || query.hasWindowFuncs || !query.groupClause.is_null() {
            // What is distinct are no rows of the table.
            return;
        }
        let stage = pg_sys::UpperRelationKind::UPPERREL_DISTINCT;
        let (index, offered) =
            if let Some(index) = lanes_table::only_relation(crate::pg::tree::plan_node(input)) {
                let entry = *(*root).simple_rte_array.add(index as usize);
                if !lanes_table::is_lanes_scan(
                    crate::pg::tree::plan_node(input),
                    crate::pg::tree::plan_field(entry),
                ) {
                    return;
                }
                let offered = match query.hasDistinctOn {
                    true => latest::offer::offer(root, input, output),
                    false => aggregate::offer::offer(root, input, None, None, output, stage),
                };
                (index, offered)
            } else if pg_sys::enable_hashjoin
                && let Some(sides) = Sides::of_joined(root, input)
            {
                let lanes = sides.lanes;
                let grouped = |mut join| {
                    aggregate::offer::offer(root, lanes, None, Some(&mut join), output, stage)
                };
                let offered = match query.hasDistinctOn {
                    true => hash_join::latest_plan::offer(root, sides, output),
                    false => sides.join(root).and_then(grouped),
                };
                ((*lanes).relid, offered)
            } else {
                return;
            };
        if let Err(reason) = offered {
            reasons::note(
                crate::pg::tree::plan_node(root),
                index,
                About::Use,
                format!("distinct: {reason}"),
            );
        }
    }
}

/// Offers what gives the rows of a table with this extension's window functions.
unsafe fn offer_window(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        let Some(index) = lanes_table::only_relation(crate::pg::tree::plan_node(input)) else {
            return;
        };
        let entry = *(*root).simple_rte_array.add(index as usize);
        if !lanes_table::is_lanes_scan(
            crate::pg::tree::plan_node(input),
            crate::pg::tree::plan_field(entry),
        ) {
            return;
        }
        if let Err(reason) = window::offer::offer(root, input, output) {
            reasons::note(
                crate::pg::tree::plan_node(root),
                index,
                About::Use,
                format!("window: {reason}"),
            );
        }
    }
}

/// Offers to scan a table.
unsafe fn offer_scan(root: *mut pg_sys::PlannerInfo, relation: *mut pg_sys::RelOptInfo) {
    // SAFETY: the planner's live structures.
    unsafe {
        let index = (*relation).relid;
        if lanes_table::has_current_of(crate::pg::tree::plan_node(relation)) {
            // Only a TID scan can find the row that a cursor stands on.
            return;
        }
        if reasons::may_scroll() {
            reasons::note(
                crate::pg::tree::plan_node(root),
                index,
                About::Reading,
                "scan: a cursor without NO SCROLL".into(),
            );
            return;
        }
        if lanes_table::asks_for_transaction_ids(crate::pg::tree::plan_node(relation)) {
            reasons::note(
                crate::pg::tree::plan_node(root),
                index,
                About::Reading,
                "scan: a system column other than ctid".into(),
            );
            return;
        }
        let mut translator = Translator::new(Scalars::Unknown);
        let quals = split_quals(
            crate::pg::tree::plan_node(root),
            crate::pg::tree::plan_node(relation),
            &mut translator,
        );
        let (path, pages) = scan::offer::scan_path(root, relation, &quals);
        let Quals { pushed, kept } = quals;
        top_n::offer::offer(root, relation, &mut translator, path, pushed, kept);
        scan::offer::offer_parallel_scan(relation, path, pages);
        pg_sys::add_path(relation, path.cast());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn join_hook(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) {
    // SAFETY: what the planner hands over is live.
    unsafe {
        if let Some(previous) = PREVIOUS_JOIN {
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
            let offered = asof::offer::offer(root, joined, outer, inner, kind, extra);
            time_join::offer::offer(root, joined, outer, inner, kind, extra, offered);
        }
    }
}
