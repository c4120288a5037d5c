//! The planner's hooks: where vectorised paths are offered.
//!
//! Both hooks do nothing in a moment for relations that are not lanes tables, and always call the hook before them. The
//! first one also gives the function of a metric's view the conditions on labels ([`narrow`]).

use pgrx::pg_sys;

use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::gucs;
use crate::joins::by_key::sides::Sides;
use crate::joins::by_time::find::TimeJoin;
use crate::joins::by_time::nested_loop::Joining;
use crate::labels::narrow;
use crate::nodes::aggregate::offer::Input;
use crate::nodes::{
    aggregate, asof, gapfill, hash_join, latest, nested_aggregate, scan, time_join, top_n, window,
};
use crate::pg::hooks::PathHooks;
use crate::pg::server;
use crate::pg::tree::{JoinPathExtraData, PlannerInfo, RangeTblEntry, RelOptInfo};
use crate::planner::lanes_table;
use crate::planner::quals::split_quals;
use crate::planner::reasons::{self, About};
use crate::vectorize::{self, Vectorize};

/// The path hooks of this extension: they offer its nodes to the planner.
pub struct Paths;

impl PathHooks for Paths {
    fn relation<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>, entry: RangeTblEntry<'p>) {
        narrow::narrow(relation, entry);
        gapfill::offer::offer(root, relation, entry);
        if vectorize::vectorize() != Vectorize::Off
            && lanes_table::is_lanes_scan(relation, Some(entry))
        {
            offer_scan(root, relation);
        }
    }

    fn join<'p>(
        root: PlannerInfo<'p>,
        joined: RelOptInfo<'p>,
        (outer, inner): (RelOptInfo<'p>, RelOptInfo<'p>),
        kind: pg_sys::JoinType::Type,
        extra: JoinPathExtraData<'p>,
    ) {
        let join = Joining {
            root,
            joined,
            outer,
            inner,
            kind,
            extra,
        };
        hash_join::offer::offer(&join);
        let lateral = inner.rtekind() == pg_sys::RTEKind::RTE_SUBQUERY
            && inner.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL
            && !inner.lateral_relids().is_empty();
        let is_kind = matches!(
            kind,
            pg_sys::JoinType::JOIN_INNER | pg_sys::JoinType::JOIN_LEFT
        );
        if lateral && is_kind && gucs::enable_asof() {
            let offered = asof::offer::offer(&join);
            time_join::offer::offer(&join, offered);
        }
    }

    fn upper<'p>(
        root: PlannerInfo<'p>,
        stage: pg_sys::UpperRelationKind::Type,
        input: RelOptInfo<'p>,
        output: RelOptInfo<'p>,
    ) {
        if vectorize::vectorize() == Vectorize::Off {
            return;
        }
        match stage {
            pg_sys::UpperRelationKind::UPPERREL_DISTINCT => offer_distinct(root, input, output),
            pg_sys::UpperRelationKind::UPPERREL_WINDOW => offer_window(root, input, output),
            pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG => offer_groups(root, input, output),
            _ => {}
        }
    }
}

/// A table that is aggregated by itself.
fn alone<'a, 'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>) -> Input<'a, 'p> {
    Input {
        root,
        relation,
        join: None,
        hash_join: None,
    }
}

/// Offers the groups of a table, of a join, or of a sub-select's groups.
fn offer_groups<'p>(root: PlannerInfo<'p>, input: RelOptInfo<'p>, output: RelOptInfo<'p>) {
    let stage = pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG;
    let note = |index, reason| reasons::note(root, index, About::Use, reason);
    if let Some(index) = lanes_table::only_relation(input) {
        if !lanes_table::is_lanes_scan(input, root.entry(index)) {
            if let Err(reason) = aggregate::parts::offer(root, input, output) {
                pgrx::debug1!("aggregation of parts: {reason}");
            }
            // The sub-select is vectorised all the same; its rows are handed over.
            if let Err(reason) = nested_aggregate::offer::offer(root, input, output) {
                pgrx::debug1!("nested aggregation: {reason}");
            }
            return;
        }
        if let Err(reason) = aggregate::offer::offer(alone(root, input), output, stage) {
            note(index, format!("aggregation: {reason}"));
        }
    } else if let Some(join) = TimeJoin::of(root, input) {
        let offered = join.and_then(|join| {
            let of_join = Input {
                join: Some(&join),
                ..alone(root, join.left_relation)
            };
            aggregate::offer::offer(of_join, output, stage)
        });
        if let Err(reason) = offered {
            for table in lanes_table::joined_tables(root, input) {
                note(table, format!("join by time: {reason}"));
            }
        }
    } else if let Some((lanes, Err(reason))) = offer_joined(root, input, |sides| {
        aggregate_joined(root, sides, output, stage)
    }) {
        note(lanes, format!("hash join: {reason}"));
    }
}

/// Offers something over a hash join, with each of the tables that may be its lanes table. Returns the index of the one
/// that was tried first, and why it was not offered, if it was offered with none of them; `None` if there is no such
/// join.
fn offer_joined<'p>(
    root: PlannerInfo<'p>,
    input: RelOptInfo<'p>,
    offer: impl Fn(Sides<'p>) -> Translation<()>,
) -> Option<(u32, Translation<()>)> {
    if !server::enable_hashjoin() {
        return None;
    }
    let of_sides = |sides: Sides<'p>| (sides.lanes.relid(), offer(sides));
    let sides = Sides::of_joined(root, input).into_iter();
    let mut offered: Vec<_> = sides.map(of_sides).collect();
    let good = offered.iter().position(|(_, offered)| offered.is_ok());
    (!offered.is_empty()).then(|| offered.swap_remove(good.unwrap_or(0)))
}

/// Offers the groups of a hash join.
fn aggregate_joined<'p>(
    root: PlannerInfo<'p>,
    sides: Sides<'p>,
    output: RelOptInfo<'p>,
    stage: pg_sys::UpperRelationKind::Type,
) -> Translation<()> {
    let lanes = sides.lanes;
    let mut join = sides.join(root)?;
    let of_join = Input {
        hash_join: Some(&mut join),
        ..alone(root, lanes)
    };
    aggregate::offer::offer(of_join, output, stage)
}

/// Offers what gives the distinct rows of a table, or of one joined with something smaller: its groups, or for DISTINCT
/// ON the first row of each.
fn offer_distinct<'p>(root: PlannerInfo<'p>, input: RelOptInfo<'p>, output: RelOptInfo<'p>) {
    let Some(query) = root.parse() else {
        return;
    };
    if query.hasAggs() || query.hasWindowFuncs() || !query.groupClause().is_empty() {
        // DISTINCT applies to aggregated rows here, not to rows of the table.
        return;
    }
    let stage = pg_sys::UpperRelationKind::UPPERREL_DISTINCT;
    let (index, offered) = if let Some(index) = lanes_table::only_relation(input) {
        if !lanes_table::is_lanes_scan(input, root.entry(index)) {
            return;
        }
        let offered = match query.hasDistinctOn() {
            true => latest::offer::offer(root, query, input, output),
            false => aggregate::offer::offer(alone(root, input), output, stage),
        };
        (index, offered)
    } else if let Some(offered) = offer_joined(root, input, |sides| match query.hasDistinctOn() {
        true => hash_join::latest_plan::offer(root, query, sides, output),
        false => aggregate_joined(root, sides, output, stage),
    }) {
        offered
    } else {
        return;
    };
    if let Err(reason) = offered {
        reasons::note(root, index, About::Use, format!("distinct: {reason}"));
    }
}

/// Offers what gives the rows of a table with this extension's window functions.
fn offer_window<'p>(root: PlannerInfo<'p>, input: RelOptInfo<'p>, output: RelOptInfo<'p>) {
    let Some(index) = lanes_table::only_relation(input) else {
        return;
    };
    if !lanes_table::is_lanes_scan(input, root.entry(index)) {
        return;
    }
    if let Err(reason) = window::offer::offer(root, input, output) {
        reasons::note(root, index, About::Use, format!("window: {reason}"));
    }
}

/// Offers to scan a table.
fn offer_scan<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>) {
    if lanes_table::has_current_of(relation) {
        // Only a TID scan can find the row that a cursor stands on.
        return;
    }
    let note = |reason: &str| {
        reasons::note(root, relation.relid(), About::Reading, reason.into());
    };
    if reasons::may_scroll() {
        note("scan: a cursor without NO SCROLL");
        return;
    }
    if reasons::scrolls() && lanes_table::is_updatable(root) {
        note("scan: a SCROLL cursor, for WHERE CURRENT OF");
        return;
    }
    if lanes_table::asks_for_transaction_ids(relation) {
        note("scan: a system column other than ctid");
        return;
    }
    let mut translator = Translator::new(Scalars::Unknown);
    let quals = split_quals(root, relation, &mut translator);
    let (path, pages) = scan::offer::scan_path(root, relation, &quals);
    top_n::offer::offer(root, relation, &mut translator, path, &quals);
    scan::offer::offer_parallel_scan(relation, path, pages);
    relation.add_path(path);
}
