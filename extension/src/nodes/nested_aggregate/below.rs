//! The aggregation or the window functions below a nested aggregation, under execution.

use super::finished::Finished;
use super::program::Program;
use super::state::NestedState;
use crate::custom_scan::callbacks::{node_of, running_of, state_of};
use crate::nodes::aggregate::state::{AggregateState, GroupReader};
use crate::nodes::engine::plan::EnginePlan;
use crate::nodes::window::partitioned::plan::PartitionedPlan;
use crate::nodes::window::partitioned::results::RowReader;
use crate::nodes::window::state::WindowState;
use crate::pg::exec::child::{Child, Instrument};
use crate::pg::exec::node::{CustomPlan, ExecNode};

/// The node whose groups or rows are aggregated, and the plan that PostgreSQL may have put between.
pub struct Below<'a> {
    /// The child of the node above: the aggregation, or a scan of the sub-select that is one.
    child: Child,
    aggregation: Child,
    plan: CustomPlan<'a>,
}

impl<'a> Below<'a> {
    /// The first child of a node, if it is an aggregation or computes window functions.
    pub fn of(node: ExecNode<'a>) -> Option<Below<'a>> {
        let child = *node.children().first()?;
        let aggregation = child.sub_select().unwrap_or(child);
        let below = node_of::<AggregateState>(aggregation);
        let below = below.or_else(|| node_of::<NestedState>(aggregation));
        let below = below.or_else(|| node_of::<WindowState>(aggregation))?;
        Some(Below {
            child,
            aggregation,
            plan: below.plan(),
        })
    }

    /// The plan of the aggregation.
    pub fn plan(&self) -> CustomPlan<'a> {
        self.plan
    }

    /// How many of the first entries are keys. The texts of rows with window functions are.
    pub fn keys(&self) -> usize {
        match node_of::<WindowState>(self.aggregation) {
            Some(node) => PartitionedPlan::of(node.plan()).text_columns(),
            None => EnginePlan::of(self.plan).keys.len(),
        }
    }

    /// Executes the node, and returns its groups or rows; `None` if PostgreSQL's own plan returns them. Of these, the
    /// program reads its wanted entries, if `takes_parts` one part of the groups after the other. Nobody else executes
    /// these nodes, so what PostgreSQL does before it requests a row from a node is done here.
    pub fn finished(&self, program: &Program, takes_parts: bool) -> Option<&'a mut dyn Finished> {
        if let Some(state) = state_of::<AggregateState>(self.aggregation) {
            state.reader = Some(GroupReader {
                numbered: program.grouped.clone(),
                takes_parts,
            });
        }
        if let Some(state) = state_of::<WindowState>(self.aggregation) {
            state.reader = Some(RowReader {
                wanted: program.wanted_entries(),
                takes_parts,
            });
        }
        for state in [self.child, self.aggregation] {
            state.rescan_if_changed();
        }
        // An instrument that is started twice is an error where it measures time.
        for instrument in self.instruments() {
            instrument.start();
        }
        let finished = self.run();
        for instrument in self.instruments() {
            instrument.stop(0.0);
        }
        finished
    }

    fn run(&self) -> Option<&'a mut dyn Finished> {
        if let Some((_, rows)) = running_of::<WindowState>(self.aggregation) {
            return rows.partitioned().map(|rows| rows as &mut dyn Finished);
        }
        let nested = || running_of::<NestedState>(self.aggregation);
        let results = match running_of::<AggregateState>(self.aggregation) {
            Some((_, results)) => Some(results),
            None => nested().map(|(_, results)| results),
        };
        let groups = results.and_then(|results| results.groups());
        groups.map(|groups| groups as &mut dyn Finished)
    }

    /// Counts the groups that were aggregated as rows that were returned, for EXPLAIN.
    pub fn count(&self, aggregated: usize, removed: usize) {
        for instrument in self.instruments() {
            instrument.add_rows(aggregated as f64);
        }
        self.aggregation.instrument().add_filtered(removed as f64);
    }

    fn instruments(&self) -> impl Iterator<Item = Instrument> {
        let both = [self.child, self.aggregation];
        let count = 1 + usize::from(self.child != self.aggregation);
        both.into_iter().take(count).map(Child::instrument)
    }
}
