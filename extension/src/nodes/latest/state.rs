//! `LanesLatest` under execution: one pass that finds the first row of each group, then a slot a row.

use std::ffi::CStr;

use lanes_columnar::aggregate::Aggregation;
use lanes_columnar::order::BestOfGroup;
use lanes_columnar::vector::Evaluation;
use pgrx::pg_sys;

use super::plan;
use crate::custom_scan::node::{Node, Planned, Routines};
use crate::custom_scan::privilege;
use crate::error;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::expressions::{aggregate_call, sort_key};
use crate::nodes::scan::state::begin_table;
use crate::nodes::top_n;
use crate::nodes::top_n::row_plan::RowPlan;
use crate::pg::explain::Explain;
use crate::pg::nodes;
use crate::vectors::kept_rows::{KeptRows, ROWS_FETCHED};
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::{Counters, VectorSource};

static ROUTINES: Routines = Routines::of::<LatestState>();

/// A node under execution.
#[derive(Default)]
pub struct LatestState {
    /// Attributes that the plan asks for, ascending.
    attributes: Vec<usize>,
    /// Quals that are not vectorised.
    kept: *mut pg_sys::ExprState,
    counters: Counters,
    passed: u64,
    bytes: usize,
}

/// The groups' rows.
pub struct Found {
    source: VectorSource,
    /// Their numbers, ascending, and how many of them were fetched.
    numbers: Vec<u64>,
    fetched: usize,
    rows: KeptRows,
}

impl Node for LatestState {
    const NAME: &'static CStr = c"LanesLatest";
    const ROUTINES: &'static Routines = &ROUTINES;
    type Running = Found;

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the planner's live structures.
        unsafe { plan::plan(planned) }
    }

    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState) {
        // SAFETY: a node freshly initialised by PostgreSQL.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let plan = RowPlan::of(scan);
            privilege::check_execute(std::iter::once((*scan).custom_exprs.cast()));
            self.attributes = begin_table(node, plan.kept);
            self.kept = pg_sys::ExecInitQual(plan.kept, node.cast());
        }
    }

    /// Reads the table.
    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Found> {
        // SAFETY: a node in execution.
        unsafe {
            let estate = (*node).ss.ps.state;
            let relation = (*node).ss.ss_currentRelation;
            let plan = RowPlan::of((*node).ss.ps.plan.cast());
            let mut translator = Translator::new(Scalars::Evaluated(&raw mut (*node).ss.ps));
            let mut filter = Filter::of(&mut translator, nodes::list(plan.pushed))?;
            let mut keys = Vec::new();
            for group in &plan.groups {
                keys.push(aggregate_call::key(&mut translator, *group)?.0);
            }
            let mut groups = Aggregation::new(keys, Vec::new());
            let mut best = BestOfGroup::new(sort_key::keys(&mut translator, &plan.keys)?);
            let zones_wanted = filter.zones_wanted.clone();
            let mut source = VectorSource::begin(relation, (*estate).es_snapshot, zones_wanted);
            let mut looked_at = translator.attributes();
            if !self.kept.is_null() {
                looked_at.extend_from_slice(&self.attributes);
            }
            source.want_only(looked_at);
            source.rewind(best.is_backward());
            let (scalars, attributes, kept) = (&translator.scalars, &self.attributes, self.kept);
            while let Some(selection) = source
                .next(&mut filter, scalars)
                .unwrap_or_else(|failure| error::evaluation(failure))
            {
                let frame = source.frame(scalars);
                self.passed += selection.count() as u64;
                let (outlet, place) = (source.outlet(), source.place(0));
                let accept = |row: usize| {
                    let is_kept = kept.is_null()
                        || top_n::state::accepts(node, attributes, kept, outlet, place + row);
                    is_kept.then_some(0)
                };
                let first_row = source.row_number(place);
                groups
                    .grouping(&frame, &selection)
                    .and_then(|(grouping, count)| {
                        best.offer(&frame, first_row, &selection, &grouping, count, accept)
                    })
                    .unwrap_or_else(|failure| error::evaluation(failure));
            }
            let numbers: Vec<u64> = best.rows().into_iter().map(|(number, _)| number).collect();
            self.bytes = groups.bytes() + best.bytes() + numbers.capacity() * size_of::<u64>();
            Ok(Found {
                source,
                numbers,
                fetched: 0,
                rows: KeptRows::new(relation, attributes, (*estate).es_query_cxt),
            })
        }
    }

    unsafe fn next(
        &mut self,
        found: &mut Found,
        _node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        // SAFETY: an empty virtual slot of the table.
        while !unsafe { found.rows.write_next(slot) } {
            if found.fetched == found.numbers.len() {
                return Ok(false);
            }
            let to = (found.fetched + ROWS_FETCHED).min(found.numbers.len());
            let numbers = found.numbers[found.fetched..to].to_vec();
            found.rows.fetch(&mut found.source, numbers);
            found.fetched = to;
        }
        Ok(true)
    }

    fn note(&mut self, found: &mut Found) {
        self.counters = found.source.counters();
    }

    unsafe fn end(found: Found) {
        found.source.end();
        // SAFETY: no slot holds a row.
        unsafe { found.rows.free() }
    }

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the node's plan.
        unsafe { RowPlan::of(explain.plan()).explain(explain) }
        if explain.is_analyze() {
            self.counters.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.kilobytes(c"Memory", self.bytes);
        }
    }
}
